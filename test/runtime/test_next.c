/* SPDX-License-Identifier: MIT */
/* The earliest deadline is that of all pending timers, whatever was done to them. */
#include "support/test.h"

#include "support/probe.h"
#include "support/recorder.h"
#include "support/seed.h"

#include "runtime/ask.h"
#include "runtime/earliest.h"

#include <stdlib.h>

static tw_duration next_deadline(struct recorder *recorder)
{
	tw_duration deadline = -77;

	assert_status(tw_next(recorder->wheel, &deadline), TW_OK);
	return deadline;
}

static void nothing_pending_is_never(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	assert_true(next_deadline(recorder) == TW_FOREVER);
	set_timer(recorder, "a", 1, INTERVAL);
	assert_true(next_deadline(recorder) == INTERVAL);
	remove_timer(recorder, "a");
	settle(recorder);
	assert_true(next_deadline(recorder) == TW_FOREVER);
	assert_status(tw_set_timer_at(recorder->wheel, "a", 1, VALUE(2), TW_FOREVER), TW_OK);
	assert_true(next_deadline(recorder) == TW_FOREVER);
	recorder_close(recorder);
}

static void deadline_is_exact_and_not_that_of_a_tick(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	set_timer_at(recorder, "far", 1, 1000 * INTERVAL + 3);
	assert_true(next_deadline(recorder) == 1000 * INTERVAL + 3);
	set_timer_at(recorder, "near", 2, 4 * INTERVAL - 5);
	assert_true(next_deadline(recorder) == 4 * INTERVAL - 5);
	set_timer_at(recorder, "nearer", 3, 4 * INTERVAL - 6);
	assert_true(next_deadline(recorder) == 4 * INTERVAL - 6);
	move_timer(recorder, "nearer", 2000 * INTERVAL);
	move_timer(recorder, "near", 1500 * INTERVAL);
	assert_true(next_deadline(recorder) == 1000 * INTERVAL + 3);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void what_is_due_has_a_deadline_that_has_passed_and_does_not_run(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	pass_ticks(recorder, 5);
	set_timer(recorder, "far", 1, 100 * INTERVAL);
	set_timer_at(recorder, "past", 2, 3 * INTERVAL);
	assert_true(next_deadline(recorder) <= 5 * INTERVAL);
	assert_int_equal(event_count(recorder), 0);
	assert_status(tw_wait_idle(recorder->wheel), TW_OK);
	assert_int_equal(event_count(recorder), 1);
	assert_true(next_deadline(recorder) == 105 * INTERVAL);
	recorder_close(recorder);
}

static void timer_that_was_put_off_or_stopped_is_forgotten(void **state)
{
	struct recorder *recorder = probes_open(*state);
	struct probe probes[3] = {0};
	struct tw_alarm *alarm;

	assert_status(tw_alarm_create(recorder->wheel, run_nothing, NULL, &alarm), TW_OK);
	probes_start_ms(recorder, probes, 0, 3, 4, 900);
	assert_status(tw_alarm_set(alarm, 2 * INTERVAL), TW_OK);
	assert_true(next_deadline(recorder) == 2 * INTERVAL);
	assert_status(tw_alarm_set(alarm, 600 * INTERVAL + 1), TW_OK);
	assert_true(next_deadline(recorder) == 3 * INTERVAL);
	assert_status(probe_reset(&probes[0], 700 * INTERVAL + 1), TW_OK);
	assert_true(next_deadline(recorder) == 4 * INTERVAL);
	assert_status(probe_stop(&probes[1]), TW_OK);
	assert_true(next_deadline(recorder) == 601 * INTERVAL);
	assert_status(tw_alarm_stop(alarm), TW_OK);
	assert_true(next_deadline(recorder) == 700 * INTERVAL + 1);
	assert_status(tw_alarm_set(alarm, 650 * INTERVAL), TW_OK);
	assert_true(next_deadline(recorder) == 650 * INTERVAL);
	pass_ticks(recorder, 649);
	assert_int_equal(event_count(recorder), 0);
	assert_true(next_deadline(recorder) == 650 * INTERVAL);
	pass_ticks(recorder, 52);
	assert_executed_at(recorder, 0, 701 * INTERVAL);
	assert_true(next_deadline(recorder) == 900 * INTERVAL);
	assert_status(tw_alarm_destroy(alarm), TW_OK);
	recorder_close(recorder);
}

/* A task asks. */
static void ask_in_run(struct probe *probe)
{
	tw_duration *deadlines = probe->recorder->argument;

	probe->answers[0] = tw_next(probe->recorder->wheel, &deadlines[0]);
	probe->answers[1] = tw_after_func(probe->recorder->wheel, -1, run_nothing, NULL, NULL);
	probe->answers[2] = tw_next(probe->recorder->wheel, &deadlines[1]);
}

static void task_may_ask(void **state)
{
	const struct variant *variant = *state;
	struct recorder *recorder = probes_open(*state);
	struct probe probe = {.in_run = ask_in_run};
	tw_duration deadlines[2] = {0};

	recorder->argument = deadlines;
	probe_start(recorder, &probe, 1, 2 * INTERVAL);
	set_timer(recorder, "far", 2, 50 * INTERVAL);
	pass_ticks(recorder, 2);
	for (int i = 0; i < 3; i++)
		assert_status(probe.answers[i], TW_OK);
	assert_true(deadlines[0] == 50 * INTERVAL);
	/* A pool may have the timers that are due by then. */
	assert_true(deadlines[1] <= 2 * INTERVAL ||
		    (variant->workers != TW_WORKERS_INLINE && deadlines[1] == 50 * INTERVAL));
	recorder_close(recorder);
}

static void bad_arguments_and_stopped_wheels_have_their_statuses(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	tw_duration deadline = 7;

	assert_status(tw_next(NULL, &deadline), TW_INVALID);
	assert_status(tw_next(recorder->wheel, NULL), TW_INVALID);
	stop_wheel(recorder);
	assert_status(tw_next(recorder->wheel, &deadline), TW_CLOSED);
	assert_int_equal(deadline, 7);
	recorder_close(recorder);
}

/* Another thread might do it after the owner has read the inbox. */
static void timer_that_is_reset_to_now_during_the_search_runs(void **state)
{
	struct recorder *recorder = probes_open(*state);
	struct owner *owner = &recorder->wheel->owner;
	struct probe probes[3] = {0};

	probes_start_ms(recorder, probes, 0, 5, 5, 7);
	flush_wheel(recorder);
	assert_status(probe_reset(&probes[0], 0), TW_OK);
	assert_status(probe_reset(&probes[1], 2 * INTERVAL), TW_OK);
	assert_true(owner_next_deadline(owner) <= 5 * INTERVAL);
	advance(recorder, 0);
	assert_executed_at(recorder, 0, 0);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 1, 2 * INTERVAL);
	assert_executed_at(recorder, 2, 7 * INTERVAL);
	recorder_close(recorder);
}

static void timer_put_off_when_it_was_due_already_runs_when_it_is_due_again(void **state)
{
	struct recorder *recorder = probes_open(*state);
	struct probe probes[3] = {0};

	for (int i = 0; i < 3; i++)
		probe_start(recorder, &probes[i], (uintptr_t)i + 1, 0);
	assert_status(tw_poll_some(recorder->wheel, 1, NULL), TW_OK);
	assert_int_equal(event_count(recorder), 1);
	for (int i = 0; i < 3; i++)
		(void)tw_timer_reset(recorder->wheel, probes[i].timer, 5 * INTERVAL);
	/* The search looks at the remaining ones. */
	assert_true(next_deadline(recorder) == 5 * INTERVAL);
	(void)poll_wheel(recorder);
	assert_int_equal(event_count(recorder), 1);
	advance(recorder, 5 * INTERVAL);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

static void drain_that_is_not_over_is_due(void **state)
{
	struct recorder *recorder = probes_open(*state);
	struct probe probe = {0};

	pass_ticks(recorder, 3);
	probe_start(recorder, &probe, 1, 50 * INTERVAL);
	assert_status(tw_drain(recorder->wheel, probe_drain, recorder), TW_OK);
	assert_true(next_deadline(recorder) <= 3 * INTERVAL);
	settle(recorder);
	assert_drained(recorder, 1);
	assert_true(next_deadline(recorder) == TW_FOREVER);
	recorder_close(recorder);
}

static void deadline_among_very_many_is_not_after_the_earliest(void **state)
{
	enum { CROWD = 12000 };
	struct recorder *recorder = recorder_open(*state, 10);
	tw_duration found;

	for (int i = 0; i < CROWD; i++)
		assert_status(tw_after_func_at(recorder->wheel, 5 * INTERVAL + CROWD - i,
					       run_nothing, NULL, NULL),
			      TW_OK);
	found = next_deadline(recorder);
	assert_true(found <= 5 * INTERVAL + 1 && found > 0);
	tw_stop(recorder->wheel);
	recorder_close(recorder);
}

/* ---- Random operations beside an array of the deadlines ---- */

enum { THINGS = 60, STEPS = TEST_SHARE_OF(40000) };

/* A thing is a timer by handle or an alarm, and its deadline: TW_FOREVER if it is not pending. */
struct thing {
	struct recorder *recorder;
	struct tw_timer timer;
	struct tw_alarm *alarm; /* or NULL */
	tw_duration deadline;
};

static void thing_runs(void *argument)
{
	struct thing *thing = argument;

	thing->deadline = TW_FOREVER;
}

static void thing_act(struct thing *thing, struct random *random)
{
	struct tw_wheel *wheel = thing->recorder->wheel;
	tw_duration delay = 1 + (tw_duration)random_below(
					random, (uint64_t)INTERVAL << random_below(random, 14));
	tw_duration deadline = tw_now(wheel) + delay;
	bool stops = random_below(random, 5) == 0;

	if (thing->alarm && stops)
		(void)tw_alarm_stop(thing->alarm);
	else if (thing->alarm)
		assert_status(tw_alarm_set_at(thing->alarm, deadline), TW_OK);
	else if (stops && thing->deadline != TW_FOREVER)
		assert_status(tw_timer_stop(wheel, thing->timer), TW_OK);
	else if (thing->deadline != TW_FOREVER)
		assert_status(tw_timer_reset_at(wheel, thing->timer, deadline), TW_OK);
	else if (!stops)
		assert_status(tw_after_func_at(wheel, deadline, thing_runs, thing, &thing->timer),
			      TW_OK);
	/* An alarm has the time of its tick. */
	if (thing->alarm)
		deadline = (deadline + INTERVAL - 1) / INTERVAL * INTERVAL;
	thing->deadline = stops ? TW_FOREVER : deadline;
}

static void answer_at_random_is_the_least_of_all_deadlines(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	struct random random = random_from(seed_choose(), 1);
	struct thing *things = calloc(THINGS, sizeof(*things));

	assert_non_null(things);
	for (int i = 0; i < THINGS; i++) {
		things[i] = (struct thing){.recorder = recorder, .deadline = TW_FOREVER};
		if (i % 2 == 0)
			assert_status(tw_alarm_create(recorder->wheel, thing_runs, &things[i],
						      &things[i].alarm),
				      TW_OK);
	}
	for (int step = 0; step < STEPS; step++) {
		thing_act(&things[random_below(&random, THINGS)], &random);
		if (random_below(&random, 3) == 0) {
			tw_duration least = TW_FOREVER;

			for (int i = 0; i < THINGS; i++)
				if (things[i].deadline < least)
					least = things[i].deadline;
			assert_true(next_deadline(recorder) == least);
		}
		if (random_below(&random, 10) == 0) {
			uint64_t most = (uint64_t)INTERVAL << random_below(&random, 8);

			advance(recorder, (tw_duration)random_below(&random, most));
		}
	}
	for (int i = 0; i < THINGS; i += 2)
		assert_status(tw_alarm_destroy(things[i].alarm), TW_OK);
	tw_stop(recorder->wheel);
	recorder_close(recorder);
	free(things);
}

static const struct CMUnitTest tests[] = {
	TEST_EVERYWHERE(nothing_pending_is_never),
	TEST_EVERYWHERE(deadline_is_exact_and_not_that_of_a_tick),
	TEST_DRIVEN(what_is_due_has_a_deadline_that_has_passed_and_does_not_run),
	TEST_EVERYWHERE(timer_that_was_put_off_or_stopped_is_forgotten),
	TEST_EVERYWHERE(task_may_ask),
	TEST_DRIVEN(timer_that_is_reset_to_now_during_the_search_runs),
	TEST_DRIVEN(timer_put_off_when_it_was_due_already_runs_when_it_is_due_again),
	TEST_DRIVEN(drain_that_is_not_over_is_due),
	TEST_DRIVEN(deadline_among_very_many_is_not_after_the_earliest),
	TEST_EVERYWHERE(bad_arguments_and_stopped_wheels_have_their_statuses),
	TEST_EVERYWHERE(answer_at_random_is_the_least_of_all_deadlines),
};

TEST_PROGRAM(tests)
