/* SPDX-License-Identifier: MIT */
/* These tests check when and in which order timers run, to the nanosecond of the manual clock. */
#include "support/test.h"

#include "support/inside.h"
#include "support/recorder.h"

RECORDED(everywhere, deadline_is_not_rounded_and_lateness_is_exact)
{
	tw_duration delay = INTERVAL * 3 + 400;

	advance(recorder, 1000);
	set_timer(recorder, "any", 1, delay);
	advance(recorder, INTERVAL * 4 - 1001);
	assert_not_returned(recorder, 1);
	advance(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL * 4);
	assert_int_equal(event_of(recorder, 1).deadline, 1000 + delay);
	assert_int_equal(event_of(recorder, 1).lateness, INTERVAL * 4 - 1000 - delay);
}

static void assert_remaining(struct recorder *recorder, const char *key, tw_duration expected)
{
	tw_duration remaining = -1;

	assert_status(tw_contains(recorder->wheel, key, strlen(key), &remaining), TW_OK);
	assert_true(remaining == expected);
}

RECORDED(everywhere, set_under_one_interval_counts_as_one)
{
	advance(recorder, INTERVAL * 5 + INTERVAL / 4);
	set_timer(recorder, "a nanosecond", 1, 1);
	set_timer(recorder, "nearly one", 2, INTERVAL - 1);
	set_timer(recorder, "one", 3, INTERVAL);
	assert_remaining(recorder, "a nanosecond", INTERVAL);
	assert_remaining(recorder, "nearly one", INTERVAL);
	advance(recorder, INTERVAL / 2);
	assert_remaining(recorder, "a nanosecond", INTERVAL / 2);
	assert_int_equal(event_count(recorder), 0);
	advance(recorder, INTERVAL / 4);
	pass_ticks(recorder, 3);
	for (uintptr_t i = 1; i <= 3; i++) {
		assert_executed_at(recorder, i, INTERVAL * 7);
		assert_int_equal(event_of(recorder, i).deadline, INTERVAL * 6 + INTERVAL / 4);
		assert_int_equal(event_of(recorder, i).lateness, INTERVAL * 3 / 4);
	}
}

RECORDED(everywhere, move_under_one_interval_runs_at_once_and_is_not_late)
{
	set_timer(recorder, "any", 1, INTERVAL * 4);
	set_timer(recorder, "other", 2, INTERVAL * 4);
	advance(recorder, INTERVAL / 2);
	move_timer(recorder, "any", INTERVAL - 1);
	move_timer(recorder, "other", 1);
	advance(recorder, 0);
	assert_executed_at(recorder, 1, INTERVAL / 2);
	assert_executed_at(recorder, 2, INTERVAL / 2);
	assert_int_equal(event_of(recorder, 1).lateness, 0);
	assert_int_equal(event_of(recorder, 2).lateness, 0);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	pass_ticks(recorder, 9);
	assert_int_equal(event_count(recorder), 2);
}

/* One event has been; "forever", 1, is still there. */
static void close_with_forever(struct recorder *recorder)
{
	assert_int_equal(event_count(recorder), 1);
	remove_timer(recorder, "forever");
	settle(recorder);
	assert_released(recorder, 1, TW_REMOVED);
	recorder_close(recorder);
}

TEST(everywhere, delay_too_large_for_the_clock_never_ends)
{
	struct recorder *recorder = recorder_open(*state, 10);

	advance(recorder, INTERVAL * 3 / 2);
	set_timer(recorder, "forever", 1, TW_FOREVER);
	set_timer(recorder, "too large", 2, INT64_MAX - INTERVAL);
	set_timer(recorder, "moved", 4, INTERVAL);
	move_timer(recorder, "moved", TW_FOREVER);
	set_timer(recorder, "back", 5, TW_FOREVER);
	move_timer(recorder, "back", INTERVAL * 2);
	assert_remaining(recorder, "forever", TW_FOREVER);
	assert_remaining(recorder, "too large", TW_FOREVER);
	assert_remaining(recorder, "moved", TW_FOREVER);
	assert_int_equal(tw_pending(recorder->wheel), 4);
	advance(recorder, INTERVAL / 2);
	pass_ticks(recorder, 50);
	assert_executed_at(recorder, 5, INTERVAL * 4);
	close_with_forever(recorder);
}

TEST(ordered, clock_ends_at_forever_and_never_stays_never)
{
	struct recorder *recorder = recorder_open(*state, 10);

	set_timer(recorder, "forever", 1, TW_FOREVER);
	set_timer(recorder, "soon", 2, INTERVAL * 12);
	advance(recorder, TW_FOREVER);
	assert_executed_at(recorder, 2, INTERVAL * 12);
	advance(recorder, TW_FOREVER);
	assert_true(tw_now(recorder->wheel) == TW_FOREVER);
	close_with_forever(recorder);
}

static void set_same_key_again(struct recorder *recorder, const struct tw_task *task)
{
	uintptr_t value = (uintptr_t)task->value;

	if (value < 100)
		may_fail(tw_set_timer(recorder->wheel, task->key, task->key_size, VALUE(value + 1),
				      INTERVAL));
}

RECORDED(ordered, task_that_arms_itself_runs_at_each_tick_of_a_long_advance)
{
	recorder->on_execute = set_same_key_again;
	set_timer(recorder, "any", 1, INTERVAL);
	advance(recorder, INTERVAL * 60);
	assert_int_equal(event_count(recorder), 60);
	advance(recorder, INTERVAL * 60);
	assert_int_equal(event_count(recorder), 100);
	for (uintptr_t i = 1; i <= 100; i++)
		assert_executed_at(recorder, i, INTERVAL * (tw_duration)i);
}

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

TEST(inline, poll_returns_the_time_until_the_next_deadline)
{
	struct recorder *recorder = recorder_open(*state, 64);

	assert_true(poll_wheel(recorder) == TW_FOREVER);
	set_timer(recorder, "later", 1, INTERVAL * 20);
	set_timer(recorder, "next", 2, INTERVAL * 5);
	assert_int_equal(poll_wheel(recorder), INTERVAL * 5);
	advance(recorder, INTERVAL / 2);
	assert_int_equal(poll_wheel(recorder), INTERVAL * 9 / 2);
	advance(recorder, INTERVAL * 9 / 2);
	assert_int_equal(poll_wheel(recorder), INTERVAL * 15);
	remove_timer(recorder, "later");
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	recorder_close(recorder);
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

#define LONG_KEY "a key too long for a cell of the queue"

static tw_duration deadline_of(struct recorder *recorder, uintptr_t value)
{
	return event_of(recorder, value).deadline;
}

static void forbidden_run(void *argument)
{
	abort();
}

/* The commands wait for ten intervals. */
RECORDED(everywhere, delays_count_from_the_call)
{
	struct tw_timer timer;
	struct half_command half;

	set_timer(recorder, "a", 11, INTERVAL * 50);
	set_timer(recorder, "b", 12, INTERVAL * 50);
	set_timer(recorder, "never", 13, INTERVAL * 50);
	flush_wheel(recorder);
	half = half_command_begin(recorder->wheel);
	set_timer(recorder, "one", 1, INTERVAL * 5);
	set_timer(recorder, "short", 2, INTERVAL - 1);
	set_timer(recorder, LONG_KEY, 3, INTERVAL * 5);
	move_timer(recorder, "a", INTERVAL * 7);
	move_timer(recorder, "b", INTERVAL - 1);
	move_timer(recorder, "never", TW_FOREVER);
	assert_status(
		tw_after_func(recorder->wheel, INTERVAL * 99, forbidden_run, VALUE(4), &timer),
		TW_OK);
	assert_status(tw_timer_reset(recorder->wheel, timer, INTERVAL * 80), TW_OK);
	wheel_set_clock(recorder->wheel, INTERVAL * 10);
	half_command_end(&half);
	settle(recorder);
	pass_ticks(recorder, 40);
	assert_int_equal(deadline_of(recorder, 1), INTERVAL * 5);
	assert_int_equal(deadline_of(recorder, 2), INTERVAL);
	assert_int_equal(deadline_of(recorder, 3), INTERVAL * 5);
	assert_int_equal(deadline_of(recorder, 11), INTERVAL * 7);
	assert_int_equal(deadline_of(recorder, 12), INTERVAL - 1);
	assert_not_returned(recorder, 13);
	stop_wheel(recorder);
	settle(recorder);
	assert_int_equal(deadline_of(recorder, 4), INTERVAL * 80);
}
