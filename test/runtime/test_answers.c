/* SPDX-License-Identifier: MIT */
/*
 * These calls get an answer from the owner, and at once in an inline task: add and take by key, and
 * the time that a handle has left.
 */
#include "support/test.h"

#include "support/probe.h"
#include "support/stats.h"

static enum tw_status add_timer(struct recorder *recorder, const char *key, uintptr_t value,
				tw_duration delay)
{
	return tw_add_timer(recorder->wheel, key, strlen(key), VALUE(value), delay);
}

static enum tw_status take_timer(struct recorder *recorder, const char *key, uintptr_t *value)
{
	void *taken = NULL;
	enum tw_status status = tw_take_timer(recorder->wheel, key, strlen(key), &taken);

	*value = (uintptr_t)taken;
	return status;
}

/* Checks the time that the timer has left. */
static void assert_left(struct recorder *recorder, struct tw_timer timer, tw_duration expected)
{
	tw_duration left = -1;

	assert_status(tw_timer_remaining(recorder->wheel, timer, &left), TW_OK);
	assert_int_equal(left, expected);
	assert_status(tw_timer_remaining(recorder->wheel, timer, NULL), TW_OK);
}

static void assert_none_left(struct recorder *recorder, struct tw_timer timer,
			     enum tw_status status)
{
	tw_duration left = 77;

	assert_status(tw_timer_remaining(recorder->wheel, timer, &left), status);
	assert_int_equal(left, 77);
}

/* ---- By key ---- */

RECORDED(everywhere, added_timer_is_one_that_was_set)
{
	static const char long_key[100] = "a key that travels in a timer of its own";
	struct tw_wheel *wheel = recorder->wheel;

	assert_status(add_timer(recorder, "short", 1, INTERVAL / 2), TW_OK);
	assert_status(tw_add_timer(wheel, long_key, 100, VALUE(2), 3 * INTERVAL), TW_OK);
	assert_status(add_timer(recorder, "never", 3, TW_FOREVER), TW_OK);
	assert_int_equal(tw_pending(wheel), 3);
	pass_ticks(recorder, 5);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_executed_at(recorder, 2, 3 * INTERVAL);
	assert_int_equal(event_of(recorder, 2).key_size, 100);
	assert_counts(wheel, .set = 3, .fired = 2, .pending = 1);
}

RECORDED(everywhere, key_that_has_a_timer_exists_and_keeps_it)
{
	set_timer(recorder, "any", 1, 4 * INTERVAL);
	assert_status(add_timer(recorder, "any", 2, INTERVAL), TW_EXISTS);
	pass_ticks(recorder, 4);
	assert_order(recorder, 1);
	assert_executed_at(recorder, 1, 4 * INTERVAL);
	/* The timer has run, and its key is free. */
	assert_status(add_timer(recorder, "any", 3, INTERVAL), TW_OK);
	remove_timer(recorder, "any");
	assert_status(add_timer(recorder, "any", 4, INTERVAL), TW_OK);
	assert_status(add_timer(recorder, "any", 5, INTERVAL), TW_EXISTS);
	pass_ticks(recorder, 1);
	assert_released(recorder, 3, TW_REMOVED);
	assert_executed_at(recorder, 4, 5 * INTERVAL);
	assert_int_equal(event_count(recorder), 3);
}

RECORDED(everywhere, taken_value_is_the_callers_and_comes_nowhere_else)
{
	static const char long_key[1000] = "as long as that";
	void *value = recorder;
	uintptr_t number;

	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "other", 2, INTERVAL);
	assert_status(take_timer(recorder, "any", &number), TW_OK);
	assert_int_equal(number, 1);
	assert_status(take_timer(recorder, "any", &number), TW_NOT_FOUND);
	assert_int_equal(number, 0);
	assert_status(tw_set_timer(recorder->wheel, long_key, 1000, NULL, INTERVAL), TW_OK);
	assert_status(tw_take_timer(recorder->wheel, long_key, 1000, &value), TW_OK);
	assert_null(value);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	pass_ticks(recorder, 1);
	assert_order(recorder, 2);
	assert_status(take_timer(recorder, "other", &number), TW_NOT_FOUND);
	assert_counts(recorder->wheel, .set = 3, .fired = 1, .removed = 2);
}

/* An inline task or a worker notes its answers here, for the main thread to check. */
struct answers {
	enum tw_status exists, added, taken, gone, left;
	void *value;
	tw_duration remaining;
	struct tw_timer timer;
};

static void ask_for_all(struct recorder *recorder, const struct tw_task *task)
{
	struct answers *answers = recorder->argument;
	struct tw_wheel *wheel = task->wheel;

	if (task->value != VALUE(1))
		return;
	may_fail(tw_set_timer(wheel, "mine", 4, VALUE(3), INTERVAL));
	answers->exists = tw_add_timer(wheel, "mine", 4, VALUE(4), INTERVAL);
	answers->added = tw_add_timer(wheel, "new", 3, VALUE(5), INTERVAL);
	answers->taken = tw_take_timer(wheel, "other", 5, &answers->value);
	answers->gone = tw_take_timer(wheel, "other", 5, &answers->value);
	(void)tw_timer_reset(wheel, answers->timer, 7 * INTERVAL);
	answers->left = tw_timer_remaining(wheel, answers->timer, &answers->remaining);
}

RECORDED(everywhere, tasks_are_answered_too)
{
	struct answers answers = {0};

	recorder->argument = &answers;
	recorder->on_execute = ask_for_all;
	assert_status(tw_after_func(recorder->wheel, TW_HOUR, run_nothing, NULL, &answers.timer),
		      TW_OK);
	set_timer(recorder, "any", 1, INTERVAL);
	/* This timer has the same tick, and has not run yet where tasks run one after the other. */
	set_timer(recorder, "other", 2, 2 * INTERVAL);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_status(answers.exists, TW_EXISTS);
	assert_status(answers.added, TW_OK);
	assert_status(answers.taken, TW_OK);
	assert_ptr_equal(answers.value, VALUE(2));
	assert_status(answers.gone, TW_NOT_FOUND);
	assert_status(answers.left, TW_OK);
	assert_int_equal(answers.remaining, 7 * INTERVAL);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 3, 2 * INTERVAL);
	assert_executed_at(recorder, 5, 2 * INTERVAL);
	assert_int_equal(event_count(recorder), 3);
}

/* ---- By handle ---- */

PROBED(everywhere, handle_reports_the_time_left)
{
	struct probe probes[4] = {0};

	probes_start_ms(recorder, probes, 1, 10, 20, 30);
	assert_status(
		tw_after_func(recorder->wheel, TW_FOREVER, run_nothing, NULL, &probes[3].timer),
		TW_OK);
	assert_left(recorder, probes[0].timer, 10 * INTERVAL);
	assert_left(recorder, probes[3].timer, TW_FOREVER);
	advance(recorder, 4 * INTERVAL + INTERVAL / 2);
	assert_left(recorder, probes[0].timer, 5 * INTERVAL + INTERVAL / 2);
	assert_status(probe_reset(&probes[0], 50 * INTERVAL), TW_OK);
	assert_left(recorder, probes[0].timer, 50 * INTERVAL);
	assert_status(probe_stop(&probes[1]), TW_OK);
	assert_none_left(recorder, probes[1].timer, TW_NOT_FOUND);
	advance(recorder, 40 * INTERVAL);
	assert_none_left(recorder, probes[2].timer, TW_NOT_FOUND);
	assert_left(recorder, probes[0].timer, 10 * INTERVAL);
	assert_status(tw_drain(recorder->wheel, probe_drain, recorder), TW_OK);
	assert_none_left(recorder, probes[0].timer, TW_NOT_FOUND);
	settle(recorder);
	assert_none_left(recorder, probes[0].timer, TW_NOT_FOUND);
}

PROBED(pool, running_timer_says_so)
{
	struct probe probe = {0};

	probe_start_held(recorder, &probe, 1);
	assert_none_left(recorder, probe.timer, TW_RUNNING);
	assert_status(probe_reset(&probe, 5 * INTERVAL), TW_OK);
	assert_none_left(recorder, probe.timer, TW_RUNNING);
	gate_open(&probe.gate);
	settle(recorder);
	assert_left(recorder, probe.timer, 5 * INTERVAL);
}

PROBED(pool, timer_that_waits_for_a_worker_is_due)
{
	struct probe held[2] = {0};
	struct probe probes[2] = {0};

	probes_wait(recorder, held, probes, 2);
	assert_left(recorder, probes[0].timer, 0);
	/* A reset timer has the time left that the reset gave it, wherever it is. */
	assert_status(probe_reset(&probes[1], 5 * INTERVAL), TW_OK);
	assert_left(recorder, probes[1].timer, 5 * INTERVAL);
	assert_status(probe_stop(&probes[0]), TW_OK);
	assert_none_left(recorder, probes[0].timer, TW_NOT_FOUND);
	let_workers_go(recorder, held);
	assert_left(recorder, probes[1].timer, 5 * INTERVAL);
}

/* Between the end of a run and the owner's look at it the timer is on its way to the wheel. */
RECORDED(threads, repeated_timer_is_found_whenever_it_is_asked_for)
{
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_timer timer;
	enum tw_status status;

	assert_status(
		tw_every(wheel, INTERVAL, INTERVAL, TW_MISSED_SKIP, run_nothing, NULL, &timer),
		TW_OK);
	for (int i = 0; i < TEST_SHARE_OF(50000); i++) {
		assert_status(tw_advance(wheel, INTERVAL), TW_OK);
		for (int look = 0; look < 4; look++) {
			status = tw_timer_remaining(wheel, timer, NULL);
			assert_true(status == TW_OK || status == TW_RUNNING);
		}
	}
	assert_true(tw_timer_stop(wheel, timer) != TW_NOT_FOUND);
	settle(recorder);
}
