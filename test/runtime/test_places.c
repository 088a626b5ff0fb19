/* SPDX-License-Identifier: MIT */
/*
 * max_pending limits the values that the wheel owes: a set takes a place, and the place comes back
 * with the value, once, whatever way that takes. At the limit each set is refused at once.
 */
#include "support/test.h"

#include "support/inside.h"
#include "support/probe.h"
#include "support/recorder.h"
#include "support/stats.h"

#define LONG_KEY "a key too long for a cell of the queue"

static void assert_refused(struct recorder *recorder)
{
	assert_status(tw_set_timer(recorder->wheel, "refused", 7, VALUE(99), INTERVAL), TW_FULL);
}

/* Waits until all is done that is due, and checks the number of places taken. */
static void assert_places(struct recorder *recorder, size_t expected)
{
	settle(recorder);
	assert_int_equal(wheel_places_taken(recorder->wheel), expected);
}

static tw_duration in_a_tick(void *argument, tw_duration previous)
{
	return previous + INTERVAL;
}

PROBED(everywhere, each_kind_of_set_is_refused_at_the_limit, .max_pending = 1)
{
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_timer timer = {77};

	set_timer(recorder, "a", 1, INTERVAL);
	assert_status(tw_set_timer(wheel, "b", 1, VALUE(2), INTERVAL), TW_FULL);
	assert_status(tw_set_timer(wheel, LONG_KEY, 30, VALUE(2), INTERVAL), TW_FULL);
	assert_status(tw_add_timer(wheel, "b", 1, VALUE(2), INTERVAL), TW_FULL);
	assert_status(tw_after_func(wheel, INTERVAL, run_nothing, NULL, &timer), TW_FULL);
	assert_int_equal(timer.id, 0);
	assert_status(tw_every(wheel, 0, INTERVAL, TW_MISSED_SKIP, run_nothing, NULL, NULL),
		      TW_FULL);
	assert_status(tw_schedule_func(wheel, in_a_tick, run_nothing, NULL, NULL), TW_FULL);
	/* A set of the key that has a timer is refused, too. */
	assert_status(tw_set_timer(wheel, "a", 1, VALUE(2), INTERVAL), TW_FULL);
	assert_status(tw_add_timer(wheel, "a", 1, VALUE(2), INTERVAL), TW_FULL);
	assert_int_equal(stats_of_wheel(wheel).refused, 8);
	assert_places(recorder, 1);
	move_timer(recorder, "a", 2 * INTERVAL);
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 1, 2 * INTERVAL);
	assert_int_equal(event_count(recorder), 1);
	assert_places(recorder, 0);
}

PROBED(everywhere, call_that_fails_takes_no_place, .max_pending = 3)
{
	struct tw_wheel *wheel = recorder->wheel;

	assert_status(tw_set_timer(wheel, "", 0, VALUE(1), INTERVAL), TW_INVALID);
	assert_status(tw_set_timer(wheel, "a", 1, VALUE(1), 0), TW_INVALID);
	assert_status(tw_add_timer(wheel, "a", 1, VALUE(1), 0), TW_INVALID);
	assert_status(tw_after_func(wheel, 0, NULL, NULL, NULL), TW_INVALID);
	assert_status(tw_every(wheel, 0, 0, TW_MISSED_SKIP, run_nothing, NULL, NULL), TW_INVALID);
	assert_places(recorder, 0);
	set_timer(recorder, "a", 1, INTERVAL);
	assert_status(tw_add_timer(wheel, "a", 1, VALUE(2), INTERVAL), TW_EXISTS);
	assert_places(recorder, 1);
	stop_wheel(recorder);
	assert_status(tw_set_timer(wheel, "a", 1, VALUE(3), INTERVAL), TW_CLOSED);
	assert_status(tw_add_timer(wheel, "a", 1, VALUE(3), INTERVAL), TW_CLOSED);
	assert_status(tw_after_func(wheel, 0, run_nothing, NULL, NULL), TW_CLOSED);
	assert_places(recorder, 0);
}

/* The queue is full, though there are places. */
RECORDED(by_caller, set_refused_by_the_queue_takes_no_place, .queue_capacity = 4, .max_pending = 3,
	 .when_full = TW_WHEN_FULL_FAIL)
{
	struct tw_wheel *wheel = recorder->wheel;

	for (int i = 0; i < 4; i++)
		move_timer(recorder, "none", INTERVAL);
	for (int i = 0; i < 10; i++) {
		assert_status(tw_set_timer(wheel, "a", 1, VALUE(1), INTERVAL), TW_FULL);
		assert_status(tw_after_func(wheel, INTERVAL, run_nothing, NULL, NULL), TW_FULL);
	}
	assert_places(recorder, 0);
}

/* The second is in the pool's queue, behind the first. */
RECORDED(pool, task_has_its_place_in_the_pool_and_while_it_runs, .max_pending = 2, .workers = 1)
{
	recorder->held = 1;
	set_timer(recorder, "runs", 1, INTERVAL);
	set_timer(recorder, "waits", 2, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	gate_await(&recorder->gate);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	assert_int_equal(stats_of_wheel(recorder->wheel).unfinished, 2);
	assert_refused(recorder);
	gate_open(&recorder->gate);
	assert_places(recorder, 0);
	set_timer(recorder, "next", 3, INTERVAL);
}

static void set_in_task(struct recorder *recorder, const struct tw_task *task)
{
	enum tw_status *status = recorder->argument;

	*status = tw_set_timer(recorder->wheel, "next", 4, VALUE(9), INTERVAL);
}

PROBED(everywhere, task_has_its_place_until_it_returns, .max_pending = 1)
{
	enum tw_status status = TW_OK;

	recorder->argument = &status;
	recorder->on_execute = set_in_task;
	set_timer(recorder, "a", 1, INTERVAL);
	pass_ticks(recorder, 1);
	assert_status(status, TW_FULL);
	assert_places(recorder, 0);
}

/* In the release of the old value, that and the new one have the places. */
PROBED(everywhere, replaced_value_has_its_place_until_it_is_released, .max_pending = 2)
{
	enum tw_status status = TW_OK;

	recorder->argument = &status;
	recorder->on_release = set_in_task;
	for (uintptr_t value = 1; value <= 5; value++) {
		status = TW_OK;
		set_timer(recorder, "a", value, INTERVAL);
		assert_places(recorder, 1);
		assert_status(status, value == 1 ? TW_OK : TW_FULL);
	}
	set_timer(recorder, LONG_KEY, 6, INTERVAL);
	remove_timer(recorder, "a");
	assert_places(recorder, 1);
	set_timer(recorder, LONG_KEY, 7, INTERVAL);
	assert_places(recorder, 1);
	assert_status(status, TW_FULL);
	pass_ticks(recorder, 1);
	assert_places(recorder, 0);
}

PROBED(everywhere, removed_taken_and_drained_values_give_their_places_back, .max_pending = 4)
{
	struct probe probe = {0};
	void *value;

	for (int round = 0; round < 3; round++) {
		set_timer(recorder, "removed", 1, INTERVAL);
		set_timer(recorder, "taken", 2, INTERVAL);
		set_timer(recorder, LONG_KEY, 3, INTERVAL);
		probe_start(recorder, &probe, 4, INTERVAL);
		assert_refused(recorder);
		remove_timer(recorder, "removed");
		assert_places(recorder, 3);
		assert_status(tw_take_timer(recorder->wheel, "taken", 5, &value), TW_OK);
		assert_int_equal(wheel_places_taken(recorder->wheel), 2);
		assert_status(tw_drain(recorder->wheel, probe_drain, recorder), TW_OK);
		assert_places(recorder, 0);
	}
}

RECORDED(everywhere, values_without_a_release_give_their_places_back, .max_pending = 3,
	 .release = no_release)
{
	struct tw_timer timer;

	for (int round = 0; round < 5; round++) {
		set_timer(recorder, "a", 1, INTERVAL);
		set_timer(recorder, LONG_KEY, 2, INTERVAL);
		assert_places(recorder, 2);
		remove_timer(recorder, round % 2 == 0 ? "a" : LONG_KEY);
		assert_places(recorder, 1);
	}
	assert_status(tw_after_func(recorder->wheel, TW_HOUR, run_nothing, NULL, &timer), TW_OK);
	assert_places(recorder, 2);
	assert_status(tw_timer_stop(recorder->wheel, timer), TW_OK);
	assert_status(tw_after_func(recorder->wheel, TW_HOUR, run_nothing, NULL, &timer), TW_OK);
	stop_wheel(recorder);
	assert_places(recorder, 0);
}

PROBED(everywhere, stopped_wheel_gives_all_places_back, .max_pending = 6)
{
	struct probe once = {0};
	struct probe often = {0};

	set_timer(recorder, "a", 1, INTERVAL);
	set_timer(recorder, LONG_KEY, 2, TW_HOUR);
	probe_start(recorder, &once, 3, TW_HOUR);
	probe_repeat(recorder, &often, 4, INTERVAL, INTERVAL);
	pass_ticks(recorder, 1);
	assert_places(recorder, 3);
	stop_wheel(recorder);
	assert_places(recorder, 0);
	wheel_set_behind_the_stop(recorder->wheel, "short", VALUE(5), 5 * INTERVAL);
	wheel_set_behind_the_stop(recorder->wheel, LONG_KEY, VALUE(6), 5 * INTERVAL);
	assert_places(recorder, 0);
	for (uintptr_t value = 5; value <= 6; value++)
		assert_released(recorder, value, TW_STOPPED);
}

/* It does so at once: the owner has not seen the stop. */
PROBED(everywhere, timer_stopped_or_taken_in_time_gives_its_place_back, .max_pending = 1)
{
	struct probe probe = {0};
	void *argument;

	for (int round = 0; round < 100; round++) {
		probe_start(recorder, &probe, 1, TW_HOUR);
		if (round % 3 == 0)
			flush_wheel(recorder);
		if (round % 2 == 0)
			assert_status(probe_stop(&probe), TW_OK);
		else
			assert_status(tw_timer_take(recorder->wheel, probe.timer, &argument),
				      TW_OK);
		assert_int_equal(wheel_places_taken(recorder->wheel), 0);
		assert_status(probe_stop(&probe), TW_NOT_FOUND);
	}
	assert_places(recorder, 0);
}

/* They wait in the pool, behind two that run. */
PROBED(pool, timer_stopped_in_the_pool_gives_its_place_back, .max_pending = 4)
{
	struct probe held[2] = {0};
	struct probe probes[2] = {0};

	hold_workers(recorder, held);
	probe_start(recorder, &probes[0], 1, 0);
	probe_start(recorder, &probes[1], 2, 0);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_status(probe_stop(&probes[0]), TW_OK);
	assert_int_equal(wheel_places_taken(recorder->wheel), 3);
	assert_status(probe_reset(&probes[1], TW_HOUR), TW_OK);
	let_workers_go(recorder, held);
	assert_places(recorder, 1);
	assert_status(probe_stop(&probes[1]), TW_OK);
	assert_places(recorder, 0);
}

static void stop_and_set(struct probe *probe)
{
	probe->answers[0] = probe_stop(probe);
	probe->answers[1] = tw_set_timer(probe->recorder->wheel, "a", 1, VALUE(9), INTERVAL);
}

PROBED(everywhere, timer_stopped_in_its_run_has_its_place_until_the_end, .max_pending = 1)
{
	struct probe once = {.in_run = stop_and_set};
	struct probe often = {.in_run = stop_and_set};

	probe_start(recorder, &once, 1, INTERVAL);
	pass_ticks(recorder, 1);
	assert_status(once.answers[0], TW_RUNNING);
	assert_status(once.answers[1], TW_FULL);
	assert_places(recorder, 0);
	probe_repeat(recorder, &often, 2, INTERVAL, INTERVAL);
	pass_ticks(recorder, 3);
	assert_status(often.answers[0], TW_REARMED);
	assert_status(often.answers[1], TW_FULL);
	assert_int_equal(often.runs, 1);
	assert_places(recorder, 0);
}

/* The run ends meanwhile, on a worker. */
PROBED(pool, run_that_a_stop_has_waited_for_has_given_its_place_back, .max_pending = 1)
{
	enum { ROUNDS = TEST_SHARE_OF(100000) };
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_timer timer;

	for (int round = 0; round < ROUNDS; round++) {
		assert_status(tw_after_func(wheel, 0, run_nothing, NULL, &timer), TW_OK);
		assert_status(tw_advance(wheel, INTERVAL), TW_OK);
		/* The answer depends on how far the worker is. */
		may_fail(tw_timer_stop_wait(wheel, timer));
		assert_int_equal(wheel_places_taken(recorder->wheel), 0);
	}
}

static void reset_twice(struct probe *probe)
{
	if (probe->runs < 3)
		probe->answers[0] = probe_reset(probe, INTERVAL);
}

PROBED(everywhere, repeated_timer_keeps_its_place, .max_pending = 1)
{
	static const tw_duration deadlines[] = {12 * INTERVAL, 14 * INTERVAL, 0};
	struct probe probes[3] = {{.in_run = NULL}, {.in_run = reset_twice}};

	probe_repeat(recorder, &probes[0], 1, INTERVAL, INTERVAL);
	for (int tick = 0; tick < 5; tick++) {
		assert_refused(recorder);
		pass_ticks(recorder, 1);
		assert_places(recorder, 1);
	}
	assert_status(probe_stop(&probes[0]), TW_OK);
	probe_start(recorder, &probes[1], 2, INTERVAL);
	for (int run = 1; run <= 3; run++) {
		assert_refused(recorder);
		pass_ticks(recorder, 1);
		assert_int_equal(probes[1].runs, run);
	}
	assert_places(recorder, 0);
	assert_status(probe_schedule(recorder, &probes[2], 3, deadlines), TW_OK);
	pass_ticks(recorder, 4);
	assert_int_equal(probes[2].runs, 1);
	assert_refused(recorder);
	pass_ticks(recorder, 2);
	assert_int_equal(probes[2].runs, 2);
	assert_places(recorder, 0);
}
