#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The page twr(1) has the commands and options that `twr --help` names, and no others; the tests
# that timingwheel-redis(7) names are there, and so are the deeds of the nemesis.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

folder=$(mktemp -d)
at_end "rm -rf '$folder'"
status=0

# compare WHAT: compares the lists help and page in the folder
compare()
{
	for list in help page; do
		sort -u "$folder/$list" >"$folder/$list.sorted"
		test -s "$folder/$list" || { echo "no $1 in the $list" && status=1; }
	done
	if ! diff "$folder/help.sorted" "$folder/page.sorted"; then
		echo "$1: < only twr --help has it, > only twr(1) has it"
		status=1
	fi
}

"$BUILD/twr" --help >"$folder/text" || exit 1

sed -n 's/^  --\([a-z-]*\).*/\1/p' "$folder/text" >"$folder/help"
sed -n 's/^\.It Fl -\([a-z-]*\).*/\1/p' src/man/twr.1 >"$folder/page"
compare option

sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p' "$folder/text" >"$folder/help"
sed -n '/^\.Sh COMMANDS/,/^\.Sh OPTIONS/s/^\.It Cm //p' src/man/twr.1 >"$folder/page"
compare command

# Each paragraph names a file and functions in it, or deeds.
awk '
	/^\.Em Shown by/ { inside = 1; file = ""; next }
	/^\.(It|El)/ { inside = 0 }
	inside && /^the deeds?$/ { file = "torture/nemesis"; next }
	inside && /^\.Pa / { file = $2 }
	inside && /^\.Li [a-z]/ { print file, $2 }' src/man/timingwheel-redis.7 >"$folder/shown"
while read -r file name; do
	case $file in
	torture/*) pattern="{\"$name\"," ;;
	*) pattern="^[A-Z]*([a-z_]*, $name)" ;;
	esac
	if ! grep -q -e "$pattern" "test/redis/$file.c"; then
		echo "timingwheel-redis(7) names $file $name, which is not there"
		status=1
	fi
done <"$folder/shown"
test "$(wc -l <"$folder/shown")" -gt 50 || { echo "fewer than 50 tests are named" && status=1; }
exit $status
