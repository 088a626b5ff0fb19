#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The README is short, its figures are lines of bench/results, and what its links and those of the
# other pages lead to is there.

cd "$(dirname "$0")/.." || exit 1

if ! test -f README.md; then
	echo "no README.md"
	exit 77
fi

status=0
complain()
{
	echo "$*"
	status=1
}

size=$(wc -c <README.md)
test "$size" -le 12288 || complain "README.md has $size bytes, more than 12 KB"

figures=$(sed -n '/^<!-- figures/,/^<!-- \/figures/{/^| [^|].*[0-9] |$/p}' README.md)
test -n "$figures" || complain "README.md has no figures"
while read -r line; do
	grep -qxF -e "$line" bench/results/summary.md bench/results/redis.md ||
		complain "no line of bench/results: $line (bench/run.sh --update makes others)"
done <<END
$figures
END

for page in README.md src/README.md src/redis/README.md bench/results/README.md; do
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
