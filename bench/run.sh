#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How fast is the library on this machine? Runs the benches, shows their tables, and leaves them as
# a page in build/bench/. `make bench` and `make bench-redis` build them and call it:
#
#     bench/run.sh core|redis             all of the core and the cache, or of the part on Redis
#     bench/run.sh core|redis --update    also refreshes the page in bench/results/, and the rows
#                                         of README.md that are lines of it
#     bench/run.sh core|redis --quick     small counts, one run: shows that all works, not how fast
#
# BUILD is another variant's build folder.
set -eu

cd "$(dirname "$0")/.."
programs=${BUILD:-build}/bench
part=${1-}
quick=no
update=no

case "$#:$part:${2-}" in
1:core: | 1:redis:) ;;
2:core:--update | 2:redis:--update) update=yes ;;
2:core:--quick | 2:redis:--quick) quick=yes ;;
*)
	echo "usage: bench/run.sh core|redis [--update | --quick]" >&2
	exit 2
	;;
esac
test $part = core && page=summary || page=redis
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
	"$programs/$name" "$@" $quickly >"$made.said" || exit 1
	cat "$made.said"
	machine=$(awk '!NF { exit } { printf "%s%s", (NR > 1 ? " " : ""), $0 }' "$made.said")
	awk -v rows="$left_out" 'rest && !(rows && $0 ~ rows) { print }
		!NF && !rest { rest = 1; print }' "$made.said" >>"$tables"
}

few='--count=20000 --runs=1'
left_out= # rows that only the terminal shows
if [ $part = core ]; then
	for kind in key handle alarm; do
		run "$few --seconds=1" timers --kind=$kind
		left_out='ns of the'
	done
	left_out=
	run "$few --calm=0.5" late
	run '--count=20000 --calm=0.5 --storms=3 --of=wheel' memory
	run "$few --duration=20ms" calls
	run '--keys=10000 --requests=50000' hits
else
	run '--runs=1 --count=10000 --pending=20000 --flood=20000 --handlers=1000 --callbacks=500
		--seconds=1' redis/redis
fi
{
	echo "<!-- Made by bench/run.sh --update; edits are lost. -->"
	echo "Measured on $(date -u +%F), commit $(bench/revision.sh), on: $machine. Medians."
	cat "$tables"
} >"$made"
rm "$tables" "$made.said"
echo "The page is $made"

if [ $part = core ] && command -v gnuplot >/dev/null; then
	awk -F' *[|] *' '
		$2 ~ /^set, new key: million/ { title = "set, new" }
		$2 == "set, key removed before" { title = "set again" }
		$2 == "set, existing key" { title = "set, existing" }
		$2 == "move, sooner or later" { title = "move" }
		$2 == "move, later only" { title = "move later" }
		$2 == "remove" { title = "remove"; last = 1 }
		title { printf "\"%s\" %s %s\n", title, $3, $4; title = "" }
		last { exit }
	' "$made" >"$programs/rates.dat"
	gnuplot -e "folder='$programs'" bench/plot.gnuplot
	# Without the groups that draw nothing, and what those that draw don't use.
	awk '/<defs>/ { skips = 1 }
		!skips && /^<\/g>$/ && group { group = ""; next }
		!skips && group { print group; group = "" }
		!skips && /^<g fill/ { group = $0; next }
		!skips && NF { print }
		/<\/defs>/ { skips = 0 }' "$programs/rates.svg" >"$programs/rates.new"
	mv "$programs/rates.new" "$programs/rates.svg"
fi

test $update = yes || exit 0
cp "$made" bench/results/
test ! -e "$programs/rates.svg" || cp "$programs/rates.svg" bench/results/
# A row of README.md becomes the first row with its title and number of cells.
awk -F'|' '
	FILENAME != "README.md" {
		if (/^\|/ && !((NF, $2) in rows))
			rows[NF, $2] = $0
		next
	}
	/^<!--/ { inside = /^<!-- figures/ }
	{ print inside && /[0-9] \|$/ && (NF, $2) in rows ? rows[NF, $2] : $0 }
' bench/results/summary.md bench/results/redis.md README.md >README.md.new
mv README.md.new README.md
echo "bench/results is up to date"
