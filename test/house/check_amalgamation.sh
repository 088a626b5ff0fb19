#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This tests `make amalgamation`: gcc and, if installed, clang compile its source with a program
# that uses it, by one command, without a warning. Only tw_* names are global.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
set -e

root=$(mktemp -d)
at_end "rm -rf '$root'"
MAKEFLAGS='' MFLAGS='' "${MAKE:-make}" BUILD="$root" amalgamation
cd "$root/amalgamation"

cat >user.c <<'END'
#include "timingwheel.h"

#include <stdio.h>

static void say(void *context, const struct tw_task *task)
{
	(void)context;
	printf("%.*s", (int)task->key_size, (const char *)task->key);
}

int main(void)
{
	struct tw_options options = {.clock = TW_CLOCK_MANUAL};
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	char value[8] = "";

	if (tw_create(&wheel, TW_MILLISECOND, 512, say, &options) != TW_OK ||
	    tw_set_timer(wheel, "wheel ", 6, NULL, TW_MILLISECOND) != TW_OK ||
	    tw_advance(wheel, TW_MILLISECOND) != TW_OK || tw_wait_idle(wheel) != TW_OK)
		return 1;
	if (tw_cache_create(&cache, TW_SECOND, NULL) != TW_OK ||
	    tw_cache_set(cache, "key", 3, "cache", 6) != TW_OK ||
	    tw_cache_get(cache, "key", 3, value, sizeof(value), NULL) != TW_OK)
		return 1;
	puts(value);
	tw_cache_destroy(cache);
	tw_destroy(wheel);
	return 0;
}
END

# try COMPILER
try()
{
	"$1" -Wall -Wextra -Werror -o user user.c timingwheel.c -pthread
	said=$(timeout 60 ./user)
	test "$said" = "wheel cache"
}

try gcc
if command -v clang >/dev/null; then
	try clang
fi
$CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -xc++ - <timingwheel.h

gcc -c timingwheel.c
others=$(nm -g --defined-only timingwheel.o | awk '$3 !~ /^tw_/ { print $3 }')
if test -n "$others"; then
	echo "global names: $others"
	exit 1
fi
