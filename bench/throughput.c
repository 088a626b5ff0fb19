/* SPDX-License-Identifier: MIT */
/*
 * How many commands a second does a wheel apply that holds a million timers, what does a call cost
 * its caller, and how much memory does a timer take?
 *
 * Keys are 16 random bytes, made and shuffled before each phase; the producers share them out and
 * go through them in memory order, so that the wheel meets them at random. A phase lasts from the
 * producers' start until all its commands have been applied. No timer comes due meanwhile. Every
 * run is a process of its own.
 *
 * What a call costs is asked at two paces. A contender that can't hold the fast one shows how far
 * it got, and how long its callers waited for those before them.
 *
 * The baseline is go-zero's design in C (support/simple_wheel.h), with the same keys and producers.
 */
#include "support/contender.h"
#include "support/csv.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/percentiles.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/pace.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"

#include <timingwheel/timingwheel.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE (60 * NANOSECONDS_PER_SECOND)

enum phase { PHASE_FILL, PHASE_SET, PHASE_MOVE, PHASE_LATER, PHASE_REMOVE, PHASE_COUNT };

struct phase_plan {
	const char *name; /* in the CSV file */
	const char *title;
	int64_t shortest; /* delays */
	int64_t longest;
};

static const struct phase_plan phases[PHASE_COUNT] = {
	[PHASE_FILL] = {"fill", "set, new key", 1 * MINUTE, 60 * MINUTE},
	[PHASE_SET] = {"set", "set, existing key", 1 * MINUTE, 60 * MINUTE},
	[PHASE_MOVE] = {"move", "move, sooner or later", 1 * MINUTE, 60 * MINUTE},
	[PHASE_LATER] = {"later", "move, later only", 61 * MINUTE, 120 * MINUTE},
	[PHASE_REMOVE] = {"remove", "remove", 0, 1},
};

/* One caller at a steady pace, what its calls took it. The slow pace is one that all can hold. */
enum pacing { PACING_FAST, PACING_SLOW, PACING_COUNT };

struct pacing_plan {
	const char *name; /* in the CSV file */
	const char *title;
	int64_t step; /* nanoseconds from one call to the next */
	int64_t calls;
};

static const struct pacing_plan pacings[PACING_COUNT] = {
	[PACING_FAST] = {"", "a million calls a second", 1000, 1000000},
	[PACING_SLOW] = {"slow_", "a hundred thousand calls a second", 10000, 100000},
};

enum paced { PACED_SET, PACED_MOVE, PACED_COUNT };

static const char *const paced_names[PACED_COUNT] = {"set", "move"};
static const double paced_percents[] = {50, 99, 99.9};

#define PERCENT_COUNT (sizeof(paced_percents) / sizeof(paced_percents[0]))

struct plan {
	const struct contender *contender;
	int64_t count;
	int64_t commands; /* a phase, the fill apart */
	int64_t producers;
	int64_t interval;
	int64_t slots;
	uint64_t seed;
};

/* All doubles, one measure each. */
struct result {
	double per_second[PHASE_COUNT];
	double longest_turn[PHASE_COUNT];          /* so far, nanoseconds of CPU time */
	double longest_turn_wall;                  /* of the whole run, by the clock */
	double reached[PACING_COUNT][PACED_COUNT]; /* calls a second */
	double call_time[PACING_COUNT][PACED_COUNT][PERCENT_COUNT];
	double bytes_per_timer;
};

struct producer {
	pthread_t thread;
	pthread_barrier_t *start;
	const struct contender *contender;
	void *wheel;
	enum phase phase;
	const struct random_key *keys;
	size_t count;
	struct generator generator;
};

struct trial {
	const struct plan *plan;
	struct result *result;
	void *wheel;
	struct random_key *keys;
	struct generator generator;
};

/* --- Producers -------------------------------------------------------------------------------- */

static void produce(struct producer *producer,
		    void (*call)(void *wheel, const struct random_key *key, int64_t delay))
{
	const struct phase_plan *plan = &phases[producer->phase];

	for (size_t i = 0; i < producer->count; i++)
		call(producer->wheel, &producer->keys[i],
		     generator_range(&producer->generator, plan->shortest, plan->longest));
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;
	const struct contender *contender = producer->contender;

	pthread_barrier_wait(producer->start);
	if (producer->phase == PHASE_REMOVE) {
		for (size_t i = 0; i < producer->count; i++)
			contender->calls->remove(producer->wheel, &producer->keys[i]);
	} else if (producer->phase == PHASE_FILL || producer->phase == PHASE_SET) {
		produce(producer, contender->calls->set);
	} else {
		produce(producer, contender->calls->move);
	}
	return NULL;
}

static struct producer *producers_start(struct trial *trial, enum phase phase, size_t commands,
					pthread_barrier_t *start)
{
	size_t count = (size_t)trial->plan->producers;
	struct producer *producers = process_allocate(count * sizeof(*producers));

	for (size_t i = 0; i < count; i++) {
		size_t first = commands * i / count;

		producers[i] = (struct producer){
			.start = start,
			.contender = trial->plan->contender,
			.wheel = trial->wheel,
			.phase = phase,
			.keys = trial->keys + first,
			.count = commands * (i + 1) / count - first,
			.generator = {generator_next(&trial->generator)},
		};
		if (pthread_create(&producers[i].thread, NULL, producer_run, &producers[i]) != 0)
			process_fail("a producer could not be started");
	}
	return producers;
}

/* --- One run ---------------------------------------------------------------------------------- */

/* The count may trail what has been applied by a turn of the owner. */
static int64_t settled_pending(struct trial *trial, int64_t expected)
{
	int64_t pending = -1;

	for (int i = 0; i < 1000 && pending != expected; i++) {
		if (i > 0)
			stopwatch_sleep(NANOSECONDS_PER_SECOND / 1000);
		pending = trial->plan->contender->calls->state(trial->wheel).pending;
	}
	return pending;
}

static void expect_pending(struct trial *trial, enum phase phase, size_t commands)
{
	int64_t expected = trial->plan->count - (phase == PHASE_REMOVE ? (int64_t)commands : 0);
	int64_t pending = settled_pending(trial, expected);

	if (pending != expected)
		process_fail("%s: %s pending after %s, should be %s", trial->plan->contender->name,
			     format_count(pending).characters, phases[phase].title,
			     format_count(expected).characters);
}

static void run_phase(struct trial *trial, enum phase phase)
{
	const struct contender *contender = trial->plan->contender;
	size_t commands =
		(size_t)(phase == PHASE_FILL ? trial->plan->count : trial->plan->commands);
	struct producer *producers;
	pthread_barrier_t barrier;
	int64_t start;

	keys_shuffle(trial->keys, (size_t)trial->plan->count, &trial->generator);
	pthread_barrier_init(&barrier, NULL, (unsigned)trial->plan->producers + 1);
	producers = producers_start(trial, phase, commands, &barrier);
	/* Before the barrier: after it the producers may run and this thread may not. */
	start = stopwatch_now();
	pthread_barrier_wait(&barrier);
	for (int64_t i = 0; i < trial->plan->producers; i++)
		pthread_join(producers[i].thread, NULL);
	contender->calls->flush(trial->wheel);
	trial->result->per_second[phase] = (double)commands / seconds_of(stopwatch_now() - start);
	trial->result->longest_turn[phase] =
		(double)contender->calls->state(trial->wheel).longest_turn;
	expect_pending(trial, phase, commands);
	pthread_barrier_destroy(&barrier);
	free(producers);
}

/* Answers how many calls a second it reached. */
static double call_paced(struct trial *trial, enum pacing pacing, enum paced paced,
			 struct percentiles *times)
{
	const struct contender_calls *calls = trial->plan->contender->calls;
	const struct phase_plan *plan = &phases[PHASE_MOVE];
	struct pace pace = pace_start(pacings[pacing].step);

	for (int64_t i = 0; i < pacings[pacing].calls; i++) {
		const struct random_key *key = &trial->keys[i % trial->plan->count];
		int64_t delay = generator_range(&trial->generator, plan->shortest, plan->longest);
		int64_t start = pace_await(&pace);

		(paced == PACED_SET ? calls->set : calls->move)(trial->wheel, key, delay);
		percentiles_record(times, pace_took(&pace, start));
	}
	return pace_reached(&pace, pacings[pacing].calls);
}

static void run_paced(struct trial *trial, enum pacing pacing, enum paced paced)
{
	struct percentiles *times = percentiles_create();

	keys_shuffle(trial->keys, (size_t)trial->plan->count, &trial->generator);
	trial->result->reached[pacing][paced] = call_paced(trial, pacing, paced, times);
	trial->plan->contender->calls->flush(trial->wheel);
	for (size_t i = 0; i < PERCENT_COUNT; i++)
		trial->result->call_time[pacing][paced][i] =
			(double)percentiles_at(times, paced_percents[i]);
	percentiles_destroy(times);
}

static void run_trial(const void *argument, void *result)
{
	const struct plan *plan = argument;
	struct trial trial = {.plan = plan, .result = result, .generator = {plan->seed}};
	int64_t resident;

	trial.keys = keys_create((size_t)plan->count, plan->seed);
	resident = process_resident();
	trial.wheel = contender_create(plan->contender, plan->interval, (size_t)plan->slots);
	plan->contender->calls->start(trial.wheel);
	run_phase(&trial, PHASE_FILL);
	trial.result->bytes_per_timer =
		(double)(process_resident() - resident) / (double)plan->count;
	run_phase(&trial, PHASE_SET);
	run_phase(&trial, PHASE_MOVE);
	run_phase(&trial, PHASE_LATER);
	for (enum pacing pacing = 0; pacing < PACING_COUNT; pacing++) {
		run_paced(&trial, pacing, PACED_SET);
		run_paced(&trial, pacing, PACED_MOVE);
	}
	run_phase(&trial, PHASE_REMOVE);
	trial.result->longest_turn_wall =
		(double)plan->contender->calls->state(trial.wheel).longest_turn_wall;
	plan->contender->calls->destroy(trial.wheel);
	free(trial.keys);
}

/* --- All runs --------------------------------------------------------------------------------- */

struct settings {
	struct plan plan;
	int64_t runs;
	int64_t baseline_runs;
	int layout;
	int baseline; /* 0: with a buffered channel; 1: unbuffered */
	const char *csv_path;
};

/* The library stands first, the baseline that it is compared with second. */
#define COLUMN_COUNT 2

/*
 * go-zero's channel is unbuffered; a buffered one is many times faster between threads. A slow
 * baseline is given fewer commands, so that it doesn't take minutes.
 */
static struct plan baseline_plan(const struct settings *settings)
{
	struct plan plan = settings->plan;
	int64_t most_commands = settings->baseline ? 100000 : 500000;

	plan.contender = settings->baseline ? &contender_unbuffered : &contender_buffered;
	plan.commands = plan.count < most_commands ? plan.count : most_commands;
	return plan;
}

static void write_paced(struct csv csv, const char *name, int run, const struct result *result)
{
	for (enum pacing pacing = 0; pacing < PACING_COUNT; pacing++) {
		const char *pace = pacings[pacing].name;

		for (enum paced paced = 0; paced < PACED_COUNT; paced++) {
			csv_row(csv, "%s,%d,%s_%sreached_per_second,%.0f", name, run,
				paced_names[paced], pace, result->reached[pacing][paced]);
			for (size_t i = 0; i < PERCENT_COUNT; i++)
				csv_row(csv, "%s,%d,%s_%scall_p%g_ns,%.0f", name, run,
					paced_names[paced], pace, paced_percents[i],
					result->call_time[pacing][paced][i]);
		}
	}
}

static void write_run(struct csv csv, const char *name, int run, const struct result *result)
{
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		csv_row(csv, "%s,%d,%s_per_second,%.0f", name, run, phases[phase].name,
			result->per_second[phase]);
		csv_row(csv, "%s,%d,%s_longest_turn_ns,%.0f", name, run, phases[phase].name,
			result->longest_turn[phase]);
	}
	write_paced(csv, name, run, result);
	csv_row(csv, "%s,%d,longest_turn_wall_ns,%.0f", name, run, result->longest_turn_wall);
	csv_row(csv, "%s,%d,bytes_per_timer,%.1f", name, run, result->bytes_per_timer);
}

static void run_contender(const struct plan *plan, int run, struct csv csv, struct figures *figures)
{
	struct plan own = *plan;
	struct result result;

	own.seed = plan->seed + (uint64_t)run;
	figures_run(figures, run_trial, &own, &result, sizeof(result));
	write_run(csv, plan->contender->name, run + 1, &result);
}

/* The contenders take turns, so that a noisy time meets both. */
static void run_all(const struct settings *settings, struct csv csv,
		    struct figures *const columns[COLUMN_COUNT])
{
	const struct plan plans[COLUMN_COUNT] = {settings->plan, baseline_plan(settings)};
	const int64_t runs[COLUMN_COUNT] = {settings->runs, settings->baseline_runs};
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < FIGURES_RUNS; run++) {
		for (int i = 0; i < COLUMN_COUNT; i++) {
			if (run >= runs[i])
				continue;
			progress_show(&progress, "%s: run %d of %" PRId64,
				      plans[i].contender->title, run + 1, runs[i]);
			run_contender(&plans[i], run, csv, columns[i]);
		}
	}
	progress_wipe(&progress);
}

/* --- The table -------------------------------------------------------------------------------- */

static void print_paced(struct figures *const columns[COLUMN_COUNT], enum pacing pacing)
{
	char title[64];

	printf("caller's time, %s\n", pacings[pacing].title);
	for (enum paced paced = 0; paced < PACED_COUNT; paced++) {
		snprintf(title, sizeof(title), "%s, million a second", paced_names[paced]);
		figures_print_rate(title, columns, FIGURE(struct result, reached[pacing][paced]));
		figures_print_percentiles(paced_names[paced], columns,
					  FIGURE(struct result, call_time[pacing][paced]),
					  paced_percents, PERCENT_COUNT);
	}
}

static void print_figures(struct figures *const columns[COLUMN_COUNT])
{
	figures_print_head("million a second", columns);
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		figures_print_rate(phases[phase].title, columns,
				   FIGURE(struct result, per_second[phase]));
	for (enum pacing pacing = 0; pacing < PACING_COUNT; pacing++)
		print_paced(columns, pacing);
	printf("memory\n");
	figures_print_cost("resident bytes a timer", columns,
			   FIGURE(struct result, bytes_per_timer), format_count);
	printf("owner's longest turn, work, from the start to the end of\n");
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		figures_print_cost(phases[phase].title, columns,
				   FIGURE(struct result, longest_turn[phase]), format_duration);
	figures_print_cost("all, by the clock", columns, FIGURE(struct result, longest_turn_wall),
			   format_duration);
}

/* --- The command line ------------------------------------------------------------------------- */

static void parse(int argc, char **argv, struct settings *settings)
{
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &settings->plan.count, 1000, 500000000,
		 .help = "timers in the wheel"},
		{"producers", OPTION_COUNT, &settings->plan.producers, 1, 1000,
		 .help = "threads that command"},
		{"runs", OPTION_COUNT, &settings->runs, 1, FIGURES_RUNS,
		 .help = "runs; medians are printed"},
		{"baseline-runs", OPTION_COUNT, &settings->baseline_runs, 1, FIGURES_RUNS,
		 .help = "runs of each baseline"},
		{"interval", OPTION_DURATION, &settings->plan.interval, 1000, MINUTE,
		 .help = "the tick"},
		{"slots", OPTION_COUNT, &settings->plan.slots, 1, TW_SLOTS_MAX,
		 .help = "the slots"},
		{"layout", OPTION_CHOICE, &settings->layout, .choices = "levels,rounds",
		 .help = "the library's layout"},
		{"baseline", OPTION_CHOICE, &settings->baseline, .choices = "buffered,unbuffered",
		 .help = "its channel; go-zero's is unbuffered"},
		{"csv", OPTION_TEXT, &settings->csv_path,
		 .help = "every run's figures to this file"},
		{0},
	};

	options_parse(argc, argv, "How many commands a second, at what cost a call and a timer?",
		      options);
}

static void print_head(const struct settings *settings)
{
	const struct plan *plan = &settings->plan;

	printf("%s\n%s timers, %" PRId64 " producers, tick %s, %s slots; medians of %" PRId64
	       " runs (baselines %" PRId64 "), least to most in brackets\n",
	       machine_description(), format_count(plan->count).characters, plan->producers,
	       format_duration(plan->interval).characters, format_count(plan->slots).characters,
	       settings->runs, settings->baseline_runs);
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.plan = {.count = 1000000,
			 .producers = 2,
			 .interval = NANOSECONDS_PER_SECOND / 1000,
			 .slots = 512,
			 .seed = 1},
		.runs = 5,
		.baseline_runs = 3,
	};
	struct figures *columns[COLUMN_COUNT];
	struct csv csv;

	parse(argc, argv, &settings);
	csv = csv_open(settings.csv_path, "contender,run,measure,value");
	settings.plan.commands = settings.plan.count;
	settings.plan.contender = settings.layout ? &contender_rounds : &contender_levels;
	print_head(&settings);
	columns[0] = figures_create(settings.plan.contender->title);
	columns[1] = figures_create(baseline_plan(&settings).contender->title);
	run_all(&settings, csv, columns);
	print_figures(columns);
	for (int i = 0; i < COLUMN_COUNT; i++)
		figures_destroy(columns[i]);
	csv_close(csv);
	return 0;
}
