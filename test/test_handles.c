/* SPDX-License-Identifier: MIT */
/*
 * Timers by handle that run once: the cases of the libraries that have them, and what stop, reset,
 * drain and the wheel's own stop do to a handle wherever it is: in the queue, in the wheel, in the
 * pool, running, done.
 */
#include "support/test.h"

#include "support/recorder.h"
#include "support/seed.h"
#include "support/wait.h"

#include "runtime/ask.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a handle's argument points to. Its runs are written down as VALUE(number) executed. */
struct probe {
	struct recorder *recorder;
	uintptr_t number;
	struct tw_timer timer;
	void (*in_run)(struct probe *); /* called in the run, after it has been written down */
	struct probe *others;
	enum tw_status answers[4]; /* of calls in the run */
	int runs;
	sem_t begun, go_on;
	atomic_int ended;
};

static void run_probe(void *argument)
{
	struct probe *probe = argument;
	struct tw_task task = {.key = "", .value = VALUE(probe->number)};

	probe->runs++;
	record_execute(probe->recorder, &task);
	if (probe->in_run != NULL)
		probe->in_run(probe);
}

/* A handle comes back with no key: its probe's number stands for it. Others stay as they are. */
static struct tw_task told_task(const struct tw_task *task)
{
	struct tw_task told = *task;

	if (task->key != NULL || task->key_size != 0)
		return told;
	told.key = "";
	if (task->value != NULL)
		told.value = VALUE(((struct probe *)task->value)->number);
	return told;
}

static void release_probe(void *recorder, const struct tw_task *task, enum tw_reason reason)
{
	struct tw_task told = told_task(task);

	record_release(recorder, &told, reason);
}

static void drain_probe(void *recorder, const struct tw_task *task)
{
	struct tw_task told = told_task(task);

	record_drain(recorder, &told);
}

static struct recorder *open_with(const struct variant *variant, struct tw_options more)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, variant);

	options.release = release_probe;
	options.queue_capacity = more.queue_capacity;
	options.max_pending = more.max_pending;
	options.when_full = more.when_full;
	recorder_start(recorder, INTERVAL, 10, &options);
	return recorder;
}

static struct recorder *open_wheel(const struct variant *variant)
{
	return open_with(variant, (struct tw_options){0});
}

static void start(struct recorder *recorder, struct probe *probe, uintptr_t number,
		  tw_duration delay)
{
	probe->recorder = recorder;
	probe->number = number;
	assert_status(tw_after_func(recorder->wheel, delay, run_probe, probe, &probe->timer),
		      TW_OK);
	assert_true(probe->timer.id != 0);
}

static enum tw_status stop(const struct probe *probe)
{
	return tw_timer_stop(probe->recorder->wheel, probe->timer);
}

static enum tw_status stop_wait(const struct probe *probe)
{
	return tw_timer_stop_wait(probe->recorder->wheel, probe->timer);
}

static enum tw_status reset(const struct probe *probe, tw_duration delay)
{
	return tw_timer_reset(probe->recorder->wheel, probe->timer, delay);
}

/* To that time of the wheel's clock, in one step. */
static void advance_to(struct recorder *recorder, tw_duration time)
{
	advance(recorder, time - tw_now(recorder->wheel));
}

static void flush(struct recorder *recorder)
{
	assert_status(tw_flush(recorder->wheel), TW_OK);
}

/* Stops the wheel and waits until it has given back what it owes. */
static void stop_wheel(struct recorder *recorder)
{
	assert_status(tw_stop(recorder->wheel), TW_OK);
	settle(recorder);
}

/* Released or drained once, as a handle: with no key. */
static void assert_returned_without_key(struct recorder *recorder, uintptr_t number)
{
	assert_int_equal(event_of(recorder, number).key_size, 0);
}

/* --- Cases of other libraries ---------------------------------------------------------------- */

static void kafka_expired_timers_run_at_the_first_advance_by_nothing(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[5] = {0};

	for (int i = 0; i < 5; i++)
		start(recorder, &probes[i], (uintptr_t)i + 1, (i - 5) * INTERVAL);
	advance(recorder, 0);
	for (uintptr_t i = 1; i <= 5; i++)
		assert_executed_at(recorder, i, 0);
	pass_ticks(recorder, 5);
	assert_int_equal(event_count(recorder), 5);
	recorder_close(recorder);
}

enum { KAFKA_TIMERS = 585 };

/* Delays 0 to 4, 10 to 99, once more 10 to 99, 100 to 499: probe i runs at delays[i]. */
static void kafka_start(struct recorder *recorder, struct probe *probes, tw_duration *delays)
{
	static const int first[] = {0, 10, 10, 100};
	static const int last[] = {4, 99, 99, 499};
	size_t count = 0;

	for (int part = 0; part < 4; part++) {
		for (int delay = first[part]; delay <= last[part]; delay++) {
			delays[count] = delay * INTERVAL;
			start(recorder, &probes[count], count, delays[count]);
			count++;
		}
	}
	assert_int_equal(count, KAFKA_TIMERS);
}

static void kafka_timers_run_once_each_at_their_delay(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	static struct probe probes[KAFKA_TIMERS];
	tw_duration delays[KAFKA_TIMERS];

	memset(probes, 0, sizeof(probes));
	kafka_start(recorder, probes, delays);
	advance(recorder, 0);
	pass_ticks(recorder, 600);
	for (uintptr_t i = 0; i < KAFKA_TIMERS; i++)
		assert_executed_at(recorder, i, delays[i]);
	assert_int_equal(event_count(recorder), KAFKA_TIMERS);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static void kafka_timers_run_in_the_order_of_deadline_and_setting(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	static struct probe probes[KAFKA_TIMERS];
	tw_duration delays[KAFKA_TIMERS];

	memset(probes, 0, sizeof(probes));
	kafka_start(recorder, probes, delays);
	advance(recorder, 600 * INTERVAL);
	assert_int_equal(event_count(recorder), KAFKA_TIMERS);
	for (size_t i = 1; i < KAFKA_TIMERS; i++) {
		struct event before = event_at(recorder, i - 1), event = event_at(recorder, i);

		assert_true(before.now < event.now ||
			    (before.now == event.now && before.value < event.value));
		assert_int_equal(event.now, delays[(uintptr_t)event.value]);
	}
	recorder_close(recorder);
}

static void russell_luo_delays_are_met_to_the_tick(void **state)
{
	static const int delays[] = {1, 5, 10, 50, 100, 500, 1000};
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[7] = {0};

	for (uintptr_t i = 0; i < 7; i++)
		start(recorder, &probes[i], i, delays[i] * INTERVAL);
	pass_ticks(recorder, 1010);
	for (uintptr_t i = 0; i < 7; i++)
		assert_executed_at(recorder, i, delays[i] * INTERVAL);
	recorder_close(recorder);
}

static void russell_luo_timer_stopped_shortly_before_its_deadline_is_silent(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {0};

	start(recorder, &probe, 1, 1000 * INTERVAL);
	advance_to(recorder, 900 * INTERVAL);
	assert_status(stop(&probe), TW_OK);
	advance_to(recorder, 2000 * INTERVAL);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void netty_limit_refuses_the_third_until_one_is_stopped(void **state)
{
	struct recorder *recorder = open_with(
		*state, (struct tw_options){.max_pending = 2, .when_full = TW_WHEN_FULL_FAIL});
	struct probe probes[3] = {0};
	struct tw_timer refused = {77};

	start(recorder, &probes[0], 1, 5 * INTERVAL);
	start(recorder, &probes[1], 2, 5 * INTERVAL);
	assert_status(tw_after_func(recorder->wheel, INTERVAL, run_probe, &probes[2], &refused),
		      TW_FULL);
	assert_int_equal(refused.id, 0);
	assert_status(stop(&probes[0]), TW_OK);
	flush(recorder);
	start(recorder, &probes[2], 3, 5 * INTERVAL);
	assert_status(tw_after_func(recorder->wheel, INTERVAL, run_probe, &probes[0], &refused),
		      TW_FULL);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 2, 5 * INTERVAL);
	assert_executed_at(recorder, 3, 5 * INTERVAL);
	assert_int_equal(event_count(recorder), 2);
	recorder_close(recorder);
}

static void netty_longest_delay_never_fires_whatever_the_clock(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[3] = {0};

	start(recorder, &probes[0], 1, INT64_MAX);
	advance(recorder, 7 * INTERVAL + 3);
	start(recorder, &probes[1], 2, INT64_MAX);
	start(recorder, &probes[2], 3, INT64_MAX - 1);
	advance(recorder, INT64_MAX / 2);
	advance(recorder, INT64_MAX);
	assert_int_equal(event_count(recorder), 0);
	assert_int_equal(tw_pending(recorder->wheel), 3);
	stop_wheel(recorder);
	for (uintptr_t i = 1; i <= 3; i++)
		assert_released(recorder, i, TW_STOPPED);
	recorder_close(recorder);
}

static void agrona_deadline_on_a_tick_is_met_and_one_after_it_takes_the_next(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[4] = {0};

	start(recorder, &probes[0], 1, 5 * INTERVAL);
	start(recorder, &probes[1], 2, 5 * INTERVAL + 1);
	start(recorder, &probes[2], 3, 1);
	start(recorder, &probes[3], 4, 5 * INTERVAL - 1);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 1, 5 * INTERVAL);
	assert_executed_at(recorder, 2, 6 * INTERVAL);
	assert_executed_at(recorder, 3, INTERVAL);
	assert_executed_at(recorder, 4, 5 * INTERVAL);
	recorder_close(recorder);
}

static void agrona_deadline_in_the_past_fires_now(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[3] = {0};

	advance(recorder, 10 * INTERVAL + 5);
	start(recorder, &probes[0], 1, -10 * INTERVAL);
	start(recorder, &probes[1], 2, INT64_MIN);
	start(recorder, &probes[2], 3, 0);
	advance(recorder, 0);
	for (uintptr_t i = 1; i <= 3; i++)
		assert_executed_at(recorder, i, 10 * INTERVAL + 5);
	recorder_close(recorder);
}

static void agrona_second_stop_finds_nothing(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {0};

	start(recorder, &probe, 1, 5 * INTERVAL);
	assert_status(stop(&probe), TW_OK);
	assert_status(stop(&probe), TW_NOT_FOUND);
	assert_status(stop_wait(&probe), TW_NOT_FOUND);
	pass_ticks(recorder, 9);
	assert_status(stop(&probe), TW_NOT_FOUND);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

/* 25, 90 and 240 s from `now` on; the clock is moved in the steps of Caffeine's test. */
static void caffeine_run(const struct variant *variant, tw_duration now)
{
	static const int seconds[] = {25, 90, 240};
	struct recorder *recorder = open_wheel(variant);
	struct probe probes[3] = {0};

	advance_to(recorder, now);
	for (uintptr_t i = 0; i < 3; i++)
		start(recorder, &probes[i], i, seconds[i] * TW_SECOND);
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

static void caffeine_timers_fire_between_the_steps_they_must(void **state)
{
	static const tw_duration clocks[] = {
		0, 1, TW_HOUR + 1, INT64_C(1) << 32, INT64_MAX / 2, INT64_MAX - 11 * TW_MINUTE};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		caffeine_run(*state, clocks[i]);
}

static void caffeine_timers_fire_near_the_end_of_the_clock(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[3] = {0};
	tw_duration now = INT64_MAX - 10 * TW_SECOND;
	tw_duration first = (now + TW_SECOND + INTERVAL - 1) / INTERVAL * INTERVAL;
	tw_duration second = (now + 9 * TW_SECOND + INTERVAL - 1) / INTERVAL * INTERVAL;

	advance_to(recorder, now);
	start(recorder, &probes[0], 1, TW_SECOND);
	start(recorder, &probes[1], 2, 9 * TW_SECOND);
	start(recorder, &probes[2], 3, 10 * TW_SECOND);
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
	recorder_close(recorder);
}

static void at_the_end_of_the_clock_now_is_now_and_later_is_never(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[5] = {0};

	start(recorder, &probes[4], 5, INT64_MAX);
	advance_to(recorder, INT64_MAX);
	start(recorder, &probes[0], 1, 0);
	start(recorder, &probes[1], 2, -1);
	start(recorder, &probes[2], 3, 1);
	start(recorder, &probes[3], 4, INT64_MAX);
	advance(recorder, 0);
	assert_executed_at(recorder, 1, INT64_MAX);
	assert_executed_at(recorder, 2, INT64_MAX);
	assert_status(reset(&probes[4], INTERVAL), TW_OK);
	advance(recorder, TW_HOUR);
	assert_int_equal(event_count(recorder), 2);
	assert_status(reset(&probes[4], 0), TW_OK);
	advance(recorder, 0);
	assert_executed_at(recorder, 5, INT64_MAX);
	assert_int_equal(tw_pending(recorder->wheel), 2);
	recorder_close(recorder);
}

static void wheel_of_a_nanosecond_fires_at_the_last_ones_of_the_clock(void **state)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	struct probe probes[3] = {0};

	recorder_start(recorder, 1, 10, &options);
	start(recorder, &probes[0], 1, INT64_MAX - 2);
	start(recorder, &probes[1], 2, INT64_MAX - 1);
	start(recorder, &probes[2], 3, INT64_MAX / 3);
	advance_to(recorder, INT64_MAX / 3 - 1);
	assert_int_equal(event_count(recorder), 0);
	advance(recorder, 1);
	assert_executed_at(recorder, 3, INT64_MAX / 3);
	advance_to(recorder, INT64_MAX - 3);
	assert_int_equal(event_count(recorder), 1);
	advance(recorder, 1);
	assert_executed_at(recorder, 1, INT64_MAX - 2);
	advance(recorder, 1);
	assert_executed_at(recorder, 2, INT64_MAX - 1);
	recorder_close(recorder);
}

static void tokio_resets_move_the_deadline_and_only_the_last_counts(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[2] = {0};

	start(recorder, &probes[0], 1, 200 * INTERVAL);
	start(recorder, &probes[1], 2, 250 * INTERVAL);
	advance_to(recorder, 100 * INTERVAL);
	assert_status(reset(&probes[0], 200 * INTERVAL), TW_OK);
	assert_status(reset(&probes[1], 250 * INTERVAL), TW_OK);
	advance_to(recorder, 250 * INTERVAL);
	assert_int_equal(event_count(recorder), 0);
	assert_status(reset(&probes[0], 150 * INTERVAL), TW_OK);
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
	recorder_close(recorder);
}

static tw_duration poll(struct recorder *recorder)
{
	tw_duration until_next = -1;

	assert_status(tw_poll(recorder->wheel, &until_next), TW_OK);
	return until_next;
}

static void tokio_next_wake_is_that_of_the_nearer_timer(void **state)
{
	struct recorder *recorder = recorder_open(*state, 1024);
	struct probe probes[3] = {0};

	assert_int_equal(poll(recorder), TW_FOREVER);
	start(recorder, &probes[0], 1, 10000 * INTERVAL);
	start(recorder, &probes[1], 2, 600 * INTERVAL);
	assert_int_equal(poll(recorder), 600 * INTERVAL);
	assert_status(stop(&probes[1]), TW_OK);
	assert_in_range(poll(recorder), 600 * INTERVAL + 1, 10000 * INTERVAL);
	assert_status(reset(&probes[0], 600 * INTERVAL), TW_OK);
	assert_int_equal(poll(recorder), 600 * INTERVAL);
	start(recorder, &probes[2], 3, 10000 * INTERVAL);
	advance_to(recorder, 600 * INTERVAL);
	assert_executed_at(recorder, 1, 600 * INTERVAL);
	assert_status(stop(&probes[2]), TW_OK);
	assert_int_equal(poll(recorder), TW_FOREVER);
	recorder_close(recorder);
}

static void start_again_at_once(struct probe *probe)
{
	probe->answers[0] |= tw_after_func(probe->recorder->wheel, 0, run_probe, probe, NULL);
}

static void libuv_zero_delay_timer_that_rearms_itself_runs_once_a_turn(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {.in_run = start_again_at_once};
	int turns = 0;

	start(recorder, &probe, 1, 0);
	while (turns++ < 10) {
		assert_int_equal(poll(recorder), 0);
		assert_int_equal(event_count(recorder), turns);
	}
	while (turns++ < 20) {
		assert_status(tw_advance(recorder->wheel, 0), TW_OK);
		assert_int_equal(event_count(recorder), turns - 1);
	}
	assert_status(probe.answers[0], TW_OK);
	recorder_close(recorder);
}

static void reset_itself_to_now(struct probe *probe)
{
	probe->answers[0] |= reset(probe, 0);
}

static void timer_that_resets_itself_to_now_runs_once_a_turn(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {.in_run = reset_itself_to_now};

	start(recorder, &probe, 1, 0);
	for (int turns = 1; turns <= 10; turns++) {
		assert_int_equal(poll(recorder), 0);
		assert_int_equal(event_count(recorder), turns);
	}
	for (int turns = 11; turns <= 20; turns++) {
		assert_status(tw_advance(recorder->wheel, 0), TW_OK);
		assert_int_equal(event_count(recorder), turns);
	}
	assert_status(probe.answers[0], TW_OK);
	recorder_close(recorder);
}

/* Counts instead of writing down: it runs without end. */
static void run_again_at_once(void *argument)
{
	struct probe *probe = argument;

	atomic_fetch_add(&probe->ended, 1);
	tw_after_func(probe->recorder->wheel, 0, run_again_at_once, probe, NULL);
}

static void timer_that_rearms_itself_at_once_for_ever_lets_others_go_on(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe busy = {.recorder = recorder}, other = {0};

	assert_status(tw_after_func(recorder->wheel, 0, run_again_at_once, &busy, NULL), TW_OK);
	start(recorder, &other, 1, 5 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 4 * INTERVAL), TW_OK);
	assert_int_equal(event_count(recorder), 0);
	assert_status(tw_advance(recorder->wheel, 4 * INTERVAL), TW_OK);
	flush(recorder);
	settle(recorder);
	assert_int_equal(times_returned(recorder, 1), 1);
	assert_true(atomic_load(&busy.ended) > 0);
	stop_wheel(recorder);
	recorder_close(recorder);
}

static void start_again_in_a_tick(struct probe *probe)
{
	probe->answers[0] |=
		tw_after_func(probe->recorder->wheel, INTERVAL, run_probe, probe, NULL);
}

static void reset_itself_by_a_tick(struct probe *probe)
{
	probe->answers[0] |= reset(probe, INTERVAL);
}

static void timer_that_rearms_itself_runs_at_each_of_its_ticks_within_a_long_advance(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[2] = {{.in_run = start_again_in_a_tick},
				  {.in_run = reset_itself_by_a_tick}};

	start(recorder, &probes[0], 0, INTERVAL);
	start(recorder, &probes[1], 1, INTERVAL);
	advance(recorder, 100 * INTERVAL);
	assert_int_equal(event_count(recorder), 200);
	for (size_t i = 0; i < 200; i++) {
		assert_ptr_equal(event_at(recorder, i).value, VALUE(i % 2));
		assert_int_equal(event_at(recorder, i).now, (tw_duration)(i / 2 + 1) * INTERVAL);
	}
	assert_status(probes[0].answers[0], TW_OK);
	assert_status(probes[1].answers[0], TW_OK);
	recorder_close(recorder);
}

static void libuv_equal_deadlines_run_in_the_order_of_setting(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[6] = {0};

	start(recorder, &probes[0], 1, 5 * INTERVAL);
	start(recorder, &probes[1], 2, 5 * INTERVAL);
	start(recorder, &probes[2], 3, 3 * INTERVAL);
	advance(recorder, INTERVAL);
	start(recorder, &probes[3], 4, 4 * INTERVAL);
	start(recorder, &probes[4], 5, 2 * INTERVAL);
	advance(recorder, INTERVAL);
	start(recorder, &probes[5], 6, 3 * INTERVAL);
	advance(recorder, 10 * INTERVAL);
	assert_order(recorder, 3, 5, 1, 2, 4, 6);
	recorder_close(recorder);
}

static void folly_stop_second_and_fourth(struct probe *probe)
{
	probe->answers[0] = stop(&probe->others[1]);
	probe->answers[1] = stop(&probe->others[3]);
}

static void folly_stop_fifth_and_rearm(struct probe *probe)
{
	if (probe->runs > 1)
		return;
	probe->answers[0] = stop(&probe->others[4]);
	probe->answers[1] = reset(probe, 5 * INTERVAL);
}

static void folly_timers_that_stop_others_of_their_tick_and_rearm_themselves(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[5] = {{.in_run = folly_stop_second_and_fourth, .others = probes},
				  {0},
				  {.in_run = folly_stop_fifth_and_rearm, .others = probes}};

	for (uintptr_t i = 0; i < 5; i++)
		start(recorder, &probes[i], i + 1, 5 * INTERVAL);
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
		assert_status(stop(&probes[i]), TW_NOT_FOUND);
	recorder_close(recorder);
}

/* --- A timer that stops the wheel ------------------------------------------------------------ */

static void stop_its_wheel(struct probe *probe)
{
	probe->answers[0] = tw_stop(probe->recorder->wheel);
	probe->answers[1] = stop(&probe->others[2]);
	probe->answers[2] = reset(&probe->others[2], INTERVAL);
	probe->answers[3] = tw_after_func(probe->recorder->wheel, 0, run_probe, probe, NULL);
}

static void after_a_timer_that_stops_the_wheel_nothing_runs(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[5] = {{0}, {.in_run = stop_its_wheel, .others = probes}};

	start(recorder, &probes[0], 1, INTERVAL);
	start(recorder, &probes[1], 2, 2 * INTERVAL);
	start(recorder, &probes[2], 3, 2 * INTERVAL);
	start(recorder, &probes[3], 4, 3 * INTERVAL);
	start(recorder, &probes[4], 5, TW_HOUR);
	assert_status(tw_advance(recorder->wheel, 9 * INTERVAL), TW_CLOSED);
	settle(recorder);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_executed_at(recorder, 2, 2 * INTERVAL);
	assert_status(probes[1].answers[0], TW_OK);
	for (int i = 1; i < 4; i++)
		assert_status(probes[1].answers[i], TW_CLOSED);
	for (uintptr_t i = 3; i <= 5; i++)
		assert_released(recorder, i, TW_STOPPED);
	assert_int_equal(event_count(recorder), 5);
	recorder_close(recorder);
}

static void after_a_worker_has_stopped_the_wheel_nothing_runs(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[5] = {{0}, {.in_run = stop_its_wheel, .others = probes}};

	start(recorder, &probes[1], 2, 2 * INTERVAL);
	start(recorder, &probes[2], 3, 3 * INTERVAL);
	start(recorder, &probes[4], 5, TW_HOUR);
	(void)tw_advance(recorder->wheel, 2 * INTERVAL);
	settle(recorder);
	assert_status(tw_advance(recorder->wheel, 9 * INTERVAL), TW_CLOSED);
	assert_executed_at(recorder, 2, 2 * INTERVAL);
	assert_released(recorder, 3, TW_STOPPED);
	assert_released(recorder, 5, TW_STOPPED);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

/* --- Runs that are held up ------------------------------------------------------------------- */

static void hold(struct probe *probe)
{
	sem_post(&probe->begun);
	sem_wait(&probe->go_on);
	wait_for(20 * TW_MILLISECOND);
	atomic_store(&probe->ended, 1);
}

static void let_go(struct probe *probe)
{
	sem_post(&probe->go_on);
}

/* Starts one that runs now and stays running until it is let go. */
static void start_held(struct recorder *recorder, struct probe *probe, uintptr_t number)
{
	*probe = (struct probe){.in_run = hold};
	sem_init(&probe->begun, 0, 0);
	sem_init(&probe->go_on, 0, 0);
	start(recorder, probe, number, 0);
	assert_status(tw_advance(recorder->wheel, 0), TW_OK);
	sem_wait(&probe->begun);
}

/* Holds up both workers, so that what is due next stays in the pool. */
static void hold_workers(struct recorder *recorder, struct probe held[2])
{
	start_held(recorder, &held[0], 1001);
	start_held(recorder, &held[1], 1002);
}

static void let_workers_go(struct recorder *recorder, struct probe held[2])
{
	let_go(&held[0]);
	let_go(&held[1]);
	settle(recorder);
}

/* --- Stop ------------------------------------------------------------------------------------ */

static void stopped_timer_never_runs_and_is_not_released(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[4] = {0};

	for (uintptr_t i = 0; i < 4; i++)
		start(recorder, &probes[i], i, (i < 3 ? 5 : 500) * INTERVAL);
	assert_status(stop(&probes[0]), TW_OK);
	flush(recorder);
	assert_status(stop(&probes[1]), TW_OK);
	advance(recorder, 5 * INTERVAL - 1);
	assert_status(stop_wait(&probes[2]), TW_OK);
	assert_status(stop(&probes[3]), TW_OK);
	flush(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	pass_ticks(recorder, 5);
	for (int i = 0; i < 4; i++)
		assert_status(stop(&probes[i]), TW_NOT_FOUND);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void timer_that_is_due_now_can_still_be_stopped_in_the_queue(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[2] = {0};

	start(recorder, &probes[0], 1, 0);
	start(recorder, &probes[1], 2, -INTERVAL);
	assert_status(stop(&probes[1]), TW_OK);
	advance(recorder, 0);
	assert_executed_at(recorder, 1, 0);
	assert_status(stop(&probes[0]), TW_NOT_FOUND);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

static void stop_in_its_own_run(struct probe *probe)
{
	probe->answers[0] = stop_wait(probe);
	probe->answers[1] = stop(probe);
}

static void timer_that_stops_itself_is_told_that_it_runs(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {.in_run = stop_in_its_own_run};

	start(recorder, &probe, 1, INTERVAL);
	pass_ticks(recorder, 3);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_status(probe.answers[0], TW_INVALID);
	assert_status(probe.answers[1], TW_RUNNING);
	assert_status(stop(&probe), TW_NOT_FOUND);
	assert_status(stop_wait(&probe), TW_NOT_FOUND);
	recorder_close(recorder);
}

static void stop_during_the_run_answers_running_and_does_not_wait(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe;

	start_held(recorder, &probe, 1);
	assert_status(stop(&probe), TW_RUNNING);
	assert_int_equal(atomic_load(&probe.ended), 0);
	let_go(&probe);
	settle(recorder);
	assert_status(stop(&probe), TW_NOT_FOUND);
	assert_executed_at(recorder, 1, 0);
	recorder_close(recorder);
}

static void stop_wait_returns_after_the_run_has_ended(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe;

	start_held(recorder, &probe, 1);
	let_go(&probe);
	assert_status(stop_wait(&probe), TW_RUNNING);
	assert_int_equal(atomic_load(&probe.ended), 1);
	assert_status(stop_wait(&probe), TW_NOT_FOUND);
	recorder_close(recorder);
}

static void stop_wait_after_a_stop_that_did_not_wait_still_waits_for_the_run(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe;

	start_held(recorder, &probe, 1);
	assert_status(stop(&probe), TW_RUNNING);
	let_go(&probe);
	(void)stop_wait(&probe);
	assert_int_equal(atomic_load(&probe.ended), 1);
	recorder_close(recorder);
}

struct waiter {
	struct probe *probe;
	pthread_t thread;
	enum tw_status status;
	int ended; /* when it returned */
};

static void *wait_for_run(void *argument)
{
	struct waiter *waiter = argument;

	waiter->status = stop_wait(waiter->probe);
	waiter->ended = atomic_load(&waiter->probe->ended);
	return NULL;
}

static void several_threads_can_wait_for_one_run(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct waiter waiters[4];
	struct probe probe;
	int running = 0;

	start_held(recorder, &probe, 1);
	for (int i = 0; i < 4; i++) {
		waiters[i].probe = &probe;
		pthread_create(&waiters[i].thread, NULL, wait_for_run, &waiters[i]);
	}
	wait_for(5 * TW_MILLISECOND);
	let_go(&probe);
	for (int i = 0; i < 4; i++) {
		pthread_join(waiters[i].thread, NULL);
		assert_int_equal(waiters[i].ended, 1);
		assert_true(waiters[i].status == TW_RUNNING || waiters[i].status == TW_NOT_FOUND);
		running += waiters[i].status == TW_RUNNING;
	}
	assert_in_range(running, 1, 4);
	recorder_close(recorder);
}

static void stop_wait_for_the_first_other(struct probe *probe)
{
	probe->answers[0] = stop_wait(&probe->others[0]);
	probe->answers[1] = stop_wait(&probe->others[1]);
}

static void task_may_stop_and_wait_for_others(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe others[2] = {0};
	struct probe probe = {.in_run = stop_wait_for_the_first_other, .others = others};

	start(recorder, &others[0], 1, INTERVAL);
	start(recorder, &others[1], 2, 9 * INTERVAL);
	pass_ticks(recorder, 1);
	start(recorder, &probe, 3, INTERVAL);
	pass_ticks(recorder, 20);
	assert_status(probe.answers[0], TW_NOT_FOUND);
	assert_status(probe.answers[1], TW_OK);
	assert_order(recorder, 1, 3);
	recorder_close(recorder);
}

static void task_on_a_worker_waits_for_the_run_on_the_other(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe held[2];
	struct probe probe = {.in_run = stop_wait_for_the_first_other, .others = held};

	start_held(recorder, &held[0], 1);
	memset(&held[1], 0, sizeof(held[1]));
	held[1].recorder = recorder;
	start(recorder, &probe, 2, 0);
	assert_status(tw_advance(recorder->wheel, 0), TW_OK);
	let_go(&held[0]);
	settle(recorder);
	assert_true(probe.answers[0] == TW_RUNNING || probe.answers[0] == TW_NOT_FOUND);
	assert_status(probe.answers[1], TW_NOT_FOUND);
	assert_int_equal(event_count(recorder), 2);
	recorder_close(recorder);
}

static void job_of_the_pool_that_has_not_begun_can_be_stopped(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe held[2], probes[3] = {0};

	for (uintptr_t i = 0; i < 3; i++)
		start(recorder, &probes[i], i + 1, INTERVAL);
	hold_workers(recorder, held);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	assert_status(stop(&probes[0]), TW_OK);
	assert_status(stop_wait(&probes[2]), TW_OK);
	assert_status(stop(&probes[0]), TW_NOT_FOUND);
	let_workers_go(recorder, held);
	assert_executed_at(recorder, 2, INTERVAL);
	assert_status(stop(&probes[0]), TW_NOT_FOUND);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

static void run_nothing(void *argument)
{
	(void)argument;
}

static void stale_handle_touches_no_later_timer_after_a_million_reuses(void **state)
{
	enum { REUSES = TEST_SHARE_OF(1000000) };
	struct recorder *recorder = open_wheel(*state);
	struct tw_wheel *wheel = recorder->wheel;
	struct probe stale = {0};
	struct tw_timer timer;

	start(recorder, &stale, 1, INTERVAL);
	assert_status(stop(&stale), TW_OK);
	for (int i = 0; i < REUSES; i++) {
		if (tw_after_func(wheel, TW_HOUR, run_nothing, NULL, &timer) != TW_OK)
			fail_msg("timer %d was refused", i);
		if (i % 16 == 0)
			flush(recorder);
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
	recorder_close(recorder);
}

static int compare_ids(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void ids_are_never_none_and_never_the_same(void **state)
{
	enum { IDS = TEST_SHARE_OF(300000) };
	struct recorder *recorder = open_wheel(*state);
	uint64_t *ids = calloc(IDS, sizeof(ids[0]));
	struct tw_timer timer;

	for (int i = 0; i < IDS; i++) {
		assert_status(tw_after_func(recorder->wheel, INTERVAL, run_nothing, NULL, &timer),
			      TW_OK);
		ids[i] = timer.id;
		if (i % 3 == 0)
			assert_status(tw_timer_stop(recorder->wheel, timer), TW_OK);
		if (i % 1000 == 0)
			advance(recorder, INTERVAL);
	}
	qsort(ids, IDS, sizeof(ids[0]), compare_ids);
	assert_true(ids[0] != 0);
	for (int i = 1; i < IDS; i++)
		assert_true(ids[i - 1] != ids[i]);
	free(ids);
	recorder_close(recorder);
}

static void handles_that_never_were_are_not_found(void **state)
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
	struct recorder *recorder = open_wheel(*state);
	struct tw_wheel *wheel = recorder->wheel;
	struct probe probe = {0};

	for (int used = 0; used < 2; used++) {
		for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
			struct tw_timer timer = {ids[i]};

			assert_true(ids[i] != probe.timer.id || ids[i] == 0);
			assert_status(tw_timer_stop(wheel, timer), TW_NOT_FOUND);
			assert_status(tw_timer_stop_wait(wheel, timer), TW_NOT_FOUND);
			assert_status(tw_timer_reset(wheel, timer, INTERVAL), TW_NOT_FOUND);
		}
		if (!used)
			start(recorder, &probe, 1, INTERVAL);
	}
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 1, INTERVAL);
	recorder_close(recorder);
}

static void nobody_needs_to_want_the_handle(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[2] = {{.recorder = recorder, .number = 1},
				  {.recorder = recorder, .number = 2}};

	assert_status(tw_after_func(recorder->wheel, INTERVAL, run_probe, &probes[0], NULL), TW_OK);
	assert_status(tw_after_func(recorder->wheel, TW_HOUR, run_probe, &probes[1], NULL), TW_OK);
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 1, INTERVAL);
	stop_wheel(recorder);
	assert_released(recorder, 2, TW_STOPPED);
	recorder_close(recorder);
}

/* --- Reset ----------------------------------------------------------------------------------- */

static void reset_reaches_a_timer_in_the_queue_and_in_the_wheel(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[6] = {0};

	for (uintptr_t i = 0; i < 6; i++)
		start(recorder, &probes[i], i, 50 * INTERVAL);
	assert_status(reset(&probes[0], 3 * INTERVAL), TW_OK);
	assert_status(reset(&probes[1], 300 * INTERVAL + 1), TW_OK);
	pass_ticks(recorder, 2);
	assert_status(reset(&probes[2], 3 * INTERVAL), TW_OK);
	assert_status(reset(&probes[3], 400 * INTERVAL), TW_OK);
	assert_status(reset(&probes[4], 0), TW_OK);
	assert_status(reset(&probes[5], TW_FOREVER), TW_OK);
	advance(recorder, 0);
	assert_executed_at(recorder, 4, 2 * INTERVAL);
	pass_ticks(recorder, 410);
	assert_executed_at(recorder, 0, 3 * INTERVAL);
	assert_executed_at(recorder, 1, 301 * INTERVAL);
	assert_executed_at(recorder, 2, 5 * INTERVAL);
	assert_executed_at(recorder, 3, 402 * INTERVAL);
	assert_int_equal(event_count(recorder), 5);
	assert_status(reset(&probes[5], INTERVAL), TW_OK);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 5, 413 * INTERVAL);
	recorder_close(recorder);
}

static void reset_counts_from_the_call_and_rounds_up(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[3] = {0};

	for (uintptr_t i = 0; i < 3; i++)
		start(recorder, &probes[i], i, TW_HOUR);
	advance(recorder, 2 * INTERVAL + 7);
	assert_status(reset(&probes[0], INTERVAL), TW_OK);
	assert_status(reset(&probes[1], INTERVAL - 7), TW_OK);
	assert_status(reset(&probes[2], 1), TW_OK);
	advance(recorder, 0);
	assert_int_equal(event_count(recorder), 0);
	advance_to(recorder, 3 * INTERVAL);
	advance_to(recorder, 4 * INTERVAL);
	assert_executed_at(recorder, 0, 4 * INTERVAL);
	assert_executed_at(recorder, 1, 3 * INTERVAL);
	assert_executed_at(recorder, 2, 3 * INTERVAL);
	recorder_close(recorder);
}

static void timer_reset_many_times_runs_once_at_the_last_deadline(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {0};

	start(recorder, &probe, 1, 2 * INTERVAL);
	for (int i = 0; i < 300; i++) {
		assert_status(reset(&probe, (i % 40 + 2) * INTERVAL), TW_OK);
		if (i % 3 == 0)
			pass_ticks(recorder, 1);
	}
	assert_int_equal(event_count(recorder), 0);
	assert_status(reset(&probe, 7 * INTERVAL), TW_OK);
	pass_ticks(recorder, 500);
	assert_executed_at(recorder, 1, 107 * INTERVAL);
	recorder_close(recorder);
}

/* Stops the probe's timer; returns the processor time that this took. */
static void *stop_and_measure(void *argument)
{
	static struct timespec took;
	struct probe *probe = argument;

	probe->answers[0] = stop(probe);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &took);
	return &took;
}

static void stop_that_waits_for_a_reset_leaves_the_processor_to_it(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct handle_table *table = &recorder->wheel->owner.out.handles;
	const struct timespec *took;
	struct probe probe = {0};
	struct handle *handle;
	pthread_t thread;

	start(recorder, &probe, 1, INTERVAL);
	handle = handle_begin_reset(table, probe.timer.id);
	assert_non_null(handle);
	assert_int_equal(pthread_create(&thread, NULL, stop_and_measure, &probe), 0);
	wait_for(200 * TW_MILLISECOND);
	handle_end_reset(handle, NULL);
	pthread_join(thread, (void **)&took);
	assert_status(probe.answers[0], TW_OK);
	/* Its naps take a few ms; yields alone took all that there was. */
	assert_in_range(took->tv_sec * TW_SECOND + took->tv_nsec, 0, 60 * TW_MILLISECOND);
	pass_ticks(recorder, 3);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void reset_of_what_is_done_or_stopped_finds_nothing(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[2] = {0};

	start(recorder, &probes[0], 1, INTERVAL);
	start(recorder, &probes[1], 2, INTERVAL);
	assert_status(stop(&probes[1]), TW_OK);
	assert_status(reset(&probes[1], INTERVAL), TW_NOT_FOUND);
	pass_ticks(recorder, 1);
	assert_status(reset(&probes[0], INTERVAL), TW_NOT_FOUND);
	assert_status(reset(&probes[1], INTERVAL), TW_NOT_FOUND);
	pass_ticks(recorder, 5);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

static void job_of_the_pool_that_has_not_begun_can_be_reset(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe held[2], probes[4] = {0};

	for (uintptr_t i = 0; i < 4; i++)
		start(recorder, &probes[i], i, INTERVAL);
	hold_workers(recorder, held);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_status(reset(&probes[0], 9 * INTERVAL), TW_OK);
	assert_status(reset(&probes[1], 2 * INTERVAL), TW_OK);
	assert_status(reset(&probes[1], 5 * INTERVAL), TW_OK);
	assert_status(reset(&probes[2], 3 * INTERVAL), TW_OK);
	assert_status(stop(&probes[2]), TW_OK);
	flush(recorder);
	let_workers_go(recorder, held);
	assert_executed_at(recorder, 3, INTERVAL);
	assert_int_equal(event_count(recorder), 3);
	pass_ticks(recorder, 20);
	assert_executed_at(recorder, 0, 10 * INTERVAL);
	assert_executed_at(recorder, 1, 6 * INTERVAL);
	assert_not_returned(recorder, 2);
	recorder_close(recorder);
}

static void reset_of_a_job_that_is_overdue_by_the_time_it_comes_back_runs_late(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe held[2], probe = {0};

	start(recorder, &probe, 1, INTERVAL);
	hold_workers(recorder, held);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_status(reset(&probe, 2 * INTERVAL), TW_OK);
	assert_status(tw_advance(recorder->wheel, 7 * INTERVAL), TW_OK);
	let_workers_go(recorder, held);
	advance(recorder, 0);
	assert_executed_at(recorder, 1, 8 * INTERVAL);
	recorder_close(recorder);
}

static void reset_twice_in_the_first_run(struct probe *probe)
{
	if (probe->runs > 1)
		return;
	probe->answers[0] = reset(probe, 3 * INTERVAL);
	probe->answers[1] = reset(probe, 5 * INTERVAL);
}

static void timer_reset_in_its_own_run_runs_again(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {.in_run = reset_twice_in_the_first_run};

	start(recorder, &probe, 1, 2 * INTERVAL);
	pass_ticks(recorder, 20);
	assert_order(recorder, 1, 1);
	assert_int_equal(event_at(recorder, 0).now, 2 * INTERVAL);
	assert_int_equal(event_at(recorder, 1).now, 7 * INTERVAL);
	assert_status(probe.answers[0], TW_OK);
	assert_status(probe.answers[1], TW_OK);
	assert_status(reset(&probe, INTERVAL), TW_NOT_FOUND);
	recorder_close(recorder);
}

static void stop_and_reset_in_its_own_run(struct probe *probe)
{
	probe->answers[0] = reset(probe, 3 * INTERVAL);
	probe->answers[1] = stop(probe);
	probe->answers[2] = reset(probe, 3 * INTERVAL);
}

static void timer_that_has_stopped_itself_cannot_be_reset(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {.in_run = stop_and_reset_in_its_own_run};

	start(recorder, &probe, 1, 2 * INTERVAL);
	pass_ticks(recorder, 20);
	assert_executed_at(recorder, 1, 2 * INTERVAL);
	assert_status(probe.answers[0], TW_OK);
	assert_status(probe.answers[1], TW_REARMED);
	assert_status(probe.answers[2], TW_NOT_FOUND);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static void timer_reset_while_it_runs_runs_again_after_it(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe;

	start_held(recorder, &probe, 1);
	assert_status(reset(&probe, 5 * INTERVAL), TW_OK);
	let_go(&probe);
	settle(recorder);
	probe.in_run = NULL;
	assert_int_equal(event_count(recorder), 1);
	pass_ticks(recorder, 9);
	assert_order(recorder, 1, 1);
	assert_int_equal(event_at(recorder, 1).now, 5 * INTERVAL);
	assert_status(stop(&probe), TW_NOT_FOUND);
	recorder_close(recorder);
}

static void timer_reset_while_it_runs_can_be_stopped(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[2];

	start_held(recorder, &probes[0], 1);
	assert_status(reset(&probes[0], 2 * INTERVAL), TW_OK);
	assert_status(stop(&probes[0]), TW_REARMED);
	assert_status(stop(&probes[0]), TW_RUNNING);
	assert_status(reset(&probes[0], 2 * INTERVAL), TW_NOT_FOUND);
	start_held(recorder, &probes[1], 2);
	assert_status(reset(&probes[1], 2 * INTERVAL), TW_OK);
	let_go(&probes[0]);
	let_go(&probes[1]);
	settle(recorder);
	assert_status(stop(&probes[0]), TW_NOT_FOUND);
	assert_status(stop(&probes[1]), TW_OK);
	pass_ticks(recorder, 9);
	assert_int_equal(event_count(recorder), 2);
	recorder_close(recorder);
}

static void stop_wait_for_a_run_that_was_reset_answers_that_the_argument_is_free(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct waiter waiter;
	struct probe probe;

	start_held(recorder, &probe, 1);
	assert_status(reset(&probe, 2 * INTERVAL), TW_OK);
	waiter.probe = &probe;
	pthread_create(&waiter.thread, NULL, wait_for_run, &waiter);
	/* From its stop on there is nothing to reset. */
	WAIT_UNTIL(reset(&probe, 2 * INTERVAL) == TW_NOT_FOUND);
	let_go(&probe);
	pthread_join(waiter.thread, NULL);
	assert_status(waiter.status, TW_OK);
	assert_int_equal(waiter.ended, 1);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 1, 0);
	recorder_close(recorder);
}

static void timers_of_one_tick_run_in_the_order_of_their_last_command(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[5] = {0};

	start(recorder, &probes[0], 1, 5 * INTERVAL);
	start(recorder, &probes[1], 2, 9 * INTERVAL);
	start(recorder, &probes[2], 3, 5 * INTERVAL);
	flush(recorder);
	assert_status(reset(&probes[1], 5 * INTERVAL), TW_OK);
	flush(recorder);
	start(recorder, &probes[3], 4, 5 * INTERVAL);
	set_timer(recorder, "keyed", 6, 5 * INTERVAL);
	flush(recorder);
	assert_status(reset(&probes[0], 5 * INTERVAL), TW_OK);
	flush(recorder);
	start(recorder, &probes[4], 5, 5 * INTERVAL);
	move_timer(recorder, "keyed", 5 * INTERVAL);
	advance(recorder, 9 * INTERVAL);
	assert_order(recorder, 3, 2, 4, 1, 5, 6);
	recorder_close(recorder);
}

static void order_of_commands_and_resets_is_kept_in_the_queue_too(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[3] = {0};

	start(recorder, &probes[0], 1, 5 * INTERVAL);
	start(recorder, &probes[1], 2, 9 * INTERVAL);
	flush(recorder);
	start(recorder, &probes[2], 3, 5 * INTERVAL);
	assert_status(reset(&probes[1], 5 * INTERVAL), TW_OK);
	set_timer(recorder, "keyed", 4, 5 * INTERVAL);
	assert_status(reset(&probes[0], 5 * INTERVAL), TW_OK);
	advance(recorder, 9 * INTERVAL);
	assert_order(recorder, 3, 2, 4, 1);
	recorder_close(recorder);
}

/* --- With keyed timers: order, count, drain, stop, limits ------------------------------------ */

static void keyed_timers_and_handles_run_in_one_order(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[4] = {0};

	start(recorder, &probes[0], 1, 5 * INTERVAL);
	set_timer(recorder, "a", 2, 5 * INTERVAL);
	start(recorder, &probes[1], 3, 5 * INTERVAL);
	set_timer(recorder, "b", 4, 4 * INTERVAL);
	set_timer(recorder, "c", 5, 5 * INTERVAL);
	start(recorder, &probes[2], 6, 4 * INTERVAL);
	start(recorder, &probes[3], 7, 123 * INTERVAL);
	set_timer(recorder, "d", 8, 123 * INTERVAL);
	advance(recorder, 200 * INTERVAL);
	assert_order(recorder, 4, 6, 1, 2, 3, 5, 7, 8);
	recorder_close(recorder);
}

static void pending_counts_handles(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[4] = {0};

	for (uintptr_t i = 0; i < 4; i++)
		start(recorder, &probes[i], i, 5 * INTERVAL);
	set_timer(recorder, "keyed", 9, 5 * INTERVAL);
	flush(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 5);
	assert_status(stop(&probes[0]), TW_OK);
	assert_status(stop(&probes[0]), TW_NOT_FOUND);
	flush(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 4);
	assert_status(reset(&probes[1], 9 * INTERVAL), TW_OK);
	flush(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 4);
	pass_ticks(recorder, 5);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	pass_ticks(recorder, 4);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static void drain_gives_handles_with_their_argument_and_no_key(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[5] = {0};

	for (uintptr_t i = 0; i < 4; i++)
		start(recorder, &probes[i], i, (i < 2 ? 5 : 5000) * INTERVAL);
	set_timer(recorder, "keyed", 9, 5 * INTERVAL);
	assert_status(stop(&probes[0]), TW_OK);
	assert_status(tw_drain(recorder->wheel, drain_probe, recorder), TW_OK);
	start(recorder, &probes[4], 4, 5 * INTERVAL);
	settle(recorder);
	for (uintptr_t i = 1; i < 4; i++) {
		assert_drained(recorder, i);
		assert_returned_without_key(recorder, i);
		assert_status(stop(&probes[i]), TW_NOT_FOUND);
		assert_status(reset(&probes[i], INTERVAL), TW_NOT_FOUND);
	}
	assert_drained(recorder, 9);
	assert_int_equal(event_of(recorder, 1).deadline, 5 * INTERVAL);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 4, 5 * INTERVAL);
	assert_not_returned(recorder, 0);
	recorder_close(recorder);
}

/* What release and drain functions were told, one call at a time. */
static struct tw_task told[8];
static atomic_size_t told_count;

static void note_told(struct recorder *recorder, const struct tw_task *task)
{
	(void)recorder;
	told[atomic_fetch_add(&told_count, 1) % 8] = *task;
}

static void assert_told_of(const struct probe *probe)
{
	size_t found = 0;

	for (size_t i = 0; i < atomic_load(&told_count); i++)
		found += told[i].timer.id == probe->timer.id && told[i].run == run_probe;
	assert_int_equal(found, 1);
}

static void release_and_drain_functions_are_told_which_handle_it_is_and_its_run(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[4] = {{0}};
	struct tw_wheel *wheel = recorder->wheel;

	atomic_store(&told_count, 0);
	recorder->on_drain = recorder->on_release = note_told;
	for (uintptr_t i = 0; i < 4; i++) {
		if (i % 2 == 0)
			start(recorder, &probes[i], i, 9 * INTERVAL);
		else
			assert_status(tw_every(wheel, INTERVAL, INTERVAL, TW_MISSED_SKIP, run_probe,
					       &probes[i], &probes[i].timer),
				      TW_OK);
		set_timer(recorder, i % 2 == 0 ? "even" : "odd", 100 + i, 9 * INTERVAL);
		if (i == 1)
			assert_status(tw_drain(wheel, drain_probe, recorder), TW_OK);
	}
	stop_wheel(recorder);
	assert_int_equal(atomic_load(&told_count), 8);
	for (int i = 0; i < 4; i++)
		assert_told_of(&probes[i]);
	for (int i = 0; i < 8; i++)
		assert_true((told[i].key_size > 0) == (told[i].timer.id == 0) &&
			    (told[i].key_size > 0) == (told[i].run == NULL));
	recorder_close(recorder);
}

static void handle_stopped_or_reset_behind_a_drain_comes_back_once_or_not_at_all(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	enum tw_status statuses[100], resets[100];
	static struct probe probes[200];

	memset(probes, 0, sizeof(probes));
	for (uintptr_t i = 0; i < 200; i++)
		start(recorder, &probes[i], i, INTERVAL);
	flush(recorder);
	assert_status(tw_drain(recorder->wheel, drain_probe, recorder), TW_OK);
	for (int i = 0; i < 100; i++)
		statuses[i] = stop(&probes[i]);
	for (int i = 0; i < 100; i++)
		resets[i] = reset(&probes[100 + i], 3 * INTERVAL);
	settle(recorder);
	pass_ticks(recorder, 9);
	for (uintptr_t i = 0; i < 100; i++) {
		assert_true(statuses[i] == TW_OK || statuses[i] == TW_NOT_FOUND);
		assert_int_equal(times_returned(recorder, i), statuses[i] == TW_OK ? 0 : 1);
	}
	for (uintptr_t i = 100; i < 200; i++) {
		assert_true(resets[i - 100] == TW_OK || resets[i - 100] == TW_NOT_FOUND);
		assert_drained(recorder, i);
	}
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static void wheel_stop_releases_pending_arguments_with_no_key(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[6] = {0};

	for (uintptr_t i = 0; i < 6; i++)
		start(recorder, &probes[i], i, (i == 0 ? 1 : 500) * INTERVAL);
	advance(recorder, INTERVAL);
	assert_status(stop(&probes[1]), TW_OK);
	assert_status(reset(&probes[2], TW_FOREVER), TW_OK);
	flush(recorder);
	assert_status(stop(&probes[3]), TW_OK);
	assert_status(reset(&probes[4], INTERVAL), TW_OK);
	stop_wheel(recorder);
	assert_executed_at(recorder, 0, INTERVAL);
	assert_not_returned(recorder, 1);
	assert_released(recorder, 2, TW_STOPPED);
	assert_not_returned(recorder, 3);
	assert_released(recorder, 4, TW_STOPPED);
	assert_released(recorder, 5, TW_STOPPED);
	for (uintptr_t i = 4; i < 6; i++)
		assert_returned_without_key(recorder, i);
	assert_int_equal(event_of(recorder, 5).deadline, 500 * INTERVAL);
	assert_int_equal(event_count(recorder), 4);
	recorder_close(recorder);
}

static void wheel_stop_releases_arguments_that_are_still_in_the_queue(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probes[4] = {0};

	start(recorder, &probes[0], 0, INTERVAL);
	start(recorder, &probes[1], 1, TW_FOREVER);
	start(recorder, &probes[2], 2, INTERVAL);
	start(recorder, &probes[3], 3, INTERVAL);
	assert_status(stop(&probes[2]), TW_OK);
	assert_status(reset(&probes[3], 2 * INTERVAL), TW_OK);
	stop_wheel(recorder);
	assert_released(recorder, 0, TW_STOPPED);
	assert_released(recorder, 1, TW_STOPPED);
	assert_released(recorder, 3, TW_STOPPED);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

static void jobs_of_the_pool_that_have_not_begun_are_released_by_wheel_stop(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe held[2], probes[4] = {0};

	for (uintptr_t i = 0; i < 4; i++)
		start(recorder, &probes[i], i, INTERVAL);
	hold_workers(recorder, held);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_status(stop(&probes[0]), TW_OK);
	assert_status(reset(&probes[1], 5 * INTERVAL), TW_OK);
	assert_status(reset(&held[0], 5 * INTERVAL), TW_OK);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	let_workers_go(recorder, held);
	assert_not_returned(recorder, 0);
	for (uintptr_t i = 1; i < 4; i++) {
		assert_released(recorder, i, TW_STOPPED);
		assert_returned_without_key(recorder, i);
	}
	/* One ran and was to run again: its argument comes back too. */
	assert_int_equal(times_returned(recorder, 1001), 2);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 4);
	assert_int_equal(event_count(recorder), 6);
	recorder_close(recorder);
}

static void destroy_releases_handles_and_waits_for_running_ones(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe held, probe = {0};

	start_held(recorder, &held, 1);
	start(recorder, &probe, 2, INTERVAL);
	assert_status(reset(&held, INTERVAL), TW_OK);
	let_go(&held);
	tw_destroy(recorder->wheel);
	recorder->wheel = NULL;
	assert_int_equal(atomic_load(&held.ended), 1);
	assert_released(recorder, 2, TW_STOPPED);
	assert_int_equal(times_returned(recorder, 1), 2);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 2);
	recorder_close(recorder);
}

static void without_release_a_wheel_drops_its_handles_silently(void **state)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	struct probe probes[3] = {0};

	options.release = NULL;
	recorder_start(recorder, INTERVAL, 10, &options);
	for (uintptr_t i = 0; i < 3; i++)
		start(recorder, &probes[i], i, INTERVAL * (tw_duration)(i + 1));
	pass_ticks(recorder, 1);
	stop_wheel(recorder);
	assert_executed_at(recorder, 0, INTERVAL);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

static tw_duration next_never(void *argument, tw_duration previous)
{
	(void)argument;
	return previous + TW_HOUR;
}

static void assert_handle_calls_closed(struct recorder *recorder, struct probe *probe)
{
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_timer timer = {77};

	assert_status(stop(probe), TW_CLOSED);
	assert_status(stop_wait(probe), TW_CLOSED);
	assert_status(reset(probe, INTERVAL), TW_CLOSED);
	assert_status(tw_after_func(wheel, INTERVAL, run_probe, probe, &timer), TW_CLOSED);
	assert_int_equal(timer.id, 0);
	timer.id = 77;
	assert_status(
		tw_every(wheel, INTERVAL, INTERVAL, TW_MISSED_BURST, run_probe, probe, &timer),
		TW_CLOSED);
	assert_int_equal(timer.id, 0);
	timer.id = 77;
	assert_status(tw_schedule_func(wheel, next_never, run_probe, probe, &timer), TW_CLOSED);
	assert_int_equal(timer.id, 0);
	assert_status(tw_after_func(wheel, INTERVAL, run_probe, probe, NULL), TW_CLOSED);
}

static void stopped_wheel_answers_closed_to_handle_calls(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe probe = {0};

	start(recorder, &probe, 1, INTERVAL);
	stop_wheel(recorder);
	assert_handle_calls_closed(recorder, &probe);
	settle(recorder);
	assert_released(recorder, 1, TW_STOPPED);
	recorder_close(recorder);
}

static int child_calls_answer_closed(struct recorder *recorder, struct probe *probe)
{
	struct tw_wheel *wheel = recorder->wheel;

	if (stop(probe) != TW_CLOSED || stop_wait(probe) != TW_CLOSED)
		return 1;
	if (reset(probe, INTERVAL) != TW_CLOSED)
		return 2;
	if (tw_after_func(wheel, 0, run_probe, probe, NULL) != TW_CLOSED)
		return 3;
	if (tw_every(wheel, 0, INTERVAL, TW_MISSED_BURST, run_probe, probe, NULL) != TW_CLOSED)
		return 4;
	if (tw_schedule_func(wheel, next_never, run_probe, probe, NULL) != TW_CLOSED)
		return 5;
	return event_count(recorder) == 0 ? 0 : 6;
}

static void in_a_forks_child_handle_calls_answer_closed(void **state)
{
	struct probe probe = {0};
	struct recorder *recorder;
	int exit_status;
	pid_t child;

	if (SANITIZER_THREAD)
		skip();
	recorder = open_wheel(*state);
	start(recorder, &probe, 1, INTERVAL);
	flush(recorder);
	child = fork();
	assert_int_not_equal(child, -1);
	if (child == 0) {
		alarm(10);
		_exit(child_calls_answer_closed(recorder, &probe));
	}
	assert_int_equal(waitpid(child, &exit_status, 0), child);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 0);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	recorder_close(recorder);
}

static void periods_as_long_as_the_clock_do_not_overflow(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct probe often = {.recorder = recorder, .number = 1};
	struct probe once = {.recorder = recorder, .number = 2};

	pass_ticks(recorder, 10);
	assert_status(tw_every(recorder->wheel, INT64_MIN, INTERVAL, TW_MISSED_SKIP, run_probe,
			       &often, NULL),
		      TW_OK);
	assert_status(tw_every(recorder->wheel, -(INT64_MAX / 2) - 10, INT64_MAX / 2 + 1,
			       TW_MISSED_SKIP, run_probe, &once, NULL),
		      TW_OK);
	pass_ticks(recorder, 5);
	assert_in_range(often.runs, 5, 6);
	assert_int_equal(once.runs, 1);
	recorder_close(recorder);
}

static void handle_calls_with_bad_arguments_are_refused(void **state)
{
	struct recorder *recorder = open_wheel(*state);
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_timer timer = {77};
	struct probe probe = {0};

	assert_status(tw_after_func(NULL, INTERVAL, run_probe, &probe, &timer), TW_INVALID);
	assert_int_equal(timer.id, 0);
	timer.id = 77;
	assert_status(tw_after_func(wheel, INTERVAL, NULL, &probe, &timer), TW_INVALID);
	assert_int_equal(timer.id, 0);
	assert_status(tw_after_func(wheel, INTERVAL, NULL, &probe, NULL), TW_INVALID);
	start(recorder, &probe, 1, INTERVAL);
	assert_status(tw_timer_stop(NULL, probe.timer), TW_INVALID);
	assert_status(tw_timer_stop_wait(NULL, probe.timer), TW_INVALID);
	assert_status(tw_timer_reset(NULL, probe.timer, INTERVAL), TW_INVALID);
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

static void full_queue_refuses_handles_and_resets_but_no_stop(void **state)
{
	struct recorder *recorder = open_with(
		*state, (struct tw_options){.queue_capacity = 8, .when_full = TW_WHEN_FULL_FAIL});
	struct probe probes[9] = {0};
	struct tw_timer timer = {77};

	for (uintptr_t i = 0; i < 8; i++)
		start(recorder, &probes[i], i, 3 * INTERVAL);
	assert_status(tw_after_func(recorder->wheel, 0, run_probe, &probes[8], &timer), TW_FULL);
	assert_int_equal(timer.id, 0);
	assert_status(stop(&probes[3]), TW_OK);
	assert_status(reset(&probes[4], INTERVAL), TW_FULL);
	assert_status(reset(&probes[3], INTERVAL), TW_NOT_FOUND);
	advance(recorder, 0);
	assert_status(reset(&probes[5], 2 * INTERVAL), TW_OK);
	start(recorder, &probes[8], 8, 3 * INTERVAL);
	pass_ticks(recorder, 9);
	for (uintptr_t i = 0; i < 9; i++)
		if (i != 3)
			assert_executed_at(recorder, i, (i == 5 ? 2 : 3) * INTERVAL);
	assert_not_returned(recorder, 3);
	recorder_close(recorder);
}

static void nobody_hangs_on_a_queue_full_of_handles(void **state)
{
	struct recorder *recorder = open_with(*state, (struct tw_options){.queue_capacity = 4});
	static struct probe probes[1000];

	memset(probes, 0, sizeof(probes));
	for (uintptr_t i = 0; i < 1000; i++) {
		start(recorder, &probes[i], i, (i % 3 + 1) * INTERVAL);
		if (i % 4 == 1)
			assert_status(stop(&probes[i]), TW_OK);
		if (i % 4 == 2)
			assert_status(reset(&probes[i], 9 * INTERVAL), TW_OK);
	}
	pass_ticks(recorder, 9);
	for (uintptr_t i = 0; i < 1000; i++) {
		if (i % 4 == 1)
			assert_not_returned(recorder, i);
		else
			assert_executed_at(recorder, i, (i % 4 == 2 ? 9 : i % 3 + 1) * INTERVAL);
	}
	recorder_close(recorder);
}

static void places_within_the_limit_come_back_when_handles_leave(void **state)
{
	struct recorder *recorder = open_with(
		*state, (struct tw_options){.max_pending = 3, .when_full = TW_WHEN_FULL_FAIL});
	struct tw_wheel *wheel = recorder->wheel;
	struct probe probes[20] = {0};
	uintptr_t next = 0;

	for (int round = 0; round < 5; round++) {
		start(recorder, &probes[next], next, INTERVAL), next++;
		start(recorder, &probes[next], next, INTERVAL), next++;
		set_timer(recorder, "keyed", 100 + next, INTERVAL);
		assert_status(tw_after_func(wheel, 0, run_probe, &probes[19], NULL), TW_FULL);
		assert_status(tw_set_timer(wheel, "other", 5, VALUE(200), INTERVAL), TW_FULL);
		assert_status(stop(&probes[next - 1]), TW_OK);
		if (round % 2 == 0)
			flush(recorder);
		assert_status(reset(&probes[next - 2], INTERVAL), TW_OK);
		if (round == 3)
			assert_status(tw_drain(wheel, drain_probe, recorder), TW_OK);
		pass_ticks(recorder, 1);
	}
	assert_int_equal(event_count(recorder), 10);
	assert_int_equal(tw_pending(wheel), 0);
	recorder_close(recorder);
}

static void timer_stopped_in_the_queue_gives_its_place_back(void **state)
{
	struct recorder *recorder = open_with(
		*state, (struct tw_options){.max_pending = 2, .when_full = TW_WHEN_FULL_FAIL});
	struct probe probes[20] = {0};

	for (uintptr_t i = 0; i < 20; i += 2) {
		start(recorder, &probes[i], i, INTERVAL);
		start(recorder, &probes[i + 1], i + 1, INTERVAL);
		assert_status(stop(&probes[i]), TW_OK);
		assert_status(stop(&probes[i + 1]), TW_OK);
		flush(recorder);
	}
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void stop_another_and_set_two(struct probe *probe)
{
	struct tw_wheel *wheel = probe->recorder->wheel;

	probe->answers[0] = tw_set_timer(wheel, "a", 1, VALUE(10), INTERVAL);
	probe->answers[1] = stop(probe->others);
	probe->answers[2] = tw_set_timer(wheel, "b", 1, VALUE(11), INTERVAL);
	probe->answers[3] = tw_set_timer(wheel, "c", 1, VALUE(12), INTERVAL);
}

static void task_may_set_a_timer_in_place_of_one_that_it_has_stopped(void **state)
{
	struct recorder *recorder = open_with(
		*state, (struct tw_options){.max_pending = 2, .when_full = TW_WHEN_FULL_FAIL});
	struct probe other = {0}, probe = {.in_run = stop_another_and_set_two, .others = &other};

	start(recorder, &probe, 1, INTERVAL);
	start(recorder, &other, 2, 9 * INTERVAL);
	pass_ticks(recorder, 3);
	assert_status(probe.answers[0], TW_OK);
	assert_status(probe.answers[1], TW_OK);
	assert_status(probe.answers[2], TW_OK);
	assert_status(probe.answers[3], TW_FULL);
	assert_executed_at(recorder, 10, 2 * INTERVAL);
	assert_executed_at(recorder, 11, 2 * INTERVAL);
	recorder_close(recorder);
}

/* --- Memory ---------------------------------------------------------------------------------- */

/* Bytes of resident memory. */
static long resident_memory(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, resident;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident * sysconf(_SC_PAGESIZE);
}

enum { MILLION = 1000000, MIB = 1 << 20 };

static void set_and_stop_a_million(struct tw_wheel *wheel)
{
	struct tw_timer timer;

	for (int i = 0; i < MILLION; i++)
		if (tw_after_func(wheel, TW_HOUR, run_nothing, NULL, &timer) != TW_OK ||
		    tw_timer_stop(wheel, timer) != TW_OK)
			fail_msg("timer %d could not be set and stopped", i);
	assert_status(tw_flush(wheel), TW_OK);
	assert_int_equal(tw_pending(wheel), 0);
}

static void million_timers_stopped_one_by_one_leave_no_memory_behind(void **state)
{
	struct recorder *recorder;
	long before;

	if (TEST_HAS_SANITIZER)
		skip();
	recorder = open_wheel(*state);
	before = resident_memory();
	set_and_stop_a_million(recorder->wheel);
	assert_in_range(resident_memory(), 1, before + 16 * MIB);
	before = resident_memory();
	for (int round = 0; round < 3; round++)
		set_and_stop_a_million(recorder->wheel);
	assert_in_range(resident_memory(), 1, before + 4 * MIB);
	recorder_close(recorder);
}

static void set_a_million_and_stop_them(struct tw_wheel *wheel, struct tw_timer *timers)
{
	for (int i = 0; i < MILLION; i++)
		if (tw_after_func(wheel, TW_HOUR + i, run_nothing, NULL, &timers[i]) != TW_OK)
			fail_msg("timer %d could not be set", i);
	for (int i = 0; i < MILLION; i++)
		if (tw_timer_stop(wheel, timers[i]) != TW_OK)
			fail_msg("timer %d could not be stopped", i);
	assert_status(tw_flush(wheel), TW_OK);
	assert_int_equal(tw_pending(wheel), 0);
}

static void million_timers_stopped_together_leave_their_memory_to_the_next_million(void **state)
{
	struct recorder *recorder;
	struct tw_timer *timers;
	long before;

	if (TEST_HAS_SANITIZER)
		skip();
	recorder = open_wheel(*state);
	timers = calloc(MILLION, sizeof(timers[0]));
	set_a_million_and_stop_them(recorder->wheel, timers);
	before = resident_memory();
	for (int round = 0; round < 3; round++)
		set_a_million_and_stop_them(recorder->wheel, timers);
	assert_in_range(resident_memory(), 1, before + 4 * MIB);
	free(timers);
	recorder_close(recorder);
}

static void run_a_million(struct recorder *recorder)
{
	for (int i = 0; i < MILLION; i++) {
		if (tw_after_func(recorder->wheel, i % 3 * INTERVAL, run_nothing, NULL, NULL) !=
		    TW_OK)
			fail_msg("timer %d could not be set", i);
		if (i % 1000 == 999)
			pass_ticks(recorder, 1);
	}
	pass_ticks(recorder, 2);
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

static void million_timers_that_have_run_leave_no_memory_behind(void **state)
{
	struct recorder *recorder;
	long before;

	if (TEST_HAS_SANITIZER)
		skip();
	recorder = open_wheel(*state);
	run_a_million(recorder);
	before = resident_memory();
	run_a_million(recorder);
	run_a_million(recorder);
	assert_in_range(resident_memory(), 1, before + 4 * MIB);
	recorder_close(recorder);
}

/* --- A model --------------------------------------------------------------------------------- */

enum { MODEL_TIMERS = 60, MODEL_STEPS = TEST_SHARE_OF(30000) };

/* What a timer must do, reckoned by hand. */
struct expectation {
	bool armed;
	bool at_once; /* when the wheel is next driven */
	tw_duration deadline;
	tw_duration period; /* 0: once */
	uint64_t order;     /* of its last command */
};

struct forecast {
	struct recorder *recorder;
	struct random random;
	struct probe probes[MODEL_TIMERS];
	struct expectation timers[MODEL_TIMERS];
	uint64_t orders;
	tw_duration now;
	size_t events; /* of the recorder, checked so far */
};

static tw_duration tick_at_or_after(tw_duration time)
{
	return (time + INTERVAL - 1) / INTERVAL * INTERVAL;
}

static tw_duration expected_time(const struct forecast *forecast, const struct expectation *timer)
{
	return timer->at_once ? forecast->now : tick_at_or_after(timer->deadline);
}

/* The armed timer that must run next, or NULL. */
static struct expectation *forecast_next(struct forecast *forecast)
{
	struct expectation *next = NULL;

	for (int i = 0; i < MODEL_TIMERS; i++) {
		struct expectation *timer = &forecast->timers[i];
		tw_duration earlier;

		if (!timer->armed)
			continue;
		earlier = next == NULL
				  ? 1
				  : expected_time(forecast, next) - expected_time(forecast, timer);
		if (earlier > 0 || (earlier == 0 && timer->order < next->order))
			next = timer;
	}
	return next;
}

static void forecast_run(struct forecast *forecast, struct expectation *timer)
{
	struct event event = event_at(forecast->recorder, forecast->events++);

	assert_int_equal((uintptr_t)event.value, timer - forecast->timers);
	assert_int_equal(event.now, expected_time(forecast, timer));
	assert_int_equal(event.kind, EVENT_EXECUTE);
	timer->armed = timer->period > 0;
	timer->at_once = false;
	timer->deadline += timer->period;
	timer->order = forecast->orders++;
}

static void forecast_advance(struct forecast *forecast, tw_duration by)
{
	tw_duration until = forecast->now + by;
	struct expectation *next;

	advance(forecast->recorder, by);
	while ((next = forecast_next(forecast)) && expected_time(forecast, next) <= until)
		forecast_run(forecast, next);
	assert_int_equal(event_count(forecast->recorder), forecast->events);
	forecast->now = until;
}

/* Periods of two intervals or more: none is ever missed. */
static void forecast_set(struct forecast *forecast, int i, tw_duration delay)
{
	struct expectation *timer = &forecast->timers[i];
	struct probe *probe = &forecast->probes[i];
	tw_duration period = 0;

	if (random_once_in(&forecast->random, 3))
		period = random_between(&forecast->random, 2 * INTERVAL, 40 * INTERVAL);
	if (period > 0)
		assert_status(tw_every(forecast->recorder->wheel, delay, period,
				       random_below(&forecast->random, 3), run_probe, probe,
				       &probe->timer),
			      TW_OK);
	else
		assert_status(tw_after_func(forecast->recorder->wheel, delay, run_probe, probe,
					    &probe->timer),
			      TW_OK);
	*timer = (struct expectation){.armed = true, .period = period};
}

static void forecast_command(struct forecast *forecast, int i)
{
	struct expectation *timer = &forecast->timers[i];
	struct probe *probe = &forecast->probes[i];
	enum tw_status expected = timer->armed ? TW_OK : TW_NOT_FOUND;
	tw_duration delay = random_between(&forecast->random, -INTERVAL, 99 * INTERVAL);

	if (random_once_in(&forecast->random, 4))
		delay = random_between(&forecast->random, 0, 5) * INTERVAL;
	if (random_once_in(&forecast->random, 3)) {
		assert_status(stop(probe), expected);
		timer->armed = false;
		return;
	}
	if (timer->armed || random_once_in(&forecast->random, 4))
		assert_status(reset(probe, delay), expected);
	else
		forecast_set(forecast, i, delay);
	timer->deadline = forecast->now + delay;
	timer->at_once = delay <= 0;
	timer->order = forecast->orders++;
}

static uint64_t seed;

static void random_commands_do_what_a_model_foretells(void **state)
{
	static struct forecast forecast;

	memset(&forecast, 0, sizeof(forecast));
	forecast.recorder = open_wheel(*state);
	forecast.random = random_from(seed, 1);
	for (uintptr_t i = 0; i < MODEL_TIMERS; i++)
		forecast.probes[i] = (struct probe){.recorder = forecast.recorder, .number = i};
	for (int step = 0; step < MODEL_STEPS; step++) {
		int i = (int)random_below(&forecast.random, MODEL_TIMERS);

		forecast_command(&forecast, i);
		forecast_advance(&forecast, 0);
		if (random_once_in(&forecast.random, 3))
			forecast_advance(&forecast,
					 random_between(&forecast.random, 0, 3 * INTERVAL));
		else if (random_once_in(&forecast.random, 50))
			forecast_advance(&forecast,
					 random_between(&forecast.random, 0, 300 * INTERVAL));
	}
	recorder_close(forecast.recorder);
}

/* --- Commands in tasks, at random ------------------------------------------------------------ */

enum { BUSY_TIMERS = 50, BUSY_ADVANCES = TEST_SHARE_OF(10000) };

/* Tasks command the timers, their own among them, and each run looks whether it was to be. */
struct bustle {
	struct tw_wheel *wheel;
	struct random random;
	struct busy {
		struct bustle *bustle;
		struct tw_timer timer;
		tw_duration run_at; /* INT64_MAX: never */
		bool may_be_later;  /* set in a task for now: it waits for the next turn */
		bool is_running;
	} timers[BUSY_TIMERS];
	int runs, wrong;
};

static void run_busy(void *argument);

static void bustle_expect(struct busy *busy, tw_duration delay)
{
	tw_duration now = tw_now(busy->bustle->wheel);

	busy->run_at = delay <= 0 ? now : tick_at_or_after(now + delay);
	busy->may_be_later = delay <= 0;
}

static void bustle_set(struct bustle *bustle, struct busy *busy, tw_duration delay)
{
	if (tw_after_func(bustle->wheel, delay, run_busy, busy, &busy->timer) != TW_OK)
		bustle->wrong++;
	bustle_expect(busy, delay);
}

/* Of one that is done or stopped: nothing is found, and it is set anew. */
static void bustle_command(struct bustle *bustle, struct busy *busy)
{
	bool is_armed = busy->run_at != INT64_MAX;
	enum tw_status expected = is_armed || busy->is_running ? TW_OK : TW_NOT_FOUND;
	tw_duration delay = random_between(&bustle->random, -1, 20) * INTERVAL / 2;

	if (random_once_in(&bustle->random, 3)) {
		if (busy->is_running)
			expected = is_armed ? TW_REARMED : TW_RUNNING;
		bustle->wrong += tw_timer_stop(bustle->wheel, busy->timer) != expected;
		busy->run_at = INT64_MAX;
		if (busy->is_running)
			return;
		bustle_set(bustle, busy, delay);
	} else if (tw_timer_reset(bustle->wheel, busy->timer, delay) != expected) {
		bustle->wrong++;
	} else if (expected == TW_OK) {
		bustle_expect(busy, delay);
	} else {
		bustle_set(bustle, busy, delay);
	}
}

static void run_busy(void *argument)
{
	struct busy *busy = argument;
	struct bustle *bustle = busy->bustle;
	tw_duration now = tw_now(bustle->wheel);
	bool stopped_itself = false;

	if (now != busy->run_at && !(busy->may_be_later && now > busy->run_at))
		bustle->wrong++;
	bustle->runs++;
	busy->run_at = INT64_MAX;
	busy->is_running = true;
	for (uint64_t commands = random_below(&bustle->random, 5); commands > 0; commands--) {
		struct busy *other = &bustle->timers[random_below(&bustle->random, BUSY_TIMERS)];

		if (other != busy || !stopped_itself)
			bustle_command(bustle, other);
		stopped_itself |= other == busy && busy->run_at == INT64_MAX;
	}
	busy->is_running = false;
}

static void random_commands_in_tasks_take_effect_at_once(void **state)
{
	const struct variant *variant = *state;
	struct tw_options options = {.layout = variant->layout,
				     .clock = TW_CLOCK_MANUAL,
				     .drive = variant->drive,
				     .workers = variant->workers};
	static struct bustle bustle;

	memset(&bustle, 0, sizeof(bustle));
	bustle.random = random_from(seed, 2);
	assert_status(tw_create(&bustle.wheel, INTERVAL, 10, record_execute, &options), TW_OK);
	for (int i = 0; i < BUSY_TIMERS; i++)
		bustle.timers[i] = (struct busy){.bustle = &bustle, .run_at = INT64_MAX};
	for (int i = 0; i < BUSY_ADVANCES; i++) {
		struct busy *busy = &bustle.timers[random_below(&bustle.random, BUSY_TIMERS)];

		bustle_command(&bustle, busy);
		assert_status(
			tw_advance(bustle.wheel, random_between(&bustle.random, 0, 3) * INTERVAL),
			TW_OK);
		assert_int_equal(bustle.wrong, 0);
	}
	assert_true(bustle.runs > BUSY_ADVANCES / 2);
	tw_destroy(bustle.wheel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_EVERYWHERE(kafka_expired_timers_run_at_the_first_advance_by_nothing),
		TEST_EVERYWHERE(kafka_timers_run_once_each_at_their_delay),
		TEST_INLINE(kafka_timers_run_in_the_order_of_deadline_and_setting),
		TEST_EVERYWHERE(russell_luo_delays_are_met_to_the_tick),
		TEST_EVERYWHERE(russell_luo_timer_stopped_shortly_before_its_deadline_is_silent),
		TEST_EVERYWHERE(netty_limit_refuses_the_third_until_one_is_stopped),
		TEST_EVERYWHERE(netty_longest_delay_never_fires_whatever_the_clock),
		TEST_EVERYWHERE(agrona_deadline_on_a_tick_is_met_and_one_after_it_takes_the_next),
		TEST_EVERYWHERE(agrona_deadline_in_the_past_fires_now),
		TEST_EVERYWHERE(agrona_second_stop_finds_nothing),
		TEST_EVERYWHERE(caffeine_timers_fire_between_the_steps_they_must),
		TEST_EVERYWHERE(caffeine_timers_fire_near_the_end_of_the_clock),
		TEST_EVERYWHERE(at_the_end_of_the_clock_now_is_now_and_later_is_never),
		TEST_EVERYWHERE(wheel_of_a_nanosecond_fires_at_the_last_ones_of_the_clock),
		TEST_EVERYWHERE(tokio_resets_move_the_deadline_and_only_the_last_counts),
		TEST_DRIVEN(tokio_next_wake_is_that_of_the_nearer_timer),
		TEST_DRIVEN(libuv_zero_delay_timer_that_rearms_itself_runs_once_a_turn),
		TEST_DRIVEN(timer_that_resets_itself_to_now_runs_once_a_turn),
		TEST_EVERYWHERE(timer_that_rearms_itself_at_once_for_ever_lets_others_go_on),
		TEST_INLINE(
			timer_that_rearms_itself_runs_at_each_of_its_ticks_within_a_long_advance),
		TEST_INLINE(libuv_equal_deadlines_run_in_the_order_of_setting),
		TEST_INLINE(folly_timers_that_stop_others_of_their_tick_and_rearm_themselves),
		TEST_INLINE(after_a_timer_that_stops_the_wheel_nothing_runs),
		TEST_POOL(after_a_worker_has_stopped_the_wheel_nothing_runs),
		TEST_EVERYWHERE(stopped_timer_never_runs_and_is_not_released),
		TEST_DRIVEN(timer_that_is_due_now_can_still_be_stopped_in_the_queue),
		TEST_EVERYWHERE(timer_that_stops_itself_is_told_that_it_runs),
		TEST_POOL(stop_during_the_run_answers_running_and_does_not_wait),
		TEST_POOL(stop_wait_returns_after_the_run_has_ended),
		TEST_POOL(stop_wait_after_a_stop_that_did_not_wait_still_waits_for_the_run),
		TEST_POOL(several_threads_can_wait_for_one_run),
		TEST_EVERYWHERE(task_may_stop_and_wait_for_others),
		TEST_POOL(task_on_a_worker_waits_for_the_run_on_the_other),
		TEST_POOL(job_of_the_pool_that_has_not_begun_can_be_stopped),
		TEST_BOTH(inline, stale_handle_touches_no_later_timer_after_a_million_reuses),
		TEST_BOTH(threads, stale_handle_touches_no_later_timer_after_a_million_reuses),
		TEST_BOTH(inline, ids_are_never_none_and_never_the_same),
		TEST_BOTH(threads, ids_are_never_none_and_never_the_same),
		TEST_EVERYWHERE(handles_that_never_were_are_not_found),
		TEST_EVERYWHERE(nobody_needs_to_want_the_handle),
		TEST_EVERYWHERE(reset_reaches_a_timer_in_the_queue_and_in_the_wheel),
		TEST_EVERYWHERE(reset_counts_from_the_call_and_rounds_up),
		TEST_EVERYWHERE(timer_reset_many_times_runs_once_at_the_last_deadline),
		TEST_DRIVEN(stop_that_waits_for_a_reset_leaves_the_processor_to_it),
		TEST_EVERYWHERE(reset_of_what_is_done_or_stopped_finds_nothing),
		TEST_POOL(job_of_the_pool_that_has_not_begun_can_be_reset),
		TEST_POOL(reset_of_a_job_that_is_overdue_by_the_time_it_comes_back_runs_late),
		TEST_EVERYWHERE(timer_reset_in_its_own_run_runs_again),
		TEST_EVERYWHERE(timer_that_has_stopped_itself_cannot_be_reset),
		TEST_POOL(timer_reset_while_it_runs_runs_again_after_it),
		TEST_POOL(timer_reset_while_it_runs_can_be_stopped),
		TEST_POOL(stop_wait_for_a_run_that_was_reset_answers_that_the_argument_is_free),
		TEST_INLINE(timers_of_one_tick_run_in_the_order_of_their_last_command),
		TEST_INLINE(order_of_commands_and_resets_is_kept_in_the_queue_too),
		TEST_INLINE(keyed_timers_and_handles_run_in_one_order),
		TEST_EVERYWHERE(pending_counts_handles),
		TEST_EVERYWHERE(drain_gives_handles_with_their_argument_and_no_key),
		TEST_EVERYWHERE(
			release_and_drain_functions_are_told_which_handle_it_is_and_its_run),
		TEST_EVERYWHERE(
			handle_stopped_or_reset_behind_a_drain_comes_back_once_or_not_at_all),
		TEST_EVERYWHERE(wheel_stop_releases_pending_arguments_with_no_key),
		TEST_EVERYWHERE(wheel_stop_releases_arguments_that_are_still_in_the_queue),
		TEST_POOL(jobs_of_the_pool_that_have_not_begun_are_released_by_wheel_stop),
		TEST_POOL(destroy_releases_handles_and_waits_for_running_ones),
		TEST_EVERYWHERE(without_release_a_wheel_drops_its_handles_silently),
		TEST_EVERYWHERE(stopped_wheel_answers_closed_to_handle_calls),
		TEST_EVERYWHERE(in_a_forks_child_handle_calls_answer_closed),
		TEST_EVERYWHERE(periods_as_long_as_the_clock_do_not_overflow),
		TEST_EVERYWHERE(handle_calls_with_bad_arguments_are_refused),
		TEST_DRIVEN(full_queue_refuses_handles_and_resets_but_no_stop),
		TEST_BOTH(workers, full_queue_refuses_handles_and_resets_but_no_stop),
		TEST_EVERYWHERE(nobody_hangs_on_a_queue_full_of_handles),
		TEST_EVERYWHERE(places_within_the_limit_come_back_when_handles_leave),
		TEST_EVERYWHERE(timer_stopped_in_the_queue_gives_its_place_back),
		TEST_EVERYWHERE(task_may_set_a_timer_in_place_of_one_that_it_has_stopped),
		TEST_BOTH(inline, million_timers_stopped_one_by_one_leave_no_memory_behind),
		TEST_BOTH(threads, million_timers_stopped_one_by_one_leave_no_memory_behind),
		TEST_BOTH(inline,
			  million_timers_stopped_together_leave_their_memory_to_the_next_million),
		TEST_BOTH(threads,
			  million_timers_stopped_together_leave_their_memory_to_the_next_million),
		TEST_BOTH(inline, million_timers_that_have_run_leave_no_memory_behind),
		TEST_BOTH(threads, million_timers_that_have_run_leave_no_memory_behind),
		TEST_INLINE(random_commands_do_what_a_model_foretells),
		TEST_DRIVEN(random_commands_in_tasks_take_effect_at_once),
	};

	seed = seed_choose();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
