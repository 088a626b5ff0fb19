/* SPDX-License-Identifier: MIT */
/*
 * max_pending limits the values that the wheel owes: a set takes a place, and the place comes back
 * with the value, once, whatever way that takes. At the limit each set is refused at once.
 */
#include "support/test.h"

#include "support/inside.h"
#include "support/probe.h"
#include "support/recorder.h"
#include "support/script.h"
#include "support/stats.h"

#define LONG "a_key_too_long_for_a_cell_of_the_queue"

/* A set of the key that has a timer is refused, too. */
SCRIPT(everywhere, each_kind_of_set_is_refused_at_the_limit,
       "set a1 1; set b 1 = FULL; set " LONG " 1 = FULL; add b 1 = FULL; after p 1 = FULL;"
       "every q 0 1 skip = FULL; schedule r 5 = FULL; set a2 1 = FULL; add a2 1 = FULL; idle;"
       "places = 1; move a 2; pass 2 -> a1@2; places = 0",
       .max_pending = 1)
SCRIPT(everywhere, call_that_fails_takes_no_place,
       "set a 0 = INVALID; add a 0 = INVALID; every p 0 0 skip = INVALID; idle; places = 0;"
       "set a 1; add a2 1 = EXISTS; places = 1; stop -> a:stopped; set a 1 = CLOSED;"
       "add a 1 = CLOSED; after p 0 = CLOSED; places = 0",
       .max_pending = 3)
/* The queue is full, though there are places. */
SCRIPT(by_caller, set_refused_by_the_queue_takes_no_place,
       "move none 1; move none 1; move none 1; move none 1; set a 1 = FULL; after p 1 = FULL;"
       "places = 0; idle; places = 0",
       .queue_capacity = 4, .max_pending = 3, .when_full = TW_WHEN_FULL_FAIL)
/* The second is in the pool's queue, behind the first. */
SCRIPT(pool, task_has_its_place_in_the_pool_and_while_it_runs,
       "hold a; set a 1; set b 1; clock 1; reached a; pending = 0; places = 2; set c 1 = FULL;"
       "go a; idle -> a@1 b@1; places = 0; set c 1",
       .max_pending = 2, .workers = 1)
SCRIPT(everywhere, task_has_its_place_until_it_returns,
       "in a: set b 1 = FULL; set a 1; pass 1 -> a@1; places = 0", .max_pending = 1)
/* In the release of the old value, that and the new one have the places. */
SCRIPT(everywhere, replaced_value_has_its_place_until_it_is_released,
       "in a1: set b 1 = FULL; in a2: set b 1 = FULL; set a1 1; idle; places = 1; set a2 1;"
       "idle -> a1:replaced; places = 1; set a3 1; idle -> a2:replaced; places = 1;"
       "set " LONG "1 1; remove a; idle -> a3:removed; places = 1; in " LONG "1: set b 1 = FULL;"
       "set " LONG "2 1; idle -> " LONG "1:replaced; places = 1; pass 1 -> " LONG "2@1;"
       "places = 0",
       .max_pending = 2)
SCRIPT(everywhere, removed_taken_and_drained_values_give_their_places_back,
       "set removed 1; set taken 1; set " LONG " 1; after p 1; set x 1 = FULL; remove removed;"
       "idle -> removed:removed; places = 3; take taken = taken; places = 2;"
       "drain -> " LONG ":drained p:drained; places = 0",
       .max_pending = 4)
/* It does so at once: the owner has not seen the stop. */
SCRIPT(everywhere, timer_stopped_or_taken_in_time_gives_its_place_back,
       "after p 1h; stop p; places = 0; stop p = NOT_FOUND; after p 1h; take p = p; places = 0;"
       "after p 1h; flush; stop p; places = 0; after p 1h; flush; take p = p; places = 0;"
       "stop p = NOT_FOUND; idle; places = 0",
       .max_pending = 1)
SCRIPT(pool, timer_stopped_in_the_pool_gives_its_place_back,
       WORKERS_STOP "after a 0; after b 0; clock 1; stop a; places = 3; reset b 1h;" WORKERS_GO
		    "idle -> v@0 w@0; places = 1; stop b; idle; places = 0",
       .max_pending = 4)
SCRIPT(everywhere, timer_stopped_in_its_run_has_its_place_until_the_end,
       "in p: stop p = RUNNING, set a 1 = FULL; after p 1; pass 1 -> p@1; places = 0;"
       "in q: stop q = REARMED, set a 1 = FULL; every q 1 1; pass 3 -> q@2; places = 0",
       .max_pending = 1)
SCRIPT(everywhere, repeated_timer_keeps_its_place,
       "every p 1 1; set x 1 = FULL; pass 1 -> p@1; places = 1; set x 1 = FULL; pass 1 -> p@2;"
       "places = 1; stop p; in q 1: reset q 1; in q 2: reset q 1; after q 1; set x 1 = FULL;"
       "pass 1 -> q@3; set x 1 = FULL; pass 1 -> q@4; places = 1; pass 1 -> q@5; places = 0;"
       "schedule r 6 8; pass 1 -> r@6; set x 1 = FULL; places = 1; pass 2 -> r@8; places = 0",
       .max_pending = 1)

/* Waits until all is done that is due, and checks the number of places taken. */
static void assert_places(struct recorder *recorder, size_t expected)
{
	settle(recorder);
	assert_int_equal(wheel_places_taken(recorder->wheel), expected);
}

RECORDED(everywhere, values_without_a_release_give_their_places_back, .max_pending = 3,
	 .release = no_release)
{
	struct tw_timer timer;

	for (int round = 0; round < 5; round++) {
		set_timer(recorder, "a", 1, INTERVAL);
		set_timer(recorder, LONG, 2, INTERVAL);
		assert_places(recorder, 2);
		remove_timer(recorder, round % 2 == 0 ? "a" : LONG);
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
	set_timer(recorder, LONG, 2, TW_HOUR);
	probe_start(recorder, &once, 3, TW_HOUR);
	probe_repeat(recorder, &often, 4, INTERVAL, INTERVAL);
	pass_ticks(recorder, 1);
	assert_places(recorder, 3);
	stop_wheel(recorder);
	assert_places(recorder, 0);
	wheel_set_behind_the_stop(recorder->wheel, "short", VALUE(5), 5 * INTERVAL);
	wheel_set_behind_the_stop(recorder->wheel, LONG, VALUE(6), 5 * INTERVAL);
	assert_places(recorder, 0);
	for (uintptr_t value = 5; value <= 6; value++)
		assert_released(recorder, value, TW_STOPPED);
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
