#!/bin/sh
# SPDX-License-Identifier: MIT
#
# find.sh WORD NAME...: prints the names of the tests that WORD means, for `make test T=WORD`: those
# of a folder ("cache"), those whose name has the word ("cache/take", "take"), or else those with a
# case that is called so; then also CASE= and a pattern for the names of these cases.

cd "$(dirname "$0")/.." || exit 1
word=$1
shift
found=
for name; do
	case $name in
	"$word"/* | */*"${word#*/}"*)
		case $name in
		"${word%/*}"/*) found="$found $name" ;;
		*) test "$word" != "${word#*/}" || found="$found $name" ;;
		esac
		;;
	esac
done
if test -z "$found"; then
	pattern="^[A-Z_]*(.*, .*$word\|^STEPS(.*$word\|^== .*$word"
	for name; do
		for file in "test/$name.c" "test/$name.t"; do
			test -f "$file" && grep -q "$pattern" "$file" && found="$found $name"
		done
	done
	test -z "$found" || found="$found CASE=*$word*"
fi
echo "$found"
