#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How fast is the library on this machine? Runs all benches (a few minutes), prints their tables,
# and leaves the figures as CSV, plots and a summary in build/bench/.
#
#     bench/run.sh            after `make bench` has built them
#     bench/run.sh --update   also refreshes bench/results/, which bench/results/README.md shows;
#                             `make bench ARGS=--update` builds and does so
#     bench/run.sh --quick    a small count, one run: shows that all works, not how fast
#
# BUILD is another variant's build folder. TRACES is a folder of traces for cache_traces.
set -eu

cd "$(dirname "$0")/.."
programs=${BUILD:-build}/bench
update=no
quick=no

case ${1-} in
'') ;;
--update) update=yes ;;
--quick) quick=yes ;;
*)
	echo "usage: bench/run.sh [--update | --quick]" >&2
	exit 2
	;;
esac

# run NAME QUICKLY OPTION...: QUICKLY are its options for --quick, which come last and so prevail
run() {
	name=$1 quickly=$2
	shift 2
	test $quick = yes || quickly=
	test -x "$programs/$name" || {
		echo "run.sh: $programs/$name is not there: \`make bench\` builds and runs all" >&2
		exit 1
	}
	printf '\n== %s ==\n' "$name"
	# shellcheck disable=SC2086 # several options
	"$programs/$name" "$@" $quickly
}

printf 'commit,%s\ndate,%s\n' "$(bench/revision.sh)" "$(date -u +%F)" >"$programs/run.csv"
few=--count=20000
one="$few --runs=1"
run million "$few --seconds=2" --csv="$programs/million.csv" \
	--summary="$programs/million_summary.csv"
# All are set before the first is due, so that each lateness is that of the time after.
run million "$few --seconds=2" --count=100k --set-only --rate=0 \
	--summary="$programs/lateness.csv"
run throughput "$one --baseline-runs=1" --csv="$programs/throughput.csv"
# This table also has other numbers of producers, and a larger wheel.
table="--unpaced --runs=3 --baseline-runs=1"
# shellcheck disable=SC2086 # several options
{
	run throughput "$one" $table --producers=1 --csv="$programs/throughput_1.csv"
	run throughput "$one" $table --producers=4 --csv="$programs/throughput_4.csv"
	run throughput "$one" $table --producers=1 --inline \
		--csv="$programs/throughput_inline.csv"
	# The baseline is too slow for a slot of 10 million: its timers come due meanwhile.
	run throughput "$few" $table --count=10m --runs=1 --baseline-runs=0 \
		--csv="$programs/throughput_10m.csv"
}
run idle "$few --seconds=1" --csv="$programs/idle.csv"
run memory "$few --calm=500ms --teeth=3" --csv="$programs/memory.csv" \
	--summary="$programs/memory_summary.csv"
run expiry "$one" --csv="$programs/expiry.csv"
run precision "--resident=20000 --idle=100ms --duration=100ms --runs=1" \
	--csv="$programs/precision.csv"
run coroutines "20000 1"
run handles "$one" --csv="$programs/handles.csv"
run alarms "$one --packets=100000" --csv="$programs/alarms.csv"
run storms "$one --calm=500ms" --csv="$programs/storms.csv" --runs=3 --baseline-runs=1
run storms "$few --calm=500ms" --crowds --csv="$programs/crowds.csv" --calm=500ms --runs=1
run cache "$one --baseline-runs=1 --duration=20ms" --csv="$programs/cache.csv"
run cache_calls "--count=20000 --runs=1 --duration=20ms" --csv="$programs/cache_calls.csv"
run cache_bounds "--runs=1" --csv="$programs/cache_bounds.csv" --runs=3
run cache_expiry "$one" --csv="$programs/cache_expiry.csv"
run cache_traces "--keys=10000 --requests=50000" ${TRACES:+--folder="$TRACES"} \
	--csv="$programs/cache_traces.csv"
run cache_hits "--keys=10000 --limit=1000 --requests=100000" --csv="$programs/cache_hits.csv"

bench/summary.sh "$programs" >"$programs/summary.md"
if command -v gnuplot >/dev/null; then
	for table in rates cache hits; do
		bench/summary.sh "$programs" --$table >"$programs/$table.dat"
	done
	timers=$(sed -n 's/^timers,//p' "$programs/million_summary.csv")
	gnuplot -e "folder='$programs'; timers='$timers'" bench/plots.gnuplot
else
	echo "gnuplot is not there: no plots"
fi
printf '\nFigures, plots and summary.md are in %s\n' "$programs"

if [ $update = yes ]; then
	cp "$programs/summary.md" "$programs"/*.svg bench/results/
	# summary.sh reads these; there is no time series.
	bench/figures.sh pack "$programs" run million_summary lateness throughput throughput_1 \
		throughput_4 throughput_inline throughput_10m idle memory_summary expiry handles \
		storms cache cache_expiry cache_hits >bench/results/figures.txt
	bench/figures.sh readme
	echo "bench/results is up to date"
fi
