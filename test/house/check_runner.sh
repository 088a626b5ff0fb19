#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This tests run.sh with small programs that pass, fail, crash, hang, end early and are skipped: it
# counts them correctly, and reports last why a test failed.

cd "$(dirname "$0")/../.." || exit 1
set -e
. test/support/script.sh

root=$(mktemp -d)
at_end "rm -rf '$root'"
mkdir -p "$root/test/support" "$root/build/test" "$root/temporary"
cp test/run.sh "$root/test"
cp test/support/script.sh "$root/test/support"

# program FILE: makes a script from stdin.
program()
{
	{
		echo '#!/bin/sh'
		cat
	} >"$root/$1"
	chmod +x "$root/$1"
}

program build/test/passes <<'END'
echo '[  PASSED  ] 3 test(s).'
END
program build/test/fails <<'END'
echo '[ RUN      ] adds_up'
echo '[  ERROR   ] --- 0x1 != 0x2'
echo '[   LINE   ] --- sums.c:12: error: Failure!'
echo '[  PASSED  ] 2 test(s).'
echo '[  FAILED  ] 1 test(s), listed below:'
exit 1
END
# This prints like cmocka 2.
program build/test/fails_twice <<'END'
echo '[ RUN      ] adds_up'
echo '[  ERROR   ] --- 1 != 2'
echo '[   LINE   ] --- sums.c:13: error: Failure!'
echo '[  PASSED  ] 1 test(s).'
echo '[  FAILED  ] tests: 2 test(s), listed below:'
exit 2
END
program build/test/skips_some <<'END'
echo '[ RUN      ] asks_gdb'
echo 'no gdb'
echo '[  SKIPPED ] asks_gdb'
echo '[ RUN      ] asks_gdb_again'
echo 'no gdb'
echo '[  SKIPPED ] asks_gdb_again'
echo '[ RUN      ] adds_up'
echo '[       OK ] adds_up'
echo '[==========] tests: 6 test(s) run.'
echo '[  PASSED  ] 4 test(s).'
echo '[  SKIPPED ] tests: 2 test(s), listed below:'
echo '[  SKIPPED ] asks_gdb'
echo '[  SKIPPED ] asks_gdb_again'
END
program build/test/says_why <<'END'
echo '[ RUN      ] adds_up'
echo 'ERROR: 7 are left'
echo '[  ERROR   ] --- [   LINE   ] --- sums.c:34: error: Failure!'
echo '[  FAILED  ] 1 test(s), listed below:'
exit 1
END
program build/test/crashes <<'END'
if test "$AFTER" = 'is_sound (twice)'; then
	echo '[ RUN      ] is_left'
	echo '[       OK ] is_left'
	echo '[  PASSED  ] 1 test(s).'
	exit
fi
echo '[ RUN      ] is_first'
echo '[       OK ] is_first'
echo '[ RUN      ] is_sound (twice)'
echo 'crashes: sums.c:56: sum: Assertion `n > 0'\'' failed.'
kill -ABRT $$
END
program build/test/hangs <<'END'
echo '[ RUN      ] comes_to_an_end'
mktemp -d >/dev/null
exec sleep 60
END
program build/test/ends_early <<'END'
echo 'nothing'
END
program test/is_skipped.sh <<'END'
echo 'not here'
exit 77
END
program test/does_not_hold.sh <<'END'
echo 'that is wrong'
exit 3
END

# run NAME...: puts the runner's output in $root/output, and its exit status in $status.
run()
{
	status=0
	TMPDIR="$root/temporary" BUILD=build TEST_TIMEOUT=10 TEST_JOBS=3 TESTS_ALONE="passes" \
		SANITIZE='' sh "$root/test/run.sh" "$@" >"$root/output" 2>&1 || status=$?
}

# expect LINE...: checks the output's last lines; those before the last one are in any order.
expect()
{
	printf '%s\n' "$@" | sort >"$root/expected"
	tail -n $# "$root/output" | sort >"$root/found"
	shift $(($# - 1))
	if ! cmp -s "$root/expected" "$root/found" ||
		test "$(tail -n 1 "$root/output")" != "$1"; then
		cat "$root/output"
		echo "expected at the end, and not found:"
		cat "$root/expected"
		exit 1
	fi
}

run passes is_skipped skips_some
test $status = 0
expect '  skipped is_skipped' \
	'  ok      skips_some                   4' \
	'  ok      passes                       3' \
	'skipped: is_skipped: not here' \
	'skipped: skips_some: no gdb' \
	'7 passed, 0 failed, 3 skipped'

run passes hangs fails fails_twice says_why crashes ends_early is_skipped does_not_hold
test $status = 1
expect 'fails: adds_up: sums.c:12: 0x1 != 0x2' \
	'fails_twice: adds_up: sums.c:13: 1 != 2' \
	'says_why: adds_up: sums.c:34: 7 are left' \
	"crashes: is_sound (twice): crashes: sums.c:56: sum: Assertion \`n > 0' failed." \
	'hangs: comes_to_an_end: ran over 10 seconds' \
	'ends_early: ended before its tests did; last line: nothing' \
	'does_not_hold: exit status 3; last line: that is wrong' \
	'8 passed, 8 failed, 1 skipped'
# The files of the test that hung are gone.
test -z "$(ls "$root/temporary")"
# Tests that run alone come last.
test "$(grep -n '^  ok      passes' "$root/output" | cut -d: -f1)" -gt \
	"$(grep -n '^  FAILED  hangs' "$root/output" | cut -d: -f1)"
# The lines about one test stand together.
grep -A 1 '^that is wrong' "$root/output" |
	grep -q '^  FAILED  does_not_hold  .* 0 passed, 1 failed; all of it: '

# A script that is ended by a signal cleans up.
for signal in HUP INT TERM; do
	sh -c '. test/support/script.sh
		at_end "rm -r \"$1\""
		mkdir "$1"
		kill -"$2" $$
		echo "goes on after $2"' sh "$root/folder" $signal && exit 1
	test ! -e "$root/folder"
done

# What test/families names is there.
sed -nE '/ make /d; s/^[a-z]+ +[-0-9]+ +[-a-z]+ +//p' test/families | tr % '*' |
	while read -r name; do
		# shellcheck disable=SC2086 # a pattern
		ls test/$name.[cst]* >/dev/null || exit
	done
