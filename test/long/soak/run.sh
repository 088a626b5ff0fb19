#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Called by `make soak` with BUILD: run.sh HOURS SEED. Runs the soak and leaves a line each five
# seconds in soak.csv, and the summary in soak.md.

cd "$(dirname "$0")/../../.." || exit 1
results=${BUILD:?}/soak
hours=$1 seed=$2

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
exit $status
