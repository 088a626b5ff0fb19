/* SPDX-License-Identifier: MIT */
/*
 * In a run the wheel's memory is aged, the hearts start, the timers are set in random order, the
 * calm is measured, the storm begins, and when every timer is accounted for the hearts are stopped.
 * The storm's time is planned before the timers are set, as their deadlines follow from it.
 */
#include "storm.h"

#include "fates.h"
#include "format.h"
#include "percentiles.h"
#include "process.h"

#include <stdlib.h>

#define MILLISECOND (NANOSECONDS_PER_SECOND / 1000)
#define MINUTE (60 * NANOSECONDS_PER_SECOND)
/* After this time from its last deadline a storm counts as hung. */
#define PATIENCE MINUTE
/* Between filling and the calm phase a busy wheel does the work that it deferred. */
#define REST (100 * MILLISECOND)

/* Returns the first tick from `time` on. */
static int64_t tick_from(const struct storm_trial *trial, int64_t time)
{
	int64_t interval = trial->plan->interval;

	return trial->origin + (time - trial->origin + interval - 1) / interval * interval;
}

static void create_hearts(struct storm_trial *trial)
{
	trial->heart_count = (size_t)(trial->plan->beat / BEAT_STEP);
	for (size_t i = 0; i < trial->heart_count; i++) {
		trial->hearts[i].trial = trial;
		heartbeat_create(&trial->hearts[i].beats, trial->plan->beat);
	}
}

static void destroy_hearts(struct storm_trial *trial)
{
	for (size_t i = 0; i < trial->heart_count; i++)
		heartbeat_destroy(&trial->hearts[i].beats);
}

/* Starts each heart on the beat that was to be its next, or the first that can still be met. */
static void start_hearts(struct storm_trial *trial)
{
	int64_t soon = stopwatch_now() + MILLISECOND;

	for (size_t i = 0; i < trial->heart_count; i++) {
		heartbeat_plan(&trial->hearts[i].beats,
			       tick_from(trial, soon) + (int64_t)i * BEAT_STEP, soon);
		trial->plan->rival->start_heart(&trial->hearts[i]);
	}
}

static void stop_hearts(struct storm_trial *trial)
{
	for (size_t i = 0; i < trial->heart_count; i++) {
		trial->plan->rival->stop_heart(&trial->hearts[i]);
		heartbeat_note_missed(&trial->hearts[i].beats, stopwatch_now());
	}
}

/*
 * Returns whether the beat was in a coarse slot that timers of the storm belong to: a timer is
 * filed in the finest of the library's levels where its slot is less than two laps away.
 */
static bool beat_shares_slot(const struct storm_trial *trial, const struct heartbeat *beats,
			     size_t beat)
{
	int64_t set_at = heartbeat_set_at(beats, beat) - trial->origin;
	int64_t due = beats->beats[beat].deadline - trial->origin;
	int64_t slots = trial->plan->slots, span = trial->plan->interval;

	while (due / span - set_at / span >= 2 * slots)
		span *= slots;
	return span > trial->plan->interval &&
	       due / span >= (trial->first - trial->origin) / span &&
	       due / span <= (trial->due - trial->origin) / span;
}

/* Sums up the beats due from `begin` to before `end` that share a coarse slot, or don't. */
static struct lateness lateness_between(const struct storm_trial *trial, int64_t begin, int64_t end,
					bool shares)
{
	struct percentiles *histogram = percentiles_create();
	struct lateness lateness;

	for (size_t i = 0; i < trial->heart_count; i++) {
		const struct heartbeat *beats = &trial->hearts[i].beats;

		for (size_t j = 0; j < beats->count; j++) {
			const struct beat *beat = &beats->beats[j];

			if (beat->deadline >= begin && beat->deadline < end &&
			    beat_shares_slot(trial, beats, j) == shares)
				percentiles_record(histogram, beat->lateness);
		}
	}
	lateness = lateness_of(histogram);
	percentiles_destroy(histogram);
	return lateness;
}

/* Returns the time for setting them all: 1 us a timer, for a slow machine. */
static int64_t filling_time(const struct storm_plan *plan)
{
	return NANOSECONDS_PER_SECOND / 2 + plan->count * 1000;
}

struct deadlines {
	int64_t first;
	int64_t end;
};

/*
 * Returns deadlines in one slot. A slot of level n spans slots^n ticks; this is one of the coarsest
 * level that plan->coarse allows. A slot that begins three spans after the wheel is filled is out
 * of reach of the level below, also in the library, which begins to empty it a span before: the
 * storm begins. Timers of one tick are due in the slot's first: they cascade level by level as
 * well, all together.
 */
static struct deadlines slot_deadlines(struct storm_trial *trial, int64_t ready)
{
	const struct storm_plan *plan = trial->plan;
	int64_t span = plan->slots * plan->interval;

	while (span * plan->slots <= plan->coarse)
		span *= plan->slots;
	trial->first = ((ready - trial->origin) / span + 3) * span + trial->origin;
	trial->begins = trial->first - span;
	trial->due = trial->first;
	if (plan->storm == STORM_SLOT)
		trial->due += span - plan->interval;
	return (struct deadlines){trial->first, trial->due};
}

/* Chooses a random order to set or stop them in. */
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

	if (trial->plan->storm == STORM_SLOT || trial->plan->storm == STORM_TICK)
		return slot_deadlines(trial, ready);
	trial->begins = tick_from(trial, ready);
	trial->due = trial->begins;
	trial->first = INT64_MAX;
	return (struct deadlines){filled + MINUTE, filled + 60 * MINUTE};
}

static void fill(struct storm_trial *trial)
{
	int64_t filled = stopwatch_now() + filling_time(trial->plan);
	int64_t interval = trial->plan->interval;
	struct deadlines deadlines = plan_deadlines(trial);

	/* This is the middle before a tick, so that a slow call still means that tick. */
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
		stop_hearts(trial);
		rival->drain(trial);
		start_hearts(trial);
		return;
	case STORM_STOPS:
		for (int64_t i = 0; i < trial->plan->count; i++)
			rival->stop_one(trial, trial->order[i]);
		return;
	default:
		stop_hearts(trial);
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
			break; /* expect_counts() reports it */
		stopwatch_sleep(MILLISECOND);
	}
}

static void weather_storm(struct storm_trial *trial)
{
	struct storm_result *result = trial->result;
	int64_t ended;

	stopwatch_sleep(trial->begins - stopwatch_now());
	set_off(trial);
	wait_until_over(trial);
	ended = stopwatch_now();
	result->after = (double)(ended - trial->due);
	if (trial->plan->storm != STORM_STOP) {
		/* The beat that is due at the end belongs to the storm. */
		stopwatch_sleep(2 * BEAT_STEP);
		stop_hearts(trial);
		ended += BEAT_STEP;
		result->storm = lateness_between(trial, trial->begins, ended, false);
		result->shared = lateness_between(trial, trial->begins, ended, true);
	}
}

void storm_run(const void *argument, void *result)
{
	const struct storm_plan *plan = argument;
	struct storm_trial trial = {.plan = plan, .result = result, .generator = {plan->seed}};
	int64_t calm_end;

	create_hearts(&trial);
	trial.order = process_allocate((size_t)plan->count * sizeof(*trial.order));
	shuffle_order(&trial);
	plan->rival->create(&trial);
	plan->rival->age(&trial);
	shuffle_order(&trial);
	start_hearts(&trial);
	fill(&trial);
	shuffle_order(&trial);
	calm_end = trial.begins - BEAT_STEP;
	weather_storm(&trial);
	trial.result->usual =
		lateness_between(&trial, calm_end - plan->calm + BEAT_STEP, calm_end, false);
	plan->rival->destroy(&trial);
	expect_counts(&trial);
	free(trial.order);
	destroy_hearts(&trial);
}
