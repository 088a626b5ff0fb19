#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Called by `make machines`: run.sh "s390x arm64" TEST... Builds the tests for each of these
# processors and runs them with qemu. Says of each machine what came of it; the last line is
# "N passed, N failed, N skipped".

cd "$(dirname "$0")/../../.." || exit 1
machines=$1
shift
tests=$*
passed=0 failed=0 skipped=0
folder=$(pwd)/build/machines
unset BUILD CC CXX SANITIZE
mkdir -p "$folder"

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

# test_machine MACHINE PROCESSOR: as under a sanitizer, a part of the long tests' work
test_machine()
{
	processor=$2
	library=$(test/long/machines/cmocka.sh "$1" "$folder/cmocka-$1") || return
	EMULATOR="qemu-$processor-static -L /usr/$processor-linux-gnu" \
		MAKEFLAGS='' "${MAKE:-make}" --no-print-directory -j"$(nproc)" \
		CC="$processor-linux-gnu-gcc" REDIS=no CPPFLAGS="$CPPFLAGS" \
		BUILD="build/machines/$1" LDFLAGS="-L$library -Wl,-rpath,$library" \
		TEST_TIMEOUT=1200 TESTS="$tests" test
}

for machine in $machines; do
	log=$folder/$machine.log
	processor=$(counterpart "$machine")
	echo "== $machine"
	if ! has "$processor-linux-gnu-gcc" "qemu-$processor-static"; then
		echo "left out: try 'make deps-ci'"
		continue
	fi
	test_machine "$machine" "$processor" 2>&1 | tee "$log"
	counts=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$')
	if test -z "$counts"; then
		counts="0 passed, 1 failed, 0 skipped"
	fi
	# shellcheck disable=SC2086 # the counts with their words
	set -- $counts
	passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
	summary="$summary$machine: $counts
"
done

printf '%s' "$summary"
echo "$passed passed, $failed failed, $skipped skipped"
test $failed = 0
