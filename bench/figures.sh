#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Keeps CSV files in one text file, from which the pages of bench/results can be made.
#
#     bench/figures.sh pack FOLDER NAME... >FILE    each NAME.csv of FOLDER, below "== NAME =="
#     bench/figures.sh unpack FILE FOLDER           the same files again
#     bench/figures.sh readme                       updates README.md's rows from the pages
set -eu

usage() {
	echo "usage: bench/figures.sh pack FOLDER NAME... | unpack FILE FOLDER | readme" >&2
	exit 2
}

case $#:${1-} in
1:readme)
	cd "$(dirname "$0")/.."
	# This is the first row with this title and number of cells.
	awk -F'|' '
		FILENAME != "README.md" {
			if (/^\|/ && !((NF, $2) in rows))
				rows[NF, $2] = $0
			next
		}
		/^<!--/ { inside = /^<!-- figures/ }
		{ print inside && /[0-9] \|$/ && (NF, $2) in rows ? rows[NF, $2] : $0 }
	' bench/results/summary.md bench/results/redis.md README.md >README.md.new
	mv README.md.new README.md
	;;
*:pack)
	folder=$2
	shift 2
	for name; do
		printf '== %s ==\n' "$name"
		cat "$folder/$name.csv"
	done
	;;
3:unpack)
	awk -v folder="$3" '/^== .* ==$/ { file = folder "/" $2 ".csv"; next } { print >file }' "$2"
	;;
*) usage ;;
esac
