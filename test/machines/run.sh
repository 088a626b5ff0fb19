#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Called by `make machines`: run.sh "s390x arm64" TEST... Builds the tests for each of these
# processors and runs them with qemu. What came of it, and where, is in build/machines/result.txt,
# and with UPDATE=yes in test/machines/result.txt. The last line is "N passed, N failed".

cd "$(dirname "$0")/../.." || exit 1
machines=$1
shift
tests=$*
passed=0 failed=0
results=$(pwd)/build/machines
unset BUILD CC CXX SANITIZE
mkdir -p "$results"

# counterpart MACHINE: its name in the names of compilers, and of the emulator
counterpart()
{
	case $1 in
	arm64) echo aarch64 ;;
	*) echo "$1" ;;
	esac
}

has()
{
	for program; do
		command -v "$program" >/dev/null || return 1
	done
}

# test_machine MACHINE PROCESSOR
test_machine()
{
	processor=$2
	library=$(test/machines/cmocka.sh "$1" "$results/cmocka-$1") || return
	EMULATOR="qemu-$processor-static -L /usr/$processor-linux-gnu" \
		MAKEFLAGS='' "${MAKE:-make}" --no-print-directory -j"$(nproc)" \
		CC="$processor-linux-gnu-gcc" REDIS=no \
		BUILD="build/machines/$1" LDFLAGS="-L$library -Wl,-rpath,$library" \
		TEST_TIMEOUT=1200 TESTS="$tests" test
}

for machine in $machines; do
	log=$results/$machine.log
	processor=$(counterpart "$machine")
	echo "== $machine"
	if ! has "$processor-linux-gnu-gcc" "qemu-$processor-static"; then
		echo "left out: try 'make deps-ci'"
		continue
	fi
	test_machine "$machine" "$processor" 2>&1 | tee "$log"
	counts=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed$')
	if test -z "$counts"; then
		counts="0 passed, 1 failed"
	fi
	# shellcheck disable=SC2086 # the counts with their words
	set -- $counts
	passed=$((passed + $1)) failed=$((failed + $3))
	summary="$summary$machine: $counts
"
done

commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
test -z "$(git status --porcelain 2>/dev/null)" || commit="$commit, with changes"
{
	echo "make machines, $(date -u +%Y-%m-%d), commit $commit, $(qemu-s390x-static --version |
		sed -n '1s/.*version \([0-9.]*\).*/qemu \1/p')"
	printf '%s' "$summary"
} >"$results/result.txt"
test "$UPDATE" != yes || cp "$results/result.txt" test/machines/result.txt
cat "$results/result.txt"
echo "$passed passed, $failed failed"
test $failed = 0
