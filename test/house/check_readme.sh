#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that the README is short and that its figures are lines of bench/results, whose pages
# name their commit and day. The targets of the pages' links exist, and each row of a table has a
# cell for each column.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

test -f README.md || skip "no README.md"

status=0
complain()
{
	echo "$*"
	status=1
}

size=$(wc -c <README.md)
test "$size" -le 10240 || complain "README.md has $size bytes, more than 10 KB"

figures=$(sed -n '/^<!-- figures/,/^<!-- \/figures/{/^| [^|].*[0-9] |$/p}' README.md)
test -n "$figures" || complain "README.md has no figures"
while read -r line; do
	grep -qxF -e "$line" bench/results/[!R]*.md ||
		complain "no line of bench/results: $line (make bench ARGS=--update makes others)"
done <<END
$figures
END

for page in summary redis peers; do
	grep -qE 'commit [0-9a-f]{7,}' "bench/results/$page.md" ||
		complain "$page.md does not say its commit"
	grep -qE '20[0-9]{2}-[01][0-9]-[0-3][0-9]' "bench/results/$page.md" ||
		complain "$page.md does not say its day"
done

# A table's rows have as many cells as its head. A "\|" divides none.
ragged=$(awk 'FNR == 1 { columns = 0; fenced = 0 }
	/^```/ { fenced = !fenced }
	fenced || !/^\|/ { columns = 0; next }
	{
		line = $0
		gsub(/\\\|/, "", line)
		cells = gsub(/\|/, "", line)
		if (!columns)
			columns = cells
		else if (cells != columns)
			print FILENAME ":" FNR ": " cells - 1 " cells, and not " columns - 1
	}' README.md .github/*.md src/*.md src/redis/*.md bench/results/*.md)
test -z "$ragged" || complain "$ragged"

for page in README.md .github/SECURITY.md src/README.md src/redis/README.md \
	bench/results/README.md; do
	# shellcheck disable=SC2013 # a link has no blanks
	for link in $(grep -o '](*[^)]*)' "$page" | sed 's/^](//; s/)$//'); do
		case $link in
		*://*) ;;
		'#'*)
			# A heading, as its anchor is written.
			sed -n 's/^##* //p' "$page" | tr 'A-Z ' 'a-z-' | tr -d "',." |
				grep -qxF -e "${link#?}" || complain "$page has no part $link"
			;;
		*) test -e "$(dirname "$page")/$link" || complain "$page: there is no $link" ;;
		esac
	done
done
exit $status
