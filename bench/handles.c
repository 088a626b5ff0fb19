/* SPDX-License-Identifier: MIT */
/*
 * What do timers without a key cost?
 *
 * Several threads share a million timers and call, as fast as they can: set them all; stop one and
 * set another, a million times in random order; reset (move) them in random order; stop them all. A
 * phase lasts from the threads' start until the wheel has applied all commands. Then one thread
 * calls at a steady pace, and each call is timed. No timer comes due. Every run is a process of its
 * own.
 *
 * The baseline is the library itself with 16-byte random keys, where a stop is a remove and a reset
 * is a move.
 */
#include "support/csv.h"
#include "support/expect.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/percentiles.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/pace.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE (60 * NANOSECONDS_PER_SECOND)
#define PATIENCE MINUTE
#define PACED_CALLS 100000
#define PACE 1000 /* nanoseconds from one call to the next: a million a second */

enum phase { PHASE_FILL, PHASE_CHURN, PHASE_RESET, PHASE_STOP, PHASE_COUNT };

static const struct {
	const char *name;
	const char *title;
	int calls; /* for each timer */
} phases[PHASE_COUNT] = {
	[PHASE_FILL] = {"fill", "set", 1},
	[PHASE_CHURN] = {"churn", "stop and set another", 2},
	[PHASE_RESET] = {"reset", "reset", 1},
	[PHASE_STOP] = {"stop", "stop", 1},
};

enum paced { PACED_SET, PACED_STOP, PACED_RESET, PACED_COUNT };

static const char *const paced_names[PACED_COUNT] = {"set", "stop", "reset"};
static const double paced_percents[] = {50, 99};

#define PERCENT_COUNT (sizeof(paced_percents) / sizeof(paced_percents[0]))

/* All fields are doubles, one measure each. */
struct result {
	double per_second[PHASE_COUNT];
	double call_time[PACED_COUNT][PERCENT_COUNT];
	/* These are resident bytes a timer, after the fill and after all but the stops. */
	double bytes_filled;
	double bytes_churned;
};

/* A name is how the caller refers to a timer. */
union name {
	struct tw_timer handle;
	struct random_key key;
};

struct way {
	const char *name;
	const char *title;
	size_t name_size;
	void (*set)(struct tw_wheel *wheel, void *name, int64_t delay);
	void (*stop)(struct tw_wheel *wheel, void *name);
	void (*reset)(struct tw_wheel *wheel, void *name, int64_t delay);
};

struct plan {
	const struct way *way;
	int64_t count;
	int64_t threads;
	int64_t interval;
	int64_t slots;
	uint64_t seed;
};

struct trial {
	const struct plan *plan;
	struct result *result;
	struct tw_wheel *wheel;
	char *names; /* name_size each */
	struct generator generator;
};

struct caller {
	pthread_t thread;
	pthread_barrier_t *start;
	const struct trial *trial;
	enum phase phase;
	size_t first;
	size_t end;
	struct generator generator;
};

/* --- The two ways ----------------------------------------------------------------------------- */

static void on_run(void *argument)
{
	(void)argument;
	process_fail("a timer ran that was not due");
}

static void on_expiry(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	process_fail("a timer ran that was not due");
}

static void handle_set(struct tw_wheel *wheel, void *name, int64_t delay)
{
	expect_ok(tw_after_func(wheel, delay, on_run, NULL, name), "tw_after_func");
}

static void handle_stop(struct tw_wheel *wheel, void *name)
{
	expect_ok(tw_timer_stop(wheel, *(struct tw_timer *)name), "tw_timer_stop");
}

static void handle_reset(struct tw_wheel *wheel, void *name, int64_t delay)
{
	expect_ok(tw_timer_reset(wheel, *(struct tw_timer *)name, delay), "tw_timer_reset");
}

static const struct way by_handle = {
	.name = "handles",
	.title = "by handle",
	.name_size = sizeof(struct tw_timer),
	.set = handle_set,
	.stop = handle_stop,
	.reset = handle_reset,
};

static void key_set(struct tw_wheel *wheel, void *name, int64_t delay)
{
	expect_ok(tw_set_timer(wheel, name, sizeof(struct random_key), NULL, delay),
		  "tw_set_timer");
}

static void key_remove(struct tw_wheel *wheel, void *name)
{
	expect_ok(tw_remove_timer(wheel, name, sizeof(struct random_key)), "tw_remove_timer");
}

static void key_move(struct tw_wheel *wheel, void *name, int64_t delay)
{
	expect_ok(tw_move_timer(wheel, name, sizeof(struct random_key), delay), "tw_move_timer");
}

static const struct way by_key = {
	.name = "keys",
	.title = "by key",
	.name_size = sizeof(struct random_key),
	.set = key_set,
	.stop = key_remove,
	.reset = key_move,
};

/* --- Callers ---------------------------------------------------------------------------------- */

static void *name_at(const struct trial *trial, size_t i)
{
	return trial->names + i * trial->plan->way->name_size;
}

static int64_t random_delay(struct generator *generator)
{
	return generator_range(generator, 1 * MINUTE, 60 * MINUTE);
}

static void caller_call_once(struct caller *caller, size_t i)
{
	const struct way *way = caller->trial->plan->way;
	struct tw_wheel *wheel = caller->trial->wheel;
	void *name = name_at(caller->trial, i);

	switch (caller->phase) {
	case PHASE_CHURN:
		way->stop(wheel, name);
		way->set(wheel, name, random_delay(&caller->generator));
		return;
	case PHASE_FILL:
		way->set(wheel, name, random_delay(&caller->generator));
		return;
	case PHASE_RESET:
		way->reset(wheel, name, random_delay(&caller->generator));
		return;
	default:
		way->stop(wheel, name);
	}
}

static void *caller_run(void *argument)
{
	struct caller *caller = argument;

	pthread_barrier_wait(caller->start);
	for (size_t i = caller->first; i < caller->end; i++)
		caller_call_once(caller, i);
	return NULL;
}

static struct caller *callers_start(struct trial *trial, enum phase phase, pthread_barrier_t *start)
{
	size_t threads = (size_t)trial->plan->threads, count = (size_t)trial->plan->count;
	struct caller *callers = process_allocate(threads * sizeof(*callers));

	for (size_t i = 0; i < threads; i++) {
		callers[i] = (struct caller){
			.start = start,
			.trial = trial,
			.phase = phase,
			.first = count * i / threads,
			.end = count * (i + 1) / threads,
			.generator = {generator_next(&trial->generator)},
		};
		if (pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]) != 0)
			process_fail("a caller could not be started");
	}
	return callers;
}

/* --- One run ---------------------------------------------------------------------------------- */

/* Callers then use the names in memory order and reach timers at random. */
static void shuffle_names(struct trial *trial)
{
	size_t size = trial->plan->way->name_size;
	union name kept;

	for (size_t i = (size_t)trial->plan->count; i > 1; i--) {
		void *one = name_at(trial, i - 1);
		void *other =
			name_at(trial, (size_t)generator_range(&trial->generator, 0, (int64_t)i));

		memcpy(&kept, one, size);
		memmove(one, other, size);
		memcpy(other, &kept, size);
	}
}

/* Waits until the wheel has applied the commands of the phases up to this one. */
static void wait_applied(const struct trial *trial, uint64_t set, uint64_t moved, uint64_t removed)
{
	int64_t end = stopwatch_now() + PATIENCE;
	struct tw_stats stats;

	do {
		expect_ok(tw_flush(trial->wheel), "tw_flush");
		stats = expect_stats(trial->wheel);
	} while ((stats.set != set || stats.removed != removed) && stopwatch_now() < end);
	if (stats.set != set || stats.removed != removed || stats.pending != set - removed)
		process_fail("%s: %" PRIu64 " set, %" PRIu64 " removed, %" PRIu64
			     " pending; should be %" PRIu64 ", %" PRIu64 ", %" PRIu64,
			     trial->plan->way->name, stats.set, stats.removed, stats.pending, set,
			     removed, set - removed);
	/* A handle that is reset twice before the owner sees it is moved once. */
	if (trial->plan->way == &by_key && stats.moved != moved)
		process_fail("%" PRIu64 " moved, should be %" PRIu64, stats.moved, moved);
}

/* Waits for the commands of the phases up to this one and of `paced` calls of each kind. */
static void wait_phase(const struct trial *trial, enum phase phase, uint64_t paced)
{
	uint64_t count = (uint64_t)trial->plan->count;

	wait_applied(trial, count * (phase >= PHASE_CHURN ? 2 : 1) + paced,
		     count * (phase >= PHASE_RESET) + paced,
		     count * ((phase >= PHASE_CHURN) + (phase >= PHASE_STOP)) + paced);
}

static void run_phase(struct trial *trial, enum phase phase, uint64_t paced)
{
	double calls = (double)trial->plan->count * phases[phase].calls;
	pthread_barrier_t barrier;
	struct caller *callers;
	int64_t start;

	shuffle_names(trial);
	pthread_barrier_init(&barrier, NULL, (unsigned)trial->plan->threads + 1);
	callers = callers_start(trial, phase, &barrier);
	/* This comes before the barrier, after which the callers may run first. */
	start = stopwatch_now();
	pthread_barrier_wait(&barrier);
	for (int64_t i = 0; i < trial->plan->threads; i++)
		pthread_join(callers[i].thread, NULL);
	wait_phase(trial, phase, paced);
	trial->result->per_second[phase] = calls / seconds_of(stopwatch_now() - start);
	pthread_barrier_destroy(&barrier);
	free(callers);
}

static void call_paced(struct trial *trial, enum paced paced, void *name)
{
	const struct way *way = trial->plan->way;

	if (paced == PACED_STOP)
		way->stop(trial->wheel, name);
	else
		(paced == PACED_SET ? way->set : way->reset)(trial->wheel, name,
							     random_delay(&trial->generator));
}

/* Stops, sets and resets in turn, one timer after the other. */
static void run_paced(struct trial *trial)
{
	static const enum paced order[PACED_COUNT] = {PACED_STOP, PACED_SET, PACED_RESET};
	struct percentiles *times[PACED_COUNT];
	struct pace pace;

	for (int i = 0; i < PACED_COUNT; i++)
		times[i] = percentiles_create();
	shuffle_names(trial);
	pace = pace_start(PACE);
	for (int64_t i = 0; i < PACED_CALLS * PACED_COUNT; i++) {
		enum paced paced = order[i % PACED_COUNT];
		void *name = name_at(trial, (size_t)(i / PACED_COUNT % trial->plan->count));
		int64_t start = pace_await(&pace);

		call_paced(trial, paced, name);
		percentiles_record(times[paced], pace_took(&pace, start));
	}
	for (int i = 0; i < PACED_COUNT; i++) {
		for (size_t j = 0; j < PERCENT_COUNT; j++)
			trial->result->call_time[i][j] =
				(double)percentiles_at(times[i], paced_percents[j]);
		percentiles_destroy(times[i]);
	}
	wait_phase(trial, PHASE_RESET, PACED_CALLS);
}

static void create_names(struct trial *trial)
{
	size_t count = (size_t)trial->plan->count;

	if (trial->plan->way == &by_key)
		trial->names = (char *)keys_create(count, trial->plan->seed);
	else
		trial->names = process_allocate(count * trial->plan->way->name_size);
}

static double bytes_a_timer(const struct trial *trial, int64_t before)
{
	return (double)(process_resident() - before) / (double)trial->plan->count;
}

static void run_trial(const void *argument, void *result)
{
	const struct plan *plan = argument;
	struct trial trial = {.plan = plan, .result = result, .generator = {plan->seed}};
	struct tw_options options = {.max_workers = 2};
	int64_t resident;

	create_names(&trial);
	resident = process_resident();
	expect_ok(tw_create(&trial.wheel, plan->interval, (size_t)plan->slots, on_expiry, &options),
		  "tw_create");
	run_phase(&trial, PHASE_FILL, 0);
	trial.result->bytes_filled = bytes_a_timer(&trial, resident);
	run_phase(&trial, PHASE_CHURN, 0);
	run_phase(&trial, PHASE_RESET, 0);
	run_paced(&trial);
	trial.result->bytes_churned = bytes_a_timer(&trial, resident);
	run_phase(&trial, PHASE_STOP, PACED_CALLS);
	tw_destroy(trial.wheel);
	free(trial.names);
}

/* --- All runs --------------------------------------------------------------------------------- */

static void write_run(struct csv csv, const char *name, int run, const struct result *result)
{
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		csv_row(csv, "%s,%d,%s_per_second,%.0f", name, run, phases[phase].name,
			result->per_second[phase]);
	for (enum paced paced = 0; paced < PACED_COUNT; paced++) {
		for (size_t i = 0; i < PERCENT_COUNT; i++)
			csv_row(csv, "%s,%d,%s_call_p%g_ns,%.0f", name, run, paced_names[paced],
				paced_percents[i], result->call_time[paced][i]);
	}
	csv_row(csv, "%s,%d,bytes_per_timer,%.1f", name, run, result->bytes_filled);
	csv_row(csv, "%s,%d,bytes_per_timer_churned,%.1f", name, run, result->bytes_churned);
}

/* Both ways take turns, so that a noisy time affects both. */
static void run_all(const struct plan *plan, int runs, struct csv csv,
		    struct figures *const columns[2])
{
	static const struct way *const ways[2] = {&by_handle, &by_key};
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < 2 * runs; run++) {
		struct plan own = *plan;
		struct result result;

		own.way = ways[run % 2];
		own.seed = plan->seed + (uint64_t)run / 2;
		progress_show(&progress, "%s: run %d of %d", own.way->title, run / 2 + 1, runs);
		figures_run(columns[run % 2], run_trial, &own, &result, sizeof(result));
		write_run(csv, own.way->name, run / 2 + 1, &result);
	}
	progress_wipe(&progress);
}

/* --- The table -------------------------------------------------------------------------------- */

static void print_figures(struct figures *const columns[2])
{
	figures_print_head("million calls a second", columns);
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		figures_print_rate(phases[phase].title, columns,
				   FIGURE(struct result, per_second[phase]));
	printf("caller's time, a million calls a second\n");
	for (enum paced paced = 0; paced < PACED_COUNT; paced++)
		figures_print_percentiles(paced_names[paced], columns,
					  FIGURE(struct result, call_time[paced]), paced_percents,
					  PERCENT_COUNT);
	printf("resident bytes a timer\n");
	figures_print_cost("filled", columns, FIGURE(struct result, bytes_filled), format_count);
	figures_print_cost("churned", columns, FIGURE(struct result, bytes_churned), format_count);
}

int main(int argc, char **argv)
{
	struct plan plan = {NULL, 1000000, 2, NANOSECONDS_PER_SECOND / 1000, 512, 1};
	struct figures *columns[2] = {figures_create(by_handle.title),
				      figures_create(by_key.title)};
	const char *csv_path = NULL;
	int64_t runs = 5;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan.count, 1000, 200000000, .help = "timers"},
		{"threads", OPTION_COUNT, &plan.threads, 1, 1000, .help = "threads that call"},
		FIGURES_OPTIONS(&runs, 1, &csv_path),
		{0},
	};
	struct csv csv;

	options_parse(argc, argv, "What do timers without a key cost?", options);
	csv = csv_open(csv_path, "contender,run,measure,value");
	printf("%s\n%s timers, %" PRId64 " threads, tick %s, %s slots; medians of %" PRId64
	       " runs, least to most in brackets\n",
	       machine_description(), format_count(plan.count).characters, plan.threads,
	       format_duration(plan.interval).characters, format_count(plan.slots).characters,
	       runs);
	run_all(&plan, (int)runs, csv, columns);
	print_figures(columns);
	figures_destroy(columns[0]);
	figures_destroy(columns[1]);
	csv_close(csv);
	return 0;
}
