#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This runs the fuzz targets, without a fuzzer, on the inputs stored here: the first ones of each
# kind, and those that once found a fault.

cd "$(dirname "$0")/../../.." || exit 1

for target in $FUZZ_ALL; do
	printf '%s: ' "$target"
	"$FUZZ_BUILD/inputs_$target" test/model/fuzz/"$target"/* || exit 1
done
