#!/bin/bash
# SPDX-License-Identifier: MIT
#
# This model-checks the harnesses of this folder with GenMC: each run of the table `runs` must pass.
# `make model-check` calls this with BUILD and GENMC; PROOFS="queue ..." selects harnesses; MORE=1
# adds the larger bounds. A run prints its executions, the number of these that ended early because
# a thread waited in vain for another order, and its seconds. The last line is "N passed, N failed".

cd "$(dirname "$0")/../.." || exit 1

GENMC=${GENMC:-genmc}
export GENMC BUILD=${BUILD:-build}
# This limits the seconds of a run.
export PROOF_TIMEOUT=${PROOF_TIMEOUT:-500}
proof_folder=$BUILD/proof
# The list for xargs has this number of words for each task.
WORDS=6

# check LOG HARNESS MODEL UNROLL BOUNDS: runs GenMC.
check()
{
	local log=$1 harness=$2 model=$3 unroll=$4 bounds=$5 status
	# Some passes are off: one gives up on loops like command_queue_wait()'s, some report
	# unordered writes, such as a timer's, and the stack of a function that is called twice as
	# errors, and one does not end with a worker's loop.
	local options=(--disable-estimation --disable-mm-detector --check-liveness
		--disable-confirmation-annotation --disable-ipr --disable-instruction-caching
		--disable-load-annotation "--$model")
	local macros=() bound

	[[ $unroll == - ]] || options+=("--unroll=$unroll")
	for bound in ${bounds//,/ }; do
		case $bound in
		-) ;;
		--*) options+=("$bound") ;;
		*) macros+=("-D$bound") ;;
		esac
	done
	timeout -k 10 "$PROOF_TIMEOUT" "$GENMC" "${options[@]}" -- -std=c11 -D_GNU_SOURCE \
		-MD -MF "$log.d" -Itest/proof/shim -Iinclude -Isrc "${macros[@]}" \
		"test/proof/$harness.c" >"$log" 2>&1
	status=$?
	# GenMC leaves what clang has made of the source; the first word of its list of files.
	rm -f "$(sed -n '1s/:.*//p' "$log.d" 2>/dev/null)"
	return $status
}

# number_in LOG TEXT: prints GenMC's number of executions, blocked ones or seconds.
number_in()
{
	sed -n "s/^$2: \([0-9.]*\).*/\1/p" "$1" | tail -n 1
}

# check_run LOG HARNESS MODEL UNROLL BOUNDS: prints the result.
check_run()
{
	local log=$1 harness=$2 model=$3 bounds=$5 verdict=FAILED why='' status executions blocked

	check "$@"
	status=$?
	executions=$(number_in "$log" 'Number of complete executions explored')
	blocked=$(number_in "$log" 'Number of blocked executions seen')
	if ((status == 124 || status == 137)); then
		why="; ran over $PROOF_TIMEOUT seconds"
	elif ((status != 0)); then
		why="; all of it: $log"
	elif ((${executions:-0} == 0)); then
		why="; no execution came to its end"
	else
		verdict=ok
	fi
	printf '  %-7s %-18s %-4s %s executions, %s blocked, %s s; %s%s\n' "$verdict" "$harness" \
		"$model" "${executions:-0}" "${blocked:-0}" \
		"$(number_in "$log" 'Total wall-clock time')" "$bounds" "$why"
	[[ $verdict == ok ]] || grep -v '^Tip' "$log" | tail -n 60
}

# wanted HARNESS
wanted()
{
	[[ -z $PROOFS || " $PROOFS " == *" $1 "* ]]
}

list_runs()
{
	local harness models unroll bounds more model number=0

	while read -r harness models unroll bounds more; do
		wanted "$harness" || continue
		[[ -z $more || -n $MORE ]] || continue
		for model in ${models//,/ }; do
			((number++))
			printf '%s\0' run "$proof_folder/$harness-$model-$number.log" "$harness" \
				"$model" "$unroll" "$bounds"
		done
	done < <(grep -v -e '^#' -e '^	' -e '^$' test/proof/runs)
}

check_all()
{
	local jobs=${PROOF_JOBS:-$(nproc)} count passed

	rm -rf "$proof_folder"
	mkdir -p "$proof_folder"
	list_runs >"$proof_folder/list"
	xargs -0 -r -n "$WORDS" -P "$jobs" test/proof/run.sh <"$proof_folder/list" |
		tee "$proof_folder/all.log"
	count=$(($(tr -cd '\0' <"$proof_folder/list" | wc -c) / WORDS))
	passed=$(grep -c '^  ok ' "$proof_folder/all.log")
	echo "$passed passed, $((count - passed)) failed"
	((count > 0 && passed == count))
}

say_what_to_install()
{
	cat <<-'END'
	GenMC is not there. On Debian 12: install autoconf automake clang-14 llvm-14-dev
	libclang-14-dev libffi-dev zlib1g-dev libedit-dev libhwloc-dev and g++, then build the
	repository MPI-SWS/genmc at its tag v0.10.3:
	    autoreconf --install && ./configure --with-llvm=/usr/lib/llvm-14
	    make && make install
	0 passed, 1 failed
	END
}

if ! command -v "$GENMC" >/dev/null; then
	say_what_to_install
	exit 1
fi
case $1 in
run) check_run "${@:2}" ;;
*) check_all ;;
esac
