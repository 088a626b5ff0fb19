#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the named tests and sums up: run.sh test_wheel check_layers ...
# A name is a file of cases in test/, which a program in $BUILD/test has, a transcript there, or a
# script, that counts as one test (exit status 77: skipped). `make test` calls this with the
# environment it needs. Tests run side by side, $TEST_JOBS at a time: by default four times as many
# as there are processors, for many do little but wait, and twice as many beside a sanitizer or an
# emulator.
# Those in $TESTS_ALONE come last, one by one. $EMULATOR, a command with its options, runs programs
# for another processor. What is said of a test is said at once, when it ends; what failed, and why,
# is said again at the end, and so is what was skipped. The last line is always
# "N passed, N failed, N skipped".

cd "$(dirname "$0")/.." || exit 1
. test/support/script.sh

# program_of NAME: the program that has the test's cases, as the Makefile has it.
program_of()
{
	case " $TESTS_APART " in
	*" $1 "*)
		echo "$1"
		return
		;;
	esac
	case $1 in
	*_yields) echo "${1%/*}/all_yields" ;;
	*/*) echo "${1%/*}/all" ;;
	*) echo "$1" ;;
	esac
}

# cut_off LOG: the case that ran when the program ended, if one did.
cut_off()
{
	awk '
	/^\[ RUN      \] / { name = substr($0, 14); runs = 1 }
	/^\[ *(OK|FAILED|SKIPPED) *\] / { runs = 0 }
	END { if (runs) print name; exit !runs }' "$1"
}

# run NAME: into its log; answers "NAME STATUS". Temporary files of a test that is killed go with
# their folder. A case that ends its program has failed, and those after it are run.
run()
{
	TMPDIR=$(mktemp -d) || exit
	export TMPDIR
	at_end "rm -rf '$TMPDIR'"
	log=$BUILD/test/$1.log
	if test -f "test/$1.sh"; then
		program=test/$1.sh file=
	elif test -f "test/$1.t"; then
		program=test/redis/transcript.sh file=test/$1.t
	else
		program=$BUILD/test/$(program_of "$1") file=${1##*/}
	fi
	mkdir -p "$(dirname "$log")"
	: >"$log"
	export AFTER=
	ended=0
	while :; do
		began=$(wc -l <"$log")
		# --foreground: an interrupt from the terminal reaches the test too.
		# In braces, so that what the shell says of a crash is in the log, too.
		# shellcheck disable=SC2086 # a command and its options
		{ $fixed_addresses timeout --foreground -k 10 "$TEST_TIMEOUT" $EMULATOR "$program" \
			$file </dev/null; } >>"$log" 2>&1
		status=$?
		test $ended = 0 && ended=$status
		case $status in
		0 | 124 | 137) break ;;
		esac
		case=$(cut_off "$log") && test "$case" != "$AFTER" || break
		AFTER=$case
		passed=$(tail -n "+$((began + 1))" "$log" | grep -c '^\[       OK \] ')
		cat >>"$log" <<-END
			[  ERROR   ] --- ended its program with status $status
			[   LINE   ] --- $AFTER: error: Failure!
			[  PASSED  ] $passed test(s).
			[  FAILED  ] 1 test(s), listed below:
			[  FAILED  ] $AFTER
		END
	done
	echo "$1 $ended"
}

# run_all JOBS NAME...: that many at a time.
run_all()
{
	jobs=$1
	shift
	test $# = 0 || printf '%s\n' "$@" | xargs -n 1 -P "$jobs" test/run.sh --one
}

# cmocka_count LOG PASSED|FAILED|SKIPPED: the sum over its groups, nothing if cmocka did not get
# there. cmocka 2 writes a group's name before the number.
cmocka_count()
{
	sed -n "s/.*\[  $2  *\] \(.*: \)\{0,1\}\([0-9][0-9]*\) test(s).*/\2/p" "$1" |
		awk '{ sum += $1 } END { if (NR) print sum }'
}

# why NAME LOG STATUS: the first thing that went wrong, in one line.
why()
{
	case $3 in
	0) end="ended before its tests did" ;;
	124 | 137) end="ran over $TEST_TIMEOUT seconds" ;;
	*) end="exit status $3" ;;
	esac
	awk -v name="$1" -v end="$end" '
	function tell(text) {
		print name ": " (test == "" ? "" : test ": ") text
		told = 1
		exit
	}
	# With fail_msg() the text is in a line of its own.
	/^ERROR: / { said = substr($0, 8) }
	/^\[ RUN      \] / { test = substr($0, 14); said = "" }
	/^\[       OK \] / { test = "" }
	/^\[  ERROR   \] --- [^[]/ { said = substr($0, 18) }
	sub(/^.*\[   LINE   \] --- /, "") { sub(/ error: Failure!$/, ""); tell($0 " " said) }
	/Assertion .* failed|^SUMMARY: |: runtime error: / { tell($0) }
	/^[^[]/ { last = $0 }
	END {
		if (!told)
			tell(end (last == "" ? "" : "; last line: " last))
	}' "$2"
}

# why_skipped NAME LOG: the reasons of a program's cases that were skipped, a line each: what a case
# printed last.
why_skipped()
{
	awk -v name="$1" '
	/^\[ RUN      \] / { runs = 1; said = "" }
	/^\[=/ { runs = 0 }
	/^[^[]/ { said = $0 }
	/^\[  SKIPPED \] / {
		if (runs && !told[said]++)
			print name ": " said
		runs = 0
	}' "$2"
}

# judge NAME STATUS: says what came of it, and counts.
judge()
{
	log=$BUILD/test/$1.log
	status=$2 ended=

	if test -f "test/$1.sh"; then
		if test "$status" = 77; then
			echo "  skipped $1"
			skipped=$((skipped + 1))
			skips="$skips$1: $(tail -n 1 "$log")
"
			return
		fi
		good=$((status == 0)) bad=0
	else
		good=$(cmocka_count "$log" PASSED)
		bad=$(cmocka_count "$log" FAILED)
		count=$(cmocka_count "$log" SKIPPED)
		if test -n "$count"; then
			skipped=$((skipped + count))
			skips="$skips$(why_skipped "$1" "$log")
"
		fi
		# A program that ends before its tests do has not passed.
		test -n "$good$bad" || ended=early
	fi
	good=${good:-0} bad=${bad:-0}
	test "$status$ended" = 0 || test "$bad" != 0 || bad=1

	passed=$((passed + good))
	failed=$((failed + bad))
	test -z "$V" || cat "$log"
	if test "$bad" = 0; then
		printf '  ok      %-28s %s\n' "$1" "$good"
		return
	fi
	reason=$(why "$1" "$log" "$status")
	reasons="$reasons$reason
"
	tail -n 200 "$log"
	printf '  FAILED  %-28s %s passed, %s failed; all of it: %s\n%s\n' \
		"$1" "$good" "$bad" "$log" "$reason"
}

# report COUNT: of so many tests, as they end.
report()
{
	passed=0 failed=0 skipped=0 ended_count=0 reasons='' skips=''
	while read -r name status; do
		ended_count=$((ended_count + 1))
		judge "$name" "$status"
	done
	if test $ended_count != "$1"; then
		failed=$((failed + $1 - ended_count))
		reasons="${reasons}only $ended_count of $1 tests came to an end
"
	fi
	test -z "$skips" || printf '%s' "$skips" | sed 's/^/skipped: /'
	printf '%s' "$reasons"
	echo "$passed passed, $failed failed, $skipped skipped"
	test $failed = 0
}

if test "$1" = --one; then
	run "$2"
	exit
fi

# A request that no memory could satisfy must return NULL under the sanitizers as it does without.
# Without a signal stack for each thread: clang's sanitizer may find its own, of a thread that
# was cancelled, poisoned.
export ASAN_OPTIONS="${ASAN_OPTIONS:-allocator_may_return_null=1:use_sigaltstack=0}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-allocator_may_return_null=1}"
export CMOCKA_MESSAGE_OUTPUT=STDOUT

# With as much address randomization as newer kernels have, the sanitizers' shadow memory does not
# always find its place.
export fixed_addresses=
if test -n "$SANITIZE" && setarch -R true 2>/dev/null; then
	fixed_addresses="setarch -R"
fi

at_a_time=4
test -z "$SANITIZE$EMULATOR" || at_a_time=2
beside='' alone=''
for name; do
	case " $TESTS_ALONE " in
	*" $name "*) alone="$alone $name" ;;
	*) beside="$beside $name" ;;
	esac
done

# shellcheck disable=SC2086 # names
{
	run_all "${TEST_JOBS:-$(($(nproc) * at_a_time))}" $beside
	run_all 1 $alone
} | report $#
