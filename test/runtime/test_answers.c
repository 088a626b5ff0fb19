/* SPDX-License-Identifier: MIT */
/*
 * These calls get an answer from the owner, and at once in an inline task: add and take by key, and
 * the time that a handle has left.
 */
#include "support/test.h"

#include "support/probe.h"
#include "support/script.h"

SCRIPT(everywhere, added_timer_is_one_that_was_set,
       "add a 0.5; add a_key_in_a_timer_of_its_own 3; add never never; pending = 3;"
       "pass 5 -> a@1/1 a_key_in_a_timer_of_its_own@3/3; pending = 1")
/* Once the timer has run its key is free. */
SCRIPT(everywhere, key_that_has_a_timer_exists_and_keeps_it,
       "set a1 4; add a2 1 = EXISTS; pass 4 -> a1@4; add a3 1; remove a; add a4 1;"
       "add a5 1 = EXISTS; pass 1 -> a3:removed a4@5")
SCRIPT(everywhere, taken_value_is_the_callers_and_comes_nowhere_else,
       "set a 1; set other 1; take a = a; take a = NOT_FOUND;"
       "set a_key_in_a_timer_of_its_own 1;"
       "take a_key_in_a_timer_of_its_own = a_key_in_a_timer_of_its_own;"
       "pending = 1; pass 1 -> other@1; take other = NOT_FOUND")
SCRIPT(everywhere, tasks_are_answered_too,
       "in a: set mine3 1, add mine4 1 = EXISTS, add new 1, take b = b, take b = NOT_FOUND,"
       "reset p 7, left p = 7; after p 1h; set a 1; set b 2; pass 1 -> a@1;"
       "pass 1 -> mine3@2 new@2")
SCRIPT(everywhere, handle_reports_the_time_left,
       "after a 10; after b 20; after c 30; after d never; left a = 10; left d = never;"
       "advance 4.5; left a = 5.5; reset a 50; left a = 50; stop b; left b = NOT_FOUND;"
       "advance 25.5 -> c@30;"
       "advance 14.5; left c = NOT_FOUND; left a = 10; drain;"
       "idle -> a:drained d:drained; left a = NOT_FOUND")
SCRIPT(pool, running_timer_says_so,
       "hold p; after p 0; clock 0; reached p; left p = RUNNING; reset p 5; left p = RUNNING;"
       "go p; idle -> p@0; left p = 5")
/* A reset timer has the time left that the reset gave it, wherever it is. */
SCRIPT(pool, timer_that_waits_for_a_worker_is_due,
       "after a 1; after b 1;" WORKERS_STOP
       "clock 1; left a = 0; reset b 5; left b = 5; stop a; left a = NOT_FOUND;" WORKERS_GO
       "idle -> v@0 w@0; left b = 5")

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
