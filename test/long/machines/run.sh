#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Called by `make machines`: run.sh "s390x arm64 musl" TEST... Builds the tests for each of these
# processors and runs them with qemu; or with musl in place of glibc. Prints what came of each; the
# last line is "N passed, N failed, N skipped".

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

# test_with COMPILER FOLDER ARGUMENT...
test_with()
{
	compiler=$1 in=$2
	shift 2
	MAKEFLAGS='' "${MAKE:-make}" --no-print-directory -j"$(nproc)" CC="$compiler" REDIS=no \
		BUILD="build/machines/$in" TEST_TIMEOUT=1200 "$@" test
}

# test_machine MACHINE: as under a sanitizer, a part of the long tests' work
test_machine()
{
	library=$(test/long/machines/cmocka.sh "$1" "$folder/cmocka-$1") || return
	if test "$1" = musl; then
		# These are partly C++, or need the unwinder.
		not='faults/% runtime/test_exceptions cache/test_callbacks'
		test_with musl-gcc musl CPPFLAGS="$CPPFLAGS -isystem $library/include" \
			LDFLAGS="$library/unwinder.o -L$library" \
			TESTS="\$(filter-out $not,$tests)"
	else
		processor=$(counterpart "$1")
		EMULATOR="qemu-$processor-static -L /usr/$processor-linux-gnu" \
			test_with "$processor-linux-gnu-gcc" "$1" CPPFLAGS="$CPPFLAGS" \
			LDFLAGS="-L$library -Wl,-rpath,$library" TESTS="$tests"
	fi
}

# is_there MACHINE
is_there()
{
	if test "$1" = musl; then
		has musl-gcc
	else
		has "$(counterpart "$1")-linux-gnu-gcc" "qemu-$(counterpart "$1")-static"
	fi
}

for machine in $machines; do
	log=$folder/$machine.log
	echo "== $machine"
	if ! is_there "$machine"; then
		echo "left out: try 'make deps-ci'"
		continue
	fi
	test_machine "$machine" 2>&1 | tee "$log"
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
