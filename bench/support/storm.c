/* SPDX-License-Identifier: MIT */
/*
 * A run: the wheel's memory is aged, the heartbeat starts, the timers are set in random order, the
 * calm is watched, the storm breaks, and when every timer is accounted for the heartbeat is
 * stopped. When it begins is planned before the timers are set, for their deadlines follow from it.
 */
#include "storm.h"

#include "fates.h"
#include "format.h"
#include "process.h"

#include <stdlib.h>

#define MILLISECOND (NANOSECONDS_PER_SECOND / 1000)
#define MINUTE (60 * NANOSECONDS_PER_SECOND)
/* What a storm may take, from its last deadline on, before something is taken to hang. */
#define PATIENCE MINUTE
/* Between filling and the calm phase: what a busy wheel puts off, it does now. */
#define REST (100 * MILLISECOND)

/* The first tick from `time` on. */
static int64_t tick_from(const struct storm_trial *trial, int64_t time)
{
	int64_t interval = trial->plan->interval;

	return trial->origin + (time - trial->origin + interval - 1) / interval * interval;
}

/* On the beat that was to be the next, or the first that can still be met. */
static void start_heartbeat(struct storm_trial *trial)
{
	int64_t soon = stopwatch_now() + MILLISECOND;

	heartbeat_plan(&trial->heartbeat, tick_from(trial, soon), soon);
	trial->plan->rival->start_heartbeat(trial);
}

static void stop_heartbeat(struct storm_trial *trial)
{
	trial->plan->rival->stop_heartbeat(trial);
	heartbeat_note_missed(&trial->heartbeat, stopwatch_now());
}

/* What it may take to set them all: 2 us a timer, for a slow machine. */
static int64_t filling_time(const struct storm_plan *plan)
{
	return NANOSECONDS_PER_SECOND / 2 + plan->count * 2000;
}

struct deadlines {
	int64_t first;
	int64_t end;
};

/*
 * A slot of level 2 spans slots² ticks. One that begins three such spans after the wheel is filled
 * is out of the reach of level 1, the library's too, and the library takes it up a span before.
 */
static struct deadlines slot_deadlines(struct storm_trial *trial, int64_t ready)
{
	int64_t span = trial->plan->slots * trial->plan->slots * trial->plan->interval;
	int64_t first = ((ready - trial->origin) / span + 3) * span + trial->origin;

	trial->begins = first - span;
	trial->due = first + span - trial->plan->interval;
	return (struct deadlines){first, first + span - trial->plan->interval};
}

/* A random order to set or stop them in. */
static void shuffle_order(struct storm_trial *trial)
{
	for (size_t i = 0; i < (size_t)trial->plan->count; i++) {
		size_t j = (size_t)generator_range(&trial->generator, 0, (int64_t)i + 1);

		trial->order[i] = trial->order[j];
		trial->order[j] = (uint32_t)i;
	}
}

/* Plans the storm's beginning and the deadlines. */
static struct deadlines plan_deadlines(struct storm_trial *trial)
{
	int64_t filled = stopwatch_now() + filling_time(trial->plan);
	int64_t ready = filled + REST + trial->plan->calm;

	trial->begins = tick_from(trial, ready);
	trial->due = trial->begins;
	switch (trial->plan->storm) {
	case STORM_SLOT:
		return slot_deadlines(trial, ready);
	case STORM_TICK:
		/* From the time on at which the slot of level 1 may come up. */
		trial->due += 2 * trial->plan->slots * trial->plan->interval;
		return (struct deadlines){trial->due, trial->due + 1};
	default:
		return (struct deadlines){filled + MINUTE, filled + 60 * MINUTE};
	}
}

static void fill(struct storm_trial *trial)
{
	int64_t filled = stopwatch_now() + filling_time(trial->plan);
	int64_t interval = trial->plan->interval;
	struct deadlines deadlines = plan_deadlines(trial);

	/* The middle before a tick, so that a call that takes a while still means that tick. */
	for (int64_t i = 0; i < trial->plan->count; i++) {
		int64_t deadline =
			generator_range(&trial->generator, deadlines.first, deadlines.end);

		trial->plan->rival->set(trial, trial->order[i],
					tick_from(trial, deadline) - interval / 2);
	}
	trial->plan->rival->flush(trial);
	if (stopwatch_now() > filled)
		process_fail("the machine is too slow to set %s timers before the storm",
			     format_count(trial->plan->count).characters);
}

static void set_off(struct storm_trial *trial)
{
	const struct storm_rival *rival = trial->plan->rival;

	switch (trial->plan->storm) {
	case STORM_SLOT:
	case STORM_TICK:
		return;
	case STORM_DRAIN:
		stop_heartbeat(trial);
		rival->drain(trial);
		start_heartbeat(trial);
		return;
	case STORM_STOPS:
		for (int64_t i = 0; i < trial->plan->count; i++)
			rival->stop_one(trial, trial->order[i]);
		return;
	default:
		stop_heartbeat(trial);
		rival->stop(trial);
	}
}

static bool storm_is_over(struct storm_trial *trial)
{
	int64_t count = trial->plan->count;

	switch (trial->plan->storm) {
	case STORM_SLOT:
	case STORM_TICK:
		return fates_counted(FATE_RAN) >= count;
	case STORM_DRAIN:
		return fates_counted(FATE_DRAINED) >= count;
	case STORM_STOPS:
		return fates_counted(FATE_STOPPED) - trial->stopped_before >= count &&
		       trial->plan->rival->has_stopped_all(trial);
	default:
		return fates_counted(FATE_STOPPED) - trial->stopped_before >= count;
	}
}

static void expect_counts(struct storm_trial *trial)
{
	static const enum fate fates[STORM_COUNT] = {FATE_RAN, FATE_RAN, FATE_DRAINED, FATE_STOPPED,
						     FATE_STOPPED};

	for (enum fate fate = 0; fate < FATE_COUNT; fate++) {
		int64_t expected = fate == fates[trial->plan->storm] ? trial->plan->count : 0;

		if (fate == FATE_STOPPED)
			expected += trial->stopped_before;
		if (fates_counted(fate) == expected)
			continue;
		process_fail("%s: %s ran, %s drained, %s stopped; there were %s",
			     trial->plan->rival->name,
			     format_count(fates_counted(FATE_RAN)).characters,
			     format_count(fates_counted(FATE_DRAINED)).characters,
			     format_count(fates_counted(FATE_STOPPED)).characters,
			     format_count(trial->plan->count).characters);
	}
}

static void wait_until_over(struct storm_trial *trial)
{
	int64_t end = trial->due + PATIENCE;

	while (!storm_is_over(trial)) {
		if (stopwatch_now() > end)
			break; /* expect_counts() tells */
		stopwatch_sleep(MILLISECOND);
	}
}

static void weather_storm(struct storm_trial *trial)
{
	const struct storm_rival *rival = trial->plan->rival;
	struct storm_result *result = trial->result;
	int64_t ended;

	stopwatch_sleep(trial->begins - HEARTBEAT_PERIOD / 2 - stopwatch_now());
	result->before = rival->longest_turns(trial);
	stopwatch_sleep(trial->begins - stopwatch_now());
	set_off(trial);
	wait_until_over(trial);
	ended = stopwatch_now();
	result->after = (double)(ended - trial->due);
	if (trial->plan->storm != STORM_STOP) {
		/* The beat that is due at the end belongs to the storm. */
		stopwatch_sleep(2 * HEARTBEAT_PERIOD);
		stop_heartbeat(trial);
		result->storm = heartbeat_lateness(&trial->heartbeat, trial->begins,
						   ended + HEARTBEAT_PERIOD);
	}
	result->turns = rival->longest_turns(trial);
}

void storm_run(const void *argument, void *result)
{
	const struct storm_plan *plan = argument;
	struct storm_trial trial = {.plan = plan, .result = result, .generator = {plan->seed}};
	int64_t calm_end;

	heartbeat_create(&trial.heartbeat);
	trial.order = process_allocate((size_t)plan->count * sizeof(*trial.order));
	shuffle_order(&trial);
	plan->rival->create(&trial);
	plan->rival->age(&trial);
	shuffle_order(&trial);
	start_heartbeat(&trial);
	fill(&trial);
	shuffle_order(&trial);
	calm_end = trial.begins - HEARTBEAT_PERIOD;
	weather_storm(&trial);
	trial.result->usual = heartbeat_lateness(
		&trial.heartbeat, calm_end - plan->calm + HEARTBEAT_PERIOD, calm_end);
	plan->rival->destroy(&trial);
	expect_counts(&trial);
	free(trial.order);
	heartbeat_destroy(&trial.heartbeat);
}
