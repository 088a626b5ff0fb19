/* SPDX-License-Identifier: MIT */
/* Handles live beside keyed timers, and end by drain and the wheel's stop. */
#include "support/test.h"

#include "support/probe.h"

/* Checks that the timer was released or drained once, as a handle: with no key. */
static void assert_returned_without_key(struct recorder *recorder, uintptr_t number)
{
	assert_int_equal(event_of(recorder, number).key_size, 0);
}

PROBED(everywhere, pending_counts_handles)
{
	struct probe probes[4] = {0};

	probes_start_ms(recorder, probes, 0, 5, 5, 5, 5);
	set_timer(recorder, "keyed", 9, 5 * INTERVAL);
	flush_wheel(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 5);
	assert_status(probe_stop(&probes[0]), TW_OK);
	assert_status(probe_stop(&probes[0]), TW_NOT_FOUND);
	flush_wheel(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 4);
	assert_status(probe_reset(&probes[1], 9 * INTERVAL), TW_OK);
	flush_wheel(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 4);
	pass_ticks(recorder, 5);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	pass_ticks(recorder, 4);
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

PROBED(everywhere, drain_gives_handles_with_their_argument_and_no_key)
{
	struct probe probes[5] = {0};

	probes_start_ms(recorder, probes, 0, 5, 5, 5000, 5000);
	set_timer(recorder, "keyed", 9, 5 * INTERVAL);
	assert_status(probe_stop(&probes[0]), TW_OK);
	assert_status(tw_drain(recorder->wheel, probe_drain, recorder), TW_OK);
	probe_start(recorder, &probes[4], 4, 5 * INTERVAL);
	settle(recorder);
	for (uintptr_t i = 1; i < 4; i++) {
		assert_drained(recorder, i);
		assert_returned_without_key(recorder, i);
		assert_status(probe_stop(&probes[i]), TW_NOT_FOUND);
		assert_status(probe_reset(&probes[i], INTERVAL), TW_NOT_FOUND);
	}
	assert_drained(recorder, 9);
	assert_int_equal(event_of(recorder, 1).deadline, 5 * INTERVAL);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 4, 5 * INTERVAL);
	assert_not_returned(recorder, 0);
}

/* Release and drain functions note their task here, one call at a time. */
static struct tw_task noted[8];
static atomic_size_t noted_count;

static void note_task(struct recorder *recorder, const struct tw_task *task)
{
	noted[atomic_fetch_add(&noted_count, 1) % 8] = *task;
}

static void assert_noted_for(const struct probe *probe)
{
	size_t found = 0;

	for (size_t i = 0; i < atomic_load(&noted_count); i++)
		found += noted[i].timer.id == probe->timer.id && noted[i].run == probe_run;
	assert_int_equal(found, 1);
}

PROBED(everywhere, release_and_drain_functions_get_the_handle_and_its_run)
{
	struct probe probes[4] = {{0}};
	struct tw_wheel *wheel = recorder->wheel;

	atomic_store(&noted_count, 0);
	recorder->on_drain = recorder->on_release = note_task;
	for (uintptr_t i = 0; i < 4; i++) {
		if (i % 2 == 0)
			probe_start(recorder, &probes[i], i, 9 * INTERVAL);
		else
			assert_status(tw_every(wheel, INTERVAL, INTERVAL, TW_MISSED_SKIP, probe_run,
					       &probes[i], &probes[i].timer),
				      TW_OK);
		set_timer(recorder, i % 2 == 0 ? "even" : "odd", 100 + i, 9 * INTERVAL);
		if (i == 1)
			assert_status(tw_drain(wheel, probe_drain, recorder), TW_OK);
	}
	stop_wheel(recorder);
	assert_int_equal(atomic_load(&noted_count), 8);
	for (int i = 0; i < 4; i++)
		assert_noted_for(&probes[i]);
	for (int i = 0; i < 8; i++)
		assert_true((noted[i].key_size > 0) == (noted[i].timer.id == 0) &&
			    (noted[i].key_size > 0) == (noted[i].run == NULL));
}

PROBED(everywhere, handle_stopped_or_reset_behind_a_drain_comes_back_once_or_not_at_all)
{
	enum tw_status statuses[100];
	enum tw_status resets[100];
	static struct probe probes[200];

	memset(probes, 0, sizeof(probes));
	for (uintptr_t i = 0; i < 200; i++)
		probe_start(recorder, &probes[i], i, INTERVAL);
	flush_wheel(recorder);
	assert_status(tw_drain(recorder->wheel, probe_drain, recorder), TW_OK);
	for (int i = 0; i < 100; i++)
		statuses[i] = probe_stop(&probes[i]);
	for (int i = 0; i < 100; i++)
		resets[i] = probe_reset(&probes[100 + i], 3 * INTERVAL);
	settle(recorder);
	pass_ticks(recorder, 9);
	for (uintptr_t i = 0; i < 100; i++) {
		assert_true(statuses[i] == TW_OK || statuses[i] == TW_NOT_FOUND);
		assert_int_equal(times_returned(recorder, i), statuses[i] == TW_OK ? 0 : 1);
	}
	for (uintptr_t i = 100; i < 200; i++) {
		assert_true(resets[i - 100] == TW_OK || resets[i - 100] == TW_NOT_FOUND);
		assert_drained(recorder, i);
	}
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

PROBED(everywhere, wheel_stop_releases_pending_arguments_with_no_key)
{
	struct probe probes[6] = {0};

	probes_start_ms(recorder, probes, 0, 1, 500, 500, 500, 500, 500);
	advance(recorder, INTERVAL);
	assert_status(probe_stop(&probes[1]), TW_OK);
	assert_status(probe_reset(&probes[2], TW_FOREVER), TW_OK);
	flush_wheel(recorder);
	assert_status(probe_stop(&probes[3]), TW_OK);
	assert_status(probe_reset(&probes[4], INTERVAL), TW_OK);
	stop_wheel(recorder);
	assert_executed_at(recorder, 0, INTERVAL);
	assert_not_returned(recorder, 1);
	assert_released(recorder, 2, TW_STOPPED);
	assert_not_returned(recorder, 3);
	assert_released(recorder, 4, TW_STOPPED);
	assert_released(recorder, 5, TW_STOPPED);
	for (uintptr_t i = 4; i < 6; i++)
		assert_returned_without_key(recorder, i);
	assert_int_equal(event_of(recorder, 5).deadline, 500 * INTERVAL);
	assert_int_equal(event_count(recorder), 4);
}

PROBED(everywhere, wheel_stop_releases_arguments_that_are_still_in_the_queue)
{
	struct probe probes[4] = {0};

	probe_start(recorder, &probes[0], 0, INTERVAL);
	probe_start(recorder, &probes[1], 1, TW_FOREVER);
	probes_start_ms(recorder, probes + 2, 2, 1, 1);
	assert_status(probe_stop(&probes[2]), TW_OK);
	assert_status(probe_reset(&probes[3], 2 * INTERVAL), TW_OK);
	stop_wheel(recorder);
	assert_released(recorder, 0, TW_STOPPED);
	assert_released(recorder, 1, TW_STOPPED);
	assert_released(recorder, 3, TW_STOPPED);
	assert_int_equal(event_count(recorder), 3);
}

PROBED(everywhere, handle_stopped_behind_a_stop_of_the_wheel_comes_back_once)
{
	enum tw_status statuses[200];
	static struct probe probes[200];

	memset(probes, 0, sizeof(probes));
	for (uintptr_t i = 0; i < 200; i++)
		probe_start(recorder, &probes[i], i, i < 100 ? INTERVAL : TW_FOREVER);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	for (int i = 0; i < 200; i++)
		statuses[i] = i % 2 ? probe_stop(&probes[i]) : probe_stop_wait(&probes[i]);
	settle(recorder);
	for (uintptr_t i = 0; i < 200; i++) {
		assert_true(statuses[i] == TW_OK || statuses[i] == TW_CLOSED);
		assert_int_equal(times_returned(recorder, i), statuses[i] == TW_OK ? 0 : 1);
		assert_status(probe_stop(&probes[i]), TW_CLOSED);
	}
}

PROBED(pool, jobs_of_the_pool_that_have_not_begun_are_released_by_wheel_stop)
{
	struct probe held[2];
	struct probe probes[4] = {0};

	probes_wait(recorder, held, probes, 4);
	assert_status(probe_stop(&probes[0]), TW_OK);
	assert_status(probe_reset(&probes[1], 5 * INTERVAL), TW_OK);
	assert_status(probe_reset(&held[0], 5 * INTERVAL), TW_OK);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	let_workers_go(recorder, held);
	assert_not_returned(recorder, 0);
	for (uintptr_t i = 1; i < 4; i++) {
		assert_released(recorder, i, TW_STOPPED);
		assert_returned_without_key(recorder, i);
	}
	/* One ran and was to run again: its argument comes back too. */
	assert_int_equal(times_returned(recorder, 1001), 2);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 4);
	assert_int_equal(event_count(recorder), 6);
}

PROBED(pool, destroy_releases_handles_and_waits_for_running_ones)
{
	struct probe held;
	struct probe probe = {0};

	probe_start_held(recorder, &held, 1);
	probe_start(recorder, &probe, 2, INTERVAL);
	assert_status(probe_reset(&held, INTERVAL), TW_OK);
	gate_open(&held.gate);
	tw_destroy(recorder->wheel);
	recorder->wheel = NULL;
	assert_int_equal(atomic_load(&held.ended), 1);
	assert_released(recorder, 2, TW_STOPPED);
	assert_int_equal(times_returned(recorder, 1), 2);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 2);
}

enum { DRAINED_PROBES = 200 };

/* Timers taken from the wheel are drained, and tw_stop gets the others. */
static void drain_and_stop_the_rest(void *context, const struct tw_task *task)
{
	struct recorder *recorder = context;
	struct probe *probes = recorder->argument;

	probe_drain(recorder, task);
	for (int i = 0; i < DRAINED_PROBES; i++)
		if (tw_timer_stop(recorder->wheel, probes[i].timer) == TW_OK)
			probes[i].answers[1] = TW_RUNNING;
}

PROBED(ordered, drain_function_may_stop_what_is_still_to_be_drained)
{
	static struct probe probes[DRAINED_PROBES];
	size_t stopped = 0;

	memset(probes, 0, sizeof(probes));
	recorder->argument = probes;
	for (uintptr_t i = 0; i < DRAINED_PROBES; i++)
		probe_start(recorder, &probes[i], i + 1, INTERVAL);
	assert_status(tw_drain(recorder->wheel, drain_and_stop_the_rest, recorder), TW_OK);
	settle(recorder);
	for (int i = 0; i < DRAINED_PROBES; i++)
		stopped += probes[i].answers[1] == TW_RUNNING;
	assert_true(stopped > 0);
	assert_int_equal(event_count(recorder), DRAINED_PROBES - stopped);
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

static void start_another_now_and_drain(struct probe *probe)
{
	struct probe *other = probe->others;
	struct tw_wheel *wheel = probe->recorder->wheel;

	probe->answers[0] = tw_after_func(wheel, 0, probe_run, other, &other->timer);
	probe->answers[1] = tw_drain(wheel, probe_drain, probe->recorder);
}

static void start_another_now_and_stop(struct probe *probe)
{
	struct probe *other = probe->others;
	struct tw_wheel *wheel = probe->recorder->wheel;

	probe->answers[0] = tw_after_func(wheel, 0, probe_run, other, &other->timer);
	probe->answers[1] = tw_stop(wheel);
}

/* It waits for the next turn: pending, but not in the wheel. */
TEST(ordered, handle_set_for_now_in_a_task_is_drained_and_stopped_like_others)
{
	for (int stops = 0; stops < 2; stops++) {
		struct recorder *recorder = probes_open(*state);
		struct probe other = {.recorder = recorder, .number = 2};
		struct probe probe = {.in_run = stops ? start_another_now_and_stop
						      : start_another_now_and_drain,
				      .others = &other};

		probe_start(recorder, &probe, 1, INTERVAL);
		(void)tw_advance(recorder->wheel, INTERVAL);
		settle(recorder);
		assert_status(probe.answers[0], TW_OK);
		assert_status(probe.answers[1], TW_OK);
		if (stops)
			assert_released(recorder, 2, TW_STOPPED);
		else
			assert_drained(recorder, 2);
		recorder_close(recorder);
	}
}
