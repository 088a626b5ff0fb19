/* SPDX-License-Identifier: MIT */
/* Timers that run again and again: by a period, with the three policies for missed runs, or by a
 * schedule. */
#include "support/test.h"

#include "support/recorder.h"
#include "support/wait.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_ANSWERS = 16 };

/* What a timer's argument points to. Each run is written down as VALUE(number) executed. */
struct repeater {
	struct recorder *recorder;
	uintptr_t number;
	struct tw_timer timer;
	void (*in_run)(struct repeater *); /* called in the run, after it has been written down */
	int runs;
	enum tw_status answers[4]; /* of calls in the run */
	sem_t begun;
	sem_t go_on;
	atomic_int inside;
	atomic_int overlaps;
	atomic_int counted;
	/* Of a schedule: what next answers, and what it was asked with. */
	const tw_duration *deadlines;
	size_t asked;
	tw_duration previous[MOST_ANSWERS];
};

static void run(void *argument)
{
	struct repeater *repeater = argument;
	struct tw_task task = {.key = "", .value = VALUE(repeater->number)};

	repeater->runs++;
	record_execute(repeater->recorder, &task);
	if (repeater->in_run != NULL)
		repeater->in_run(repeater);
}

/* A handle comes back with no key: its repeater's number stands for it. */
static struct tw_task told_task(const struct tw_task *task)
{
	struct tw_task told = *task;

	if (task->key != NULL || task->key_size != 0)
		return told;
	told.key = "";
	told.value = VALUE(((struct repeater *)task->value)->number);
	return told;
}

static void release(void *recorder, const struct tw_task *task, enum tw_reason reason)
{
	struct tw_task told = told_task(task);

	record_release(recorder, &told, reason);
}

static void drain(void *recorder, const struct tw_task *task)
{
	struct tw_task told = told_task(task);

	record_drain(recorder, &told);
}

static struct recorder *open_wheel(const struct variant *variant)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, variant);

	options.release = release;
	recorder_start(recorder, INTERVAL, 10, &options);
	return recorder;
}

static void start(struct recorder *recorder, struct repeater *repeater, uintptr_t number,
		  tw_duration first, tw_duration period)
{
	repeater->recorder = recorder;
	repeater->number = number;
	assert_status(tw_every(recorder->wheel, first, period, TW_MISSED_BURST, run, repeater,
			       &repeater->timer),
		      TW_OK);
	assert_true(repeater->timer.id != 0);
}

static void start_with(struct recorder *recorder, struct repeater *repeater, uintptr_t number,
		       tw_duration first, tw_duration period, enum tw_missed missed)
{
	repeater->recorder = recorder;
	repeater->number = number;
	assert_status(
		tw_every(recorder->wheel, first, period, missed, run, repeater, &repeater->timer),
		TW_OK);
}

static enum tw_status stop(const struct repeater *repeater)
{
	return tw_timer_stop(repeater->recorder->wheel, repeater->timer);
}

static enum tw_status stop_wait(const struct repeater *repeater)
{
	return tw_timer_stop_wait(repeater->recorder->wheel, repeater->timer);
}

static enum tw_status reset(const struct repeater *repeater, tw_duration delay)
{
	return tw_timer_reset(repeater->recorder->wheel, repeater->timer, delay);
}

static void stop_wheel(struct recorder *recorder)
{
	assert_status(tw_stop(recorder->wheel), TW_OK);
	settle(recorder);
}

/* It has run at these times and no others; in milliseconds, which are ticks. */
#define assert_runs_ms(recorder, number, ...)                         \
	assert_runs_ms_(recorder, number, (const int[]){__VA_ARGS__}, \
			sizeof((const int[]){__VA_ARGS__}) / sizeof(int), __FILE__, __LINE__)

static void assert_runs_ms_(struct recorder *recorder, uintptr_t number, const int *times,
			    size_t count, const char *file, int line)
{
	size_t runs = 0;

	for (size_t i = 0; i < event_count(recorder); i++) {
		struct event event = event_at(recorder, i);

		if (event.kind != EVENT_EXECUTE || event.value != VALUE(number))
			continue;
		if (runs < count && event.now != times[runs] * TW_MILLISECOND) {
			print_error("run %zu of %zu was at %lld, not at %d ms\n", runs,
				    (size_t)number, (long long)event.now, times[runs]);
			_fail(file, line);
		}
		runs++;
	}
	if (runs != count) {
		print_error("timer %zu has run %zu times, not %zu\n", (size_t)number, runs, count);
		_fail(file, line);
	}
}

static void periodic_timer_runs_at_first_and_each_period_after_it(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[4] = {0};

	start(recorder, &repeaters[0], 1, 3 * INTERVAL, 10 * INTERVAL);
	start(recorder, &repeaters[1], 2, 0, 20 * INTERVAL);
	start(recorder, &repeaters[2], 3, 45 * INTERVAL, 3 * INTERVAL);
	start(recorder, &repeaters[3], 4, -5 * INTERVAL, 25 * INTERVAL);
	advance(recorder, 0);
	pass_ticks(recorder, 55);
	assert_runs_ms(recorder, 1, 3, 13, 23, 33, 43, 53);
	assert_runs_ms(recorder, 2, 0, 20, 40);
	assert_runs_ms(recorder, 3, 45, 48, 51, 54);
	assert_runs_ms(recorder, 4, 0, 20, 45);
	assert_int_equal(tw_pending(recorder->wheel), 4);
	recorder_close(recorder);
}

static void periodic_timer_runs_at_each_of_its_ticks_within_a_long_advance(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {0};

	start(recorder, &repeaters[0], 1, 3 * INTERVAL, 10 * INTERVAL);
	start(recorder, &repeaters[1], 2, 20 * INTERVAL, 20 * INTERVAL);
	advance(recorder, 45 * INTERVAL);
	assert_runs_ms(recorder, 1, 3, 13, 23, 33, 43);
	assert_runs_ms(recorder, 2, 20, 40);
	recorder_close(recorder);
}

/* All runs of a timer that is alone on its wheel. */
static void assert_no_drift(struct recorder *recorder, tw_duration first, tw_duration period,
			    int runs)
{
	assert_int_equal(event_count(recorder), runs);
	for (int i = 0; i < runs; i++) {
		tw_duration deadline = first + i * period;
		tw_duration tick = (deadline + INTERVAL - 1) / INTERVAL * INTERVAL;

		assert_int_equal(event_at(recorder, (size_t)i).now, tick);
	}
}

static void periods_that_are_no_whole_ticks_do_not_drift(void **state)
{
	static const tw_duration periods[] = {INTERVAL * 5 / 2, INTERVAL + 1, 2 * INTERVAL - 1,
					      INTERVAL * 10 / 3, 123456789};
	enum { RUNS = 300 };

	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		struct recorder *recorder = open_wheel(*state);
		struct repeater repeater = {0};
		tw_duration first = INTERVAL * 7 / 2 + 3;

		start_with(recorder, &repeater, 1, first, periods[i], (enum tw_missed)(i % 3));
		advance(recorder, first + (RUNS - 1) * periods[i] + INTERVAL);
		assert_no_drift(recorder, first, periods[i],
				RUNS + (periods[i] < 2 * INTERVAL && event_count(recorder) > RUNS));
		recorder_close(recorder);
	}
}

static void long_run_of_single_ticks_does_not_drift(void **state)
{
	enum { TICKS = TEST_SHARE_OF(3000) };
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {0};

	start_with(recorder, &repeater, 1, INTERVAL, INTERVAL, TW_MISSED_DELAY);
	pass_ticks(recorder, TICKS);
	assert_no_drift(recorder, INTERVAL, INTERVAL, TICKS);
	recorder_close(recorder);
}

static void burst_of_a_period_below_the_interval_makes_up_for_all_each_tick(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {0};

	start_with(recorder, &repeater, 1, INTERVAL / 4, INTERVAL / 4, TW_MISSED_BURST);
	for (int tick = 1; tick <= 10; tick++) {
		assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
		WAIT_UNTIL((advance(recorder, 0), event_count(recorder) >= (size_t)tick * 4));
		assert_int_equal(event_count(recorder), tick * 4);
		assert_int_equal(event_at(recorder, (size_t)tick * 4 - 1).now, tick * INTERVAL);
	}
	recorder_close(recorder);
}

static void burst_has_run_when_advance_returns(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {0};
	size_t first_tick;
	size_t all_ticks;

	start_with(recorder, &repeater, 1, INTERVAL / 4, INTERVAL / 4, TW_MISSED_BURST);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	first_tick = event_count_of_kind(recorder, EVENT_EXECUTE);
	assert_status(tw_advance(recorder->wheel, 3 * INTERVAL), TW_OK);
	all_ticks = event_count_of_kind(recorder, EVENT_EXECUTE);
	/* What it owes nevertheless must not outlive this function. */
	stop_wheel(recorder);
	assert_int_equal(first_tick, 4);
	assert_int_equal(all_ticks, 16);
	assert_runs_ms(recorder, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4);
	recorder_close(recorder);
}

static void other_policies_run_a_period_below_the_interval_once_a_tick(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {0};

	start_with(recorder, &repeaters[0], 1, INTERVAL / 4, INTERVAL / 4, TW_MISSED_DELAY);
	start_with(recorder, &repeaters[1], 2, INTERVAL / 4, INTERVAL / 4, TW_MISSED_SKIP);
	for (int tick = 0; tick < 5; tick++) {
		pass_ticks(recorder, 1);
		advance(recorder, 0);
	}
	assert_runs_ms(recorder, 1, 1, 2, 3, 4, 5);
	assert_runs_ms(recorder, 2, 1, 2, 3, 4, 5);
	recorder_close(recorder);
}

static void periodic_timers_and_others_of_a_tick_run_in_order(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {0};

	start(recorder, &repeaters[0], 1, 10 * INTERVAL, 10 * INTERVAL);
	set_timer(recorder, "a", 2, 10 * INTERVAL);
	start(recorder, &repeaters[1], 3, 10 * INTERVAL, 10 * INTERVAL);
	set_timer(recorder, "b", 4, 20 * INTERVAL);
	advance(recorder, 10 * INTERVAL);
	set_timer(recorder, "c", 5, 10 * INTERVAL);
	advance(recorder, 10 * INTERVAL);
	assert_order(recorder, 1, 2, 3, 4, 1, 3, 5);
	recorder_close(recorder);
}

static void period_that_the_clock_cannot_tell_runs_once_and_stays_pending(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {0};

	start(recorder, &repeaters[0], 1, 2 * INTERVAL, TW_FOREVER);
	start(recorder, &repeaters[1], 2, TW_FOREVER, INTERVAL);
	pass_ticks(recorder, 5);
	advance(recorder, INT64_MAX / 2);
	assert_runs_ms(recorder, 1, 2);
	assert_int_equal(event_count(recorder), 1);
	assert_int_equal(tw_pending(recorder->wheel), 2);
	assert_status(stop(&repeaters[0]), TW_OK);
	assert_status(stop(&repeaters[1]), TW_OK);
	recorder_close(recorder);
}

static void hold_the_first_run(struct repeater *repeater)
{
	if (repeater->runs > 1)
		return;
	sem_post(&repeater->begun);
	sem_wait(&repeater->go_on);
}

static void prepare_to_hold(struct repeater *repeater)
{
	*repeater = (struct repeater){.in_run = hold_the_first_run};
	sem_init(&repeater->begun, 0, 0);
	sem_init(&repeater->go_on, 0, 0);
}

static void wait_for_runs(struct recorder *recorder, size_t runs)
{
	WAIT_UNTIL((advance(recorder, 0), event_count(recorder) >= runs));
	advance(recorder, 0);
	assert_int_equal(event_count(recorder), runs);
}

/*
 * tokio's figures: period 300, the run at 300 lasts until 950; then `overdue` runs are made at
 * once. The clock is left at 1600.
 */
static struct recorder *run_held_until_950(const struct variant *variant, enum tw_missed missed,
					   size_t overdue)
{
	struct recorder *recorder = open_wheel(variant);
	static struct repeater repeater;

	prepare_to_hold(&repeater);
	start_with(recorder, &repeater, 1, 300 * INTERVAL, 300 * INTERVAL, missed);
	assert_status(tw_advance(recorder->wheel, 300 * INTERVAL), TW_OK);
	sem_wait(&repeater.begun);
	assert_status(tw_advance(recorder->wheel, 650 * INTERVAL), TW_OK);
	assert_int_equal(event_count(recorder), 1);
	sem_post(&repeater.go_on);
	wait_for_runs(recorder, 1 + overdue);
	pass_ticks(recorder, 650);
	return recorder;
}

static void burst_runs_each_missed_one_at_once(void **state)
{
	struct recorder *recorder = run_held_until_950(*state, TW_MISSED_BURST, 2);

	assert_runs_ms(recorder, 1, 300, 950, 950, 1200, 1500);
	recorder_close(recorder);
}

static void delay_counts_the_next_period_from_the_late_run(void **state)
{
	struct recorder *recorder = run_held_until_950(*state, TW_MISSED_DELAY, 1);

	assert_runs_ms(recorder, 1, 300, 950, 1250, 1550);
	recorder_close(recorder);
}

static void skip_waits_for_the_next_multiple(void **state)
{
	struct recorder *recorder = run_held_until_950(*state, TW_MISSED_SKIP, 1);

	assert_runs_ms(recorder, 1, 300, 950, 1200, 1500);
	recorder_close(recorder);
}

static void run_nothing_while_held(void *argument)
{
	struct repeater *repeater = argument;

	sem_post(&repeater->begun);
	sem_wait(&repeater->go_on);
}

/* Holds up both workers with timers that are not written down. */
static void hold_workers(struct recorder *recorder, struct repeater held[2])
{
	for (int i = 0; i < 2; i++) {
		prepare_to_hold(&held[i]);
		assert_status(
			tw_after_func(recorder->wheel, 0, run_nothing_while_held, &held[i], NULL),
			TW_OK);
		assert_status(tw_advance(recorder->wheel, 0), TW_OK);
		sem_wait(&held[i].begun);
	}
}

static void let_workers_go(struct repeater held[2])
{
	sem_post(&held[0].go_on);
	sem_post(&held[1].go_on);
}

/* As above, but the run that is due at 300 cannot begin before 950. */
static struct recorder *run_begun_at_950(const struct variant *variant, enum tw_missed missed,
					 size_t overdue)
{
	struct recorder *recorder = open_wheel(variant);
	static struct repeater repeater;
	struct repeater held[2];

	repeater = (struct repeater){0};
	start_with(recorder, &repeater, 1, 300 * INTERVAL, 300 * INTERVAL, missed);
	hold_workers(recorder, held);
	assert_status(tw_advance(recorder->wheel, 950 * INTERVAL), TW_OK);
	assert_int_equal(event_count(recorder), 0);
	let_workers_go(held);
	wait_for_runs(recorder, overdue);
	pass_ticks(recorder, 350);
	return recorder;
}

static void policies_hold_for_a_run_that_waits_in_the_pool_too(void **state)
{
	struct recorder *recorder = run_begun_at_950(*state, TW_MISSED_BURST, 3);

	assert_runs_ms(recorder, 1, 950, 950, 950, 1200);
	recorder_close(recorder);
	recorder = run_begun_at_950(*state, TW_MISSED_DELAY, 1);
	assert_runs_ms(recorder, 1, 950, 1250);
	recorder_close(recorder);
	recorder = run_begun_at_950(*state, TW_MISSED_SKIP, 1);
	assert_runs_ms(recorder, 1, 950, 1200);
	recorder_close(recorder);
}

static void policies_hold_for_a_timer_that_starts_in_the_past_too(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[3] = {0};

	advance(recorder, 950 * INTERVAL);
	for (uintptr_t i = 0; i < 3; i++)
		start_with(recorder, &repeaters[i], i, -350 * INTERVAL, 300 * INTERVAL,
			   (enum tw_missed)i);
	wait_for_runs(recorder, 4);
	pass_ticks(recorder, 350);
	assert_runs_ms(recorder, TW_MISSED_BURST, 950, 950, 1200);
	assert_runs_ms(recorder, TW_MISSED_DELAY, 950, 1250);
	assert_runs_ms(recorder, TW_MISSED_SKIP, 950, 1200);
	recorder_close(recorder);
}

static void run_late_by_less_than_a_period_changes_nothing(void **state)
{
	for (int missed = TW_MISSED_BURST; missed <= TW_MISSED_SKIP; missed++) {
		struct recorder *recorder = open_wheel(*state);
		struct repeater repeater;

		prepare_to_hold(&repeater);
		start_with(recorder, &repeater, 1, 100 * INTERVAL, 100 * INTERVAL,
			   (enum tw_missed)missed);
		assert_status(tw_advance(recorder->wheel, 100 * INTERVAL), TW_OK);
		sem_wait(&repeater.begun);
		assert_status(tw_advance(recorder->wheel, 150 * INTERVAL), TW_OK);
		sem_post(&repeater.go_on);
		wait_for_runs(recorder, 2);
		pass_ticks(recorder, 200);
		assert_runs_ms(recorder, 1, 100, 250, 300, 400);
		recorder_close(recorder);
	}
}

static void note_overlap(struct repeater *repeater)
{
	if (atomic_fetch_add(&repeater->inside, 1) != 0)
		atomic_fetch_add(&repeater->overlaps, 1);
	give_way();
	atomic_fetch_sub(&repeater->inside, 1);
	atomic_fetch_add(&repeater->counted, 1);
}

static void runs_of_one_timer_never_overlap(void **state)
{
	enum { TICKS = TEST_SHARE_OF(3000) };
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[3] = {{0}};

	for (uintptr_t i = 0; i < 3; i++) {
		repeaters[i].in_run = note_overlap;
		start(recorder, &repeaters[i], i, INTERVAL, INTERVAL);
	}
	for (int tick = 0; tick < TICKS; tick++)
		assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	for (int i = 0; i < 3; i++) {
		WAIT_UNTIL((advance(recorder, 0), atomic_load(&repeaters[i].counted) == TICKS));
		assert_int_equal(atomic_load(&repeaters[i].overlaps), 0);
	}
	advance(recorder, 0);
	assert_int_equal(event_count(recorder), 3 * TICKS);
	recorder_close(recorder);
}

static void periodic_timer_stopped_between_runs_runs_no_more(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {0};

	start(recorder, &repeater, 1, 5 * INTERVAL, 5 * INTERVAL);
	pass_ticks(recorder, 12);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	assert_status(stop(&repeater), TW_OK);
	assert_status(stop(&repeater), TW_NOT_FOUND);
	assert_status(reset(&repeater, INTERVAL), TW_NOT_FOUND);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 5, 10);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 2);
	recorder_close(recorder);
}

static void stop_in_the_third_run(struct repeater *repeater)
{
	if (repeater->runs != 3)
		return;
	repeater->answers[0] = stop_wait(repeater);
	repeater->answers[1] = stop(repeater);
	repeater->answers[2] = reset(repeater, INTERVAL);
}

static void periodic_timer_that_stops_itself_runs_no_more(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {.in_run = stop_in_the_third_run};

	start(recorder, &repeater, 1, 5 * INTERVAL, 5 * INTERVAL);
	pass_ticks(recorder, 40);
	assert_runs_ms(recorder, 1, 5, 10, 15);
	assert_status(repeater.answers[0], TW_INVALID);
	assert_status(repeater.answers[1], TW_REARMED);
	assert_status(repeater.answers[2], TW_NOT_FOUND);
	assert_status(stop(&repeater), TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static void wait_in_each_run(struct repeater *repeater)
{
	repeater->answers[0] = stop_wait(repeater);
}

static void stop_wait_in_its_own_run_is_invalid_and_stops_nothing(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {.in_run = wait_in_each_run};

	start(recorder, &repeater, 1, 5 * INTERVAL, 5 * INTERVAL);
	pass_ticks(recorder, 17);
	assert_status(repeater.answers[0], TW_INVALID);
	assert_runs_ms(recorder, 1, 5, 10, 15);
	recorder_close(recorder);
}

static void periodic_timer_stopped_while_it_runs_does_not_run_again(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater;

	prepare_to_hold(&repeater);
	start(recorder, &repeater, 1, 5 * INTERVAL, 5 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 5 * INTERVAL), TW_OK);
	sem_wait(&repeater.begun);
	assert_status(tw_advance(recorder->wheel, 50 * INTERVAL), TW_OK);
	assert_status(stop(&repeater), TW_REARMED);
	assert_status(stop(&repeater), TW_RUNNING);
	sem_post(&repeater.go_on);
	(void)stop_wait(&repeater);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 5);
	assert_status(stop(&repeater), TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

static void late_run_that_waits_in_the_pool_can_be_stopped(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater held[2];
	struct repeater repeater = {0};

	start(recorder, &repeater, 1, 5 * INTERVAL, 5 * INTERVAL);
	hold_workers(recorder, held);
	assert_status(tw_advance(recorder->wheel, 50 * INTERVAL), TW_OK);
	assert_status(stop(&repeater), TW_OK);
	let_workers_go(held);
	pass_ticks(recorder, 20);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void reset_moves_the_next_run_and_later_ones_count_from_there(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[3] = {0};

	for (uintptr_t i = 0; i < 3; i++)
		start(recorder, &repeaters[i], i, 10 * INTERVAL, 10 * INTERVAL);
	assert_status(reset(&repeaters[2], 2 * INTERVAL), TW_OK);
	pass_ticks(recorder, 15);
	assert_status(reset(&repeaters[0], 3 * INTERVAL), TW_OK);
	assert_status(reset(&repeaters[1], 0), TW_OK);
	advance(recorder, 0);
	pass_ticks(recorder, 25);
	assert_runs_ms(recorder, 0, 10, 18, 28, 38);
	assert_runs_ms(recorder, 1, 10, 15, 25, 35);
	assert_runs_ms(recorder, 2, 2, 12, 22, 32);
	recorder_close(recorder);
}

static void reset_to_never_pauses_and_another_reset_goes_on(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {0};

	start(recorder, &repeater, 1, 10 * INTERVAL, 10 * INTERVAL);
	pass_ticks(recorder, 12);
	assert_status(reset(&repeater, TW_FOREVER), TW_OK);
	pass_ticks(recorder, 100);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	assert_status(reset(&repeater, 3 * INTERVAL), TW_OK);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 10, 115, 125);
	recorder_close(recorder);
}

static void reset_in_the_first_run(struct repeater *repeater)
{
	if (repeater->runs == 1)
		repeater->answers[0] = reset(repeater, 25 * INTERVAL);
}

static void periodic_timer_may_reset_itself(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {.in_run = reset_in_the_first_run};

	start(recorder, &repeater, 1, 10 * INTERVAL, 10 * INTERVAL);
	pass_ticks(recorder, 60);
	assert_status(repeater.answers[0], TW_OK);
	assert_runs_ms(recorder, 1, 10, 35, 45, 55);
	recorder_close(recorder);
}

static void reset_while_it_runs_takes_the_place_of_missed_runs(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater;

	prepare_to_hold(&repeater);
	start(recorder, &repeater, 1, 10 * INTERVAL, 10 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
	sem_wait(&repeater.begun);
	assert_status(tw_advance(recorder->wheel, 85 * INTERVAL), TW_OK);
	assert_status(reset(&repeater, 6 * INTERVAL), TW_OK);
	sem_post(&repeater.go_on);
	settle(recorder);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 10, 101, 111);
	recorder_close(recorder);
}

/* Answers the deadlines one after the other; after the last, 0, it ends. */
static tw_duration next_of_list(void *argument, tw_duration previous)
{
	struct repeater *repeater = argument;

	if (repeater->asked < MOST_ANSWERS)
		repeater->previous[repeater->asked] = previous;
	return repeater->deadlines[repeater->asked++];
}

static enum tw_status schedule(struct recorder *recorder, struct repeater *repeater,
			       uintptr_t number, const tw_duration *deadlines)
{
	repeater->recorder = recorder;
	repeater->number = number;
	repeater->deadlines = deadlines;
	return tw_schedule_func(recorder->wheel, next_of_list, run, repeater, &repeater->timer);
}

struct gaps {
	const int *gap;
	struct repeater repeater;
};

static void russell_luo_run_gaps(void *gaps)
{
	run(&((struct gaps *)gaps)->repeater);
}

/* The next gap after the previous deadline; none left: ends. */
static tw_duration russell_luo_next(void *argument, tw_duration previous)
{
	struct gaps *gaps = argument;

	return previous + *gaps->gap++ * TW_MILLISECOND;
}

static void russell_luo_schedule_runs_after_each_gap_and_ends(void **state)
{
	static const int gap[] = {1, 4, 5, 40, 50, 400, 500, 0};
	struct recorder *recorder = open_wheel(*state);
	struct gaps gaps = {.gap = gap, .repeater = {.recorder = recorder, .number = 1}};
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
	recorder_close(recorder);
}

static void next_is_asked_with_now_and_then_with_the_deadline_of_the_run(void **state)
{
	static const tw_duration deadlines[] = {7 * INTERVAL + 3, 9 * INTERVAL - 1, 9 * INTERVAL,
						20 * INTERVAL, 0};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {0};

	advance(recorder, 5 * INTERVAL + 5);
	assert_status(schedule(recorder, &repeater, 1, deadlines), TW_OK);
	assert_int_equal(repeater.asked, 1);
	pass_ticks(recorder, 50);
	assert_int_equal(repeater.asked, 5);
	assert_int_equal(repeater.previous[0], 5 * INTERVAL + 5);
	for (int i = 1; i < 5; i++)
		assert_int_equal(repeater.previous[i], deadlines[i - 1]);
	assert_int_equal(event_count(recorder), 4);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static void schedule_that_does_not_advance_at_first_is_invalid(void **state)
{
	static const tw_duration wrong[] = {5 * INTERVAL, 5 * INTERVAL - 1, 0, -1, INT64_MIN};
	struct recorder *recorder = open_wheel(*state);

	advance(recorder, 5 * INTERVAL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct repeater repeater = {.timer = {77}};

		assert_status(schedule(recorder, &repeater, 1, &wrong[i]), TW_INVALID);
		assert_int_equal(repeater.asked, 1);
		assert_int_equal(repeater.timer.id, 0);
	}
	pass_ticks(recorder, 9);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void schedule_that_no_longer_advances_ends(void **state)
{
	static const tw_duration same[] = {2 * INTERVAL, 4 * INTERVAL, 4 * INTERVAL, 99 * INTERVAL};
	static const tw_duration back[] = {2 * INTERVAL, 4 * INTERVAL, 4 * INTERVAL - 1,
					   99 * INTERVAL};
	static const tw_duration least[] = {2 * INTERVAL, INT64_MIN, 99 * INTERVAL};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[3] = {0};

	assert_status(schedule(recorder, &repeaters[0], 1, same), TW_OK);
	assert_status(schedule(recorder, &repeaters[1], 2, back), TW_OK);
	assert_status(schedule(recorder, &repeaters[2], 3, least), TW_OK);
	pass_ticks(recorder, 120);
	assert_runs_ms(recorder, 1, 2, 4);
	assert_runs_ms(recorder, 2, 2, 4);
	assert_runs_ms(recorder, 3, 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(repeaters[i].asked, i < 2 ? 3 : 2);
		assert_status(stop(&repeaters[i]), TW_NOT_FOUND);
	}
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 5);
	recorder_close(recorder);
}

static void schedule_to_never_stays_pending(void **state)
{
	static const tw_duration deadlines[] = {2 * INTERVAL, TW_FOREVER};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {0};

	assert_status(schedule(recorder, &repeaters[0], 1, deadlines), TW_OK);
	assert_status(schedule(recorder, &repeaters[1], 2, deadlines + 1), TW_OK);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 2);
	assert_int_equal(tw_pending(recorder->wheel), 2);
	stop_wheel(recorder);
	assert_released(recorder, 2, TW_STOPPED);
	assert_int_equal(times_returned(recorder, 1), 2);
	recorder_close(recorder);
}

static void schedule_runs_what_it_asks_for_in_the_past_now(void **state)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 10 * INTERVAL + 1, 20 * INTERVAL,
						60 * INTERVAL, 0};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater;

	prepare_to_hold(&repeater);
	assert_status(schedule(recorder, &repeater, 1, deadlines), TW_OK);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
	sem_wait(&repeater.begun);
	assert_status(tw_advance(recorder->wheel, 40 * INTERVAL), TW_OK);
	sem_post(&repeater.go_on);
	wait_for_runs(recorder, 3);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 10, 50, 50, 60);
	assert_int_equal(repeater.asked, 5);
	recorder_close(recorder);
}

static void schedule_goes_on_from_where_it_is_reset_to(void **state)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 30 * INTERVAL, 0};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {0};

	assert_status(schedule(recorder, &repeater, 1, deadlines), TW_OK);
	pass_ticks(recorder, 3);
	assert_status(reset(&repeater, 2 * INTERVAL), TW_OK);
	pass_ticks(recorder, 50);
	assert_runs_ms(recorder, 1, 5, 30);
	assert_int_equal(repeater.previous[1], 5 * INTERVAL);
	assert_int_equal(repeater.previous[2], 30 * INTERVAL);
	recorder_close(recorder);
}

static void stopped_schedule_is_not_asked_again(void **state)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 30 * INTERVAL, 40 * INTERVAL, 0};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {0};

	assert_status(schedule(recorder, &repeater, 1, deadlines), TW_OK);
	pass_ticks(recorder, 12);
	assert_status(stop_wait(&repeater), TW_OK);
	pass_ticks(recorder, 50);
	assert_runs_ms(recorder, 1, 10);
	assert_int_equal(repeater.asked, 2);
	recorder_close(recorder);
}

static void stop_in_each_run(struct repeater *repeater)
{
	repeater->answers[0] = stop(repeater);
}

static void schedule_that_stops_itself_is_not_asked_again(void **state)
{
	static const tw_duration deadlines[] = {10 * INTERVAL, 30 * INTERVAL, 0};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {.in_run = stop_in_each_run};

	assert_status(schedule(recorder, &repeater, 1, deadlines), TW_OK);
	pass_ticks(recorder, 50);
	assert_runs_ms(recorder, 1, 10);
	assert_status(repeater.answers[0], TW_REARMED);
	assert_int_equal(repeater.asked, 1);
	recorder_close(recorder);
}

static tw_duration next_that_stops(void *argument, tw_duration previous)
{
	struct repeater *repeater = argument;

	if (repeater->asked++ == 2) {
		repeater->answers[0] = stop(repeater);
		repeater->answers[1] = reset(repeater, INTERVAL);
	}
	return previous + 10 * INTERVAL;
}

static void schedule_may_be_stopped_while_it_is_asked(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {.recorder = recorder, .number = 1};

	assert_status(
		tw_schedule_func(recorder->wheel, next_that_stops, run, &repeater, &repeater.timer),
		TW_OK);
	pass_ticks(recorder, 50);
	assert_runs_ms(recorder, 1, 10, 20);
	assert_int_equal(repeater.asked, 3);
	assert_status(repeater.answers[0], TW_REARMED);
	assert_status(repeater.answers[1], TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static tw_duration next_that_resets_and_ends(void *argument, tw_duration previous)
{
	struct repeater *repeater = argument;

	if (repeater->asked++ == 0)
		return previous + 10 * INTERVAL;
	repeater->answers[0] = reset(repeater, INTERVAL);
	return previous;
}

static void reset_does_not_bring_back_a_schedule_that_its_next_is_ending(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater = {.recorder = recorder, .number = 1};

	assert_status(tw_schedule_func(recorder->wheel, next_that_resets_and_ends, run, &repeater,
				       &repeater.timer),
		      TW_OK);
	pass_ticks(recorder, 20);
	assert_runs_ms(recorder, 1, 10);
	assert_int_equal(repeater.asked, 2);
	assert_status(repeater.answers[0], TW_OK);
	assert_status(reset(&repeater, INTERVAL), TW_NOT_FOUND);
	assert_status(stop(&repeater), TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static tw_duration next_that_waits(void *argument, tw_duration previous)
{
	struct repeater *repeater = argument;

	if (repeater->asked++ == 1)
		repeater->answers[0] = stop_wait(repeater);
	return repeater->asked <= 2 ? previous + 10 * INTERVAL : previous;
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
static void next_does_not_wait_for_itself(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	static struct repeater repeater;
	pthread_t thread;

	repeater = (struct repeater){.recorder = recorder, .number = 1};
	assert_status(
		tw_schedule_func(recorder->wheel, next_that_waits, run, &repeater, &repeater.timer),
		TW_OK);
	assert_int_equal(pthread_create(&thread, NULL, advance_ticks, recorder->wheel), 0);
	WAIT_UNTIL(tw_now(recorder->wheel) == 50 * INTERVAL && tw_pending(recorder->wheel) == 0);
	pthread_join(thread, NULL);
	assert_status(repeater.answers[0], TW_INVALID);
	assert_runs_ms(recorder, 1, 10, 20);
	recorder_close(recorder);
}

static void drained_periodic_timer_has_ended(void **state)
{
	static const tw_duration deadlines[] = {50 * INTERVAL, 60 * INTERVAL, 0};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {0};

	start(recorder, &repeaters[0], 1, 5 * INTERVAL, 10 * INTERVAL);
	assert_status(schedule(recorder, &repeaters[1], 2, deadlines), TW_OK);
	pass_ticks(recorder, 7);
	assert_status(tw_drain(recorder->wheel, drain, recorder), TW_OK);
	settle(recorder);
	assert_status(stop(&repeaters[0]), TW_NOT_FOUND);
	assert_status(reset(&repeaters[1], INTERVAL), TW_NOT_FOUND);
	pass_ticks(recorder, 60);
	assert_runs_ms(recorder, 1, 5);
	assert_drained(recorder, 2);
	assert_int_equal(event_count_of_kind(recorder, EVENT_DRAIN), 2);
	assert_int_equal(event_count(recorder), 3);
	assert_int_equal(repeaters[1].asked, 1);
	recorder_close(recorder);
}

static void drain_in_the_first_run(struct repeater *repeater)
{
	if (repeater->runs == 1)
		repeater->answers[0] =
			tw_drain(repeater->recorder->wheel, drain, repeater->recorder);
}

/* Whether it is pending again by the time of the drain is open; that it comes to one end is not. */
static void periodic_timer_that_drains_the_wheel_is_drained_or_goes_on(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {{.in_run = drain_in_the_first_run}, {0}};

	start(recorder, &repeaters[0], 1, 10 * INTERVAL, 10 * INTERVAL);
	start(recorder, &repeaters[1], 2, 15 * INTERVAL, 10 * INTERVAL);
	pass_ticks(recorder, 35);
	assert_status(repeaters[0].answers[0], TW_OK);
	assert_drained(recorder, 2);
	if (event_count_of_kind(recorder, EVENT_DRAIN) == 1) {
		assert_runs_ms(recorder, 1, 10, 20, 30);
		assert_status(stop(&repeaters[0]), TW_OK);
	} else {
		assert_int_equal(event_count(recorder), 3);
		assert_runs_ms(recorder, 1, 10);
		assert_status(stop(&repeaters[0]), TW_NOT_FOUND);
	}
	recorder_close(recorder);
}

static void stop_the_wheel_in_the_second_run(struct repeater *repeater)
{
	if (repeater->runs == 2)
		repeater->answers[0] = tw_stop(repeater->recorder->wheel);
}

static void periodic_timer_that_stops_the_wheel_comes_back_after_its_run(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {{.in_run = stop_the_wheel_in_the_second_run}, {0}};

	start(recorder, &repeaters[0], 1, 10 * INTERVAL, 10 * INTERVAL);
	start(recorder, &repeaters[1], 2, 25 * INTERVAL, 10 * INTERVAL);
	(void)tw_advance(recorder->wheel, 10 * INTERVAL);
	settle(recorder);
	(void)tw_advance(recorder->wheel, 10 * INTERVAL);
	settle(recorder);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_CLOSED);
	assert_status(repeaters[0].answers[0], TW_OK);
	assert_runs_ms(recorder, 1, 10, 20);
	assert_int_equal(times_returned(recorder, 1), 3);
	assert_released(recorder, 2, TW_STOPPED);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 2);
	recorder_close(recorder);
}

static void periodic_timer_that_runs_when_the_wheel_stops_comes_back_after_its_run(void **state)
{
	static const tw_duration ending[] = {5 * INTERVAL, 0};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2];

	for (int i = 0; i < 2; i++)
		prepare_to_hold(&repeaters[i]);
	start(recorder, &repeaters[0], 1, 5 * INTERVAL, 5 * INTERVAL);
	assert_status(schedule(recorder, &repeaters[1], 2, ending), TW_OK);
	assert_status(tw_advance(recorder->wheel, 5 * INTERVAL), TW_OK);
	sem_wait(&repeaters[0].begun);
	sem_wait(&repeaters[1].begun);
	assert_status(tw_advance(recorder->wheel, 50 * INTERVAL), TW_OK);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	let_workers_go(repeaters);
	settle(recorder);
	assert_runs_ms(recorder, 1, 5);
	assert_int_equal(times_returned(recorder, 1), 2);
	assert_runs_ms(recorder, 2, 5);
	assert_int_equal(times_returned(recorder, 2), 1);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

static void destroy_while_a_periodic_timer_runs_gives_its_argument_back(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeater;

	prepare_to_hold(&repeater);
	start(recorder, &repeater, 1, 5 * INTERVAL, 5 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 5 * INTERVAL), TW_OK);
	sem_wait(&repeater.begun);
	sem_post(&repeater.go_on);
	tw_destroy(recorder->wheel);
	recorder->wheel = NULL;
	assert_int_equal(event_count(recorder), 2);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 1);
	recorder_close(recorder);
}

static void periodic_timer_keeps_its_place_within_the_limit(void **state)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	struct repeater repeaters[2] = {0};
	struct tw_timer timer = {77};

	options.release = release;
	options.max_pending = 1;
	options.when_full = TW_WHEN_FULL_FAIL;
	recorder_start(recorder, INTERVAL, 10, &options);
	start(recorder, &repeaters[0], 1, 5 * INTERVAL, 5 * INTERVAL);
	for (int i = 0; i < 4; i++) {
		pass_ticks(recorder, 5);
		assert_status(tw_every(recorder->wheel, INTERVAL, INTERVAL, TW_MISSED_BURST, run,
				       &repeaters[1], &timer),
			      TW_FULL);
		assert_int_equal(timer.id, 0);
	}
	assert_status(stop(&repeaters[0]), TW_OK);
	assert_status(tw_flush(recorder->wheel), TW_OK);
	start(recorder, &repeaters[1], 2, 5 * INTERVAL, 5 * INTERVAL);
	pass_ticks(recorder, 5);
	assert_runs_ms(recorder, 1, 5, 10, 15, 20);
	assert_runs_ms(recorder, 2, 25);
	recorder_close(recorder);
}

static void bad_arguments_are_refused(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct tw_wheel *wheel = recorder->wheel;
	enum tw_missed burst = TW_MISSED_BURST;
	struct repeater repeater = {.recorder = recorder};
	struct tw_timer timer;

	assert_status(tw_every(NULL, 1, 1, burst, run, &repeater, &timer), TW_INVALID);
	assert_int_equal(timer.id, 0);
	timer.id = 77;
	assert_status(tw_every(wheel, 1, 0, burst, run, &repeater, &timer), TW_INVALID);
	assert_int_equal(timer.id, 0);
	assert_status(tw_every(wheel, 1, -1, burst, run, &repeater, &timer), TW_INVALID);
	assert_status(tw_every(wheel, 1, 1, burst, NULL, &repeater, &timer), TW_INVALID);
	assert_status(tw_every(wheel, 1, 1, (enum tw_missed)3, run, &repeater, NULL), TW_INVALID);
	assert_status(tw_every(wheel, 1, 1, (enum tw_missed) - 1, run, &repeater, NULL),
		      TW_INVALID);
	timer.id = 77;
	assert_status(tw_schedule_func(NULL, next_that_stops, run, &repeater, &timer), TW_INVALID);
	assert_int_equal(timer.id, 0);
	timer.id = 77;
	assert_status(tw_schedule_func(wheel, NULL, run, &repeater, &timer), TW_INVALID);
	assert_int_equal(timer.id, 0);
	assert_status(tw_schedule_func(wheel, next_that_stops, NULL, &repeater, &timer),
		      TW_INVALID);
	assert_int_equal(repeater.asked, 0);
	pass_ticks(recorder, 5);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void nobody_needs_to_want_the_handle(void **state)
{
	static const tw_duration deadlines[] = {2 * INTERVAL, 3 * INTERVAL, 0};
	struct recorder *recorder = open_wheel(*state);
	struct repeater repeaters[2] = {
		{.recorder = recorder, .number = 1},
		{.recorder = recorder, .number = 2, .deadlines = deadlines}};

	assert_status(tw_every(recorder->wheel, INTERVAL, 2 * INTERVAL, TW_MISSED_SKIP, run,
			       &repeaters[0], NULL),
		      TW_OK);
	assert_status(tw_schedule_func(recorder->wheel, next_of_list, run, &repeaters[1], NULL),
		      TW_OK);
	pass_ticks(recorder, 6);
	assert_runs_ms(recorder, 1, 1, 3, 5);
	assert_runs_ms(recorder, 2, 2, 3);
	recorder_close(recorder);
}

static const struct CMUnitTest tests[] = {
	TEST_EVERYWHERE(periodic_timer_runs_at_first_and_each_period_after_it),
	TEST_INLINE(periodic_timer_runs_at_each_of_its_ticks_within_a_long_advance),
	TEST_INLINE(periods_that_are_no_whole_ticks_do_not_drift),
	TEST_EVERYWHERE(long_run_of_single_ticks_does_not_drift),
	TEST_EVERYWHERE(burst_of_a_period_below_the_interval_makes_up_for_all_each_tick),
	TEST_INLINE(burst_has_run_when_advance_returns),
	TEST_EVERYWHERE(other_policies_run_a_period_below_the_interval_once_a_tick),
	TEST_INLINE(periodic_timers_and_others_of_a_tick_run_in_order),
	TEST_EVERYWHERE(period_that_the_clock_cannot_tell_runs_once_and_stays_pending),
	TEST_POOL(burst_runs_each_missed_one_at_once),
	TEST_POOL(delay_counts_the_next_period_from_the_late_run),
	TEST_POOL(skip_waits_for_the_next_multiple),
	TEST_POOL(policies_hold_for_a_run_that_waits_in_the_pool_too),
	TEST_EVERYWHERE(policies_hold_for_a_timer_that_starts_in_the_past_too),
	TEST_POOL(run_late_by_less_than_a_period_changes_nothing),
	TEST_EVERYWHERE(runs_of_one_timer_never_overlap),
	TEST_EVERYWHERE(periodic_timer_stopped_between_runs_runs_no_more),
	TEST_EVERYWHERE(periodic_timer_that_stops_itself_runs_no_more),
	TEST_EVERYWHERE(stop_wait_in_its_own_run_is_invalid_and_stops_nothing),
	TEST_POOL(periodic_timer_stopped_while_it_runs_does_not_run_again),
	TEST_POOL(late_run_that_waits_in_the_pool_can_be_stopped),
	TEST_EVERYWHERE(reset_moves_the_next_run_and_later_ones_count_from_there),
	TEST_EVERYWHERE(reset_to_never_pauses_and_another_reset_goes_on),
	TEST_EVERYWHERE(periodic_timer_may_reset_itself),
	TEST_POOL(reset_while_it_runs_takes_the_place_of_missed_runs),
	TEST_EVERYWHERE(russell_luo_schedule_runs_after_each_gap_and_ends),
	TEST_EVERYWHERE(next_is_asked_with_now_and_then_with_the_deadline_of_the_run),
	TEST_EVERYWHERE(schedule_that_does_not_advance_at_first_is_invalid),
	TEST_EVERYWHERE(schedule_that_no_longer_advances_ends),
	TEST_EVERYWHERE(schedule_to_never_stays_pending),
	TEST_POOL(schedule_runs_what_it_asks_for_in_the_past_now),
	TEST_EVERYWHERE(schedule_goes_on_from_where_it_is_reset_to),
	TEST_EVERYWHERE(stopped_schedule_is_not_asked_again),
	TEST_EVERYWHERE(schedule_that_stops_itself_is_not_asked_again),
	TEST_EVERYWHERE(schedule_may_be_stopped_while_it_is_asked),
	TEST_EVERYWHERE(reset_does_not_bring_back_a_schedule_that_its_next_is_ending),
	TEST_EVERYWHERE(drained_periodic_timer_has_ended),
	TEST_EVERYWHERE(periodic_timer_that_drains_the_wheel_is_drained_or_goes_on),
	TEST_EVERYWHERE(periodic_timer_that_stops_the_wheel_comes_back_after_its_run),
	TEST_POOL(periodic_timer_that_runs_when_the_wheel_stops_comes_back_after_its_run),
	TEST_POOL(destroy_while_a_periodic_timer_runs_gives_its_argument_back),
	TEST_EVERYWHERE(periodic_timer_keeps_its_place_within_the_limit),
	TEST_EVERYWHERE(bad_arguments_are_refused),
	TEST_EVERYWHERE(nobody_needs_to_want_the_handle),
	TEST_EVERYWHERE(next_does_not_wait_for_itself),
};

TEST_PROGRAM(tests)
