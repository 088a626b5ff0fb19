/* SPDX-License-Identifier: MIT */
/* Timers that run again and again meet a drain and the wheel's stop. */
#include "support/test.h"

#include "support/probe.h"

PROBED(everywhere, drained_periodic_timer_has_ended)
{
	static const tw_duration deadlines[] = {50 * INTERVAL, 60 * INTERVAL, 0};
	struct probe probes[2] = {0};

	probe_repeat(recorder, &probes[0], 1, 5 * INTERVAL, 10 * INTERVAL);
	assert_status(probe_schedule(recorder, &probes[1], 2, deadlines), TW_OK);
	pass_ticks(recorder, 7);
	assert_status(tw_drain(recorder->wheel, probe_drain, recorder), TW_OK);
	settle(recorder);
	assert_status(probe_stop(&probes[0]), TW_NOT_FOUND);
	assert_status(probe_reset(&probes[1], INTERVAL), TW_NOT_FOUND);
	pass_ticks(recorder, 60);
	assert_runs_ms(recorder, 1, 5);
	assert_drained(recorder, 2);
	assert_int_equal(event_count_of_kind(recorder, EVENT_DRAIN), 2);
	assert_int_equal(event_count(recorder), 3);
	assert_int_equal(probes[1].asked, 1);
}

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

static void stop_the_wheel_in_the_second_run(struct probe *probe)
{
	if (probe->runs == 2)
		probe->answers[0] = tw_stop(probe->recorder->wheel);
}

PROBED(everywhere, periodic_timer_that_stops_the_wheel_comes_back_after_its_run)
{
	struct probe probes[2] = {{.in_run = stop_the_wheel_in_the_second_run}, {0}};

	probe_repeat(recorder, &probes[0], 1, 10 * INTERVAL, 10 * INTERVAL);
	probe_repeat(recorder, &probes[1], 2, 25 * INTERVAL, 10 * INTERVAL);
	(void)tw_advance(recorder->wheel, 10 * INTERVAL);
	settle(recorder);
	(void)tw_advance(recorder->wheel, 10 * INTERVAL);
	settle(recorder);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_CLOSED);
	assert_status(probes[0].answers[0], TW_OK);
	assert_runs_ms(recorder, 1, 10, 20);
	assert_int_equal(times_returned(recorder, 1), 3);
	assert_released(recorder, 2, TW_STOPPED);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 2);
}

PROBED(pool, periodic_timer_that_runs_when_the_wheel_stops_comes_back_after_its_run)
{
	static const tw_duration ending[] = {5 * INTERVAL, 0};
	struct probe probes[2];

	for (int i = 0; i < 2; i++)
		probe_hold(&probes[i]);
	probe_repeat(recorder, &probes[0], 1, 5 * INTERVAL, 5 * INTERVAL);
	assert_status(probe_schedule(recorder, &probes[1], 2, ending), TW_OK);
	assert_status(tw_advance(recorder->wheel, 5 * INTERVAL), TW_OK);
	gate_await(&probes[0].gate);
	gate_await(&probes[1].gate);
	assert_status(tw_advance(recorder->wheel, 50 * INTERVAL), TW_OK);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	let_workers_go(recorder, probes);
	settle(recorder);
	assert_runs_ms(recorder, 1, 5);
	assert_int_equal(times_returned(recorder, 1), 2);
	assert_runs_ms(recorder, 2, 5);
	assert_int_equal(times_returned(recorder, 2), 1);
	assert_int_equal(event_count(recorder), 3);
}

PROBED(pool, destroy_while_a_periodic_timer_runs_gives_its_argument_back)
{
	struct probe probe;

	probe_repeat_held(recorder, &probe, 5 * INTERVAL, TW_MISSED_BURST);
	gate_open(&probe.gate);
	tw_destroy(recorder->wheel);
	recorder->wheel = NULL;
	assert_int_equal(event_count(recorder), 2);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 1);
}
