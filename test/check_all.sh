#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Checks all there is to check, for a night: the tests at their whole length, by each compiler, on
# each server ($REDIS_SERVERS) and beside each sanitizer, the simulation, fuzzing, the model
# checker (where it is), coverage, other builds and processors, packages, what calls cost. What
# finds most comes first. The last line is "N passed, N failed, N skipped", the sum of them all.

cd "$(dirname "$0")/.." || exit 1
. test/support/steps.sh

run "make deps-ci"
run "make test-all"
run "make power-cuts"
run "make test-servers"
run "make SANITIZE=thread test"
run "make SANITIZE=address,undefined test"
run "make sim STEPS=300000000"
run "make fuzz FUZZ_SECONDS=60"
run "make CC=clang CXX=clang++ CFLAGS='-O2 -g -Werror' BUILD=build/clang test"
run "make CC=clang SANITIZE=address,undefined REDIS=no BUILD=build/clang-address test"
if command -v genmc >/dev/null; then
	run "make model-check"
else
	echo "== make model-check: left out, for GenMC is not there"
fi
run "make coverage"
run "make builds ALL=yes"
run "make test-packages"
run "make machines"
run "make debians"
run "make costs"
run "make format-check"

end_steps
