/* SPDX-License-Identifier: MIT */
/* Timers run again and again by a schedule. */
#include "support/test.h"

#include "support/probe.h"

struct gaps {
	const int *gap;
	struct probe probe;
};

static void russell_luo_run_gaps(void *gaps)
{
	probe_run(&((struct gaps *)gaps)->probe);
}

/* Returns the previous deadline plus the next gap, and ends after the last gap. */
static tw_duration russell_luo_next(void *argument, tw_duration previous)
{
	struct gaps *gaps = argument;

	return previous + *gaps->gap++ * TW_MILLISECOND;
}

PROBED(everywhere, russell_luo_schedule_runs_after_each_gap_and_ends)
{
	static const int gap[] = {1, 4, 5, 40, 50, 400, 500, 0};
	struct gaps gaps = {.gap = gap, .probe = {.recorder = recorder, .number = 1}};
	struct tw_timer timer;

	assert_status(tw_schedule_func(recorder->wheel, russell_luo_next, russell_luo_run_gaps,
				       &gaps, &timer),
		      TW_OK);
	pass_ticks(recorder, 1200);
	assert_runs_ms(recorder, 1, 1, 5, 10, 50, 100, 500, 1000);
	assert_ptr_equal(gaps.gap, gap + sizeof(gap) / sizeof(gap[0]));
	assert_status(tw_timer_stop(recorder->wheel, timer), TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 7);
}

PROBED(everywhere, next_is_asked_with_now_and_then_with_the_deadline_of_the_run)
{
	static const tw_duration deadlines[] = {7 * INTERVAL + 3, 9 * INTERVAL - 1, 9 * INTERVAL,
						20 * INTERVAL, 0};
	struct probe probe = {0};

	advance(recorder, 5 * INTERVAL + 5);
	assert_status(probe_schedule(recorder, &probe, 1, deadlines), TW_OK);
	assert_int_equal(probe.asked, 1);
	pass_ticks(recorder, 50);
	assert_int_equal(probe.asked, 5);
	assert_int_equal(probe.previous[0], 5 * INTERVAL + 5);
	for (int i = 1; i < 5; i++)
		assert_int_equal(probe.previous[i], deadlines[i - 1]);
	assert_int_equal(event_count(recorder), 4);
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

PROBED(everywhere, schedule_that_does_not_advance_at_first_is_invalid)
{
	static const tw_duration wrong[] = {5 * INTERVAL, 5 * INTERVAL - 1, 0, -1, INT64_MIN};

	advance(recorder, 5 * INTERVAL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct probe probe = {.timer = {77}};

		assert_status(probe_schedule(recorder, &probe, 1, &wrong[i]), TW_NOT_FOUND);
		assert_int_equal(probe.asked, 1);
		assert_int_equal(probe.timer.id, 0);
	}
	pass_ticks(recorder, 9);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 0);
}

PROBED(everywhere, schedule_that_no_longer_advances_ends)
{
	static const tw_duration same[] = {2 * INTERVAL, 4 * INTERVAL, 4 * INTERVAL, 99 * INTERVAL};
	static const tw_duration back[] = {2 * INTERVAL, 4 * INTERVAL, 4 * INTERVAL - 1,
					   99 * INTERVAL};
	static const tw_duration least[] = {2 * INTERVAL, INT64_MIN, 99 * INTERVAL};
	struct probe probes[3] = {0};

	assert_status(probe_schedule(recorder, &probes[0], 1, same), TW_OK);
	assert_status(probe_schedule(recorder, &probes[1], 2, back), TW_OK);
	assert_status(probe_schedule(recorder, &probes[2], 3, least), TW_OK);
	pass_ticks(recorder, 120);
	assert_runs_ms(recorder, 1, 2, 4);
	assert_runs_ms(recorder, 2, 2, 4);
	assert_runs_ms(recorder, 3, 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(probes[i].asked, i < 2 ? 3 : 2);
		assert_status(probe_stop(&probes[i]), TW_NOT_FOUND);
	}
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 5);
}

PROBED(everywhere, schedule_to_never_stays_pending)
{
	static const tw_duration deadlines[] = {2 * INTERVAL, TW_FOREVER};
	struct probe probes[2] = {0};

	assert_status(probe_schedule(recorder, &probes[0], 1, deadlines), TW_OK);
	assert_status(probe_schedule(recorder, &probes[1], 2, deadlines + 1), TW_OK);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 2);
	assert_int_equal(tw_pending(recorder->wheel), 2);
	stop_wheel(recorder);
	assert_released(recorder, 2, TW_STOPPED);
	assert_int_equal(times_returned(recorder, 1), 2);
}

PROBED(pool, schedule_runs_what_it_asks_for_in_the_past_now)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 10 * INTERVAL + 1, 20 * INTERVAL,
						60 * INTERVAL, 0};
	struct probe probe;

	probe_hold(&probe);
	assert_status(probe_schedule(recorder, &probe, 1, deadlines), TW_OK);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
	gate_await(&probe.gate);
	assert_status(tw_advance(recorder->wheel, 40 * INTERVAL), TW_OK);
	gate_open(&probe.gate);
	wait_for_runs(recorder, 3);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 10, 50, 50, 60);
	assert_int_equal(probe.asked, 5);
}

PROBED(everywhere, schedule_goes_on_from_where_it_is_reset_to)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 30 * INTERVAL, 0};
	struct probe probe = {0};

	assert_status(probe_schedule(recorder, &probe, 1, deadlines), TW_OK);
	pass_ticks(recorder, 3);
	assert_status(probe_reset(&probe, 2 * INTERVAL), TW_OK);
	pass_ticks(recorder, 50);
	assert_runs_ms(recorder, 1, 5, 30);
	assert_int_equal(probe.previous[1], 5 * INTERVAL);
	assert_int_equal(probe.previous[2], 30 * INTERVAL);
}

PROBED(everywhere, stopped_schedule_is_not_asked_again)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 30 * INTERVAL, 40 * INTERVAL, 0};
	struct probe probe = {0};

	assert_status(probe_schedule(recorder, &probe, 1, deadlines), TW_OK);
	pass_ticks(recorder, 12);
	assert_status(probe_stop_wait(&probe), TW_OK);
	pass_ticks(recorder, 50);
	assert_runs_ms(recorder, 1, 10);
	assert_int_equal(probe.asked, 2);
}

static void stop_in_each_run(struct probe *probe)
{
	probe->answers[0] = probe_stop(probe);
}

PROBED(everywhere, schedule_that_stops_itself_is_not_asked_again)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 30 * INTERVAL, 0};
	struct probe probe = {.in_run = stop_in_each_run};

	assert_status(probe_schedule(recorder, &probe, 1, deadlines), TW_OK);
	pass_ticks(recorder, 50);
	assert_runs_ms(recorder, 1, 10);
	assert_status(probe.answers[0], TW_REARMED);
	assert_int_equal(probe.asked, 1);
}

static void reset_in_the_first_run(struct probe *probe)
{
	if (probe->asked == 1 && event_count(probe->recorder) == 1)
		probe->answers[0] = probe_reset(probe, 5 * INTERVAL);
}

PROBED(everywhere, schedule_that_resets_itself_is_asked_after_the_next_run)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 30 * INTERVAL, 0};
	struct probe probe = {.in_run = reset_in_the_first_run};

	assert_status(probe_schedule(recorder, &probe, 1, deadlines), TW_OK);
	pass_ticks(recorder, 12);
	assert_status(probe.answers[0], TW_OK);
	assert_int_equal(probe.asked, 1);
	pass_ticks(recorder, 30);
	assert_runs_ms(recorder, 1, 10, 15, 30);
	assert_int_equal(probe.asked, 3);
	assert_int_equal(probe.previous[1], 15 * INTERVAL);
}

static tw_duration next_that_stops(void *argument, tw_duration previous)
{
	struct probe *probe = argument;

	if (probe->asked++ == 2) {
		probe->answers[0] = probe_stop(probe);
		probe->answers[1] = probe_reset(probe, INTERVAL);
	}
	return previous + 10 * INTERVAL;
}

PROBED(everywhere, schedule_may_be_stopped_while_it_is_asked)
{
	struct probe probe = {.recorder = recorder, .number = 1};

	assert_status(
		tw_schedule_func(recorder->wheel, next_that_stops, probe_run, &probe, &probe.timer),
		TW_OK);
	pass_ticks(recorder, 50);
	assert_runs_ms(recorder, 1, 10, 20);
	assert_int_equal(probe.asked, 3);
	assert_status(probe.answers[0], TW_REARMED);
	assert_status(probe.answers[1], TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

static tw_duration next_that_resets_and_ends(void *argument, tw_duration previous)
{
	struct probe *probe = argument;

	if (probe->asked++ == 0)
		return previous + 10 * INTERVAL;
	probe->answers[0] = probe_reset(probe, INTERVAL);
	return previous;
}

PROBED(everywhere, reset_does_not_bring_back_a_schedule_that_its_next_is_ending)
{
	struct probe probe = {.recorder = recorder, .number = 1};

	assert_status(tw_schedule_func(recorder->wheel, next_that_resets_and_ends, probe_run,
				       &probe, &probe.timer),
		      TW_OK);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 10);
	assert_int_equal(probe.asked, 2);
	assert_status(probe.answers[0], TW_OK);
	assert_status(probe_reset(&probe, INTERVAL), TW_NOT_FOUND);
	assert_status(probe_stop(&probe), TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

static tw_duration next_that_waits(void *argument, tw_duration previous)
{
	struct probe *probe = argument;

	if (probe->asked++ == 1)
		probe->answers[0] = probe_stop_wait(probe);
	return probe->asked <= 2 ? previous + 10 * INTERVAL : previous;
}

static void *advance_ticks(void *wheel)
{
	for (int tick = 0; tick < 50; tick++) {
		(void)tw_advance(wheel, INTERVAL);
		(void)tw_wait_idle(wheel);
	}
	return NULL;
}

/* Another thread moves the clock: should it hang, this test fails and the rest goes on. */
PROBED(everywhere, next_does_not_wait_for_itself)
{
	static struct probe probe;
	pthread_t thread;

	probe = (struct probe){.recorder = recorder, .number = 1};
	assert_status(
		tw_schedule_func(recorder->wheel, next_that_waits, probe_run, &probe, &probe.timer),
		TW_OK);
	assert_int_equal(pthread_create(&thread, NULL, advance_ticks, recorder->wheel), 0);
	WAIT_UNTIL(tw_now(recorder->wheel) == 50 * INTERVAL && tw_pending(recorder->wheel) == 0);
	pthread_join(thread, NULL);
	assert_status(probe.answers[0], TW_REARMED);
	assert_runs_ms(recorder, 1, 10);
}
