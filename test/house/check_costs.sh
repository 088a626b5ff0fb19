#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This tests `make costs`, which fails if a row is dearer by more than its rules allow, or is new or
# gone. It passes if no row has changed, or if the tools are not those of the record.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
folder=$(mktemp -d) || exit 1
at_end "rm -rf '$folder'"

cat >"$folder/record" <<'END'
# gcc version 12.2.0
core.set      1000.00    4.000    0.000   2.000   0.004
cache.get      200.00    4.000    1.000   1.000   0.000
bytes.core 140.0
shared.hit        0     0.0000
END
status=0

# expect STATUS TITLE SUBSTITUTION [WORDS]: runs with the record changed by sed, and checks the last
# line.
expect() {
	sed "$3" "$folder/record" >"$folder/now"
	awk -f bench/costs/check.awk "$folder/record" "$folder/now" >"$folder/said"
	got=$?
	if test $got != "$1" || ! grep -qF -e "${4-passed}" "$folder/said"; then
		echo "$2: status $got instead of $1, or it does not say '${4-passed}'"
		cat "$folder/said"
		status=1
	fi
}

expect 0 'nothing has changed' '' '4 passed, 0 failed'
expect 0 'one percent more' 's/1000.00/1010.00/' '4 passed, 0 failed'
expect 1 'more than one percent' 's/1000.00/1011.00/' 'DEARER'
expect 0 'two instructions of two hundred' 's/200.00/202.00/'
expect 1 'three instructions of two hundred' 's/200.00/203.00/' '3 passed, 1 failed'
expect 1 'a locked instruction' 's/ 1.000   0.000/ 2.000   0.000/' 'locked'
expect 1 'a system call' 's/0.004$/1.004/' 'system calls'
expect 1 'a line of memory' 's/ 4.000    1/ 5.000    1/' 'D1 misses'
expect 1 'bytes of an element' 's/140.0/142.0/' 'bytes'
expect 1 'a shared line' 's/shared.hit        0/shared.hit        1/' 'shared.hit'
expect 1 'a store to a shared line' 's/0.0000/0.5000/' 'shared.hit'
expect 0 'it has become cheaper' 's/1000.00/900.00/' 'cheaper'
expect 1 'a row is new' '2s/.*/&\ncore.move 1 1 1 1 1/' 'NEW'
expect 1 'a row is gone' '/^bytes/d; 2s/$/\nbytes.other 1/' 'GONE'
expect 0 'a program was not built' '/^cache/d' '3 passed, 0 failed'
expect 0 'another compiler' 's/12.2.0/13.1.0/; s/1000.00/2000.00/' 'The record is of'
exit $status
