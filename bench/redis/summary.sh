#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints the figures of the benches of the part on Redis as a Markdown table:
#
#     bench/redis/summary.sh FOLDER    of its run.csv, rates.csv, lateness.csv, pending.csv and,
#                                      if they are there, fairness.csv and durable.csv
set -eu

folder=${1:?}

# figure FILE NAME COLUMN FACTOR FORMAT
figure() {
	awk -F, -v what="$2" -v column="$3" -v factor="$4" -v format="$5" \
		'$1 == what { printf format, $column * factor }' "$folder/$1.csv"
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

cat <<END
<!-- Made by bench/redis/run.sh --update; edits are lost. -->
Measured on $(sed -n 's/^date,//p' "$folder/run.csv"), commit \
$(sed -n 's/^commit,//p' "$folder/run.csv"), on: \
$(sed -n 's/^machine,"\(.*\)"$/\1/p' "$folder/rates.csv"). Medians.

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
| script calls of an idle worker: a second | $(pending 8 1 %.2f) |
END
test -f "$folder/fairness.csv" || exit 0

# ratios NAME: to no groups, of 1, 1,000 and 100,000
ratios() {
	echo "$(figure rates "$1_1" 2 1 %.2f) / $(figure rates "$1_1000" 2 1 %.2f) /" \
		"$(figure rates "$1_100000" 2 1 %.2f)"
}

# fair NAME FORMAT
fair() {
	figure fairness "$1" 2 1 "$2"
}

# late NAME: p50 / p99
late() {
	echo "$(fair "$1_p50" %.1f) / $(fair "$1_p99" %.1f)"
}

cat <<END

| Groups, one Redis, one worker | |
|---|--:|
| adding by 100 to 1 / 1,000 / 100,000 groups, against none | $(ratios added) |
| claiming and acknowledging by 100, against none | $(ratios claimed) |
| 999 groups with a task a second alone: lateness p50 / p99: ms | $(late alone) |
| beside one with a million due tasks: lateness p50 / p99: ms | $(late groups) |
| the same tasks without groups: lateness p50 / p99: ms | $(late plain) |
| weights 1, 2 and 4: share for what is due to each: % | $(fair weight_1 %.1f) / \
$(fair weight_2 %.1f) / $(fair weight_4 %.1f) |
END
test -f "$folder/durable.csv" || exit 0

# durable NAME: a row's cells, where the server can do it
durable() {
	echo "$(figure durable "$1" 2 1 %.0f) | $(figure durable "$1" 5 1e-6 %.2f) /" \
		"$(figure durable "$1" 6 1e-6 %.2f) | $(figure durable "$1" 7 1 %.1f)"
}

cat <<END

| Adds, ten to a call, 16 threads, one Redis | tasks a second | a call, p50 / p99: ms | \
p99 in fsyncs |
|---|--:|--:|--:|
| without durability, fsync each second | $(durable server) |
| durability=disk, appendfsync always | $(durable disk) |
END
! grep -q ^disk_everysec, "$folder/durable.csv" ||
	echo "| durability=disk, fsync each second (WAITAOF) | $(durable disk_everysec) |"
echo "| the disk alone, 4 KiB and fdatasync: fsyncs a second | $(durable fsync) |"
