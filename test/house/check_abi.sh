#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This tests `make abi-check`, which finds a removed function and a changed struct, but accepts a
# new function. The library is compiled again for each.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
command -v abidw >/dev/null || skip "no abidw (package abigail-tools)"
test -z "$SANITIZE" || skip "the interface is compared without sanitizers"
set -e

root=$(mktemp -d)
at_end "rm -rf '$root'"
cp -r include "$root"
# build LOCAL...: makes the library without these names, and with the headers in $root.
build()
{
	printf 'TIMINGWHEEL_1.0 { global: tw_*; local: %s *; };\n' "$*" >"$root/map"
	$CC -std=c11 -D_GNU_SOURCE -I"$root/include" -Isrc -g -fPIC -fvisibility=hidden -shared \
		-Wl,--version-script="$root/map" -o "$root/libtimingwheel.so" \
		"$BUILD"/src/timingwheel.c -pthread
}

# compare: runs the check with the record in $root.
compare()
{
	BUILD=$root ABI=$root HEADERS=$root/include/timingwheel src/packaging/abi_check.sh \
		libtimingwheel >"$root/said" 2>&1
}

# finds WHAT: checks that this is reported and failed.
finds()
{
	if compare || ! grep -q "$1" "$root/said" ||
		test "$(tail -n 1 "$root/said")" != "0 passed, 1 failed"; then
		cat "$root/said"
		echo "not found: $1"
		exit 1
	fi
}

build 'tw_flush;'
RECORD=yes compare
build
compare
test "$(tail -n 1 "$root/said")" = "1 passed, 0 failed"
RECORD=yes compare
build 'tw_flush;'
finds "tw_flush"
sed -i 's/^struct tw_stats {$/&\n	int broken;/' "$root/include/timingwheel/timingwheel.h"
build
finds "broken"
