/* SPDX-License-Identifier: MIT */
/* These are tests of other libraries, for timers by handle that run once. */
#include "support/test.h"

#include "support/probe.h"

PROBED(everywhere, netty_longest_delay_never_fires_whatever_the_clock)
{
	struct probe probes[3] = {0};

	probe_start(recorder, &probes[0], 1, INT64_MAX);
	advance(recorder, 7 * INTERVAL + 3);
	probe_start(recorder, &probes[1], 2, INT64_MAX);
	probe_start(recorder, &probes[2], 3, INT64_MAX - 1);
	advance(recorder, INT64_MAX / 2);
	advance(recorder, INT64_MAX);
	assert_int_equal(event_count(recorder), 0);
	assert_int_equal(tw_pending(recorder->wheel), 3);
	stop_wheel(recorder);
	for (uintptr_t i = 1; i <= 3; i++)
		assert_released(recorder, i, TW_STOPPED);
}

PROBED(everywhere, agrona_deadline_on_a_tick_is_met_and_one_after_it_takes_the_next)
{
	struct probe probes[4] = {0};

	probe_start(recorder, &probes[0], 1, 5 * INTERVAL);
	probe_start(recorder, &probes[1], 2, 5 * INTERVAL + 1);
	probe_start(recorder, &probes[2], 3, 1);
	probe_start(recorder, &probes[3], 4, 5 * INTERVAL - 1);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 1, 5 * INTERVAL);
	assert_executed_at(recorder, 2, 6 * INTERVAL);
	assert_executed_at(recorder, 3, INTERVAL);
	assert_executed_at(recorder, 4, 5 * INTERVAL);
}

PROBED(everywhere, agrona_deadline_in_the_past_fires_now)
{
	struct probe probes[3] = {0};

	advance(recorder, 10 * INTERVAL + 5);
	probe_start(recorder, &probes[0], 1, -10 * INTERVAL);
	probe_start(recorder, &probes[1], 2, INT64_MIN);
	probe_start(recorder, &probes[2], 3, 0);
	advance(recorder, 0);
	for (uintptr_t i = 1; i <= 3; i++)
		assert_executed_at(recorder, i, 10 * INTERVAL + 5);
}

/* Sets 25, 90 and 240 s from `now` on; the clock is moved in the steps of Caffeine's test. */
static void caffeine_run(const struct variant *variant, tw_duration now)
{
	static const int seconds[] = {25, 90, 240};
	struct recorder *recorder = probes_open(variant);
	struct probe probes[3] = {0};

	advance_to(recorder, now);
	for (uintptr_t i = 0; i < 3; i++)
		probe_start(recorder, &probes[i], i, seconds[i] * TW_SECOND);
	advance(recorder, 10 * TW_SECOND);
	assert_int_equal(event_count(recorder), 0);
	advance(recorder, 3 * TW_MINUTE - 10 * TW_SECOND);
	assert_int_equal(times_returned(recorder, 0) + times_returned(recorder, 1), 2);
	assert_not_returned(recorder, 2);
	advance(recorder, 7 * TW_MINUTE);
	assert_int_equal(times_returned(recorder, 2), 1);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

TEST(everywhere, caffeine_timers_fire_between_the_steps_they_must)
{
	static const tw_duration clocks[] = {
		0, 1, TW_HOUR + 1, INT64_C(1) << 32, INT64_MAX / 2, INT64_MAX - 11 * TW_MINUTE};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		caffeine_run(*state, clocks[i]);
}

PROBED(everywhere, caffeine_timers_fire_near_the_end_of_the_clock)
{
	struct probe probes[3] = {0};
	tw_duration now = INT64_MAX - 10 * TW_SECOND;
	tw_duration first = (now + TW_SECOND + INTERVAL - 1) / INTERVAL * INTERVAL;
	tw_duration second = (now + 9 * TW_SECOND + INTERVAL - 1) / INTERVAL * INTERVAL;

	advance_to(recorder, now);
	probe_start(recorder, &probes[0], 1, TW_SECOND);
	probe_start(recorder, &probes[1], 2, 9 * TW_SECOND);
	probe_start(recorder, &probes[2], 3, 10 * TW_SECOND);
	advance_to(recorder, first - 1);
	assert_int_equal(event_count(recorder), 0);
	advance_to(recorder, first);
	assert_executed_at(recorder, 1, first);
	advance_to(recorder, second - 1);
	assert_not_returned(recorder, 2);
	advance_to(recorder, second);
	assert_executed_at(recorder, 2, second);
	advance_to(recorder, INT64_MAX);
	assert_not_returned(recorder, 3);
}

TEST(inline, tokio_next_wake_is_that_of_the_nearer_timer)
{
	struct recorder *recorder = recorder_open(*state, 1024);
	struct probe probes[3] = {0};

	assert_int_equal(poll_wheel(recorder), TW_FOREVER);
	probes_start_ms(recorder, probes, 1, 10000, 600);
	assert_int_equal(poll_wheel(recorder), 600 * INTERVAL);
	assert_status(probe_stop(&probes[1]), TW_OK);
	assert_in_range(poll_wheel(recorder), 600 * INTERVAL + 1, 10000 * INTERVAL);
	assert_status(probe_reset(&probes[0], 600 * INTERVAL), TW_OK);
	assert_int_equal(poll_wheel(recorder), 600 * INTERVAL);
	probe_start(recorder, &probes[2], 3, 10000 * INTERVAL);
	advance_to(recorder, 600 * INTERVAL);
	assert_executed_at(recorder, 1, 600 * INTERVAL);
	assert_status(probe_stop(&probes[2]), TW_OK);
	assert_int_equal(poll_wheel(recorder), TW_FOREVER);
	recorder_close(recorder);
}

static void folly_stop_second_and_fourth(struct probe *probe)
{
	probe->answers[0] = probe_stop(&probe->others[1]);
	probe->answers[1] = probe_stop(&probe->others[3]);
}

static void folly_stop_fifth_and_rearm(struct probe *probe)
{
	if (probe->runs > 1)
		return;
	probe->answers[0] = probe_stop(&probe->others[4]);
	probe->answers[1] = probe_reset(probe, 5 * INTERVAL);
}

PROBED(ordered, folly_timers_that_stop_others_of_their_tick_and_rearm_themselves)
{
	struct probe probes[5] = {{.in_run = folly_stop_second_and_fourth, .others = probes},
				  {0},
				  {.in_run = folly_stop_fifth_and_rearm, .others = probes}};

	probes_start_ms(recorder, probes, 1, 5, 5, 5, 5, 5);
	advance(recorder, 30 * INTERVAL);
	assert_order(recorder, 1, 3, 3);
	assert_int_equal(event_at(recorder, 0).now, 5 * INTERVAL);
	assert_int_equal(event_at(recorder, 1).now, 5 * INTERVAL);
	assert_int_equal(event_at(recorder, 2).now, 10 * INTERVAL);
	for (int i = 0; i < 2; i++) {
		assert_status(probes[0].answers[i], TW_OK);
		assert_status(probes[2].answers[i], TW_OK);
	}
	for (int i = 0; i < 5; i++)
		assert_status(probe_stop(&probes[i]), TW_NOT_FOUND);
}
