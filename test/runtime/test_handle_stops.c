/* SPDX-License-Identifier: MIT */
/*
 * A handle is stopped wherever it is: in the queue, in the wheel, in the pool, running or done.
 * Some handles are stale or never existed.
 */
#include "support/test.h"

#include "support/inside.h"
#include "support/probe.h"
#include "support/script.h"

SCRIPT(everywhere, stopped_timer_never_runs_and_is_not_released,
       "after a 5; after b 5; after c 5; after d 500; stop a; flush; stop b; advance 5-1ns;"
       "stop_wait c; stop d; flush; pending = 0; pass 5; stop a = NOT_FOUND;"
       "stop b = NOT_FOUND; stop c = NOT_FOUND; stop d = NOT_FOUND; stop; idle")
SCRIPT(inline, timer_that_is_due_now_can_still_be_stopped_in_the_queue,
       "after p 0; after q -1; stop q; advance 0 -> p@0; stop p = NOT_FOUND")
SCRIPT(everywhere, argument_goes_to_the_one_that_takes_it,
       "after p 5; after q 5; take p = p; flush; take q = q; take p = NOT_FOUND;"
       "take q = NOT_FOUND; flush; pending = 0; pass 9")
/* A run has its own argument. Where a reset has armed another run, or there is a next one, the
 * taker has it. */
SCRIPT(everywhere, run_that_takes_its_own_timer_has_the_argument_of_the_next_run,
       "in a: take a = RUNNING; in b: reset b 1, take b = b REARMED, take b = RUNNING;"
       "in c: take c = c REARMED, take c = RUNNING; after a 1; after b 1; every c 1 1;"
       "pass 9 -> a@1 b@1 c@1")
SCRIPT(everywhere, timer_that_stops_itself_learns_that_it_runs,
       "in p: stop_wait p = RUNNING, stop p = RUNNING; after p 1; pass 3 -> p@1;"
       "stop p = NOT_FOUND; stop_wait p = NOT_FOUND")
SCRIPT(everywhere, task_may_stop_and_wait_for_others,
       "in c: stop_wait a = NOT_FOUND, stop_wait b; after a 1; after b 9; pass 1 -> a@1;"
       "after c 1; pass 20 -> c@2")
SCRIPT(pool, job_of_the_pool_that_has_not_begun_can_be_stopped,
       "after a 1; after b 1; after c 1;" WORKERS_STOP
       "clock 1; pending = 0; stop a; stop_wait c; stop a = NOT_FOUND;" WORKERS_GO
       "idle -> v@0 w@0 b@1; stop a = NOT_FOUND; stop; idle")

#define RUNS "hold p; after p 0; clock 0; reached p;"
SCRIPT(pool, stop_during_the_run_answers_running_and_leaves_the_wait_to_another,
       RUNS "stop p = RUNNING; begin w stop_wait p; asleep w; go p; ended w = RUNNING;"
	    "stop p = NOT_FOUND; idle -> p@0")
SCRIPT(pool, several_threads_can_wait_for_one_run,
       RUNS "begin t stop_wait p; begin u stop_wait p; begin v stop_wait p; begin w stop_wait p;"
	    "asleep t; asleep u; asleep v; asleep w; go p; ended t = RUNNING; ended u = RUNNING;"
	    "ended v = RUNNING; ended w = RUNNING; stop_wait p = NOT_FOUND; idle -> p@0")
/* From its stop on there is nothing to reset. */
SCRIPT(pool, stop_wait_for_a_run_that_was_reset_answers_that_the_argument_is_free,
       RUNS "reset p 2; begin w stop_wait p; asleep w; reset p 2 = NOT_FOUND; go p; ended w;"
	    "pass 9 -> p@0")
SCRIPT(pool, task_on_a_worker_waits_for_the_run_on_the_other,
       RUNS "in q: meet 2, stop_wait p = any; after q 0; clock 0; meet 2; go p; idle -> p@0 q@0")

PROBED(inline_and_threads, stale_handle_touches_no_later_timer_after_a_million_reuses)
{
	enum { REUSES = TEST_SHARE_OF(1000000) };
	struct tw_wheel *wheel = recorder->wheel;
	struct probe stale = {0};
	struct tw_timer timer;

	probe_start(recorder, &stale, 1, INTERVAL);
	assert_status(probe_stop(&stale), TW_OK);
	for (int i = 0; i < REUSES; i++) {
		if (tw_after_func(wheel, TW_HOUR, run_nothing, NULL, &timer) != TW_OK)
			fail_msg("timer %d was refused", i);
		if (i % 16 == 0)
			flush_wheel(recorder);
		if (timer.id == stale.timer.id ||
		    tw_timer_stop(wheel, stale.timer) != TW_NOT_FOUND ||
		    tw_timer_reset(wheel, stale.timer, 0) != TW_NOT_FOUND ||
		    tw_timer_stop_wait(wheel, stale.timer) != TW_NOT_FOUND)
			fail_msg("timer %d was taken for the stale one", i);
		if (tw_timer_stop(wheel, timer) != TW_OK)
			fail_msg("timer %d was no longer there", i);
	}
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), 0);
}

static void drive_the_other_wheel(struct probe *probe)
{
	struct recorder *other = probe->others->recorder;

	probe->answers[0] = tw_advance(other->wheel, INTERVAL);
	probe->answers[1] = probe_stop_wait(probe);
}

TEST(inline, run_that_drives_another_wheel_still_knows_its_own_timer)
{
	struct recorder *recorder = probes_open(*state);
	struct recorder *other = probes_open(*state);
	struct probe inner = {0};
	struct probe outer = {.in_run = drive_the_other_wheel, .others = &inner};

	probe_start(other, &inner, 2, INTERVAL);
	probe_start(recorder, &outer, 1, INTERVAL);
	pass_ticks(recorder, 1);
	assert_status(outer.answers[0], TW_OK);
	assert_int_equal(event_count(other), 1);
	assert_status(outer.answers[1], TW_RUNNING);
	recorder_close(other);
	recorder_close(recorder);
}

PROBED(everywhere, handles_that_never_were_are_not_found)
{
	static const uint64_t ids[] = {0,
				       1,
				       2,
				       12345,
				       UINT32_MAX,
				       INT64_MAX,
				       UINT64_MAX,
				       UINT64_C(1) << 63,
				       UINT64_C(0x123456789abcdef)};
	struct tw_wheel *wheel = recorder->wheel;
	struct probe probe = {0};

	for (int used = 0; used < 2; used++) {
		for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
			struct tw_timer timer = {ids[i]};

			assert_true(ids[i] != probe.timer.id || ids[i] == 0);
			assert_status(tw_timer_stop(wheel, timer), TW_NOT_FOUND);
			assert_status(tw_timer_stop_wait(wheel, timer), TW_NOT_FOUND);
			assert_status(tw_timer_reset(wheel, timer, INTERVAL), TW_NOT_FOUND);
			assert_status(tw_timer_remaining(wheel, timer, NULL), TW_NOT_FOUND);
		}
		if (!used)
			probe_start(recorder, &probe, 1, INTERVAL);
	}
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 1, INTERVAL);
}
