#!/bin/bash
# SPDX-License-Identifier: MIT
#
# This runs the checks of the guarantees, one after the other, and keeps the results for
# test/PROOF.md. Checks that take hours are run by themselves, with their records:
#
#     test/proof/record.sh mutants "make mutants SAMPLE=all"
#     test/proof/record.sh machines "make machines"
#     test/proof/record.sh soak "make soak HOURS=2"
#     test/proof/record.sh torture-long "make torture-redis SECONDS=3600"
#
# The last line is "N passed, N failed".

cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL MFLAGS
passed=0 failed=0

keep()
{
	if test/proof/record.sh "$@"; then ((passed++)); else ((failed++)); fi
}

keep model "make model-check MORE=1"
keep simulation "make sim SEED=20261124 STEPS=1000000000"
keep coverage "make coverage"
keep failures "make failures"
keep fuzz "make fuzz FUZZ_SECONDS=60"
keep torture "make torture-redis SECONDS=60"
if test/proof/page.sh; then ((passed++)); else ((failed++)); fi
echo "$passed passed, $failed failed"
((failed == 0))
