#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Called by `make soak` with BUILD: run.sh HOURS SEED [yes]. Runs the soak and leaves a line each
# five seconds in soak.csv, the summary in soak.md, and a plot in soak.svg; with "yes" they also
# become bench/results/.

cd "$(dirname "$0")/../../.." || exit 1
results=${BUILD:?}/soak
hours=$1 seed=$2 update=$3

mkdir -p "$results"
commit=$(bench/revision.sh)
seconds=$(awk -v hours="$hours" 'BEGIN { printf "%d", hours * 3600 }')

"$BUILD/test/long/soak/soak" --seconds="$seconds" --seed="$seed" --commit="$commit" \
	--csv="$results/soak.csv" --summary="$results/table.md"
status=$?
test -s "$results/table.md" || exit 1
{
	echo "<!-- Made by make soak; edits are lost. -->"
	date -u '+Soak of %Y-%m-%d.'
	echo
	cat "$results/table.md"
} >"$results/soak.md"
if command -v gnuplot >/dev/null; then
	gnuplot -e "folder='$results'" test/long/soak/plot.gnuplot
else
	echo "gnuplot is not there: no plot"
fi
if test $status = 0 && test "$update" = yes; then
	cp "$results/soak.md" "$results/soak.svg" bench/results/
	echo "bench/results is up to date"
fi
exit $status
