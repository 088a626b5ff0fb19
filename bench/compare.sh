#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Is this tree faster than the revision BASE? `make compare BASE=rev` calls this: it builds BASE in
# build/compare/, with its own Makefile and the same CC and flags, and runs the benches of both in
# turns, each as of its revision.
#
#     BENCHES="late calls"    which benches
#     RUNS=n                  turns, 5 if not given; one more comes first and does not count
#     QUICK=yes               small counts, one turn: shows that all works, not how fast
#
# Both run in each turn, and the order alternates, so that a noisy time affects both. Rows of both
# CSV files are compared, turn by turn.
set -eu

cd "$(dirname "$0")/.."
quick=${QUICK:-no}
turns=${RUNS:-5}
test "$quick" = no || turns=1
case $turns in
'' | 0 | *[!0-9]*)
	echo "compare.sh: RUNS=$turns is not a number of turns" >&2
	exit 2
	;;
esac
base=$(git rev-parse --short --verify "${BASE:-}^{commit}" 2>/dev/null) || {
	echo "compare.sh: BASE=${BASE:-} is no revision: make compare BASE=HEAD~1" >&2
	exit 2
}

there=build/compare/$base
results=build/compare/results
mkdir -p "$there"
test -e "$there/Makefile" || git archive "$base" | tar -x -C "$there"
for bench in ${BENCHES:?}; do
	test -e "$there/bench/$bench.c" || {
		echo "$base has no bench $bench: left out"
		continue
	}
	benches="${benches-} $bench"
	programs="${programs-} build/bench/$bench"
done
echo "builds $base"
# CC and the flags are in the environment. Errors are on stderr.
# shellcheck disable=SC2086 # several programs
MAKEFLAGS='' MFLAGS='' "${MAKE:-make}" -C "$there" -j"$(nproc)" REDIS=no BUILD=build $programs \
	>/dev/null

# program SIDE BENCH: its path
program() {
	test "$1" = now && echo "${BUILD:-build}/bench/$2" || echo "$there/build/bench/$2"
}

# options BENCH: for both sides; all benches with these take about six minutes in five turns
options() {
	case $1 in
	timers) echo --runs=1 --count=300k --seconds=1 ;;
	late) echo --runs=1 --calm=1 ;;
	calls) echo --runs=1 --count=200k --duration=50ms ;;
	*) echo --runs=1 ;;
	esac
	test "$quick" = no || echo --count=20000
}

rm -rf "$results"
mkdir -p "$results"
echo "base: $(git log -1 --format='%h of %cs, %s' "$base")"
echo "now:  $(bench/revision.sh), with $(git log -1 --format='%h of %cs, %s')"
for bench in $benches; do
	options=$(options "$bench" | tr '\n' ' ')
	echo "$bench $options"
	for turn in $(seq 0 "$turns"); do
		test $((turn % 2)) = 1 && sides='base now' || sides='now base'
		for side in $sides; do
			csv=$results/$bench.$turn.$side.csv
			# shellcheck disable=SC2086 # several options
			"$(program "$side" "$bench")" $options --csv="$csv" \
				>"$results/said" 2>&1 && continue
			echo "$bench, turn $turn, $side: $(tail -n 1 "$results/said"); left out"
			rm -f "$csv"
		done
	done
done
rm -f "$results"/*.0.*.csv

cat <<END

Medians of $turns turns. "better": how many times better this tree is than $base, in the median,
and in the worst and the best turn; a rate is better when it is higher, all else when it is lower.
"*": the turns agree about which one is better.

END
awk -F, -v turns="$turns" -f bench/compare.awk "$results"/*.csv
