#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This runs the named fuzz targets, for $FUZZ_SECONDS each, as many at a time as there are
# processors. It prints for each the number of inputs and of reached edges. Inputs that reach new
# edges are kept in the build folder, for the next run, and so is one that fails. The last line is
# "N passed, N failed".

cd "$(dirname "$0")/../../.." || exit 1

# run TARGET: prints its result at once.
run()
{
	target=$1
	found=$FUZZ_BUILD/found_$target
	log=$FUZZ_BUILD/$target.log
	dictionary=test/model/fuzz/$target.dict
	test -f "$dictionary" && dictionary=-dict=$dictionary || dictionary=
	mkdir -p "$found"
	# shellcheck disable=SC2086 # none, or one word
	"$FUZZ_BUILD/fuzz_$target" -max_total_time="$FUZZ_SECONDS" -timeout=10 \
		-print_final_stats=1 -artifact_prefix="$FUZZ_BUILD/$target-" $dictionary \
		"$found" "test/model/fuzz/$target" >"$log" 2>&1 </dev/null
	status=$?
	figures=$(awk '
		/ cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
		/^stat::number_of_executed_units:/ { runs = $2 }
		END { printf "%d executions, %d edges", runs, edges }' "$log")
	if test $status = 0; then
		printf '  ok      %-10s %s\n' "$target" "$figures"
	else
		printf '%s\n  FAILED  %-10s %s; all of it: %s\n' "$(tail -n 100 "$log")" "$target" \
			"$figures" "$log"
	fi
}

if test "$1" = --one; then
	run "$2"
	exit
fi
printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" test/model/fuzz/run.sh --one | awk -v all=$# '
	{ print; fflush() }
	/^  ok / { passed++ }
	END {
		printf "%d passed, %d failed\n", passed, all - passed
		exit passed < all
	}'
