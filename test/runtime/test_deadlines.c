/* SPDX-License-Identifier: MIT */
/* These tests check when and in which order timers run, to the nanosecond of the manual clock. */
#include "support/test.h"

#include "support/recorder.h"
#include "support/script.h"

SCRIPT(everywhere, deadline_is_not_rounded_and_lateness_is_exact,
       "clock 1000ns; set any 3+400ns; advance 4-1001ns; advance 1ns -> any@4/3.0014")
SCRIPT(everywhere, set_under_one_interval_counts_as_one,
       "clock 5.25; set short 1ns; set nearly 1-1ns; set one 1; left short = 1; left nearly = 1;"
       "advance 0.5; left short = 0.5; advance 0.25;"
       "pass 3 -> short@7/6.25 nearly@7/6.25 one@7/6.25")
SCRIPT(everywhere, move_under_one_interval_runs_at_once_and_is_not_late,
       "set any 4; set other 4; advance 0.5; move any 1-1ns; move other 1ns;"
       "advance 0 -> any@0.5 other@0.5; pending = 0; pass 9")
SCRIPT(everywhere, delay_too_large_for_the_clock_never_ends,
       "clock 1.5; set forever never; set large never-1; set moved 1; move moved never;"
       "set back never; move back 2; left forever = never; left large = never;"
       "left moved = never; pending = 4; advance 0.5; pass 50 -> back@4;"
       "remove forever -> forever:removed; stop -> large:stopped/never moved:stopped/never")
SCRIPT(ordered, clock_ends_at_forever_and_never_stays_never,
       "set forever never; set soon 12; advance never -> soon@12; advance never; now = never;"
       "remove forever -> forever:removed")
SCRIPT(ordered, task_that_arms_itself_runs_at_each_tick_of_a_long_advance,
       "in a: set a 1; set a 1; advance 12 => a@1 a@2 a@3 a@4 a@5 a@6 a@7 a@8 a@9 a@10 a@11 a@12")
SCRIPT(inline, poll_returns_the_time_until_the_next_deadline,
       "poll = never; set later 4; set next 2; poll = 2; advance 0.5; poll = 1.5;"
       "advance 1.5 -> next@2; poll = 2; remove later; poll = never -> later:removed")
/* The commands wait for ten intervals. */
SCRIPT(everywhere, delays_count_from_the_call,
       "set a 50; set b 50; set never 50; flush; half; set one 5; set short 1-1ns; set L1 5;"
       "move a 7; move b 1-1ns; move never never; after p 99; reset p 80; clock_is 10; whole;"
       "wait -> one@10/5 short@10/1 L1@10/5 a@10/7 b@10/0.999999; pass 40; stop -> p:stopped/80"
       " never:stopped/never")

TEST(everywhere, interval_of_any_length_works)
{
	static const tw_duration intervals[] = {1,    3,         1000,
						7919, TW_SECOND, 100 * 365 * 24 * TW_HOUR};
	const struct variant *variant = *state;

	for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
		struct recorder *recorder = recorder_create();
		struct tw_options options = recorder_options(recorder, variant);

		recorder_start(recorder, intervals[i], 7, &options);
		set_timer(recorder, "any", 1, 1);
		set_timer(recorder, "other", 2, intervals[i] * 2);
		set_timer(recorder, "forever", 3, TW_FOREVER);
		advance(recorder, intervals[i]);
		advance(recorder, intervals[i]);
		assert_executed_at(recorder, 1, intervals[i]);
		assert_executed_at(recorder, 2, intervals[i] * 2);
		assert_not_returned(recorder, 3);
		recorder_close(recorder);
	}
}

TEST(inline, poll_never_lets_the_caller_sleep_past_a_tick)
{
	struct recorder *recorder = recorder_open(*state, 4);
	tw_duration due = INTERVAL * 3017;
	int polls = 0;

	set_timer(recorder, "far", 1, due - 5);
	while (event_count(recorder) == 0) {
		tw_duration sleep = poll_wheel(recorder);

		assert_in_range(sleep, 1, due - tw_now(recorder->wheel));
		advance(recorder, sleep);
		polls++;
	}
	assert_executed_at(recorder, 1, due);
	assert_in_range(polls, 1, 64);
	recorder_close(recorder);
}
