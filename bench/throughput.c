/* SPDX-License-Identifier: MIT */
/*
 * How many commands a second does a wheel of a million timers apply, what do the producers and the
 * owner pay for each in processor time, what does a call cost its caller, and how much memory does
 * a timer take?
 *
 * Keys are 16 random bytes, made and shuffled before each phase. The producers divide them and go
 * through them in memory order, so that the wheel sees them at random. A phase lasts from the
 * producers' start until all its commands have been applied. "again" sets keys that were just
 * removed, in another order: the wheel need not grow for them. No timer comes due meanwhile. Every
 * run is a process of its own.
 *
 * The cost of a call is measured at two paces. A contender that can't keep the fast one shows the
 * rate that it reached, and how long its callers waited for earlier ones.
 *
 * With --inline one thread makes the commands and polls the wheel, which has no thread of its own;
 * its processor time is that of both sides.
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

/* Commands from one poll to the next, where the producer drives the wheel. */
#define POLL_EVERY 64

enum call { CALL_SET, CALL_MOVE, CALL_REMOVE };

/* Phases run in this order. */
enum phase {
	PHASE_FILL,
	PHASE_AGAIN,
	PHASE_SET,
	PHASE_MOVE,
	PHASE_LATER,
	PHASE_REMOVE,
	PHASE_COUNT
};

struct phase_plan {
	const char *name; /* in the CSV file and the table */
	const char *title;
	enum call call;
	int64_t shortest; /* delays */
	int64_t longest;
};

static const struct phase_plan phases[PHASE_COUNT] = {
	[PHASE_FILL] = {"fill", "set, new key", CALL_SET, 1 * MINUTE, 60 * MINUTE},
	[PHASE_AGAIN] = {"again", "set, key removed before", CALL_SET, 1 * MINUTE, 60 * MINUTE},
	[PHASE_SET] = {"set", "set, existing key", CALL_SET, 1 * MINUTE, 60 * MINUTE},
	[PHASE_MOVE] = {"move", "move, sooner or later", CALL_MOVE, 1 * MINUTE, 60 * MINUTE},
	[PHASE_LATER] = {"later", "move, later only", CALL_MOVE, 61 * MINUTE, 120 * MINUTE},
	[PHASE_REMOVE] = {"remove", "remove", CALL_REMOVE, 0, 1},
};

/* One caller calls at a steady pace and times its calls. All contenders can keep the slow pace. */
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

/* Phases run in this order: removed timers are set again. */
enum paced { PACED_SET, PACED_MOVE, PACED_REMOVE, PACED_AGAIN, PACED_COUNT };

struct paced_plan {
	const char *name; /* in the CSV file */
	const char *title;
	enum call call;
};

static const struct paced_plan paced_plans[PACED_COUNT] = {
	[PACED_SET] = {"set", "set, existing", CALL_SET},
	[PACED_MOVE] = {"move", "move", CALL_MOVE},
	[PACED_REMOVE] = {"remove", "remove", CALL_REMOVE},
	[PACED_AGAIN] = {"again", "set, removed", CALL_SET},
};

static const double paced_percents[] = {50, 99, 99.9};

#define PERCENT_COUNT (sizeof(paced_percents) / sizeof(paced_percents[0]))

struct plan {
	const struct contender *contender;
	int64_t count;
	int64_t commands; /* in a phase, except the fill */
	int64_t producers;
	int64_t interval;
	int64_t slots;
	uint64_t seed;
	bool unpaced;
};

/* A side is whose processor time is measured. */
enum side { SIDE_PRODUCERS, SIDE_OWNER, SIDES };

/* All fields are doubles, one measure each. */
struct result {
	double per_second[PHASE_COUNT];
	double cpu_time[SIDES][PHASE_COUNT];       /* nanoseconds a command */
	double reached[PACING_COUNT][PACED_COUNT]; /* calls a second */
	double call_time[PACING_COUNT][PACED_COUNT][PERCENT_COUNT];
	double bytes_per_timer;
};

struct producer {
	pthread_t thread;
	pthread_barrier_t *start;
	const struct contender *contender;
	void *wheel;
	const struct phase_plan *phase;
	const struct random_key *keys;
	size_t count;
	struct generator generator;
	int64_t cpu_time; /* the processor time that it took */
};

struct trial {
	const struct plan *plan;
	struct result *result;
	void *wheel;
	struct random_key *keys;
	struct generator generator;
};

/* --- Producers -------------------------------------------------------------------------------- */

static void give_command(const struct contender *contender, void *wheel, enum call call,
			 const struct random_key *key, int64_t delay)
{
	if (call == CALL_SET)
		contender->calls->set(wheel, key, delay);
	else if (call == CALL_MOVE)
		contender->calls->move(wheel, key, delay);
	else
		contender->calls->remove(wheel, key);
}

/* Polls if it is time after command `number`. */
static void poll_in_turn(const struct contender *contender, void *wheel, size_t number)
{
	if (number % POLL_EVERY == POLL_EVERY - 1)
		contender->calls->poll(wheel);
}

static void produce(struct producer *producer)
{
	const struct phase_plan *phase = producer->phase;

	for (size_t i = 0; i < producer->count; i++) {
		int64_t delay =
			generator_range(&producer->generator, phase->shortest, phase->longest);

		give_command(producer->contender, producer->wheel, phase->call, &producer->keys[i],
			     delay);
		poll_in_turn(producer->contender, producer->wheel, i);
	}
	producer->contender->calls->poll(producer->wheel);
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;
	int64_t start;

	pthread_barrier_wait(producer->start);
	start = stopwatch_thread_cpu();
	produce(producer);
	producer->cpu_time = stopwatch_thread_cpu() - start;
	return NULL;
}

static struct producer *producers_start(struct trial *trial, const struct phase_plan *phase,
					size_t commands, pthread_barrier_t *start)
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

/* Returns the processor time of all producers. */
static int64_t producers_join(struct producer *producers, int64_t count)
{
	int64_t cpu_time = 0;

	for (int64_t i = 0; i < count; i++) {
		pthread_join(producers[i].thread, NULL);
		cpu_time += producers[i].cpu_time;
	}
	free(producers);
	return cpu_time;
}

/* --- One run ---------------------------------------------------------------------------------- */

/* Waits for an expected count, which may trail the applied commands by a turn of the owner. */
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

/* Checks that all timers except `removed` are pending. */
static void expect_removed(struct trial *trial, const char *after, int64_t removed)
{
	int64_t expected = trial->plan->count - removed;
	int64_t pending = settled_pending(trial, expected);

	if (pending != expected)
		process_fail("%s: %s pending after %s, should be %s", trial->plan->contender->name,
			     format_count(pending).characters, after,
			     format_count(expected).characters);
}

/* All fields are nanoseconds. */
struct cost {
	int64_t wall;
	int64_t cpu_time[SIDES];
};

/* Runs a command for each of the first keys, until all have been applied. */
static struct cost run_commands(struct trial *trial, const struct phase_plan *phase,
				size_t commands)
{
	const struct contender_calls *calls = trial->plan->contender->calls;
	struct cost cost = {.cpu_time[SIDE_OWNER] = -calls->owner_cpu(trial->wheel)};
	struct producer *producers;
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, (unsigned)trial->plan->producers + 1);
	producers = producers_start(trial, phase, commands, &barrier);
	/* This comes before the barrier, after which the producers may run first. */
	cost.wall = -stopwatch_now();
	pthread_barrier_wait(&barrier);
	cost.cpu_time[SIDE_PRODUCERS] = producers_join(producers, trial->plan->producers);
	calls->flush(trial->wheel);
	cost.wall += stopwatch_now();
	cost.cpu_time[SIDE_OWNER] += calls->owner_cpu(trial->wheel);
	pthread_barrier_destroy(&barrier);
	return cost;
}

static size_t commands_of(const struct plan *plan, enum phase phase)
{
	int64_t half = plan->count / 2;

	if (phase == PHASE_FILL)
		return (size_t)plan->count;
	if (phase == PHASE_AGAIN && plan->commands > half)
		return (size_t)half;
	return (size_t)plan->commands;
}

static void shuffle_all(struct trial *trial)
{
	keys_shuffle(trial->keys, (size_t)trial->plan->count, &trial->generator);
}

static void run_phase(struct trial *trial, enum phase phase)
{
	size_t commands = commands_of(trial->plan, phase);
	struct result *result = trial->result;
	struct cost cost;

	shuffle_all(trial);
	if (phase == PHASE_AGAIN) {
		(void)run_commands(trial, &phases[PHASE_REMOVE], commands);
		expect_removed(trial, "half of the removes", (int64_t)commands);
		keys_shuffle(trial->keys, commands, &trial->generator);
	}
	cost = run_commands(trial, &phases[phase], commands);
	result->per_second[phase] = (double)commands / seconds_of(cost.wall);
	for (enum side side = 0; side < SIDES; side++)
		result->cpu_time[side][phase] = (double)cost.cpu_time[side] / (double)commands;
	expect_removed(trial, phases[phase].title, phase == PHASE_REMOVE ? (int64_t)commands : 0);
}

/* Each key has at most one call. */
static int64_t paced_calls(const struct plan *plan, enum pacing pacing)
{
	return pacings[pacing].calls < plan->count ? pacings[pacing].calls : plan->count;
}

/* Returns the calls a second that it reached. */
static double call_paced(struct trial *trial, enum pacing pacing, enum paced paced,
			 struct percentiles *times)
{
	const struct phase_plan *delays = &phases[PHASE_MOVE];
	int64_t calls = paced_calls(trial->plan, pacing);
	struct pace pace = pace_start(pacings[pacing].step);

	for (int64_t i = 0; i < calls; i++) {
		int64_t delay =
			generator_range(&trial->generator, delays->shortest, delays->longest);
		int64_t start = pace_await(&pace);

		give_command(trial->plan->contender, trial->wheel, paced_plans[paced].call,
			     &trial->keys[i], delay);
		poll_in_turn(trial->plan->contender, trial->wheel, (size_t)i);
		percentiles_record(times, pace_took(&pace, start));
	}
	return pace_reached(&pace, calls);
}

static void run_paced(struct trial *trial, enum pacing pacing, enum paced paced)
{
	struct percentiles *times = percentiles_create();
	int64_t calls = paced_calls(trial->plan, pacing);

	if (paced == PACED_AGAIN)
		keys_shuffle(trial->keys, (size_t)calls, &trial->generator);
	else
		shuffle_all(trial);
	trial->result->reached[pacing][paced] = call_paced(trial, pacing, paced, times);
	trial->plan->contender->calls->flush(trial->wheel);
	for (size_t i = 0; i < PERCENT_COUNT; i++)
		trial->result->call_time[pacing][paced][i] =
			(double)percentiles_at(times, paced_percents[i]);
	percentiles_destroy(times);
	expect_removed(trial, paced_plans[paced].title, paced == PACED_REMOVE ? calls : 0);
}

static void run_all_paced(struct trial *trial)
{
	for (enum pacing pacing = 0; pacing < PACING_COUNT; pacing++) {
		for (enum paced paced = 0; paced < PACED_COUNT; paced++)
			run_paced(trial, pacing, paced);
	}
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
	for (enum phase phase = PHASE_AGAIN; phase < PHASE_REMOVE; phase++)
		run_phase(&trial, phase);
	if (!plan->unpaced)
		run_all_paced(&trial);
	run_phase(&trial, PHASE_REMOVE);
	plan->contender->calls->destroy(trial.wheel);
	free(trial.keys);
}

/* --- All runs --------------------------------------------------------------------------------- */

struct settings {
	struct plan plan;
	int64_t runs;
	int64_t baseline_runs;
	int layout;
	bool is_inline;
	int baseline; /* 0 with a buffered channel, 1 unbuffered */
	const char *csv_path;
};

/* The library comes first, the baseline that it is compared with second. */
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
				paced_plans[paced].name, pace, result->reached[pacing][paced]);
			for (size_t i = 0; i < PERCENT_COUNT; i++)
				csv_row(csv, "%s,%d,%s_%scall_p%g_ns,%.0f", name, run,
					paced_plans[paced].name, pace, paced_percents[i],
					result->call_time[pacing][paced][i]);
		}
	}
}

static void write_run(struct csv csv, const struct plan *plan, int run, const struct result *result)
{
	const char *name = plan->contender->name;

	csv_row(csv, "%s,%d,timers,%" PRId64, name, run, plan->count);
	csv_row(csv, "%s,%d,producers,%" PRId64, name, run, plan->producers);
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		csv_row(csv, "%s,%d,%s_per_second,%.0f", name, run, phases[phase].name,
			result->per_second[phase]);
		csv_row(csv, "%s,%d,%s_producers_ns,%.1f", name, run, phases[phase].name,
			result->cpu_time[SIDE_PRODUCERS][phase]);
		csv_row(csv, "%s,%d,%s_owner_ns,%.1f", name, run, phases[phase].name,
			result->cpu_time[SIDE_OWNER][phase]);
	}
	if (!plan->unpaced)
		write_paced(csv, name, run, result);
	csv_row(csv, "%s,%d,bytes_per_timer,%.1f", name, run, result->bytes_per_timer);
}

static void run_contender(const struct plan *plan, int run, struct csv csv, struct figures *figures)
{
	struct plan own = *plan;
	struct result result;

	own.seed = plan->seed + (uint64_t)run;
	figures_run(figures, run_trial, &own, &result, sizeof(result));
	write_run(csv, plan, run + 1, &result);
}

/* The contenders take turns, so that a noisy time affects both. */
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

/* The head has a column for each phase. */
static void print_head_of_phases(const char *title)
{
	printf("\n%-23s", title);
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		printf(" %13s", phases[phase].name);
	printf("\n");
}

static void print_rates(struct figures *figures)
{
	printf("  %-21s", figures_title(figures));
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		printf(" %13.2f",
		       figures_median(figures, FIGURE(struct result, per_second[phase])) / 1e6);
	printf("\n  %-21s", "  least to most");
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		struct spread rate =
			figures_spread(figures, FIGURE(struct result, per_second[phase]));

		printf("   %5.2f-%5.2f", rate.least / 1e6, rate.most / 1e6);
	}
	printf("\n");
}

static void print_ratios(struct figures *const columns[COLUMN_COUNT])
{
	printf("  %-21s", "ratio");
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		size_t measure = FIGURE(struct result, per_second[phase]);

		printf(" %12.1fx",
		       figures_median(columns[0], measure) / figures_median(columns[1], measure));
	}
	printf("\n");
}

static void print_sides(struct figures *figures)
{
	printf("  %-21s", figures_title(figures));
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		double median[SIDES];

		for (enum side side = 0; side < SIDES; side++)
			median[side] = figures_median(figures,
						      FIGURE(struct result, cpu_time[side][phase]));
		printf("  %4.0f + %5.0f", median[SIDE_PRODUCERS], median[SIDE_OWNER]);
	}
	printf("\n");
}

static void print_phases(struct figures *const columns[COLUMN_COUNT], int count)
{
	print_head_of_phases("million a second");
	for (int i = 0; i < count; i++)
		print_rates(columns[i]);
	if (count == COLUMN_COUNT)
		print_ratios(columns);
	print_head_of_phases("ns by side, a command");
	for (int i = 0; i < count; i++)
		print_sides(columns[i]);
	printf("\nfill: new keys; again: keys removed before; set: existing keys; move: sooner or "
	       "later; later: later only\n"
	       "ns by side: processor time, producers + owner\n");
}

static void print_paced(struct figures *const columns[COLUMN_COUNT], enum pacing pacing)
{
	char title[64];

	printf("caller's time, %s\n", pacings[pacing].title);
	for (enum paced paced = 0; paced < PACED_COUNT; paced++) {
		const char *name = paced_plans[paced].title;

		snprintf(title, sizeof(title), "%s: million/s", name);
		figures_print_rate(title, columns, FIGURE(struct result, reached[pacing][paced]));
		figures_print_percentiles(name, columns,
					  FIGURE(struct result, call_time[pacing][paced]),
					  paced_percents, PERCENT_COUNT);
	}
}

static void print_figures(const struct plan *plan, struct figures *const columns[COLUMN_COUNT])
{
	print_phases(columns, COLUMN_COUNT);
	figures_print_head("", columns);
	figures_print_cost("resident bytes a timer", columns,
			   FIGURE(struct result, bytes_per_timer), format_count);
	if (plan->unpaced)
		return;
	for (enum pacing pacing = 0; pacing < PACING_COUNT; pacing++)
		print_paced(columns, pacing);
}

/* --- The command line ------------------------------------------------------------------------- */

static void parse(int argc, char **argv, struct settings *settings)
{
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &settings->plan.count, 1000, 500000000,
		 .help = "timers in the wheel"},
		{"producers", OPTION_COUNT, &settings->plan.producers, 1, 1000,
		 .help = "threads that make commands"},
		{"runs", OPTION_COUNT, &settings->runs, 1, FIGURES_RUNS,
		 .help = "runs; medians are printed"},
		{"baseline-runs", OPTION_COUNT, &settings->baseline_runs, 0, FIGURES_RUNS,
		 .help = "runs of the baseline; with 0 only the table of phases"},
		{"interval", OPTION_DURATION, &settings->plan.interval, 1000, MINUTE,
		 .help = "the tick"},
		{"slots", OPTION_COUNT, &settings->plan.slots, 1, TW_SLOTS_MAX,
		 .help = "the slots"},
		{"layout", OPTION_CHOICE, &settings->layout, .choices = "levels,rounds",
		 .help = "the library's layout"},
		{"inline", OPTION_FLAG, &settings->is_inline,
		 .help = "the library without threads: its one producer polls"},
		{"unpaced", OPTION_FLAG, &settings->plan.unpaced,
		 .help = "without the calls at a steady pace"},
		{"baseline", OPTION_CHOICE, &settings->baseline, .choices = "buffered,unbuffered",
		 .help = "its channel; go-zero's is unbuffered"},
		{"csv", OPTION_TEXT, &settings->csv_path,
		 .help = "every run's figures to this file"},
		{0},
	};

	options_parse(argc, argv, "How many commands a second, at what cost a call and a timer?",
		      options);
	if (settings->is_inline && (settings->plan.producers != 1 || settings->layout))
		options_refuse("--inline: needs --producers=1 and --layout=levels");
}

static const struct contender *library_of(const struct settings *settings)
{
	if (settings->is_inline)
		return &contender_inline;
	return settings->layout ? &contender_rounds : &contender_levels;
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
	settings.plan.contender = library_of(&settings);
	print_head(&settings);
	columns[0] = figures_create(settings.plan.contender->title);
	columns[1] = figures_create(baseline_plan(&settings).contender->title);
	run_all(&settings, csv, columns);
	if (settings.baseline_runs > 0)
		print_figures(&settings.plan, columns);
	else
		print_phases(columns, 1);
	for (int i = 0; i < COLUMN_COUNT; i++)
		figures_destroy(columns[i]);
	csv_close(csv);
	return 0;
}
