#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests a soak of half a minute, with small storms: its checks pass, and it writes its files.

cd "$(dirname "$0")/../../.." || exit 1
results=${BUILD:?}/soak/short
mkdir -p "$results"
"$BUILD/test/long/soak/soak" --seconds=15 --storm=30000 --seed="${SEED:-$(date +%s)}" \
	--csv="$results/soak.csv" --summary="$results/soak.md" || exit 1
test "$(wc -l <"$results/soak.csv")" -gt 2
