#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints the benches' figures as a Markdown table, from their CSV files.
#
#     bench/summary.sh FOLDER            the table
#     bench/summary.sh FOLDER --rates    title, library, baseline: for a plot
#     bench/summary.sh FOLDER --cache    these columns for the cache
#     bench/summary.sh FOLDER --hits     title, LRU, S3-FIFO
#
# A CSV file that is missing, or lacks a row, is an error: no table has holes.
set -eu

refuse() {
	echo "summary.sh: $*" >&2
	exit 1
}

case "$#:${2-}" in
1: | 2:--rates | 2:--cache | 2:--hits) folder=$1 ;;
*)
	echo "usage: bench/summary.sh FOLDER [--rates | --cache | --hits]" >&2
	exit 2
	;;
esac

# need FILE WORD...: FILE.csv has rows that begin with each of these
need() {
	file=$folder/$1.csv
	test -r "$file" || refuse "$file is not there: \`bench/run.sh\` makes it"
	shift
	for word; do
		grep -q "^$word," "$file" || refuse "$file has no figures of $word: it is not whole"
	done
}

# The middle one of the numbers on stdin.
median() {
	sort -g | awk '
		{ v[NR] = $1 }
		END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# throughput CONTENDER MEASURE [FILE]
throughput() {
	awk -F, -v who="$1" -v what="$2" '$1 == who && $3 == what { print $4 }' \
		"$folder/${3-throughput}.csv" | median
}

# with_commas: groups the digits of the number on stdin
with_commas() {
	sed -e :a -e 's/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/;ta'
}

# phases_row TITLE FILE CONTENDER: one line of the table of phases
phases_row() {
	printf '| %s |' "$1"
	for phase in fill again set move later remove; do
		echo "$(throughput "$3" ${phase}_per_second "$2")" \
			"$(throughput "$3" ${phase}_producers_ns "$2")" \
			"$(throughput "$3" ${phase}_owner_ns "$2")" | awk '{
				printf " %.2f (%.0f", $1 / 1e6, $2
				if ($3 > 0) printf " + %.0f", $3
				printf ") |"
			}'
	done
	throughput "$3" bytes_per_timer "$2" | awk '{ printf " %.0f |\n", $1 }'
}

# phases_rows FILE CONTENDER TITLE: those of the library and of the baseline
phases_rows() {
	timers=$(throughput "$2" timers "$1" | awk '{ printf "%.0f\n", $1 }' | with_commas)
	producers=$(throughput "$2" producers "$1")
	phases_row "$3: $timers timers, producers: $producers" "$1" "$2"
	if grep -q '^go-zero,' "$folder/$1.csv"; then
		phases_row "go-zero's design" "$1" go-zero
	fi
}

# column FILE CONTENDER NUMBER
column() {
	awk -F, -v who="$2" -v column="$3" '$1 == who { print $column }' "$folder/$1.csv" | median
}

# storm CONTENDER STORM MEASURE: ms
storm() {
	awk -F, -v who="$1" -v storm="$2" -v what="$3" \
		'$1 == who && $2 == storm && $4 == what { print $5 / 1e6 }' "$folder/storms.csv" |
		median | awk '{ printf "%.2f", $1 }'
}

# storm_row STORM TITLE
storm_row() {
	printf '| %s |' "$2"
	for who in timingwheel cascading; do
		printf ' %s / %s |' "$(storm $who "$1" storm_p50_ns)" \
			"$(storm $who "$1" storm_max_ns)"
	done
	echo
}

# handle_rate MEASURE
handle_rate() {
	awk -F, -v what="$1" '$1 == "handles" && $3 == what { print $4 }' "$folder/handles.csv" |
		median
}

# handle_millions MEASURE: a rate in millions
handle_millions() {
	handle_rate "$1" | awk '{ printf "%.1f", $1 / 1e6 }'
}

# million MEASURE [FILE]
million() {
	awk -F, -v what="$1" '$1 == what { print $2 }' "$folder/${2-million_summary}.csv"
}

# million_ms MEASURE [FILE]: nanoseconds as milliseconds
million_ms() {
	million "$@" | awk '{ printf "%.2f", $1 / 1e6 }'
}

# million_lateness WHEN [FILE]: p50 / p99 / max in milliseconds
million_lateness() {
	file=${2-million_summary}
	echo "$(million_ms "lateness_$1_p50_ns" "$file") /" \
		"$(million_ms "lateness_$1_p99_ns" "$file") /" \
		"$(million_ms "lateness_$1_max_ns" "$file")"
}

# row TITLE FORMAT FACTOR LIBRARY BASELINE more|less: one line of the table; the better direction,
# more or less, decides how the last column divides
row() {
	awk -v title="$1" -v format="$2" -v factor="$3" -v library="$4" -v baseline="$5" \
		-v good="$6" '
		BEGIN {
			over = good == "more" ? library : baseline
			under = good == "more" ? baseline : library
			printf "| %s | " format " | " format " | %s |\n", title, library * factor,
				baseline * factor, (under > 0 ? sprintf("%.1f", over / under) : "")
		}'
}

# compare TITLE FORMAT FACTOR MEASURE more|less, from throughput.csv
compare() {
	row "$1" "$2" "$3" "$(throughput levels "$4")" "$(throughput go-zero "$4")" "$5"
}

# paced TITLE CALL: its time at both paces. A contender that does not reach the fast one has
# no time to compare: its callers' waits would grow with the time of measuring.
paced() {
	printf '| %s |' "$1"
	for who in levels go-zero; do
		for aim in 1e6 1e5; do
			test $aim = 1e6 && pace= || pace=slow_
			times=
			for percentile in p50 p99 p99.9; do
				time=$(throughput $who "$2_${pace}call_${percentile}_ns" |
					awk '{ printf "%.0f", $1 }')
				times="$times${times:+ / }$time"
			done
			throughput $who "$2_${pace}reached_per_second" |
				awk -v times="$times" -v aim=$aim '{
					if ($1 >= 0.95 * aim) printf " %s |", times
					else printf " reaches %.2f million |", $1 / 1e6
				}'
		done
	done
	echo
}

# compare_column TITLE FORMAT FACTOR FILE COLUMN, where less is better
compare_column() {
	row "$1" "$2" "$3" "$(column "$4" levels "$5")" "$(column "$4" go-zero "$5")" less
}

# memory LOAD MEASURE: a figure
memory() {
	awk -F, -v load="$1" -v what="$2" '$1 == load && $2 == what { print $3 }' \
		"$folder/memory_summary.csv"
}

# mebibytes LOAD MEASURE
mebibytes() {
	memory "$@" | awk '{ printf "%.1f", $1 / 1048576 }'
}

# memory_row LOAD TITLE
memory_row() {
	printf '| %s | %s | %s | %s |' "$2" "$(mebibytes "$1" peak_bytes)" \
		"$(mebibytes "$1" fired_bytes)" "$(mebibytes "$1" later_bytes)"
	echo "$(memory "$1" peak_bytes)" "$(memory "$1" later_bytes)" \
		"$(memory "$1" peak_address_space_bytes)" |
		awk '{ printf " %.0f | %.2f |\n", 100 * $2 / $1, $3 / $1 }'
}

# faults LOAD: page faults of the first storm, and of a later one
faults() {
	echo "$(memory "$1" first_faults | with_commas) pages, then" \
		"$(memory "$1" later_faults | with_commas)"
}

# cache CONTENDER MIX THREADS MEASURE
cache() {
	awk -F, -v who="$1" -v mix="$2" -v threads="$3" -v what="$4" \
		'$1 == who && $3 == mix && $4 == threads && $5 == what { print $6 }' \
		"$folder/cache.csv" | median
}

# cache_row TITLE CONTENDER MIX THREADS
cache_row() {
	row "$1" %.1f 1e-6 "$(cache "$2" "$3" "$4" per_second)" \
		"$(cache uthash_mutex "$3" "$4" per_second)" more
}

# hits LOAD POLICY
hits() {
	awk -F, -v load="$1" -v policy="$2" '$1 == load && $2 == policy { printf "%.1f", $3 }' \
		"$folder/cache_hits.csv"
}

# expiring MEASURE
expiring() {
	awk -F, -v what="$1" '$1 == "plain" && $3 == what { print $4 }' \
		"$folder/cache_expiry.csv" | median
}

need throughput levels go-zero
if [ "${2-}" = --rates ]; then
	for phase in fill:'set, new' again:'set again' set:'set, existing' move:move \
		later:'move later' remove:remove; do
		measure=${phase%%:*}_per_second
		printf '"%s" %s %s\n' "${phase#*:}" "$(throughput levels "$measure")" \
			"$(throughput go-zero "$measure")"
	done
	exit 0
fi

need cache cache cache_lru cache_s3fifo uthash_mutex
if [ "${2-}" = --cache ]; then
	for mix in 100/0 90/10 50/50; do
		for threads in 1 2 4; do
			printf '"%s\\n%s" %s %s\n' $mix $threads \
				"$(cache cache $mix $threads per_second)" \
				"$(cache uthash_mutex $mix $threads per_second)"
		done
	done
	exit 0
fi

need cache_hits zipf zipf_scans zipf_once
if [ "${2-}" = --hits ]; then
	printf '"Zipf 0.99" %s %s\n' "$(hits zipf lru)" "$(hits zipf s3fifo)"
	printf '"70 %% so, 30 %% scans" %s %s\n' \
		"$(hits zipf_scans lru)" "$(hits zipf_scans s3fifo)"
	printf '"70 %% so, 30 %% once" %s %s\n' "$(hits zipf_once lru)" "$(hits zipf_once s3fifo)"
	exit 0
fi

need run commit date
need cache_expiry plain
need million_summary machine timers set_per_second
need lateness timers lateness_after_p50_ns
need throughput_1 levels go-zero
need throughput_4 levels go-zero
need throughput_10m levels
need throughput_inline inline go-zero
need idle levels go-zero
need expiry levels go-zero
need handles handles
need storms timingwheel cascading
need memory_summary all storm_keyed storm_handles survivors_keyed survivors_handles keys_16 \
	keys_1000 teeth_keyed teeth_handles unused
timers=$(million timers | with_commas)
seconds=$(million longest_delay_ns lateness | awk '{ printf "%.0f", $1 / 1e9 }')

# Here too a backslash at the end of a line joins it to the next: a row of a table is one line.
cat <<END
<!-- Made by bench/run.sh --update; edits are lost. -->
Measured on $(sed -n 's/^date,//p' "$folder/run.csv"), commit \
$(sed -n 's/^commit,//p' "$folder/run.csv"), on: \
$(sed -n 's/^machine,"\(.*\)"$/\1/p' "$folder/million_summary.csv"). Medians.

| $timers timers, 16-byte random keys, tick 1 ms, 512 slots | \
timingwheel | go-zero's design in C | times better |
|---|--:|--:|--:|
END
compare 'set, new key: million a second, 2 producers' %.2f 1e-6 fill_per_second more
compare 'set, key removed before' %.2f 1e-6 again_per_second more
compare 'set, existing key' %.2f 1e-6 set_per_second more
compare 'move, sooner or later' %.2f 1e-6 move_per_second more
compare 'move, later only' %.2f 1e-6 later_per_second more
compare 'remove' %.2f 1e-6 remove_per_second more
compare 'resident memory of a timer: bytes' %.0f 1 bytes_per_timer less
compare_column 'idle, all an hour away: % of a core' %.4f 1 idle 2
compare_column 'all due in one tick, until all have run: ms' %.0f 1e-6 expiry 3

cat <<END

| Million commands a second (ns of processor time a command, producers + owner) | fill | \
again | set, existing | move | move, later | remove | bytes a timer |
|---|--:|--:|--:|--:|--:|--:|--:|
END
phases_rows throughput levels timingwheel
phases_rows throughput_1 levels timingwheel
phases_rows throughput_4 levels timingwheel
phases_rows throughput_inline inline 'timingwheel, polled by its producer'
phases_rows throughput_10m levels timingwheel

cat <<END

| Caller's time, p50 / p99 / p99.9: ns | timingwheel, a million calls a second | \
a hundred thousand | go-zero's design, a million | a hundred thousand |
|---|--:|--:|--:|--:|
END
paced 'set, existing key' set
paced 'set, key removed before' again
paced move move
paced remove remove

cat <<END

| \`make run\`: $timers timers of 0.1 to 10 s, set, moved and removed by 4 threads | |
|---|--:|
| lateness while setting, p50 / p99 / max: ms | $(million_lateness setting) |
| lateness afterwards, p50 / p99 / max: ms | $(million_lateness after) |
| lateness of $(million timers lateness | with_commas) timers over $seconds s, \
all set and none early: ms | $(million_lateness after lateness) |
| CPU time: s, in $(million seconds) s | $(million cpu_seconds) |
END

cat <<END

| $timers timers by handle, 2 threads | |
|---|--:|
| set: million a second | $(handle_millions fill_per_second) |
| one stopped and another set, calls of both: million a second | \
$(handle_millions churn_per_second) |
| reset: million a second | $(handle_millions reset_per_second) |
| resident memory of a timer: bytes | $(handle_rate bytes_per_timer | awk '{ printf "%.0f", $1 }') |

| Storms: a heartbeat of 10 ms beside $timers timers | heartbeat late, p50 / max: ms | \
cascading wheel: heartbeat late |
|---|--:|--:|
| none of them, for comparison | \
$(storm timingwheel slot usual_p50_ns) / $(storm timingwheel slot usual_max_ns) | \
$(storm cascading slot usual_p50_ns) / $(storm cascading slot usual_max_ns) |
END
storm_row slot 'all come down from one coarse slot'
storm_row tick 'all due in one tick'
storm_row drain 'all drained'
storm_row stops 'all stopped one by one'

cat <<END

| Resident memory of a wheel: MiB | $(memory all timers | with_commas) set | all fired | \
$(memory all later_ns | awk '{ printf "%g", $1 / 1e9 }') s later | % of the peak | \
address space at the peak, times as much |
|---|--:|--:|--:|--:|--:|
END
memory_row storm_keyed 'by key'
memory_row storm_handles 'by handle'
memory_row survivors_keyed 'by key, 1 % stay'
memory_row survivors_handles 'by handle, 1 % stay'
memory_row keys_16 'keys of 16 bytes'
for size in 40 100 200 1000; do
	memory_row keys_$size "on the same wheel, then keys of $size bytes"
done

cat <<END

An unused wheel of 512 slots has $(memory unused made_bytes | awk '{ printf "%.0f", $1 / 1024 }') \
KiB resident. With a storm each second, the first one faults on $(faults teeth_keyed) a storm; \
by handle on $(faults teeth_handles).
END

cat <<END

| Cache: 1,000,000 entries, 16-byte keys, 64-byte values copied out, Zipf 0.99; \
million calls a second | timingwheel | uthash behind one mutex | times better |
|---|--:|--:|--:|
END
for mix in 100/0 90/10 50/50; do
	for threads in 1 2 4; do
		cache_row "gets/sets $mix, threads: $threads" cache $mix $threads
	done
done
cache_row 'gets/sets 90/10, threads: 2, with a limit, S3-FIFO' cache_s3fifo 90/10 2
cache_row 'the same, LRU' cache_lru 90/10 2
row 'many gets in one call, 1 thread (right: one by one)' %.1f 1e-6 \
	"$(cache cache 100/0 1 many_per_second)" "$(cache cache 100/0 1 single_per_second)" more
row 'resident memory of an entry: bytes' %.0f 1 "$(cache cache '' '' bytes_per_entry)" \
	"$(cache uthash_mutex '' '' bytes_per_entry)" less
row 'the same with a limit, S3-FIFO' %.0f 1 "$(cache cache_s3fifo '' '' bytes_per_entry)" \
	"$(cache uthash_mutex '' '' bytes_per_entry)" less
cat <<END

| Cache with room for a tenth of 1,000,000 keys: hits, percent | \
LRU | simulated | S3-FIFO | simulated |
|---|--:|--:|--:|--:|
| Zipf 0.99 | $(hits zipf lru) | 76.6 | $(hits zipf s3fifo) | 81.2 |
| 70 % so, 30 % scans, each of 300,000 keys that never come again | \
$(hits zipf_scans lru) | 51.3 | $(hits zipf_scans s3fifo) | 56.9 |
| 70 % so, 30 % such keys one by one | $(hits zipf_once lru) | | $(hits zipf_once s3fifo) | |

A million entries that expire in one tick take \
$(expiring cpu_ns_per_entry | awk '{ printf "%.0f", $1 }') ns of processor time each; \
a get meanwhile takes \
$(expiring storm_get_p99.9_ns | awk '{ printf "%.1f", $1 / 1000 }') µs at p99.9.
END
