#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How fast is the library on this machine? Runs the benches, shows their tables, and leaves them as
# a page in build/bench/. `make bench`, `make bench-redis` and `make bench-peers` call it:
#
#     bench/run.sh core|redis|peers       the core and the cache, the part on Redis, or all beside
#                                         other libraries
#     bench/run.sh PART --update          also refreshes the page in bench/results/, and the rows
#                                         of README.md that are lines of it
#     bench/run.sh PART --quick           small counts, one run: shows that all works, not how fast
#
# BUILD is another variant's build folder.
set -eu

cd "$(dirname "$0")/.."
programs=${BUILD:-build}/bench
part=${1-}
quick=no
update=no

case "$#:$part:${2-}" in
1:core: | 1:redis: | 1:peers:) ;;
2:core:--update | 2:redis:--update | 2:peers:--update) update=yes ;;
2:core:--quick | 2:redis:--quick | 2:peers:--quick) quick=yes ;;
*)
	echo "usage: bench/run.sh core|redis|peers [--update | --quick]" >&2
	exit 2
	;;
esac
if [ "$update:$part" = yes:peers ] && [ "${ROUNDS:-3}" -lt 2 ]; then
	echo "--update needs ROUNDS of 2 or more: the page has medians" >&2
	exit 2
fi
test "$part" = core && page=summary || page=$part
mkdir -p "$programs"
made=$programs/$page.md
tables=$made.new
: >"$tables"

# run QUICKLY NAME OPTION...: QUICKLY are its options for --quick, which come last and so prevail.
# The first paragraph of the output is the machine, and the others are tables.
run()
{
	quickly=$1 name=$2
	shift 2
	test $quick = yes || quickly=
	echo "== $name $* ==" >&2
	# shellcheck disable=SC2086 # several options
	"$name" "$@" $quickly >"$made.said" || exit 1
	cat "$made.said"
	machine=$(awk '!NF { exit } { printf "%s%s", (NR > 1 ? " " : ""), $0 }' "$made.said")
	sed -n '/^$/,$p' "$made.said" >>"$tables"
}

few='--count=20000 --runs=1'
if [ "$part" = core ]; then
	run "$few --seconds=1" "$programs/timers" --seconds=2
	run "$few --calm=0.5" "$programs/late" --runs=3
	run '--count=20000 --calm=0.5 --storms=3 --of=wheel' "$programs/memory"
	run "$few --duration=20ms" "$programs/calls" --runs=3
	run '--keys=10000 --requests=50000' "$programs/hits"
elif [ "$part" = redis ]; then
	run '--runs=1 --count=10000 --pending=20000 --flood=20000 --handlers=1000 --callbacks=500
		--seconds=1' "$programs/redis/redis"
else
	run --quick bench/peers/run.sh
fi
{
	echo "<!-- Made by bench/run.sh --update; edits are lost. -->"
	echo "Measured on $(date -u +%F), commit $(bench/revision.sh), on: $machine. Medians."
	cat "$tables"
} >"$made"
rm "$tables" "$made.said"
echo "The page is $made"

test $update = yes || exit 0
cp "$made" bench/results/
test "$part" != peers || awk -f bench/peers/plot.awk "$made" >bench/results/rates.svg
# A row of README.md becomes the first row with its title and number of cells.
awk -F'|' '
	FILENAME != "README.md" {
		if (/^\|/ && !((NF, $2) in rows))
			rows[NF, $2] = $0
		next
	}
	/^<!--/ { inside = /^<!-- figures/ }
	{ print inside && /[0-9] \|$/ && (NF, $2) in rows ? rows[NF, $2] : $0 }
' bench/results/summary.md bench/results/redis.md bench/results/peers.md README.md \
	>README.md.new
mv README.md.new README.md
echo "bench/results is up to date"
