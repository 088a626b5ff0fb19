/* SPDX-License-Identifier: MIT */
/* Timers that run again and again meet a drain and the wheel's stop. */
#include "support/test.h"

#include "support/probe.h"
#include "support/script.h"

SCRIPT(everywhere, drained_periodic_timer_has_ended,
       "every p 5 10; schedule q 50 60; pass 7 -> p@5; drain -> p:drained/15 q:drained/50;"
       "stop p = NOT_FOUND; reset q 1 = NOT_FOUND; pass 60; asked q = 0")
SCRIPT(everywhere, periodic_timer_that_stops_the_wheel_comes_back_after_its_run,
       "in p 2: stop; every p 10 10; every q 25 10; clock 10; idle -> p@10;"
       "clock 10 = any -> p@20 p:stopped q:stopped; advance 10 = CLOSED")
SCRIPT(pool, periodic_timer_that_runs_when_the_wheel_stops_comes_back_after_its_run,
       "hold p; hold q; every p 5 5; schedule q 5; clock 5; reached p; reached q; clock 50; stop;"
       "go p; go q; idle -> p@5 q@5 p:stopped")
SCRIPT(pool, destroy_while_a_periodic_timer_runs_gives_its_argument_back,
       "hold p; every p 5 5; clock 5; reached p; go p; destroy -> p@5 p:stopped")

static void drain_in_the_first_run(struct probe *probe)
{
	if (probe->runs == 1)
		probe->answers[0] = tw_drain(probe->recorder->wheel, probe_drain, probe->recorder);
}

/* It may or may not be pending again at the drain; it comes to one end. */
PROBED(everywhere, periodic_timer_that_drains_the_wheel_is_drained_or_goes_on)
{
	struct probe probes[2] = {{.in_run = drain_in_the_first_run}, {0}};

	probe_repeat(recorder, &probes[0], 1, 10 * INTERVAL, 10 * INTERVAL);
	probe_repeat(recorder, &probes[1], 2, 15 * INTERVAL, 10 * INTERVAL);
	pass_ticks(recorder, 35);
	assert_status(probes[0].answers[0], TW_OK);
	assert_drained(recorder, 2);
	if (event_count_of_kind(recorder, EVENT_DRAIN) == 1) {
		assert_runs_ms(recorder, 1, 10, 20, 30);
		assert_status(probe_stop(&probes[0]), TW_OK);
	} else {
		assert_int_equal(event_count(recorder), 3);
		assert_runs_ms(recorder, 1, 10);
		assert_status(probe_stop(&probes[0]), TW_NOT_FOUND);
	}
}
