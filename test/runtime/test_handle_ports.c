/* SPDX-License-Identifier: MIT */
/* These are tests of other libraries, for timers by handle that run once. */
#include "support/test.h"

#include "support/probe.h"

PROBED(everywhere, kafka_expired_timers_run_at_the_first_advance_by_nothing)
{
	struct probe probes[5] = {0};

	for (int i = 0; i < 5; i++)
		probe_start(recorder, &probes[i], (uintptr_t)i + 1, (i - 5) * INTERVAL);
	advance(recorder, 0);
	for (uintptr_t i = 1; i <= 5; i++)
		assert_executed_at(recorder, i, 0);
	pass_ticks(recorder, 5);
	assert_int_equal(event_count(recorder), 5);
}

enum { KAFKA_TIMERS = 585 };

/* Sets delays 0 to 4, 10 to 99, 10 to 99 again, and 100 to 499: probe i runs at delays[i]. */
static struct recorder *kafka_open(const struct variant *variant, tw_duration *delays)
{
	static const int first[] = {0, 10, 10, 100};
	static const int last[] = {4, 99, 99, 499};
	static struct probe probes[KAFKA_TIMERS];
	struct recorder *recorder = probes_open(variant);
	size_t count = 0;

	memset(probes, 0, sizeof(probes));
	for (int part = 0; part < 4; part++) {
		for (int delay = first[part]; delay <= last[part]; delay++) {
			delays[count] = delay * INTERVAL;
			probe_start(recorder, &probes[count], count, delays[count]);
			count++;
		}
	}
	assert_int_equal(count, KAFKA_TIMERS);
	return recorder;
}

TEST(everywhere, kafka_timers_run_once_each_at_their_delay)
{
	tw_duration delays[KAFKA_TIMERS];
	struct recorder *recorder = kafka_open(*state, delays);

	advance(recorder, 0);
	pass_ticks(recorder, 600);
	for (uintptr_t i = 0; i < KAFKA_TIMERS; i++)
		assert_executed_at(recorder, i, delays[i]);
	assert_int_equal(event_count(recorder), KAFKA_TIMERS);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

TEST(ordered, kafka_timers_run_in_the_order_of_deadline_and_setting)
{
	tw_duration delays[KAFKA_TIMERS];
	struct recorder *recorder = kafka_open(*state, delays);

	advance(recorder, 600 * INTERVAL);
	assert_int_equal(event_count(recorder), KAFKA_TIMERS);
	for (size_t i = 1; i < KAFKA_TIMERS; i++) {
		struct event before = event_at(recorder, i - 1);
		struct event event = event_at(recorder, i);

		assert_true(before.now < event.now ||
			    (before.now == event.now && before.value < event.value));
		assert_int_equal(event.now, delays[(uintptr_t)event.value]);
	}
	recorder_close(recorder);
}

PROBED(everywhere, russell_luo_delays_are_met_to_the_tick)
{
	static const int delays[] = {1, 5, 10, 50, 100, 500, 1000};
	struct probe probes[7] = {0};

	for (uintptr_t i = 0; i < 7; i++)
		probe_start(recorder, &probes[i], i, delays[i] * INTERVAL);
	pass_ticks(recorder, 1010);
	for (uintptr_t i = 0; i < 7; i++)
		assert_executed_at(recorder, i, delays[i] * INTERVAL);
}

PROBED(everywhere, russell_luo_timer_stopped_shortly_before_its_deadline_is_silent)
{
	struct probe probe = {0};

	probe_start(recorder, &probe, 1, 1000 * INTERVAL);
	advance_to(recorder, 900 * INTERVAL);
	assert_status(probe_stop(&probe), TW_OK);
	advance_to(recorder, 2000 * INTERVAL);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 0);
}

PROBED(everywhere, netty_limit_refuses_the_third_until_one_is_stopped, .max_pending = 2,
       .when_full = TW_WHEN_FULL_FAIL)
{
	struct probe probes[3] = {0};
	struct tw_timer refused = {77};

	probes_start_ms(recorder, probes, 1, 5, 5);
	assert_status(tw_after_func(recorder->wheel, INTERVAL, probe_run, &probes[2], &refused),
		      TW_FULL);
	assert_int_equal(refused.id, 0);
	assert_status(probe_stop(&probes[0]), TW_OK);
	flush_wheel(recorder);
	probe_start(recorder, &probes[2], 3, 5 * INTERVAL);
	assert_status(tw_after_func(recorder->wheel, INTERVAL, probe_run, &probes[0], &refused),
		      TW_FULL);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 2, 5 * INTERVAL);
	assert_executed_at(recorder, 3, 5 * INTERVAL);
	assert_int_equal(event_count(recorder), 2);
}

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

PROBED(everywhere, agrona_second_stop_finds_nothing)
{
	struct probe probe = {0};

	probe_start(recorder, &probe, 1, 5 * INTERVAL);
	assert_status(probe_stop(&probe), TW_OK);
	assert_status(probe_stop(&probe), TW_NOT_FOUND);
	assert_status(probe_stop_wait(&probe), TW_NOT_FOUND);
	pass_ticks(recorder, 9);
	assert_status(probe_stop(&probe), TW_NOT_FOUND);
	assert_int_equal(event_count(recorder), 0);
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

PROBED(everywhere, tokio_resets_move_the_deadline_and_only_the_last_counts)
{
	struct probe probes[2] = {0};

	probes_start_ms(recorder, probes, 1, 200, 250);
	advance_to(recorder, 100 * INTERVAL);
	assert_status(probe_reset(&probes[0], 200 * INTERVAL), TW_OK);
	assert_status(probe_reset(&probes[1], 250 * INTERVAL), TW_OK);
	advance_to(recorder, 250 * INTERVAL);
	assert_int_equal(event_count(recorder), 0);
	assert_status(probe_reset(&probes[0], 150 * INTERVAL), TW_OK);
	advance_to(recorder, 350 * INTERVAL - 1);
	assert_int_equal(event_count(recorder), 0);
	advance(recorder, 1);
	assert_executed_at(recorder, 2, 350 * INTERVAL);
	advance_to(recorder, 400 * INTERVAL - 1);
	assert_not_returned(recorder, 1);
	advance(recorder, 1);
	assert_executed_at(recorder, 1, 400 * INTERVAL);
	pass_ticks(recorder, 300);
	assert_int_equal(event_count(recorder), 2);
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

static void start_again_at_once(struct probe *probe)
{
	probe->answers[0] |= tw_after_func(probe->recorder->wheel, 0, probe_run, probe, NULL);
}

PROBED(inline, libuv_zero_delay_timer_that_rearms_itself_runs_once_a_turn)
{
	struct probe probe = {.in_run = start_again_at_once};
	int turns = 0;

	probe_start(recorder, &probe, 1, 0);
	while (turns++ < 10) {
		assert_int_equal(poll_wheel(recorder), 0);
		assert_int_equal(event_count(recorder), turns);
	}
	while (turns++ < 20) {
		assert_status(tw_advance(recorder->wheel, 0), TW_OK);
		assert_int_equal(event_count(recorder), turns - 1);
	}
	assert_status(probe.answers[0], TW_OK);
}

PROBED(ordered, libuv_equal_deadlines_run_in_the_order_of_setting)
{
	struct probe probes[6] = {0};

	probes_start_ms(recorder, probes, 1, 5, 5, 3);
	advance(recorder, INTERVAL);
	probes_start_ms(recorder, probes + 3, 4, 4, 2);
	advance(recorder, INTERVAL);
	probe_start(recorder, &probes[5], 6, 3 * INTERVAL);
	advance(recorder, 10 * INTERVAL);
	assert_order(recorder, 3, 5, 1, 2, 4, 6);
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
