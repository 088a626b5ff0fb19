#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What does the part on Redis say about this machine? Runs its benches (about ten minutes, 4 GB),
# each with a redis-server of its own, and leaves the figures as CSV and a summary in
# build/bench/redis/.
#
#     bench/redis/run.sh            after `make bench-redis` has built them
#     bench/redis/run.sh --update   also refreshes redis.md and redis.txt of bench/results/
set -eu

cd "$(dirname "$0")/../.."
programs=${BUILD:-build}/bench/redis
names="rates lateness pending fairness durable"

case ${1-} in
'' | --update) ;;
*)
	echo "usage: bench/redis/run.sh [--update]" >&2
	exit 2
	;;
esac

printf 'commit,%s\ndate,%s\n' "$(bench/revision.sh)" "$(date -u +%F)" >"$programs/run.csv"
for name in $names; do
	printf '\n== %s ==\n' "$name"
	"$programs/$name" --csv="$programs/$name.csv"
done
bench/redis/summary.sh "$programs" >"$programs/summary.md"
printf '\nThe figures are in %s\n' "$programs"

if [ "${1-}" = --update ]; then
	cp "$programs/summary.md" bench/results/redis.md
	# shellcheck disable=SC2086 # the names are several words
	bench/figures.sh pack "$programs" run $names >bench/results/redis.txt
	bench/figures.sh readme
fi
