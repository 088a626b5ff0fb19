#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks the figures of timingwheel.h: numbers and times are the code's constants, and costs
# follow from the record of `make costs`, which fails if the code costs more than the record says.
# runtime/test_figures checks the figures of memory.
# shellcheck disable=SC2016 # the texts have backquotes

cd "$(dirname "$0")/../.." || exit 1
status=0

complain()
{
	echo "$*"
	status=1
}

# This is the header as one line, without the marks of comments.
header=$(sed 's,^[[:space:]]*/\{0\,1\}\**,,' include/timingwheel/timingwheel.h | tr -s '\n\t ' ' ')

# in_header TEXT
in_header()
{
	case $header in
	*"$1"*) ;;
	*) complain "timingwheel.h does not say: $1" ;;
	esac
}

# constant TEXT FILE CODE: the header has the text, the file the constant.
constant()
{
	in_header "$1"
	grep -qF -e "$3" "src/$2" || complain "src/$2 has no '$3', for: $1"
}

constant 'default 8192' runtime/tw_create.c 'DEFAULT_QUEUE_CAPACITY = 8192,'
constant 'threads that run tasks; default 2' runtime/tw_create.c 'DEFAULT_WORKERS = 2,'
constant 'The default is 64, or `workers`' runtime/tw_create.c 'DEFAULT_MAX_WORKERS = 64 '
constant 'default 5 ms' runtime/tw_create.c 'patience_for_worker = 5 * TW_MILLISECOND;'
constant 'ends after 10 s without work' runtime/worker_pool.c 'idle_time = 10 * TW_SECOND;'
constant 'may wait 50 µs' runtime/owner.c 'nap = 50 * TW_MICROSECOND;'
constant 'copies up to 128 timers at a time' runtime/pending.c 'TIMERS_A_STEP = 128,'
constant 'and limited to 65,536' wheel/wheel_levels.c 'MOST_BITS = 16 '

# cost TEXT CONDITION: the header has the text, and the condition of awk is true, where i["NAME"]
# are the instructions of a row of the record, l the locked ones, and c the system calls.
cost()
{
	in_header "$1"
	awk "NF == 6 { i[\$1] = \$2; l[\$1] = \$5; c[\$1] = \$6 } END { exit !($2) }" \
		bench/costs/record.txt || complain "the record of costs says no such thing: $1"
}

cost 'a system call only if the owner sleeps' \
	'c["core.set_new"] == 0 && c["threaded.set_new.caller"] == 0 &&
	 c["threaded.wake.caller"] == 1'
cost 'Costs no more than a set.' \
	'i["threaded.move_later.caller"] <= i["threaded.set_existing.caller"] &&
	 i["threaded.remove.caller"] <= i["threaded.set_existing.caller"]'
cost 'Costs about as much as tw_set_timer.' \
	'i["threaded.start.caller"] <= 1.2 * i["threaded.set_new.caller"] &&
	 i["handles.set_new"] <= i["core.set_new"]'
cost 'Costs about 200 ns a timer' \
	'i["core.each"] <= 300 && l["core.each"] < 0.5 && c["core.each"] < 0.5'
cost 'one atomic exchange if the alarm moves later' \
	'l["alarms.later"] >= 1 && l["alarms.later"] <= 1.05 && c["alarms.later"] == 0'
cost 'otherwise a place in a list and, if the owner sleeps, a system call' \
	'l["alarms.sooner"] > 1.05 && c["alarms.sooner"] == 0'
exit $status
