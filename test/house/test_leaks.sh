#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that a program with LeakSanitizer finds what a wheel and a cache hold as it exits,
# though the library is not compiled for it.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

test -z "$SANITIZE" || skip "the library is compiled for a sanitizer"
folder=$(mktemp -d) || exit 1
at_end "rm -rf '$folder'"

cat >"$folder/held.c" <<-'END'
	#include <stdlib.h>
	#include <timingwheel/cache.h>

	static void execute(void *context, const struct tw_task *task)
	{
		free(task->value);
	}

	int main(void)
	{
		static struct tw_wheel *wheel;
		static struct tw_cache *cache;
		void *value = malloc(1);
		int bad = tw_create(&wheel, TW_SECOND, 64, execute, NULL) ||
			  tw_cache_create(&cache, TW_HOUR, NULL) ||
			  tw_cache_set(cache, "key", 3, &value, sizeof(value));

		for (int key = 0; key < 1000; key++)
			bad |= tw_set_timer(wheel, &key, sizeof(key), malloc(1), TW_HOUR) ||
			       tw_after_func(wheel, TW_HOUR, free, malloc(1), NULL);
		value = NULL;
		return bad;
	}
END
for compiler in $(command -v "$CC" clang); do
	"$compiler" -fsanitize=address -Iinclude "$folder/held.c" "$BUILD/libtimingwheel.a" \
		-pthread -o "$folder/held" && "$folder/held" || exit 1
done
