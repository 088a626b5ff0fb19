#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Puts bugs into the sources, one at a time, and runs the tests that should see them. A bug that no
# test sees is a test that is missing. The tables are the .txt files in this folder; of a mutant:
#
#     mutant: NAME        what the library does wrong then
#     file: PATH          of a source: C, header or script
#     after: TEXT         may be left out: the change is the first behind this text
#     - TEXT              what stands there, in one place; several lines are one text
#     + TEXT              what stands there instead; may be left out
#     tests: NAME...      those that should see it, the quickest first
#     with: SANITIZE=...  may be left out: the variant that the tests are run in
#     survives: WHY       only where no test can see the bug
#     equal: WHY          only where it is none: nothing changes that is promised
#
# White space in a text stands for any white space. In the environment:
#
#     ONLY=PATTERN    those whose names fit the shell's pattern
#     SAMPLE=N        so many of them, drawn by SEED (otherwise by the day)
#     SEED=N          of the draw; the tests have this seed too (otherwise 1)
#     JOBS=N          so many at a time (otherwise three for each processor: most tests wait)
#     CHECKED=yes     the tests have just passed: they are not run without mutants first
#
# First all the tests are run on the sources as they are, in a folder such as the mutants have: a
# test that fails there tells nothing of mutants; and one that takes four times as long as there,
# and ten seconds, hangs. Each mutant then has a folder of its own below build/mutants, with a copy
# of the sources and of the objects; make
# compiles there what depends on the changed file, and links the tests. A mutant that no test sees
# has to be explained by "survives:" or "equal:". Without that it has failed, as has one that does
# not compile, or whose text is not in the source any more. The last line is "N passed, N failed".

cd "$(dirname "$0")/../.." || exit 1
top=$PWD
unset MAKEFLAGS MAKELEVEL MFLAGS BUILD SANITIZE TESTS_ALONE
export TEST_JOBS=1
jobs=${JOBS:-$(($(nproc) * 3))}
work=build/mutants
sample_seed=${SEED:-$(($(date +%s) / 86400))}
export SEED=${SEED:-1}
tables=(test/mutants/*.txt)

# ---- Tables ----

declare -A file old new after tests with survives equal
names=()
errors=()

# Reads the block of a mutant.
read_tables()
{
	local line name='' text longer=
	while IFS= read -r line; do
		text=${line#*: }
		case $line in
		'' | '#'*) ;;
		'mutant: '*)
			name=$text
			[[ -z ${file[$name]+set} ]] || errors+=("$name: there are two of that name")
			names+=("$name")
			file[$name]='' old[$name]='' new[$name]='' after[$name]='' tests[$name]=''
			with[$name]='' survives[$name]='' equal[$name]=''
			;;
		'file: '*) file[$name]=$text ;;
		'after: '*) after[$name]=$text longer=after ;;
		'tests: '*) tests[$name]=$text ;;
		'with: '*) with[$name]=$text ;;
		'survives: '*) survives[$name]=$text longer=survives ;;
		'equal: '*) equal[$name]=$text longer=equal ;;
		'  '*)
			text=" ${line#"${line%%[! ]*}"}"
			case $longer in
			after) after[$name]+=$text ;;
			survives) survives[$name]+=$text ;;
			equal) equal[$name]+=$text ;;
			esac
			;;
		'-'*) old[$name]+="${old[$name]:+$'\n'}${line:2}" ;;
		'+'*) new[$name]+="${new[$name]:+$'\n'}${line:2}" ;;
		*) errors+=("$name: not understood: $line") ;;
		esac
	done < <(cat "${tables[@]}")
	for name in "${names[@]}"; do
		[[ -f ${file[$name]} && -n ${old[$name]} && -n ${tests[$name]} ]] ||
			errors+=("$name: a file that is there, an old text and tests are needed")
	done
}

# With what is wrong with the tables, if anything is.
give_up()
{
	((${#errors[@]})) || return 0
	printf '%s\n' "${errors[@]}"
	echo "0 passed, ${#errors[@]} failed"
	exit 1
}

# The build folder of a variant, as the Makefile names it.
folder_of()
{
	case $1 in
	SANITIZE=*) echo "build/$(tr , - <<<"${1#SANITIZE=}")" ;;
	*) echo build ;;
	esac
}

# choose: into `chosen`.
choose()
{
	local name
	chosen=()
	for name in "${names[@]}"; do
		# shellcheck disable=SC2053 # a pattern
		[[ $name == ${ONLY:-*} ]] && chosen+=("$name")
	done
	[[ -n $SAMPLE ]] || return 0
	mapfile -t chosen < <(for name in "${chosen[@]}"; do
		echo "$(cksum <<<"$sample_seed $name") $name"
	done | sort -n | head -n "$SAMPLE" | cut -d ' ' -f 3)
}

# mutate NAME: writes the changed file, or why there is none.
mutate()
{
	OLD=${old[$1]} NEW=${new[$1]} AFTER=${after[$1]} \
		awk -f test/mutants/mutate.awk "${file[$1]}"
}

# ---- One mutant or test, in a process of its own ----

# run_test FOLDER VARIANT TEST: its exit status, and the reason of a failure as the only output.
run_test()
{
	local sanitize='' log
	[[ $2 == SANITIZE=* ]] && sanitize=${2#SANITIZE=}
	# A mutant may ask for memory, or write, without end.
	ulimit -c 0
	ulimit -f 400000
	[[ -n $sanitize ]] || ulimit -v 16000000
	log=$(cd "$1" && BUILD=$(folder_of "$2") SANITIZE=$sanitize test/run.sh "$3" 2>&1)
	local status=$?
	tail -n 2 <<<"$log" | head -n 1
	return $status
}

# time_file VARIANT TEST: where the seconds are kept that it takes on the sources as they are.
time_file()
{
	echo "$work/times/${1:--}-${2//\//-}"
}

# control_of VARIANT: a folder as the mutants have them, with the sources as they are.
control_of()
{
	echo "$work/control-${1//[=,]/-}"
}

# check_test VARIANT TEST: on the sources as they are.
check_test()
{
	local reason begin=$SECONDS
	reason=$(TEST_TIMEOUT=300 run_test "$(control_of "$1")" "$1" "$2") ||
		echo "fails without any mutant: $1 $2: $reason"
	echo $((SECONDS - begin + 1)) >"$(time_file "$1" "$2")"
}

# limit_of VARIANT TEST: the seconds that it may take.
limit_of()
{
	local seconds=60 file
	file=$(time_file "$1" "$2")
	[[ -f $file ]] && seconds=$((4 * $(<"$file") + 10))
	echo $seconds
}

# copy_tree FOLDER VARIANT TEST...: sources and objects, with their times.
copy_tree()
{
	local folder=$1 objects test
	objects=$(folder_of "$2")
	shift 2
	rm -rf "$folder"
	mkdir -p "$folder/$objects/test/redis"
	cp -a Makefile include src test "$folder"
	cp -a "$objects/flags" "$objects/src" "$folder/$objects"
	[[ " $* " != *_yields\ * ]] || cp -a "$objects/yields" "$folder/$objects"
	for test in support faults yields redis/support; do
		[[ -d $objects/test/$test ]] || continue
		mkdir -p "$folder/$objects/test/$test"
		cp -a "$objects/test/$test"/*.[od] "$folder/$objects/test/$test"
	done
	for test; do
		cp -a "$objects/test/$test".[od] "$folder/$objects/test/${test%"${test##*/}"}"
	done
}

# make_tests FOLDER SETTING TEST...: with what they start.
make_tests()
{
	local folder=$1 setting=$2 test targets=()
	shift 2
	for test; do
		targets+=("$(folder_of "$setting")/test/$test")
		[[ $test != redis/test_@(program*|letters|targets|listen|top) ]] ||
			targets+=("$(folder_of "$setting")/twr")
	done
	# CURDIR: or the flags would not be those that the objects have been made with.
	# shellcheck disable=SC2086 # settings
	make -C "$folder" CURDIR="$top" -j1 $setting "${targets[@]}" 2>&1
}

# try_mutant NAME: writes NAME.verdict, "killed TEST REASON", "survived" or "error REASON".
try_mutant()
{
	local name=$1 folder=$work/$1 test reason
	read -ra list <<<"${tests[$name]}"
	copy_tree "$folder" "${with[$name]}" "${list[@]}"
	if ! reason=$(mutate "$name" 2>&1 >"$folder/${file[$name]}"); then
		echo "error does not apply: $reason"
		return
	fi
	if ! reason=$(make_tests "$folder" "${with[$name]}" "${list[@]}"); then
		echo "error does not compile: $(grep -m 1 'error' <<<"$reason")"
		return
	fi
	for test in "${list[@]}"; do
		TEST_TIMEOUT=$(limit_of "${with[$name]}" "$test")
		export TEST_TIMEOUT
		if ! reason=$(run_test "$folder" "${with[$name]}" "$test"); then
			echo "killed $test: ${reason#"$test: "}"
			return
		fi
	done
	echo survived
}

if [[ $1 == --mutant ]]; then
	read_tables
	try_mutant "$2" >"$work/$2.verdict" 2>&1
	rm -rf "${work:?}/$2"
	echo "$2"
	exit
elif [[ $1 == --test ]]; then
	check_test "$2" "$3"
	exit
fi

# ---- All of them ----

# build_tests: what the chosen mutants' tests are made of, and check them.
build_tests()
{
	local name variant test
	declare -A wanted
	for name in "${chosen[@]}"; do
		for test in ${tests[$name]}; do
			wanted[${with[$name]:-plain} $test]=1
		done
	done
	for variant in $(printf '%s\n' "${!wanted[@]}" | cut -d ' ' -f 1 | sort -u); do
		local targets=() list=() setting=$variant
		[[ $variant == plain ]] && setting=
		while read -r test; do
			list+=("$test")
			targets+=("$(folder_of "$setting")/test/$test")
		done < <(printf '%s\n' "${!wanted[@]}" | sed -n "s/^$variant //p")
		# shellcheck disable=SC2086 # settings
		make -s -j"$jobs" $setting "${targets[@]}" || return 1
		[[ $CHECKED != yes ]] || continue
		copy_tree "$(control_of "${setting:--}")" "$setting" "${list[@]}"
		make_tests "$(control_of "${setting:--}")" "$setting" "${list[@]}" || return 1
	done
	mkdir -p "$work/times"
	[[ $CHECKED != yes ]] || return 0
	failures=$(printf '%s\n' "${!wanted[@]}" | sort | sed 's/^plain /- /' |
		xargs -L 1 -P "$jobs" test/mutants/run.sh --test)
	rm -rf "$work"/control-*
	[[ -z $failures ]] && return 0
	echo "$failures"
	return 1
}

# judge NAME: says what came of it, and counts.
judge()
{
	local name=$1 verdict
	verdict=$(cat "$work/$name.verdict")
	case $verdict in
	killed*)
		((killed++))
		# What a race decides may be seen now and then, though it is explained.
		printf '  killed    %-40s %s\n' "$name" "${verdict#killed }"
		((passed++))
		;;
	survived)
		if [[ -n ${survives[$name]} ]]; then
			printf '  explained %-40s %s\n' "$name" "${survives[$name]}"
			((passed++, explained++))
		elif [[ -n ${equal[$name]} ]]; then
			printf '  equal     %-40s %s\n' "$name" "${equal[$name]}"
			((passed++, equals++))
		else
			printf '  SURVIVED  %-40s %s\n' "$name" "${tests[$name]}"
			((failed++))
		fi
		;;
	*)
		printf '  FAILED    %-40s %s\n' "$name" "$verdict"
		((failed++))
		;;
	esac
}

read_tables
give_up
for name in "${names[@]}"; do
	reason=$(mutate "$name" 2>&1 >/dev/null) || errors+=("$name does not apply: $reason")
done
give_up
choose
if ! ((${#chosen[@]})); then
	echo "no mutant is called ${ONLY}"
	echo "0 passed, 1 failed"
	exit 1
fi
if ! build_tests; then
	echo "0 passed, 1 failed"
	exit 1
fi
passed=0 failed=0 killed=0 explained=0 equals=0
while read -r name; do
	judge "$name"
done < <(printf '%s\n' "${chosen[@]}" | xargs -n 1 -P "$jobs" test/mutants/run.sh --mutant)
tried=$((passed + failed))
if ((tried != ${#chosen[@]})); then
	echo "only $tried of ${#chosen[@]} mutants came to an end"
	((failed += ${#chosen[@]} - tried))
fi
bugs=$((tried - equals))
rate=$((killed * 1000 / (bugs ? bugs : 1)))
echo "$tried mutants, $equals of them no bugs: $killed killed, $explained survive and are" \
	"explained, $failed failed; $((rate / 10)).$((rate % 10)) % of the bugs are seen"
if ((bugs >= 100 && rate < 950)); then
	echo "fewer than 95 % of the bugs are seen"
	((failed++))
fi
echo "$passed passed, $failed failed"
((failed == 0))
