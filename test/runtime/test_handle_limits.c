/* SPDX-License-Identifier: MIT */
/* Handles are at the limits of the clock, the queue and memory. */
#include "support/test.h"

#include "support/memory.h"
#include "support/probe.h"
#include "support/script.h"

SCRIPT(everywhere, at_the_end_of_the_clock_now_is_now_and_later_is_never,
       "after e never; advance never; after a 0; after b -1; after c 1; after d never;"
       "advance 0 -> a@never b@never; reset e 1; advance 1h; reset e 0; advance 0 -> e@never;"
       "pending = 2")
SCRIPT(by_caller, full_queue_refuses_handles_but_no_reset_and_no_stop,
       "after a 3; after b 3; after c 3; after d 3; after e 3; after f 3; after g 3; after h 3;"
       "after i 0 = FULL; stop d; reset e 1; reset g 4; reset d 1 = NOT_FOUND; advance 0;"
       "reset f 2; after i 3; pass 9 -> e@1 f@2 a@3 b@3 c@3 h@3 i@3 g@4",
       .queue_capacity = 8, .when_full = TW_WHEN_FULL_FAIL)

TEST(everywhere, wheel_of_a_nanosecond_fires_at_the_last_ones_of_the_clock)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	struct probe probes[3] = {0};

	recorder_start(recorder, 1, 10, &options);
	probe_start(recorder, &probes[0], 1, INT64_MAX - 2);
	probe_start(recorder, &probes[1], 2, INT64_MAX - 1);
	probe_start(recorder, &probes[2], 3, INT64_MAX / 3);
	advance_to(recorder, INT64_MAX / 3 - 1);
	assert_int_equal(event_count(recorder), 0);
	advance(recorder, 1);
	assert_executed_at(recorder, 3, INT64_MAX / 3);
	advance_to(recorder, INT64_MAX - 3);
	assert_int_equal(event_count(recorder), 1);
	advance(recorder, 1);
	assert_executed_at(recorder, 1, INT64_MAX - 2);
	advance(recorder, 1);
	assert_executed_at(recorder, 2, INT64_MAX - 1);
	recorder_close(recorder);
}

PROBED(everywhere, periods_as_long_as_the_clock_do_not_overflow)
{
	struct probe often = {.recorder = recorder, .number = 1};
	struct probe once = {.recorder = recorder, .number = 2};

	pass_ticks(recorder, 10);
	assert_status(tw_every(recorder->wheel, INT64_MIN, INTERVAL, TW_MISSED_SKIP, probe_run,
			       &often, NULL),
		      TW_OK);
	assert_status(tw_every(recorder->wheel, -(INT64_MAX / 2) - 10, INT64_MAX / 2 + 1,
			       TW_MISSED_SKIP, probe_run, &once, NULL),
		      TW_OK);
	pass_ticks(recorder, 5);
	assert_in_range(often.runs, 5, 6);
	assert_int_equal(once.runs, 1);
}

enum { MANY = TEST_SHARE_OF(1000000), MIB = 1 << 20 };

/* Resident memory means little under a sanitizer. */
static struct recorder *open_measured(const struct variant *variant)
{
	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a sanitizer has memory of its own");
	return probes_open(variant);
}

static void set_and_stop_many(struct tw_wheel *wheel)
{
	struct tw_timer timer;

	for (int i = 0; i < MANY; i++)
		if (tw_after_func(wheel, TW_HOUR, run_nothing, NULL, &timer) != TW_OK ||
		    tw_timer_stop(wheel, timer) != TW_OK)
			fail_msg("timer %d could not be set and stopped", i);
	assert_status(tw_flush(wheel), TW_OK);
	assert_int_equal(tw_pending(wheel), 0);
}

TEST(inline_and_threads, many_timers_stopped_one_by_one_leave_no_memory_behind)
{
	struct recorder *recorder = open_measured(*state);
	long before;

	before = resident_memory();
	set_and_stop_many(recorder->wheel);
	assert_in_range(resident_memory(), 1, before + 16 * MIB);
	before = resident_memory();
	for (int round = 0; round < 3; round++)
		set_and_stop_many(recorder->wheel);
	assert_in_range(resident_memory(), 1, before + 4 * MIB);
	recorder_close(recorder);
}

static void set_many_and_stop_them(struct tw_wheel *wheel, struct tw_timer *timers)
{
	for (int i = 0; i < MANY; i++)
		if (tw_after_func(wheel, TW_HOUR + i, run_nothing, NULL, &timers[i]) != TW_OK)
			fail_msg("timer %d could not be set", i);
	for (int i = 0; i < MANY; i++)
		if (tw_timer_stop(wheel, timers[i]) != TW_OK)
			fail_msg("timer %d could not be stopped", i);
	assert_status(tw_flush(wheel), TW_OK);
	assert_int_equal(tw_pending(wheel), 0);
}

TEST(inline_and_threads, many_timers_stopped_together_leave_their_memory_to_the_next)
{
	struct recorder *recorder = open_measured(*state);
	struct tw_timer *timers;
	long before;

	timers = calloc(MANY, sizeof(timers[0]));
	set_many_and_stop_them(recorder->wheel, timers);
	before = resident_memory();
	for (int round = 0; round < 3; round++)
		set_many_and_stop_them(recorder->wheel, timers);
	assert_in_range(resident_memory(), 1, before + 4 * MIB);
	free(timers);
	recorder_close(recorder);
}
