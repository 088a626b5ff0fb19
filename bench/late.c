/* SPDX-License-Identifier: MIT */
/*
 * How long is the owner's longest turn?
 *
 * A heartbeat runs each 5 ms on a wheel with a million timers, and its lateness is measured: first
 * in a calm, then under a load, each on a fresh wheel in a process of its own.
 * - none: another calm, for comparison
 * - cascade: all timers are in one coarse slot, and come down level by level
 * - due: all are due in one tick
 * - drain: all are drained
 * - stop: all are stopped one by one
 * - crowd: four times as many cascade on a wheel of 16 slots and ticks of 100 us
 *
 * Lateness counts from the deadline; one tick of it is within the contract. A missed beat counts
 * with its lateness, and so do those after it: a beat as short as the tick would never catch up.
 * "over after" is the time from the last deadline, or the call, until all timers were accounted
 * for.
 *
 * Successive timers are not adjacent in memory, as in a process that has run for a while: all were
 * set and stopped before, in random order. The baseline is the calm of the same run.
 */
#include "support/expect.h"
#include "support/fates.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/generator.h"
#include "support/machine.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"

#include "runtime/ask.h" /* the wheel's origin, to know where its slots begin */

#include <timingwheel/timingwheel.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MINUTE (60 * NANOSECONDS_PER_SECOND)
/* After this time from its last deadline a load counts as hung. */
#define PATIENCE MINUTE
/* Between filling and the calm a busy wheel does the work that it deferred. */
#define REST (100 * TW_MILLISECOND)

enum load { NONE, CASCADE, DUE, DRAIN, STOP, CROWD, LOADS };

static const struct {
	const char *name;
	const char *title;
	int64_t coarse; /* the longest that the coarse slot may span */
	enum fate fate; /* how all timers end */
} loads[LOADS] = {
	[NONE] = {"none", "none", 0, FATE_COUNT},
	[CASCADE] = {"cascade", "all come down from one coarse slot", 5 * TW_SECOND, FATE_RAN},
	[DUE] = {"due", "all due in one tick", TW_SECOND, FATE_RAN},
	[DRAIN] = {"drain", "all drained", 0, FATE_DRAINED},
	[STOP] = {"stop", "all stopped one by one", 0, FATE_STOPPED},
	[CROWD] = {"crowd", "four times as many come down, 16 slots, tick 100 us", TW_SECOND,
		   FATE_RAN},
};

enum { CALM_P50, CALM_P99, CALM_MAX, LATE_P50, LATE_P99, LATE_MAX, AFTER };

static const struct measure measures[] = {
	{"calm_p50_ns", "beat late in the calm, p50: ms", 1e-6, 2},
	{"calm_p99_ns", "p99", 1e-6, 2},
	{"calm_max_ns", "max", 1e-6, 2},
	{"late_p50_ns", "beat late under the load, p50: ms", 1e-6, 2},
	{"late_p99_ns", "p99", 1e-6, 2},
	{"late_max_ns", "max", 1e-6, 2},
	{"over_after_ns", "over after: ms", 1e-6, 0},
	{0},
};

struct plan {
	enum load load;
	int64_t count;
	int64_t interval;
	int64_t slots; /* a power of two */
	int64_t beat;
	int64_t calm;
	int64_t workers; /* 0 for inline */
	uint64_t seed;
};

/* Only the wheel's thread that runs the beat uses it while it beats. */
struct heart {
	int64_t period;
	int64_t calm_from; /* beats due before are not recorded */
	int64_t begins;    /* those from here on are beats under the load */
	int64_t deadline;  /* when the next beat is due, 0 before the first */
	struct percentiles *calm;
	struct percentiles *loaded;
	struct tw_timer timer;
};

struct trial {
	const struct plan *plan;
	struct generator generator;
	struct tw_wheel *wheel;
	struct tw_timer *handles;
	uint32_t *order;
	int64_t origin;     /* the first of the wheel's ticks */
	int64_t first;      /* the first deadline */
	int64_t due;        /* the last deadline, or the time of the call */
	int64_t all_set_by; /* by then all must be set */
	struct heart heart;
};

/* --- The heart -------------------------------------------------------------------------------- */

static void record(struct heart *heart, int64_t lateness)
{
	if (heart->deadline >= heart->calm_from)
		percentiles_record(heart->deadline < heart->begins ? heart->calm : heart->loaded,
				   lateness);
	heart->deadline += heart->period;
}

static void on_beat(void *argument)
{
	struct heart *heart = argument;

	record(heart, stopwatch_now() - heart->deadline);
}

/* tw_schedule_func calls it once at the start, then after each beat. */
static tw_duration next_beat(void *argument, tw_duration previous)
{
	(void)previous;
	return ((struct heart *)argument)->deadline;
}

/* Returns the first tick from `time` on. */
static int64_t tick_from(const struct trial *trial, int64_t time)
{
	int64_t interval = trial->plan->interval;

	return trial->origin + (time - trial->origin + interval - 1) / interval * interval;
}

/* Starts with the beat that was to be the next, or the first that can still be met. */
static void heart_start(struct trial *trial)
{
	struct heart *heart = &trial->heart;
	int64_t soon = stopwatch_now() + TW_MILLISECOND;

	if (heart->deadline == 0)
		heart->deadline = tick_from(trial, soon);
	while (heart->deadline < soon)
		heart->deadline += heart->period;
	expect_ok(tw_schedule_func(trial->wheel, next_beat, on_beat, heart, &heart->timer),
		  "tw_schedule_func");
}

/* Due beats that did not come count with the lateness that they have reached: otherwise a stall
 * beyond the end of the measurement would not be seen. */
static void heart_stop(struct trial *trial)
{
	enum tw_status status = tw_timer_stop_wait(trial->wheel, trial->heart.timer);
	int64_t now = stopwatch_now();

	if (status != TW_RUNNING)
		expect_ok(status, "tw_timer_stop_wait");
	while (trial->heart.deadline < now)
		record(&trial->heart, now - trial->heart.deadline);
}

/* --- Timers ----------------------------------------------------------------------------------- */

static void on_run(void *argument)
{
	(void)argument;
	fates_add(FATE_RAN);
}

static void on_drained(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	fates_add(FATE_DRAINED);
}

static void open_wheel(struct trial *trial)
{
	const struct plan *plan = trial->plan;
	const struct tw_options options = {
		.workers = plan->workers ? (int)plan->workers : TW_WORKERS_INLINE,
		.max_workers = (int)plan->workers,
	};

	trial->handles = process_allocate((size_t)plan->count * sizeof(*trial->handles));
	expect_ok(tw_create(&trial->wheel, plan->interval, (size_t)plan->slots, NULL, &options),
		  "tw_create");
	trial->origin = trial->wheel->owner.clock.ticks.origin;
}

static void set(struct trial *trial, size_t i, int64_t deadline)
{
	tw_duration delay = deadline - tw_now(trial->wheel);

	expect_ok(tw_after_func(trial->wheel, delay, on_run, NULL, &trial->handles[i]),
		  "tw_after_func");
}

static void stop(struct trial *trial, size_t i)
{
	expect_ok(tw_timer_stop(trial->wheel, trial->handles[i]), "tw_timer_stop");
	fates_add(FATE_STOPPED);
}

/* Chooses a random order to set or stop them in. */
static void shuffle_order(struct trial *trial)
{
	for (size_t i = 0; i < (size_t)trial->plan->count; i++) {
		size_t j = (size_t)generator_range(&trial->generator, 0, (int64_t)i + 1);

		trial->order[i] = trial->order[j];
		trial->order[j] = (uint32_t)i;
	}
}

/* Sets and stops all, some at a time, so that this is no load by itself. */
static void age(struct trial *trial)
{
	int64_t count = trial->plan->count;

	for (int64_t i = 0; i < count; i++)
		set(trial, (size_t)i, stopwatch_now() + 60 * MINUTE);
	shuffle_order(trial);
	for (int64_t i = 0; i < count; i++) {
		if (i % 256 == 0)
			expect_ok(tw_flush(trial->wheel), "tw_flush");
		stop(trial, trial->order[i]);
	}
	do
		expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	while (expect_stats(trial->wheel).pending > 0 || fates_counted(FATE_STOPPED) < count);
	shuffle_order(trial);
}

/* --- One run ---------------------------------------------------------------------------------- */

/*
 * Plans deadlines in one slot. A slot of level n spans slots^n ticks; this is one of the coarsest
 * level that the load allows. A slot that begins three spans after the wheel is filled is out of
 * reach of the level below, also where the wheel begins to empty it a span before: the load begins.
 * Timers of one tick are due in the slot's first: they cascade level by level as well, all
 * together.
 */
static void plan_slot(struct trial *trial, int64_t ready)
{
	const struct plan *plan = trial->plan;
	int64_t span = plan->slots * plan->interval;

	while (span * plan->slots <= loads[plan->load].coarse)
		span *= plan->slots;
	trial->first = ((ready - trial->origin) / span + 3) * span + trial->origin;
	trial->heart.begins = trial->first - span;
	trial->due = trial->first + (plan->load == DUE ? 0 : span - plan->interval);
}

/* Plans when the load begins, and the deadlines. Setting a timer may take a slow machine 1 us. */
static void plan_deadlines(struct trial *trial)
{
	const struct plan *plan = trial->plan;
	int64_t ready;

	trial->all_set_by = stopwatch_now() + NANOSECONDS_PER_SECOND / 2 + plan->count * 1000;
	ready = trial->all_set_by + REST + plan->calm;
	if (loads[plan->load].coarse) {
		plan_slot(trial, ready);
	} else {
		trial->heart.begins = tick_from(trial, ready);
		trial->first = trial->all_set_by + 2 * MINUTE;
		trial->due = trial->all_set_by + 60 * MINUTE;
	}
	trial->heart.calm_from = trial->heart.begins - plan->calm;
}

static void fill(struct trial *trial)
{
	int64_t interval = trial->plan->interval;

	/* This is the middle before a tick, so that a slow call still means that tick. */
	for (int64_t i = 0; i < trial->plan->count; i++)
		set(trial, trial->order[i],
		    tick_from(trial,
			      generator_range(&trial->generator, trial->first, trial->due + 1)) -
			    interval / 2);
	expect_ok(tw_flush(trial->wheel), "tw_flush");
	if (stopwatch_now() > trial->all_set_by)
		process_fail("the machine is too slow to set %s timers before the load",
			     format_count(trial->plan->count).characters);
	shuffle_order(trial);
}

static void set_off(struct trial *trial)
{
	if (!loads[trial->plan->load].coarse)
		trial->due = stopwatch_now();
	if (trial->plan->load == DRAIN) {
		heart_stop(trial);
		expect_ok(tw_drain(trial->wheel, on_drained, NULL), "tw_drain");
		heart_start(trial);
	}
	for (int64_t i = 0; trial->plan->load == STOP && i < trial->plan->count; i++)
		stop(trial, trial->order[i]);
}

/* Waits until each timer has met its fate: those stopped by the load, after those of the aging. */
static void wait_until_over(struct trial *trial)
{
	enum fate fate = loads[trial->plan->load].fate;
	int64_t count = trial->plan->count * (fate == FATE_STOPPED ? 2 : 1);

	if (fate == FATE_COUNT) {
		stopwatch_sleep(trial->plan->calm);
		return;
	}
	while (fates_counted(fate) < count) {
		if (stopwatch_now() > trial->due + PATIENCE)
			process_fail("%s of %s timers",
				     format_count(fates_counted(fate)).characters,
				     format_count(count).characters);
		stopwatch_sleep(TW_MILLISECOND);
	}
}

static void report(const struct percentiles *beats, double *result)
{
	result[0] = (double)percentiles_at(beats, 50);
	result[1] = (double)percentiles_at(beats, 99);
	result[2] = (double)percentiles_most(beats);
}

static void run_trial(const void *argument, double *result)
{
	const struct plan *plan = argument;
	struct trial trial = {.plan = plan,
			      .generator = {plan->seed},
			      .heart = {.period = plan->beat,
					.calm = percentiles_create(),
					.loaded = percentiles_create()}};

	trial.order = process_allocate((size_t)plan->count * sizeof(*trial.order));
	open_wheel(&trial);
	age(&trial);
	plan_deadlines(&trial);
	heart_start(&trial);
	fill(&trial);
	stopwatch_sleep(trial.heart.begins - stopwatch_now());
	set_off(&trial);
	wait_until_over(&trial);
	result[AFTER] = plan->load == NONE ? NAN : (double)(stopwatch_now() - trial.due);
	/* The beat that is due at the end belongs to the load. */
	stopwatch_sleep(2 * plan->beat);
	heart_stop(&trial);
	report(trial.heart.calm, result + CALM_P50);
	report(trial.heart.loaded, result + LATE_P50);
	tw_destroy(trial.wheel);
}

/* --- All runs --------------------------------------------------------------------------------- */

static void run_load(const struct plan *plan, int64_t runs, struct figures *figures)
{
	struct progress progress = progress_start(stderr, false);
	struct plan own = *plan;

	if (plan->load == CROWD) {
		own.slots = 16;
		own.interval = 100 * TW_MICROSECOND;
		own.count *= 4;
	}
	for (int64_t run = 0; run < runs; run++, own.seed++) {
		progress_show(&progress, "%s: run %" PRId64 " of %" PRId64, loads[plan->load].title,
			      run + 1, runs);
		figures_run(figures, run_trial, &own);
	}
	progress_wipe(&progress);
}

struct settings {
	struct plan plan;
	int64_t runs;
	int only; /* a load's number + 1, or 0 for all */
	const char *csv_path;
};

static void parse(int argc, char **argv, struct settings *settings)
{
	const struct program_option options[] = {
		{"load", OPTION_CHOICE, &settings->only,
		 .choices = "all,none,cascade,due,drain,stop,crowd", .help = "which"},
		{"count", OPTION_COUNT, &settings->plan.count, 1, 100000000, .help = "timers"},
		{"interval", OPTION_DURATION, &settings->plan.interval, 1000, 10 * TW_MILLISECOND,
		 .help = "the tick"},
		{"slots", OPTION_COUNT, &settings->plan.slots, 16, 512,
		 .help = "slots of a level, rounded up to 2^n"},
		{"beat", OPTION_DURATION, &settings->plan.beat, TW_MICROSECOND, TW_SECOND,
		 .help = "time between two beats"},
		{"calm", OPTION_SECONDS, &settings->plan.calm, NANOSECONDS_PER_SECOND / 10, MINUTE,
		 .help = "how long to watch before the load"},
		{"workers", OPTION_COUNT, &settings->plan.workers, 0, TW_WORKERS_MAX / 2,
		 .help = "the wheel's workers; with 0 tasks run on the owner"},
		FIGURES_OPTIONS(&settings->runs, &settings->csv_path),
		{0},
	};

	options_parse(argc, argv, "How long is the owner's longest turn?", options);
	while (settings->plan.slots & (settings->plan.slots - 1))
		settings->plan.slots += settings->plan.slots & -settings->plan.slots;
}

static void print_all(const struct settings *settings, struct figures *const *rows, size_t count)
{
	const struct plan *plan = &settings->plan;
	char head[256];

	snprintf(head, sizeof(head),
		 "A beat of %s beside %s timers by handle, tick %s, %" PRId64
		 " slots; medians of %" PRId64 " runs",
		 format_duration(plan->beat).characters, format_count(plan->count).characters,
		 format_duration(plan->interval).characters, plan->slots, settings->runs);
	machine_print();
	figures_print_rows(head, rows, count);
}

int main(int argc, char **argv)
{
	struct settings settings = {.plan = {.count = 1000000,
					     .interval = TW_MILLISECOND,
					     .slots = 64,
					     .beat = 5 * TW_MILLISECOND,
					     .calm = 2 * NANOSECONDS_PER_SECOND,
					     .workers = 2,
					     .seed = 1},
				    .runs = 5};
	struct plan *plan = &settings.plan;
	struct figures *rows[LOADS];
	size_t count = 0;

	parse(argc, argv, &settings);
	figures_open(settings.csv_path);
	for (plan->load = 0; plan->load < LOADS; plan->load++) {
		if (settings.only != 0 && settings.only != (int)plan->load + 1)
			continue;
		rows[count] =
			figures_create(loads[plan->load].name, loads[plan->load].title, measures);
		run_load(plan, settings.runs, rows[count++]);
	}
	print_all(&settings, rows, count);
	figures_close();
	while (count > 0)
		figures_destroy(rows[--count]);
	return 0;
}
