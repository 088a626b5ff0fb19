/* SPDX-License-Identifier: MIT */
/*
 * A million entries expire in one tick: what does each cost, and how slow are lookups of other
 * keys?
 *
 * Some entries live on. One thread looks them up all the time and times each lookup, less the cost
 * of reading the clock: before the crowd is due, and from then until it is removed. The cost of an
 * entry is the CPU time of all other threads in that time, including the listener if there is one.
 * Every run is a process of its own.
 */
#include "support/csv.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SURVIVORS = 10000, PERCENTS = 4 };

/* This is the time from the end of the filling to the crowd's deadline; the calm phase is in it. */
#define REST (500 * TW_MILLISECOND)
#define CALM (200 * TW_MILLISECOND)
#define PATIENCE TW_MINUTE

static const double percents[PERCENTS] = {50, 99, 99.9, 100};

enum phase { PHASE_CALM, PHASE_STORM, PHASES };

static const char *const phase_names[PHASES] = {"calm", "storm"};

struct plan {
	int64_t count;
	tw_duration interval;
	bool has_listener;
};

/* All fields are doubles, one measure each. */
struct result {
	double lookup[PHASES][PERCENTS]; /* nanoseconds */
	double cpu;                      /* nanoseconds an entry */
	double wall;                     /* from the deadline until all are removed, nanoseconds */
};

struct lookups {
	pthread_t thread;
	struct tw_cache *cache;
	_Atomic int phase; /* PHASES at the end */
	_Atomic int64_t cpu_at_storm;
	int64_t cpu_at_end;
	struct percentiles *times[PHASES];
};

static void execute_nothing(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

static void count_removal(void *context, const struct tw_cache_entry *entry,
			  enum tw_cache_cause cause)
{
	_Atomic uint64_t *removals = context;

	(void)entry;
	(void)cause;
	/* relaxed: a count */
	atomic_fetch_add_explicit(removals, 1, memory_order_relaxed);
}

static void set(struct tw_cache *cache, uint64_t number, tw_duration expire)
{
	struct random_key key = key_of(number, 1);
	uint64_t value[8] = {key.words[0]};

	if (tw_cache_set_with_expire(cache, &key, sizeof(key), value, sizeof(value), expire) !=
	    TW_OK)
		process_fail("a set failed");
}

/* --- Lookups ---------------------------------------------------------------------------------- */

static void look_up(struct lookups *lookups, enum phase phase, uint64_t number, int64_t overhead)
{
	struct random_key key = key_of(number, 1);
	uint64_t value[8];
	int64_t start = stopwatch_now();
	enum tw_status status =
		tw_cache_get(lookups->cache, &key, sizeof(key), value, sizeof(value), NULL);

	percentiles_record(lookups->times[phase], stopwatch_now() - start - overhead);
	if (status != TW_OK || value[0] != key.words[0])
		process_fail("an entry that lives on is not there");
}

static void *lookups_run(void *argument)
{
	struct lookups *lookups = argument;
	struct generator generator = {1};
	int64_t overhead = stopwatch_overhead();
	int phase, before = PHASE_CALM;

	/* relaxed: a phase number, orders nothing */
	while ((phase = atomic_load_explicit(&lookups->phase, memory_order_relaxed)) < PHASES) {
		if (phase != before)
			/* relaxed: read after the join */
			atomic_store_explicit(&lookups->cpu_at_storm, stopwatch_thread_cpu(),
					      memory_order_relaxed);
		before = phase;
		look_up(lookups, (enum phase)phase,
			(uint64_t)generator_range(&generator, 0, SURVIVORS), overhead);
	}
	lookups->cpu_at_end = stopwatch_thread_cpu();
	return NULL;
}

static void lookups_start(struct lookups *lookups, struct tw_cache *cache)
{
	*lookups = (struct lookups){.cache = cache};
	for (int phase = 0; phase < PHASES; phase++)
		lookups->times[phase] = percentiles_create();
	if (pthread_create(&lookups->thread, NULL, lookups_run, lookups) != 0)
		process_fail("the thread that looks up could not be started");
}

static void lookups_set_phase(struct lookups *lookups, int phase)
{
	/* relaxed: a phase number, orders nothing */
	atomic_store_explicit(&lookups->phase, phase, memory_order_relaxed);
}

static void lookups_end(struct lookups *lookups, struct result *result)
{
	lookups_set_phase(lookups, PHASES);
	pthread_join(lookups->thread, NULL);
	for (int phase = 0; phase < PHASES; phase++) {
		for (int i = 0; i < PERCENTS; i++)
			result->lookup[phase][i] =
				(double)percentiles_at(lookups->times[phase], percents[i]);
		percentiles_destroy(lookups->times[phase]);
	}
}

/* --- One run ---------------------------------------------------------------------------------- */

/* Sets the crowd in random order. Returns its deadline. */
static tw_duration set_crowd(struct tw_cache *cache, struct tw_wheel *wheel, int64_t count)
{
	uint64_t *numbers = process_allocate((size_t)count * sizeof(*numbers));
	struct generator generator = {1};
	tw_duration due = tw_now(wheel) + count * 3 * TW_MICROSECOND + REST;

	for (int64_t i = 0; i < count; i++) {
		int64_t chosen = generator_range(&generator, 0, i + 1);

		numbers[i] = numbers[chosen];
		numbers[chosen] = SURVIVORS + (uint64_t)i;
	}
	for (int64_t i = 0; i < count; i++) {
		tw_duration left = due - tw_now(wheel);

		if (left < CALM)
			process_fail("this machine is too slow to set all entries in time");
		set(cache, numbers[i], left);
	}
	free(numbers);
	return due;
}

/* Returns the CPU time of all threads except this one, which only reads the clock. */
static int64_t others_cpu(void)
{
	return stopwatch_process_cpu() - stopwatch_thread_cpu();
}

static void wait_until_left(struct tw_cache *cache, int64_t due)
{
	struct tw_cache_stats stats;

	do {
		stopwatch_sleep(200 * TW_MICROSECOND);
		tw_cache_get_stats(cache, &stats);
		if (stopwatch_now() - due > PATIENCE)
			process_fail("%" PRIu64 " entries do not leave", stats.entries);
	} while (stats.entries > SURVIVORS);
}

static void storm(const struct plan *plan, struct tw_cache *cache, tw_duration due,
		  struct result *result)
{
	struct lookups lookups;
	int64_t cpu, looked_up;

	stopwatch_sleep(due - stopwatch_now() - CALM);
	lookups_start(&lookups, cache);
	stopwatch_sleep(due - stopwatch_now());
	cpu = others_cpu();
	lookups_set_phase(&lookups, PHASE_STORM);
	wait_until_left(cache, due);
	result->wall = (double)(stopwatch_now() - due);
	cpu = others_cpu() - cpu;
	lookups_end(&lookups, result);
	/* relaxed: after the join */
	looked_up = lookups.cpu_at_end -
		    atomic_load_explicit(&lookups.cpu_at_storm, memory_order_relaxed);
	result->cpu = (double)(cpu - looked_up) / (double)plan->count;
}

static void run_trial(const void *argument, void *memory)
{
	const struct plan *plan = argument;
	_Atomic uint64_t removals = 0;
	struct tw_options wheel_options = {.max_workers = 2};
	struct tw_cache_options options = {.context = &removals,
					   .jitter = -1,
					   .on_remove = plan->has_listener ? count_removal : NULL};
	struct tw_wheel *wheel;
	struct tw_cache *cache;

	if (tw_create(&wheel, plan->interval, 512, execute_nothing, &wheel_options) != TW_OK)
		process_fail("no wheel");
	options.wheel = wheel;
	if (tw_cache_create(&cache, TW_HOUR, &options) != TW_OK)
		process_fail("no cache");
	for (uint64_t i = 0; i < SURVIVORS; i++)
		set(cache, i, TW_HOUR);
	storm(plan, cache, set_crowd(cache, wheel, plan->count), memory);
	tw_cache_flush(cache);
	if (plan->has_listener &&
	    atomic_load_explicit(&removals, memory_order_relaxed) != (uint64_t)plan->count)
		process_fail("the listener missed removals");
	tw_cache_destroy(cache);
	tw_destroy(wheel);
}

/* --- All runs --------------------------------------------------------------------------------- */

static void write_run(struct csv csv, const char *name, int run, const struct result *result)
{
	for (int phase = 0; phase < PHASES; phase++) {
		for (int i = 0; i < PERCENTS; i++)
			csv_row(csv, "%s,%d,%s_get_p%g_ns,%.0f", name, run, phase_names[phase],
				percents[i], result->lookup[phase][i]);
	}
	csv_row(csv, "%s,%d,cpu_ns_per_entry,%.1f", name, run, result->cpu);
	csv_row(csv, "%s,%d,wall_ns,%.0f", name, run, result->wall);
}

static void print_case(const char *title, const struct plan *plan, const struct figures *figures)
{
	double wall = figures_median(figures, FIGURE(struct result, wall));

	for (int phase = 0; phase < PHASES; phase++) {
		printf("%-22s %-6s", phase == PHASE_CALM ? title : "", phase_names[phase]);
		for (int i = 0; i < PERCENTS; i++) {
			double took =
				figures_median(figures, FIGURE(struct result, lookup[phase][i]));

			printf(" %9s", format_duration((int64_t)took).characters);
		}
		if (phase == PHASE_STORM)
			printf(" %14.0f %14.0f %12s",
			       figures_median(figures, FIGURE(struct result, cpu)),
			       wall / (double)plan->count,
			       format_duration((int64_t)wall).characters);
		printf("\n");
	}
}

static void run_case(const struct plan *plan, int64_t runs, struct csv csv)
{
	const char *title = plan->has_listener ? "with a listener" : "without a listener";
	struct progress progress = progress_start(stderr, false);
	struct figures *figures = figures_create(title);
	struct result result;

	for (int run = 1; run <= runs; run++) {
		progress_show(&progress, "%s: run %d of %" PRId64, title, run, runs);
		figures_run(figures, run_trial, plan, &result, sizeof(result));
		write_run(csv, plan->has_listener ? "listener" : "plain", run, &result);
	}
	progress_wipe(&progress);
	print_case(title, plan, figures);
	figures_destroy(figures);
}

int main(int argc, char **argv)
{
	struct plan plan = {.count = 1000000, .interval = TW_MILLISECOND};
	const char *csv_path = NULL;
	int64_t runs = 5;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan.count, 1, 100000000, .help = "entries that expire"},
		{"interval", OPTION_DURATION, &plan.interval, 1000, TW_SECOND, .help = "the tick"},
		FIGURES_OPTIONS(&runs, 1, &csv_path),
		{0},
	};
	struct csv csv;

	options_parse(argc, argv, "What do entries cost that expire in one tick?", options);
	csv = csv_open(csv_path, "case,run,measure,value");
	printf("%s\n%s entries expire in one tick of %s, others are looked up; medians of %" PRId64
	       " runs\n\n%-22s %-6s %9s %9s %9s %9s %14s %14s %12s\n",
	       machine_description(), format_count(plan.count).characters,
	       format_duration(plan.interval).characters, runs, "", "", "get p50", "p99", "p99.9",
	       "max", "CPU ns/entry", "wall ns/entry", "all left");
	for (int listens = 0; listens < 2; listens++) {
		plan.has_listener = listens;
		run_case(&plan, runs, csv);
	}
	csv_close(csv);
	return 0;
}
