/* SPDX-License-Identifier: MIT */
/* Handles live beside keyed timers, and end by drain and the wheel's stop. */
#include "support/test.h"

#include "support/probe.h"
#include "support/script.h"

SCRIPT(everywhere, pending_counts_handles,
       "after a 5; after b 5; after c 5; after d 5; set keyed 5; flush; pending = 5; stop a;"
       "stop a = NOT_FOUND; flush; pending = 4; reset b 9; flush; pending = 4;"
       "pass 5 -> c@5 d@5 keyed@5; pending = 1; pass 4 -> b@9; pending = 0")
SCRIPT(everywhere, drain_gives_handles_with_their_argument_and_no_key,
       "after a 5; after b 5; after c 5000; set keyed 5; every d 2h 1; stop a; drain; after e 5;"
       "idle -> b:drained/5 c:drained/5000 d:drained keyed:drained; stop b = NOT_FOUND;"
       "reset c 1 = NOT_FOUND; stop d = NOT_FOUND; pending = 1; pass 9 -> e@5")
SCRIPT(everywhere, wheel_stop_releases_pending_arguments_with_no_key,
       "after a 1; after b 500; after c 500; after d 500; after e 500; after f 500;"
       "advance 1 -> a@1; stop b; reset c never; flush; stop d; reset e 1;"
       "stop -> c:stopped/never e:stopped/2 f:stopped/500")
SCRIPT(everywhere, wheel_stop_releases_arguments_that_are_still_in_the_queue,
       "after a 1; after b never; after c 1; after d 1; stop c; reset d 2;"
       "stop -> a:stopped b:stopped d:stopped")
/* The first job ran and was to run again: its argument comes back too. */
SCRIPT(pool, jobs_of_the_pool_that_have_not_begun_are_released_by_wheel_stop,
       "after a 1; after b 1; after c 1; after d 1;" WORKERS_STOP
       "clock 1; stop a; reset b 5; reset v 5; stop;" WORKERS_GO
       "idle -> v@0 w@0 b:stopped c:stopped d:stopped v:stopped")
SCRIPT(pool, destroy_releases_handles_and_waits_for_running_ones,
       "hold p; after p 0; clock 0; reached p; after q 1; reset p 1; go p;"
       "destroy -> p@0 p:stopped q:stopped")
/* The second timer waits for the next turn: pending, but not in the wheel. */
SCRIPT(ordered, handle_set_for_now_in_a_task_is_drained_like_others,
       "in p: after q 0, drain; after p 1; pass 1 -> p@1 q:drained")
SCRIPT(ordered, handle_set_for_now_in_a_task_is_stopped_like_others,
       "in p: after q 0, stop; after p 1; pass 1 = any -> p@1 q:stopped")

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
