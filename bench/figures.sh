#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Keeps CSV files in one text file, from which the pages of bench/results can be made again.
#
#     bench/figures.sh pack FOLDER NAME... >FILE    each NAME.csv of FOLDER, below "== NAME =="
#     bench/figures.sh unpack FILE FOLDER           the same files again
set -eu

usage() {
	echo "usage: bench/figures.sh pack FOLDER NAME... | unpack FILE FOLDER" >&2
	exit 2
}

test $# -ge 3 || usage
case $1 in
pack)
	folder=$2
	shift 2
	for name; do
		printf '== %s ==\n' "$name"
		cat "$folder/$name.csv"
	done
	;;
unpack)
	awk -v folder="$3" '/^== .* ==$/ { file = folder "/" $2 ".csv"; next } { print >file }' "$2"
	;;
*) usage ;;
esac
