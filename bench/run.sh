#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What do the benches say about this machine? Runs them all (a few minutes), prints their
# tables, and leaves the figures as CSV, plots and a summary in build/bench/.
#
#     bench/run.sh            after `make bench` has built them
#     bench/run.sh --update   also refreshes bench/results/, which the README shows
#
# BUILD is another variant's build folder.
set -eu

cd "$(dirname "$0")/.."
programs=${BUILD:-build}/bench
update=no

case ${1-} in
'') ;;
--update) update=yes ;;
*)
	echo "usage: bench/run.sh [--update]" >&2
	exit 2
	;;
esac

run() {
	name=$1
	shift
	printf '\n== %s ==\n' "$name"
	"$programs/$name" "$@"
}

run million --csv="$programs/million.csv" --summary="$programs/million_summary.csv"
run throughput --csv="$programs/throughput.csv"
run idle --csv="$programs/idle.csv"
run expiry --csv="$programs/expiry.csv"
run handles --csv="$programs/handles.csv"
run storms --csv="$programs/storms.csv" --runs=3
run queues --csv="$programs/queues.csv"

bench/summary.sh "$programs" >"$programs/summary.md"
if command -v gnuplot >/dev/null; then
	bench/summary.sh "$programs" --rates >"$programs/rates.dat"
	gnuplot -e "folder='$programs'" bench/plots.gnuplot
else
	echo "gnuplot is not there: no plots"
fi
printf '\nFigures, plots and summary.md are in %s\n' "$programs"

if [ $update = yes ]; then
	mkdir -p bench/results
	cp "$programs/summary.md" "$programs"/*.svg bench/results/
	echo "bench/results is up to date"
fi
