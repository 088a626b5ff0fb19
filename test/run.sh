#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the named tests one after the other and sums up: run.sh test_wheel check_layers ...
# A name is a cmocka program in $BUILD/test or a script in test/, which counts as one test (exit
# status 77: skipped). `make test` calls this with the environment it needs. The last line is
# always "N passed, N failed".

cd "$(dirname "$0")/.." || exit 1

# A request that no memory could satisfy must return NULL under the sanitizers as it does without.
export ASAN_OPTIONS="${ASAN_OPTIONS:-allocator_may_return_null=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-allocator_may_return_null=1}"
export CMOCKA_MESSAGE_OUTPUT=STDOUT

# With as much address randomization as newer kernels have, the sanitizers' shadow memory does not
# always find its place.
fixed_addresses=
if test -n "$SANITIZE" && setarch -R true 2>/dev/null; then
	fixed_addresses="setarch -R"
fi

passed=0
failed=0

# cmocka_count LOG PASSED|FAILED: the sum over its groups; nothing if cmocka did not get there.
cmocka_count()
{
	sed -n "s/.*\[  $2  \] \([0-9][0-9]*\) test(s).*/\1/p" "$1" |
		awk '{ sum += $1 } END { if (NR) print sum }'
}

# run NAME COMMAND
run()
{
	log=$BUILD/test/$1.log
	mkdir -p "$(dirname "$log")"
	# --foreground: an interrupt from the terminal reaches the test too.
	$fixed_addresses timeout --foreground -k 10 "$TEST_TIMEOUT" "$2" >"$log" 2>&1 </dev/null
	status=$? ended=

	case $2 in
	*.sh)
		if test $status = 77; then
			printf '  skipped %-28s %s\n' "$1" "$(tail -n 1 "$log")"
			return
		fi
		good=$((status == 0)) bad=0
		;;
	*)
		good=$(cmocka_count "$log" PASSED)
		bad=$(cmocka_count "$log" FAILED)
		# A program that ends before its tests do has not passed.
		test -n "$good$bad" || ended=early
		;;
	esac
	good=${good:-0} bad=${bad:-0}
	test "$status$ended" = 0 || test "$bad" != 0 || bad=1

	passed=$((passed + good))
	failed=$((failed + bad))
	if test "$bad" = 0; then
		printf '  ok      %-28s %s\n' "$1" "$good"
		return
	fi
	case $status in
	0) why="ended before its tests did" ;;
	124 | 137) why="ran over $TEST_TIMEOUT seconds" ;;
	*) why="exit status $status" ;;
	esac
	tail -n 200 "$log"
	printf '  FAILED  %-28s %s passed, %s failed (%s; all of it: %s)\n' \
		"$1" "$good" "$bad" "$why" "$log"
}

for name; do
	if test -f "test/$name.sh"; then
		run "$name" "test/$name.sh"
	else
		run "$name" "$BUILD/test/$name"
	fi
done

echo "$passed passed, $failed failed"
test $failed = 0
