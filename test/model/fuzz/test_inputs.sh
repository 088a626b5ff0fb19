#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the fuzz targets on the inputs that stand here, without a fuzzer: those that each kind of
# input begins with, and those that once found something.

cd "$(dirname "$0")/../../.." || exit 1

for target in $FUZZ_ALL; do
	printf '%s: ' "$target"
	"$FUZZ_BUILD/inputs_$target" test/model/fuzz/"$target"/* || exit 1
done
