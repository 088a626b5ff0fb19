/* SPDX-License-Identifier: MIT */
/* tw_timers_stop and tw_timers_reset do what single calls would, with one answer each. */
#include "support/test.h"

#include "support/probe.h"
#include "support/seed.h"
#include "support/stats.h"
#include "support/wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { MANY = 1000 };

static struct tw_timer timers[MANY];
static struct tw_reset resets[MANY];
static enum tw_status answers[MANY + 1];
static struct probe probes[MANY];

static void forget_answers(void)
{
	for (size_t i = 0; i <= MANY; i++)
		answers[i] = TW_STATUS_MAX;
}

/* Stops n timers; the test fails unless `count` were pending. */
#define assert_stops(recorder, n, status, count)                                                \
	do {                                                                                    \
		size_t stopped_ = 7777;                                                         \
                                                                                                \
		forget_answers();                                                               \
		assert_status(tw_timers_stop((recorder)->wheel, timers, n, answers, &stopped_), \
			      status);                                                          \
		assert_int_equal(stopped_, count);                                              \
		assert_int_equal(answers[n], TW_STATUS_MAX);                                    \
	} while (0)

#define assert_resets(recorder, n, status, count)                                                 \
	do {                                                                                      \
		size_t accepted_ = 7777;                                                          \
                                                                                                  \
		forget_answers();                                                                 \
		assert_status(tw_timers_reset((recorder)->wheel, resets, n, answers, &accepted_), \
			      status);                                                            \
		assert_int_equal(accepted_, count);                                               \
		assert_int_equal(answers[n], TW_STATUS_MAX);                                      \
	} while (0)

static struct recorder *probes_open_cleared(const struct variant *variant, struct tw_options more)
{
	memset(probes, 0, sizeof(probes));
	memset(timers, 0, sizeof(timers));
	memset(resets, 0, sizeof(resets));
	return probes_open_with(variant, more);
}

/* Starts `count` probes, numbered from 0, to be stopped and reset. */
static struct recorder *probes_open_many(const struct variant *variant, size_t count,
					 tw_duration delay, struct tw_options more)
{
	struct recorder *recorder = probes_open_cleared(variant, more);

	for (size_t i = 0; i < count; i++) {
		probe_start(recorder, &probes[i], i, delay);
		timers[i] = probes[i].timer;
		resets[i].timer = probes[i].timer;
	}
	return recorder;
}

static const struct tw_options defaults;

static void stopped_timers_never_run_wherever_they_are(void **state)
{
	struct recorder *recorder = probes_open_many(*state, MANY, 5 * INTERVAL, defaults);

	/* They are in the queue. */
	assert_stops(recorder, MANY / 2, TW_OK, MANY / 2);
	flush_wheel(recorder);
	assert_int_equal(tw_pending(recorder->wheel), MANY / 2);
	/* These are all but the last: the stopped half again, and the half in the wheel. */
	assert_stops(recorder, MANY - 1, TW_OK, MANY / 2 - 1);
	for (size_t i = 0; i < MANY - 1; i++)
		assert_status(answers[i], i < MANY / 2 ? TW_NOT_FOUND : TW_OK);
	flush_wheel(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	assert_int_equal(stats_of_wheel(recorder->wheel).removed, MANY - 1);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, MANY - 1, 5 * INTERVAL);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

static void each_stop_has_its_own_answer(void **state)
{
	struct recorder *recorder = probes_open_cleared(*state, defaults);
	enum { PENDING, DONE, STOPPED, NONE, RUNS, REARMED, PERIODIC, AGAIN, UNKNOWN, COUNT };

	probe_start(recorder, &probes[DONE], DONE, 0);
	advance(recorder, 0);
	probe_start(recorder, &probes[PENDING], PENDING, 5 * INTERVAL);
	probe_start(recorder, &probes[STOPPED], STOPPED, 5 * INTERVAL);
	assert_status(probe_stop(&probes[STOPPED]), TW_OK);
	probe_start_held(recorder, &probes[RUNS], RUNS);
	probe_start_held(recorder, &probes[REARMED], REARMED);
	assert_status(probe_reset(&probes[REARMED], 3 * INTERVAL), TW_OK);
	probe_repeat(recorder, &probes[PERIODIC], PERIODIC, 5 * INTERVAL, 5 * INTERVAL);
	for (size_t i = 0; i < COUNT; i++)
		timers[i] = probes[i].timer;
	timers[AGAIN] = timers[PENDING];
	timers[UNKNOWN].id = UINT64_MAX;
	assert_stops(recorder, COUNT, TW_OK, 2);
	assert_status(answers[PENDING], TW_OK);
	assert_status(answers[DONE], TW_NOT_FOUND);
	assert_status(answers[STOPPED], TW_NOT_FOUND);
	assert_status(answers[NONE], TW_NOT_FOUND);
	assert_status(answers[RUNS], TW_RUNNING);
	assert_status(answers[REARMED], TW_REARMED);
	assert_status(answers[PERIODIC], TW_OK);
	assert_status(answers[AGAIN], TW_NOT_FOUND);
	assert_status(answers[UNKNOWN], TW_NOT_FOUND);
	/* The runs under way are the last. */
	assert_stops(recorder, COUNT, TW_OK, 0);
	assert_status(answers[RUNS], TW_RUNNING);
	assert_status(answers[REARMED], TW_RUNNING);
	gate_open(&probes[RUNS].gate);
	gate_open(&probes[REARMED].gate);
	settle(recorder);
	pass_ticks(recorder, 9);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

static void each_reset_has_its_own_answer(void **state)
{
	struct recorder *recorder = probes_open_cleared(*state, defaults);
	enum { SOONER, LATER, DONE, STOPPED, RUNS, LAST, PERIODIC, NONE, COUNT };

	probe_start(recorder, &probes[DONE], DONE, 0);
	advance(recorder, 0);
	for (size_t i = SOONER; i <= STOPPED; i++)
		if (i != DONE)
			probe_start(recorder, &probes[i], i, 5 * INTERVAL);
	assert_status(probe_stop(&probes[STOPPED]), TW_OK);
	probe_start_held(recorder, &probes[RUNS], RUNS);
	probe_start_held(recorder, &probes[LAST], LAST);
	assert_status(probe_stop(&probes[LAST]), TW_RUNNING);
	probe_repeat(recorder, &probes[PERIODIC], PERIODIC, 5 * INTERVAL, 5 * INTERVAL);
	for (size_t i = 0; i < COUNT; i++)
		resets[i] = (struct tw_reset){probes[i].timer, 7 * INTERVAL};
	resets[SOONER].delay = INTERVAL;
	assert_resets(recorder, COUNT, TW_OK, 4);
	for (size_t i = 0; i < COUNT; i++)
		assert_status(answers[i], i == SOONER || i == LATER || i == RUNS || i == PERIODIC
						  ? TW_OK
						  : TW_NOT_FOUND);
	gate_open(&probes[RUNS].gate);
	gate_open(&probes[LAST].gate);
	settle(recorder);
	pass_ticks(recorder, 13);
	assert_executed_at(recorder, SOONER, INTERVAL);
	assert_executed_at(recorder, LATER, 7 * INTERVAL);
	assert_runs_ms(recorder, RUNS, 0, 7);
	assert_runs_ms(recorder, PERIODIC, 7, 12);
	assert_int_equal(times_returned(recorder, LAST), 1);
	assert_not_returned(recorder, STOPPED);
	recorder_close(recorder);
}

static void resets_count_from_the_call(void **state)
{
	struct recorder *recorder = probes_open_cleared(*state, defaults);

	probes_start_ms(recorder, probes, 1, 9, 9, 9, 9, 9);
	for (size_t i = 0; i < 5; i++)
		resets[i] = (struct tw_reset){probes[i].timer, 3 * INTERVAL};
	resets[1].delay = -INTERVAL;
	resets[2].delay = 0;
	resets[3].delay = 2 * INTERVAL + 1;
	/* The second of two resets of the same timer counts. */
	resets[5] = (struct tw_reset){probes[0].timer, 3 * INTERVAL};
	advance(recorder, INTERVAL / 2);
	assert_resets(recorder, 6, TW_OK, 6);
	advance(recorder, 0);
	assert_executed_at(recorder, 2, INTERVAL / 2);
	assert_executed_at(recorder, 3, INTERVAL / 2);
	advance(recorder, 9 * INTERVAL);
	assert_executed_at(recorder, 4, 3 * INTERVAL);
	assert_executed_at(recorder, 5, 4 * INTERVAL);
	assert_executed_at(recorder, 1, 4 * INTERVAL);
	assert_int_equal(event_count(recorder), 5);
	recorder_close(recorder);
}

static void many_timers_are_reset_again_and_again(void **state)
{
	struct recorder *recorder = probes_open_many(*state, MANY, 99 * INTERVAL, defaults);

	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < MANY; i++)
			resets[i].delay = (tw_duration)(1 + (i + (size_t)round) % 7) * INTERVAL;
		assert_resets(recorder, MANY, TW_OK, MANY);
		if (round % 2 == 0)
			flush_wheel(recorder);
	}
	pass_ticks(recorder, 7);
	for (size_t i = 0; i < MANY; i++)
		assert_executed_at(recorder, i, (tw_duration)(1 + (i + 4) % 7) * INTERVAL);
	assert_int_equal(event_count(recorder), MANY);
	assert_resets(recorder, MANY, TW_OK, 0);
	recorder_close(recorder);
}

static void no_timers_are_fine_and_answers_need_not_be_wanted(void **state)
{
	struct recorder *recorder = probes_open_many(*state, 40, 5 * INTERVAL, defaults);
	struct tw_wheel *wheel = recorder->wheel;

	assert_stops(recorder, 0, TW_OK, 0);
	assert_resets(recorder, 0, TW_OK, 0);
	assert_status(tw_timers_stop(wheel, NULL, 0, NULL, NULL), TW_OK);
	assert_status(tw_timers_reset(wheel, NULL, 0, NULL, NULL), TW_OK);
	for (size_t i = 0; i < 40; i++)
		resets[i].delay = INTERVAL;
	assert_status(tw_timers_reset(wheel, resets, 40, NULL, NULL), TW_OK);
	assert_status(tw_timers_stop(wheel, timers, 39, NULL, NULL), TW_OK);
	pass_ticks(recorder, 5);
	assert_executed_at(recorder, 39, INTERVAL);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

static void assert_answers(size_t from, size_t n, enum tw_status status)
{
	for (size_t i = from; i < n; i++)
		assert_status(answers[i], status);
}

static void missing_wheel_or_timers_are_invalid(void **state)
{
	struct recorder *recorder = probes_open_many(*state, 3, INTERVAL, defaults);
	size_t count = 7777;

	forget_answers();
	assert_status(tw_timers_stop(NULL, timers, 3, answers, &count), TW_INVALID);
	assert_int_equal(count, 0);
	assert_answers(0, 3, TW_INVALID);
	forget_answers();
	count = 7777;
	assert_status(tw_timers_reset(NULL, resets, 3, answers, &count), TW_INVALID);
	assert_int_equal(count, 0);
	assert_answers(0, 3, TW_INVALID);
	assert_status(tw_timers_stop(recorder->wheel, NULL, 1, NULL, NULL), TW_INVALID);
	assert_status(tw_timers_reset(recorder->wheel, NULL, 1, NULL, NULL), TW_INVALID);
	assert_status(tw_timers_stop(NULL, NULL, 0, NULL, NULL), TW_INVALID);
	assert_status(tw_timers_reset(NULL, NULL, 0, NULL, NULL), TW_INVALID);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

static void stopped_wheel_answers_closed_to_each(void **state)
{
	struct recorder *recorder = probes_open_many(*state, 40, INTERVAL, defaults);

	stop_wheel(recorder);
	assert_stops(recorder, 40, TW_CLOSED, 0);
	assert_answers(0, 40, TW_CLOSED);
	assert_resets(recorder, 40, TW_CLOSED, 0);
	assert_answers(0, 40, TW_CLOSED);
	assert_stops(recorder, 0, TW_CLOSED, 0);
	assert_resets(recorder, 0, TW_CLOSED, 0);
	settle(recorder);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 40);
	recorder_close(recorder);
}

static void full_queue_refuses_no_reset_and_no_stop(void **state)
{
	struct recorder *recorder = probes_open_many(
		*state, 64, 5 * INTERVAL,
		(struct tw_options){.queue_capacity = 64, .when_full = TW_WHEN_FULL_FAIL});

	for (size_t i = 0; i < 64; i++)
		resets[i].delay = (i % 2 == 0 ? 2 : 7) * INTERVAL;
	assert_resets(recorder, 64, TW_OK, 64);
	assert_answers(0, 64, TW_OK);
	assert_stops(recorder, 1, TW_OK, 1);
	assert_resets(recorder, 64, TW_OK, 63);
	assert_status(answers[0], TW_NOT_FOUND);
	assert_int_equal(stats_of_wheel(recorder->wheel).refused, 0);
	pass_ticks(recorder, 7);
	for (size_t i = 1; i < 64; i++)
		assert_executed_at(recorder, i, (i % 2 == 0 ? 2 : 7) * INTERVAL);
	assert_not_returned(recorder, 0);
	recorder_close(recorder);
}

static void stop_and_reset_the_others(struct probe *probe)
{
	struct tw_wheel *wheel = probe->recorder->wheel;
	size_t stopped;
	size_t accepted;

	probe->answers[0] = tw_timers_stop(wheel, timers, 500, answers, &stopped);
	probe->answers[1] = tw_timers_reset(wheel, resets, MANY, answers, &accepted);
	probe->answers[2] = stopped == 499 ? TW_OK : TW_INVALID;
	probe->answers[3] = accepted == MANY - 500 ? TW_OK : TW_INVALID;
}

static void task_may_stop_and_reset_more_than_the_queue_holds(void **state)
{
	struct recorder *recorder = probes_open_many(*state, MANY, 5 * INTERVAL,
						     (struct tw_options){.queue_capacity = 8});

	for (size_t i = 0; i < MANY; i++)
		resets[i].delay = i < 600 ? 0 : 3 * INTERVAL;
	probes[0].in_run = stop_and_reset_the_others;
	assert_status(probe_reset(&probes[0], INTERVAL), TW_OK);
	pass_ticks(recorder, 1);
	/* The task has reset some to now: they are due once it has been waited for. */
	settle(recorder);
	pass_ticks(recorder, 3);
	for (int i = 0; i < PROBE_ANSWERS; i++)
		assert_status(probes[0].answers[i], TW_OK);
	assert_status(answers[0], TW_NOT_FOUND);
	assert_executed_at(recorder, 0, INTERVAL);
	for (size_t i = 1; i < 500; i++)
		assert_not_returned(recorder, i);
	assert_executed_at(recorder, 500, INTERVAL);
	assert_executed_at(recorder, MANY - 1, 4 * INTERVAL);
	assert_int_equal(event_count(recorder), MANY - 499);
	recorder_close(recorder);
}

static void stops_give_their_places_back(void **state)
{
	struct recorder *recorder = probes_open_many(
		*state, 100, 5 * INTERVAL,
		(struct tw_options){.max_pending = 100, .when_full = TW_WHEN_FULL_FAIL});

	flush_wheel(recorder);
	for (int round = 0; round < 3; round++) {
		assert_stops(recorder, 100, TW_OK, 100);
		flush_wheel(recorder);
		for (size_t i = 0; i < 100; i++) {
			probe_start(recorder, &probes[i], i, 5 * INTERVAL);
			timers[i] = probes[i].timer;
		}
	}
	assert_status(tw_after_func(recorder->wheel, 0, run_nothing, NULL, NULL), TW_FULL);
	pass_ticks(recorder, 5);
	assert_int_equal(event_count(recorder), 100);
	recorder_close(recorder);
}

/* Threads stop and reset the same timers at the same time, and some come due. */
struct side {
	struct recorder *recorder;
	bool resets;
	size_t stopped;
	enum tw_status answers[MANY];
};

static void *stop_or_reset(void *argument)
{
	struct side *side = argument;
	struct tw_wheel *wheel = side->recorder->wheel;

	if (side->resets)
		tw_timers_reset(wheel, resets, MANY, side->answers, NULL);
	else
		tw_timers_stop(wheel, timers, MANY, side->answers, &side->stopped);
	return NULL;
}

static void of_two_groups_of_stops_each_timer_has_one_winner(void **state)
{
	static struct side sides[3];

	for (int round = 0; round < TEST_SHARE_OF(100); round++) {
		struct recorder *recorder = probes_open_many(*state, MANY, 0, defaults);
		pthread_t threads[3];

		for (size_t i = 0; i < MANY; i++)
			resets[i].delay = INTERVAL;
		for (size_t i = 0; i < 3; i++) {
			sides[i] = (struct side){.recorder = recorder, .resets = i == 2};
			assert_int_equal(
				pthread_create(&threads[i], NULL, stop_or_reset, &sides[i]), 0);
		}
		advance(recorder, 0);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		pass_ticks(recorder, 2);
		for (size_t i = 0; i < MANY; i++) {
			bool first = sides[0].answers[i] == TW_OK;
			bool second = sides[1].answers[i] == TW_OK;

			assert_false(first && second);
			if (!first && !second)
				assert_true(times_returned(recorder, i) >= 1);
		}
		assert_int_equal(tw_pending(recorder->wheel), 0);
		recorder_close(recorder);
	}
}

static const struct CMUnitTest tests[] = {
	TEST_EVERYWHERE(stopped_timers_never_run_wherever_they_are),
	TEST_POOL(each_stop_has_its_own_answer),
	TEST_POOL(each_reset_has_its_own_answer),
	TEST_INLINE(resets_count_from_the_call),
	TEST_EVERYWHERE(many_timers_are_reset_again_and_again),
	TEST_EVERYWHERE(no_timers_are_fine_and_answers_need_not_be_wanted),
	TEST_EVERYWHERE(missing_wheel_or_timers_are_invalid),
	TEST_EVERYWHERE(stopped_wheel_answers_closed_to_each),
	TEST_BOTH(inline, full_queue_refuses_no_reset_and_no_stop),
	TEST_EVERYWHERE(task_may_stop_and_reset_more_than_the_queue_holds),
	TEST_EVERYWHERE(stops_give_their_places_back),
	TEST_BOTH(threads, of_two_groups_of_stops_each_timer_has_one_winner),
	TEST_BOTH(workers, of_two_groups_of_stops_each_timer_has_one_winner),
};

TEST_PROGRAM(tests)
