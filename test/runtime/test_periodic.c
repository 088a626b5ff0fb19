/* SPDX-License-Identifier: MIT */
/* Timers run again and again by a period, with three policies for missed runs. */
#include "support/test.h"

#include "support/gate.h"
#include "support/probe.h"
#include "support/stats.h"

PROBED(everywhere, periodic_timer_runs_at_first_and_each_period_after_it)
{
	struct probe probes[4] = {0};

	probe_repeat(recorder, &probes[0], 1, 3 * INTERVAL, 10 * INTERVAL);
	probe_repeat(recorder, &probes[1], 2, 0, 20 * INTERVAL);
	probe_repeat(recorder, &probes[2], 3, 45 * INTERVAL, 3 * INTERVAL);
	probe_repeat(recorder, &probes[3], 4, -5 * INTERVAL, 25 * INTERVAL);
	advance(recorder, 0);
	pass_ticks(recorder, 55);
	assert_runs_ms(recorder, 1, 3, 13, 23, 33, 43, 53);
	assert_runs_ms(recorder, 2, 0, 20, 40);
	assert_runs_ms(recorder, 3, 45, 48, 51, 54);
	assert_runs_ms(recorder, 4, 0, 20, 45);
	assert_int_equal(tw_pending(recorder->wheel), 4);
}

PROBED(everywhere, burst_of_a_period_below_the_interval_makes_up_for_all_each_tick)
{
	struct probe probe = {0};

	probe_repeat_with(recorder, &probe, 1, INTERVAL / 4, INTERVAL / 4, TW_MISSED_BURST);
	for (int tick = 1; tick <= 10; tick++) {
		assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
		WAIT_UNTIL((advance(recorder, 0), event_count(recorder) >= (size_t)tick * 4));
		assert_int_equal(event_count(recorder), tick * 4);
		assert_int_equal(event_at(recorder, (size_t)tick * 4 - 1).now, tick * INTERVAL);
	}
}

PROBED(ordered, burst_has_run_when_advance_returns)
{
	struct probe probe = {0};
	size_t first_tick;
	size_t all_ticks;

	probe_repeat_with(recorder, &probe, 1, INTERVAL / 4, INTERVAL / 4, TW_MISSED_BURST);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	first_tick = event_count_of_kind(recorder, EVENT_EXECUTE);
	assert_status(tw_advance(recorder->wheel, 3 * INTERVAL), TW_OK);
	all_ticks = event_count_of_kind(recorder, EVENT_EXECUTE);
	/* Its missed runs must not outlive this function. */
	stop_wheel(recorder);
	assert_int_equal(first_tick, 4);
	assert_int_equal(all_ticks, 16);
	assert_runs_ms(recorder, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4);
}

PROBED(everywhere, other_policies_run_a_period_below_the_interval_once_a_tick)
{
	struct probe probes[2] = {0};

	probe_repeat_with(recorder, &probes[0], 1, INTERVAL / 4, INTERVAL / 4, TW_MISSED_DELAY);
	probe_repeat_with(recorder, &probes[1], 2, INTERVAL / 4, INTERVAL / 4, TW_MISSED_SKIP);
	for (int tick = 0; tick < 5; tick++) {
		pass_ticks(recorder, 1);
		advance(recorder, 0);
	}
	assert_runs_ms(recorder, 1, 1, 2, 3, 4, 5);
	assert_runs_ms(recorder, 2, 1, 2, 3, 4, 5);
}

PROBED(ordered, periodic_timers_and_others_of_a_tick_run_in_order)
{
	struct probe probes[2] = {0};

	probe_repeat(recorder, &probes[0], 1, 10 * INTERVAL, 10 * INTERVAL);
	set_timer(recorder, "a", 2, 10 * INTERVAL);
	probe_repeat(recorder, &probes[1], 3, 10 * INTERVAL, 10 * INTERVAL);
	set_timer(recorder, "b", 4, 20 * INTERVAL);
	advance(recorder, 10 * INTERVAL);
	set_timer(recorder, "c", 5, 10 * INTERVAL);
	advance(recorder, 10 * INTERVAL);
	assert_order(recorder, 1, 2, 3, 4, 1, 3, 5);
}

PROBED(everywhere, period_beyond_the_clock_runs_once_and_stays_pending)
{
	struct probe probes[2] = {0};

	probe_repeat(recorder, &probes[0], 1, 2 * INTERVAL, TW_FOREVER);
	probe_repeat(recorder, &probes[1], 2, TW_FOREVER, INTERVAL);
	pass_ticks(recorder, 5);
	advance(recorder, INT64_MAX / 2);
	assert_runs_ms(recorder, 1, 2);
	assert_int_equal(event_count(recorder), 1);
	assert_int_equal(tw_pending(recorder->wheel), 2);
	assert_status(probe_stop(&probes[0]), TW_OK);
	assert_status(probe_stop(&probes[1]), TW_OK);
}

/*
 * Uses tokio's figures: period 300, the run at 300 lasts until 950; then `overdue` runs are made at
 * once. The clock is left at 1600.
 */
static void run_held_until_950(struct recorder *recorder, enum tw_missed missed, size_t overdue)
{
	static struct probe probe;

	probe_repeat_held(recorder, &probe, 300 * INTERVAL, missed);
	assert_status(tw_advance(recorder->wheel, 650 * INTERVAL), TW_OK);
	assert_int_equal(event_count(recorder), 1);
	gate_open(&probe.gate);
	wait_for_runs(recorder, 1 + overdue);
	pass_ticks(recorder, 650);
}

PROBED(pool, burst_runs_each_missed_one_at_once)
{
	run_held_until_950(recorder, TW_MISSED_BURST, 2);
	assert_runs_ms(recorder, 1, 300, 950, 950, 1200, 1500);
}

PROBED(pool, delay_counts_the_next_period_from_the_late_run)
{
	run_held_until_950(recorder, TW_MISSED_DELAY, 1);
	assert_runs_ms(recorder, 1, 300, 950, 1250, 1550);
}

PROBED(pool, skip_waits_for_the_next_multiple)
{
	run_held_until_950(recorder, TW_MISSED_SKIP, 1);
	assert_runs_ms(recorder, 1, 300, 950, 1200, 1500);
}

/* Uses the same figures, but the run that is due at 300 cannot begin before 950. */
static void run_begun_at_950(struct recorder *recorder, enum tw_missed missed, size_t overdue)
{
	static struct probe probe;
	struct probe held[2];

	probe = (struct probe){0};
	probe_repeat_with(recorder, &probe, 1, 300 * INTERVAL, 300 * INTERVAL, missed);
	hold_workers(recorder, held);
	assert_status(tw_advance(recorder->wheel, 950 * INTERVAL), TW_OK);
	assert_int_equal(event_count(recorder), 2);
	let_workers_go(recorder, held);
	wait_for_runs(recorder, 2 + overdue);
	pass_ticks(recorder, 350);
}

PROBED(pool, burst_makes_up_for_the_time_in_the_pool_too)
{
	run_begun_at_950(recorder, TW_MISSED_BURST, 3);
	assert_runs_ms(recorder, 1, 950, 950, 950, 1200);
}

PROBED(pool, delay_counts_from_a_run_that_waited_in_the_pool)
{
	run_begun_at_950(recorder, TW_MISSED_DELAY, 1);
	assert_runs_ms(recorder, 1, 950, 1250);
}

PROBED(pool, skip_leaves_out_the_time_in_the_pool)
{
	run_begun_at_950(recorder, TW_MISSED_SKIP, 1);
	assert_runs_ms(recorder, 1, 950, 1200);
}

/* Starts a timer of each policy, whose first run was due before the wheel's clock, which is at
 * 950. */
static void run_started_in_the_past(struct recorder *recorder, tw_duration first)
{
	static struct probe probes[3];

	memset(probes, 0, sizeof(probes));
	advance(recorder, 950 * INTERVAL);
	for (uintptr_t i = 0; i < 3; i++)
		probe_repeat_with(recorder, &probes[i], i, first, 300 * INTERVAL,
				  (enum tw_missed)i);
	wait_for_runs(recorder, 4);
	pass_ticks(recorder, 350);
}

PROBED(everywhere, policies_hold_for_a_timer_that_starts_in_the_past_too)
{
	run_started_in_the_past(recorder, -350 * INTERVAL);
	assert_runs_ms(recorder, TW_MISSED_BURST, 950, 950, 1200);
	assert_runs_ms(recorder, TW_MISSED_DELAY, 950, 1250);
	assert_runs_ms(recorder, TW_MISSED_SKIP, 950, 1200);
}

PROBED(everywhere, run_late_by_a_period_has_missed_the_next)
{
	run_started_in_the_past(recorder, -300 * INTERVAL);
	assert_runs_ms(recorder, TW_MISSED_BURST, 950, 950, 1250);
	assert_runs_ms(recorder, TW_MISSED_DELAY, 950, 1250);
	assert_runs_ms(recorder, TW_MISSED_SKIP, 950, 1250);
}

TEST(pool, run_late_by_less_than_a_period_changes_nothing)
{
	for (int missed = TW_MISSED_BURST; missed <= TW_MISSED_SKIP; missed++) {
		struct recorder *recorder = probes_open(*state);
		struct probe probe;

		probe_repeat_held(recorder, &probe, 100 * INTERVAL, (enum tw_missed)missed);
		assert_status(tw_advance(recorder->wheel, 150 * INTERVAL), TW_OK);
		gate_open(&probe.gate);
		wait_for_runs(recorder, 2);
		pass_ticks(recorder, 200);
		assert_runs_ms(recorder, 1, 100, 250, 300, 400);
		recorder_close(recorder);
	}
}

/* The run has ended, but the wheel has not noticed yet. */
PROBED(workers, periodic_timer_stopped_on_its_way_back_is_pending_no_more)
{
	struct probe probe = {0};

	probe_repeat(recorder, &probe, 1, 10 * INTERVAL, 10 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
	WAIT_UNTIL(stats_of_wheel(recorder->wheel).unfinished == 0);
	assert_status(probe_stop(&probe), TW_OK);
	assert_status(tw_flush(recorder->wheel), TW_OK);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	assert_int_equal(stats_of_wheel(recorder->wheel).removed, 1);
}

static void stop_in_the_third_run(struct probe *probe)
{
	if (probe->runs != 3)
		return;
	probe->answers[0] = probe_stop_wait(probe);
	probe->answers[1] = probe_stop(probe);
	probe->answers[2] = probe_reset(probe, INTERVAL);
}

PROBED(everywhere, periodic_timer_that_stops_itself_runs_no_more)
{
	struct probe probe = {.in_run = stop_in_the_third_run};

	probe_repeat(recorder, &probe, 1, 5 * INTERVAL, 5 * INTERVAL);
	pass_ticks(recorder, 40);
	assert_runs_ms(recorder, 1, 5, 10, 15);
	assert_status(probe.answers[0], TW_REARMED);
	assert_status(probe.answers[1], TW_RUNNING);
	assert_status(probe.answers[2], TW_NOT_FOUND);
	assert_status(probe_stop(&probe), TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

PROBED(pool, periodic_timer_stopped_while_it_runs_does_not_run_again)
{
	struct probe probe;

	probe_repeat_held(recorder, &probe, 5 * INTERVAL, TW_MISSED_BURST);
	assert_status(tw_advance(recorder->wheel, 50 * INTERVAL), TW_OK);
	assert_status(probe_stop(&probe), TW_REARMED);
	assert_status(probe_stop(&probe), TW_RUNNING);
	gate_open(&probe.gate);
	(void)probe_stop_wait(&probe);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 5);
	assert_status(probe_stop(&probe), TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 1);
}

PROBED(pool, late_run_that_waits_in_the_pool_can_be_stopped)
{
	struct probe held[2];
	struct probe probe = {0};

	probe_repeat(recorder, &probe, 1, 5 * INTERVAL, 5 * INTERVAL);
	hold_workers(recorder, held);
	assert_status(tw_advance(recorder->wheel, 50 * INTERVAL), TW_OK);
	assert_status(probe_stop(&probe), TW_OK);
	let_workers_go(recorder, held);
	pass_ticks(recorder, 20);
	assert_int_equal(event_count(recorder), 2);
}

PROBED(everywhere, reset_to_never_pauses_and_another_reset_goes_on)
{
	struct probe probe = {0};

	probe_repeat(recorder, &probe, 1, 10 * INTERVAL, 10 * INTERVAL);
	pass_ticks(recorder, 12);
	assert_status(probe_reset(&probe, TW_FOREVER), TW_OK);
	pass_ticks(recorder, 100);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	assert_status(probe_reset(&probe, 3 * INTERVAL), TW_OK);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 10, 115, 125);
}

static void reset_in_the_first_run(struct probe *probe)
{
	if (probe->runs == 1)
		probe->answers[0] = probe_reset(probe, 25 * INTERVAL);
}

PROBED(everywhere, periodic_timer_may_reset_itself)
{
	struct probe probe = {.in_run = reset_in_the_first_run};

	probe_repeat(recorder, &probe, 1, 10 * INTERVAL, 10 * INTERVAL);
	pass_ticks(recorder, 60);
	assert_status(probe.answers[0], TW_OK);
	assert_runs_ms(recorder, 1, 10, 35, 45, 55);
}

PROBED(pool, reset_while_it_runs_takes_the_place_of_missed_runs)
{
	struct probe probe;

	probe_repeat_held(recorder, &probe, 10 * INTERVAL, TW_MISSED_BURST);
	assert_status(tw_advance(recorder->wheel, 85 * INTERVAL), TW_OK);
	assert_status(probe_reset(&probe, 6 * INTERVAL), TW_OK);
	gate_open(&probe.gate);
	settle(recorder);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 10, 101, 111);
}

static struct gate first_run;

static void count_run(void *argument)
{
	if (atomic_fetch_add((atomic_int *)argument, 1) == 0)
		gate_pass(&first_run);
}

TEST(once, one_turn_files_all_timers_that_have_run_since_the_last)
{
	enum { TIMERS = 1000 };
	struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = 1};
	struct tw_wheel *wheel;
	atomic_int runs = 0;

	gate_init(&first_run);
	assert_status(tw_create(&wheel, INTERVAL, 8, record_execute, &options), TW_OK);
	for (int i = 0; i < TIMERS; i++)
		assert_status(tw_every(wheel, INTERVAL, 2 * INTERVAL, TW_MISSED_BURST, count_run,
				       &runs, NULL),
			      TW_OK);
	assert_status(tw_advance(wheel, INTERVAL), TW_OK);
	gate_open(&first_run);
	WAIT_UNTIL(stats_of_wheel(wheel).unfinished == 0);
	assert_int_equal(atomic_load(&runs), TIMERS);
	assert_status(tw_poll(wheel, NULL), TW_OK);
	assert_int_equal(tw_pending(wheel), TIMERS);
	tw_destroy(wheel);
}
