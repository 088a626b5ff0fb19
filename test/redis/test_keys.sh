#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Calls name every key that their scripts touch, except those that keys/declared.lua lists. Tests
# run again with scripts that refuse other keys, and all scripts must have run.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

SEEN=$(mktemp) || exit 1
export SEEN
at_end "rm -f '$SEEN'"
for test in $KEY_TESTS; do
	"$BUILD/test/redis/keys/all" "test_$test" || exit 1
done
for script in src/redis/scripts/*.lua; do
	grep -qx "$(basename "$script" .lua)" "$SEEN" && continue
	echo "no test here runs $script"
	exit 1
done
