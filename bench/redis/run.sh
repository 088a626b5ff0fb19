#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What does the part on Redis say about this machine? Runs its benches (about five minutes, 4 GB),
# each with a redis-server of its own, and leaves the figures as CSV and a summary in
# build/bench/redis/.
#
#     bench/redis/run.sh            after `make bench-redis` has built them
#     bench/redis/run.sh --update   also refreshes bench/results/redis.md
set -eu

cd "$(dirname "$0")/../.."
programs=${BUILD:-build}/bench/redis

case ${1-} in
'' | --update) ;;
*)
	echo "usage: bench/redis/run.sh [--update]" >&2
	exit 2
	;;
esac

for name in rates lateness pending; do
	printf '\n== %s ==\n' "$name"
	"$programs/$name" --csv="$programs/$name.csv"
done

# figure FILE NAME COLUMN FACTOR FORMAT
figure() {
	awk -F, -v what="$2" -v column="$3" -v factor="$4" -v format="$5" \
		'$1 == what { printf format, $column * factor }' "$programs/$1.csv"
}

# lateness NAME: p50 / p99 / max
lateness() {
	echo "$(figure lateness "$1" 3 1 %.1f) / $(figure lateness "$1" 4 1 %.1f) /" \
		"$(figure lateness "$1" 5 1 %.1f)"
}

# pending COLUMN FACTOR FORMAT: of ten million tasks
pending() {
	figure pending 10000000 "$@"
}

cat >"$programs/summary.md" <<END
<!-- Made by bench/redis/run.sh --update; edits are lost. -->
| One Redis beside one client, fsync each second | |
|---|--:|
| tasks added by 100: million a second | $(figure rates added 2 1e-6 %.3f) |
| tasks claimed and acknowledged by 100: million a second | $(figure rates claimed 2 1e-6 %.3f) |
| a bare ZADD and HSET by 100: million a second | $(figure rates kept 2 1e-6 %.3f) |
| a bare ZPOPMIN, HMGET and HDEL by 100: million a second | $(figure rates taken 2 1e-6 %.3f) |
| lateness of handlers at 10,000 a second, p50 / p99 / max: ms | $(lateness handlers) |
| lateness of HTTP callbacks at 5,000 a second, p50 / p99 / max: ms | $(lateness callbacks) |
| ten million pending tasks: the server's bytes for each | $(pending 2 1 %.0f) |
| claiming 100 of them, p50 / p99: ms | $(pending 4 1e-3 %.1f) / $(pending 5 1e-3 %.1f) |
| script calls of an idle worker for 64 shards: a second | $(pending 8 1 %.2f) |
END
printf '\nThe figures are in %s\n' "$programs"

if [ "${1-}" = --update ]; then
	mkdir -p bench/results
	cp "$programs/summary.md" bench/results/redis.md
fi
