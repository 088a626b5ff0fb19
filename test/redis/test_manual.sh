#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The page twr(1) has the commands and options that `twr --help` names, and no others.

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

exit $status
