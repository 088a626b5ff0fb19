/* SPDX-License-Identifier: MIT */
/*
 * What does a timer cost, by key, by handle, and as an alarm?
 *
 * Threads divide a million timers and go through them at random, as fast as they can. A phase lasts
 * from the threads' start until the wheel has applied all their calls:
 * - fill sets all timers
 * - again sets half of them, which were stopped before, in another order
 * - set sets pending ones (by key only)
 * - move moves them to sooner or later, later only to later
 * - stop stops them
 * Meanwhile none comes due. On wheels of their own, idle leaves timers alone that are due in an
 * hour, and expire has all due in one tick. Processor time is that of the calling threads, and of
 * all others. Every run is a process of its own.
 *
 * The kinds take turns, and are each other's baseline. `make bench-peers` has other libraries.
 */
#include "support/figures.h"
#include "support/format.h"
#include "support/generator.h"
#include "support/machine.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"
#include "support/ways.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE (60 * NANOSECONDS_PER_SECOND)

enum { NAME_MOST = 32, KINDS = 3 };

enum phase { FILL, AGAIN, SET, MOVE, LATER, STOP, PHASES };

static const struct {
	int64_t shortest; /* delays */
	int64_t longest;
} delays[PHASES] = {
	[FILL] = {1 * MINUTE, 60 * MINUTE},    [AGAIN] = {1 * MINUTE, 60 * MINUTE},
	[SET] = {1 * MINUTE, 60 * MINUTE},     [MOVE] = {1 * MINUTE, 60 * MINUTE},
	[LATER] = {61 * MINUTE, 120 * MINUTE},
};

/* These words of --do follow "all": the phases, then what has a wheel of its own. */
#define WHAT_TO_DO "all,fill,again,set,move,later,stop,idle,expire"

enum { DO_IDLE = PHASES + 1, DO_EXPIRE };

/* The first measures are the phases' rates, then their processor time for caller and owner. */
enum {
	CALLER_NS = PHASES,
	OWNER_NS = 2 * PHASES,
	BYTES = 3 * PHASES,
	IDLE_PERCENT,
	EXPIRE_NS,
	EXPIRE_CPU_NS
};

static char fill_title[64];

static const struct measure measures[] = {
	{"fill_per_second", fill_title, 1e-6, 2},
	{"again_per_second", "set, key removed before", 1e-6, 2},
	{"set_per_second", "set, existing key", 1e-6, 2},
	{"move_per_second", "move, sooner or later", 1e-6, 2},
	{"later_per_second", "move, later only", 1e-6, 2},
	{"stop_per_second", "remove", 1e-6, 2},
	{"fill_caller_ns", "set, new key: ns of the callers", 1, 0},
	{"again_caller_ns", "set, key removed before: ns of the callers", 1, 0},
	{"set_caller_ns", "set, existing key: ns of the callers", 1, 0},
	{"move_caller_ns", "move, sooner or later: ns of the callers", 1, 0},
	{"later_caller_ns", "move, later only: ns of the callers", 1, 0},
	{"stop_caller_ns", "remove: ns of the callers", 1, 0},
	{"fill_owner_ns", "set, new key: ns of the owner", 1, 0},
	{"again_owner_ns", "set, key removed before: ns of the owner", 1, 0},
	{"set_owner_ns", "set, existing key: ns of the owner", 1, 0},
	{"move_owner_ns", "move, sooner or later: ns of the owner", 1, 0},
	{"later_owner_ns", "move, later only: ns of the owner", 1, 0},
	{"stop_owner_ns", "remove: ns of the owner", 1, 0},
	{"bytes", "resident memory of a timer: bytes", 1, 0},
	{"idle_cpu_percent", "idle, all an hour away: % of a core", 1, 4},
	{"expire_ns", "all due in one tick, until all have run: ms", 1e-6, 0},
	{"expire_cpu_ns", "all due in one tick: ns of all threads a timer", 1, 0},
	{0},
};

struct plan {
	const struct way *way;
	int64_t count;
	int64_t threads;
	int64_t interval;
	int64_t slots;
	int64_t idle;
	int what; /* a word of WHAT_TO_DO */
	uint64_t seed;
};

struct trial {
	const struct plan *plan;
	double *result;
	struct timers timers;
	struct generator generator;
};

struct caller {
	pthread_t thread;
	pthread_barrier_t *start;
	struct timers *timers;
	enum phase phase;
	size_t first;
	size_t end;
	struct generator generator;
	int64_t cpu_time;
};

static bool is_wanted(const struct plan *plan, int what)
{
	return plan->what == 0 || plan->what == what;
}

/* --- Callers ---------------------------------------------------------------------------------- */

static void call_once(struct caller *caller, size_t i)
{
	struct timers *timers = caller->timers;
	const struct way *way = timers->way;
	enum phase phase = caller->phase;
	void *name = name_at(timers, i);
	int64_t delay;

	if (phase == STOP) {
		way->stop(timers, name);
		return;
	}
	delay = generator_range(&caller->generator, delays[phase].shortest, delays[phase].longest);
	if (phase == FILL || phase == AGAIN)
		way->set(timers, name, delay);
	else if (phase == SET)
		way->set_again(timers, name, delay);
	else
		way->move(timers, name, delay);
}

static void *caller_run(void *argument)
{
	struct caller *caller = argument;
	int64_t start;

	pthread_barrier_wait(caller->start);
	start = stopwatch_thread_cpu();
	for (size_t i = caller->first; i < caller->end; i++)
		call_once(caller, i);
	caller->cpu_time = stopwatch_thread_cpu() - start;
	return NULL;
}

static struct caller *callers_start(struct trial *trial, enum phase phase, size_t commands,
				    pthread_barrier_t *start)
{
	size_t threads = (size_t)trial->plan->threads;
	struct caller *callers = process_allocate(threads * sizeof(*callers));

	for (size_t i = 0; i < threads; i++) {
		callers[i] = (struct caller){
			.start = start,
			.timers = &trial->timers,
			.phase = phase,
			.first = commands * i / threads,
			.end = commands * (i + 1) / threads,
			.generator = {generator_next(&trial->generator)},
		};
		if (pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]) != 0)
			process_fail("a caller could not be started");
	}
	return callers;
}

/* --- Phases ----------------------------------------------------------------------------------- */

/* Shuffles the first names: callers then go through them in memory order, and reach timers at
 * random. */
static void shuffle_names(struct trial *trial, size_t count)
{
	size_t size = trial->plan->way->name_size;
	char kept[NAME_MOST];

	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)generator_range(&trial->generator, 0, (int64_t)i);
		void *one = name_at(&trial->timers, i - 1), *other = name_at(&trial->timers, j);

		memcpy(kept, one, size);
		memmove(one, other, size);
		memcpy(other, kept, size);
	}
}

/* Waits for a number of pending timers, which may trail the calls by a turn of the owner. */
static void expect_pending(struct trial *trial, int64_t expected)
{
	int64_t pending = -1;

	if (!trial->plan->way->pending)
		return;
	for (int i = 0; i < 1000 && pending != expected; i++) {
		if (i > 0)
			stopwatch_sleep(NANOSECONDS_PER_SECOND / 1000);
		pending = trial->plan->way->pending(&trial->timers);
	}
	if (pending != expected)
		process_fail("%s: %s pending, should be %s", trial->plan->way->name,
			     format_count(pending).characters, format_count(expected).characters);
}

/* Makes a call for each of the first names, until all have been applied. */
static void run_commands(struct trial *trial, enum phase phase, size_t commands)
{
	pthread_barrier_t barrier;
	struct caller *callers;
	int64_t start, all = 0, own = 0;

	pthread_barrier_init(&barrier, NULL, (unsigned)trial->plan->threads + 1);
	callers = callers_start(trial, phase, commands, &barrier);
	/* This comes before the barrier, after which the callers may run first. */
	start = stopwatch_now();
	all -= stopwatch_process_cpu();
	pthread_barrier_wait(&barrier);
	for (int64_t i = 0; i < trial->plan->threads; i++) {
		pthread_join(callers[i].thread, NULL);
		own += callers[i].cpu_time;
	}
	timers_flush(&trial->timers);
	all += stopwatch_process_cpu();
	trial->result[phase] = (double)commands / seconds_of(stopwatch_now() - start);
	trial->result[CALLER_NS + phase] = (double)own / (double)commands;
	trial->result[OWNER_NS + phase] = (double)(all - own) / (double)commands;
	pthread_barrier_destroy(&barrier);
	free(callers);
}

static void run_phase(struct trial *trial, enum phase phase)
{
	const struct plan *plan = trial->plan;
	size_t commands = (size_t)plan->count;
	double kept[3] = {trial->result[STOP], trial->result[CALLER_NS + STOP],
			  trial->result[OWNER_NS + STOP]};

	shuffle_names(trial, (size_t)plan->count);
	if (phase == AGAIN) {
		commands /= 2;
		run_commands(trial, STOP, commands);
		for (int i = 0; i < 3; i++)
			trial->result[i * PHASES + STOP] = kept[i];
		expect_pending(trial, plan->count - (int64_t)commands);
		shuffle_names(trial, commands);
	}
	run_commands(trial, phase, commands);
	expect_pending(trial, plan->count - (phase == STOP ? (int64_t)commands : 0));
}

static void timers_open(struct trial *trial)
{
	const struct plan *plan = trial->plan;

	trial->timers = (struct timers){.way = plan->way,
					.count = (size_t)plan->count,
					.interval = plan->interval,
					.slots = (size_t)plan->slots,
					.seed = plan->seed};
	plan->way->prepare(&trial->timers);
}

static void run_phases(struct trial *trial)
{
	const struct plan *plan = trial->plan;
	int64_t resident;

	timers_open(trial);
	shuffle_names(trial, (size_t)plan->count);
	resident = process_resident_exact();
	plan->way->create(&trial->timers);
	run_commands(trial, FILL, (size_t)plan->count);
	expect_pending(trial, plan->count);
	trial->result[BYTES] = (double)(process_resident_exact() - resident) / (double)plan->count +
			       (double)plan->way->own_bytes;
	for (enum phase phase = AGAIN; phase < PHASES; phase++) {
		if (is_wanted(plan, (int)phase + 1) && (phase != SET || plan->way->set_again))
			run_phase(trial, phase);
	}
	timers_destroy(&trial->timers);
}

/* --- Wheels of their own ---------------------------------------------------------------------- */

static void run_idle(struct trial *trial)
{
	struct timers *timers = &trial->timers;
	int64_t cpu, start;

	timers_open(trial);
	timers->way->create(timers);
	for (size_t i = 0; i < timers->count; i++)
		timers->way->set(timers, name_at(timers, i),
				 generator_range(&trial->generator, 60 * MINUTE, 61 * MINUTE));
	timers_flush(timers);
	/* The wheel now does the work that it deferred while it was busy. */
	stopwatch_sleep(NANOSECONDS_PER_SECOND);
	cpu = stopwatch_process_cpu();
	start = stopwatch_now();
	stopwatch_sleep(trial->plan->idle);
	trial->result[IDLE_PERCENT] =
		100.0 * (double)(stopwatch_process_cpu() - cpu) / (double)(stopwatch_now() - start);
	timers_destroy(timers);
}

/* The time counts from the deadline, so up to a tick of it is waiting for the tick. */
static void run_expire(struct trial *trial)
{
	struct timers *timers = &trial->timers;
	int64_t due, cpu;

	timers_open(trial);
	timers->way->create(timers);
	due = timers_set_together(timers);
	stopwatch_sleep(due - stopwatch_now() - trial->plan->interval);
	cpu = stopwatch_process_cpu();
	/* All timers are due only at the end of the tick, so this waits until then. */
	stopwatch_sleep(due - stopwatch_now() + trial->plan->interval);
	timers_wait_fired(timers);
	trial->result[EXPIRE_NS] = (double)(stopwatch_now() - due);
	trial->result[EXPIRE_CPU_NS] =
		(double)(stopwatch_process_cpu() - cpu) / (double)timers->count;
	timers_destroy(timers);
}

static void run_trial(const void *argument, double *result)
{
	const struct plan *plan = argument;
	struct trial trial = {.plan = plan, .result = result, .generator = {plan->seed}};

	if (plan->what <= PHASES)
		run_phases(&trial);
	if (is_wanted(plan, DO_IDLE))
		run_idle(&trial);
	if (is_wanted(plan, DO_EXPIRE))
		run_expire(&trial);
}

/* --- All runs --------------------------------------------------------------------------------- */

static const struct {
	const struct way *way;
	const char *title;
} kinds[KINDS] = {{&way_key, "by key"}, {&way_handle, "by handle"}, {&way_alarm, "alarms"}};

/* The kinds take turns, so that a noisy time affects all. */
static void run_all(const struct plan *plan, int64_t runs, const struct way *const *ways,
		    struct figures *const *columns, int count)
{
	struct progress progress = progress_start(stderr, false);

	for (int64_t run = 0; run < count * runs; run++) {
		struct plan own = *plan;

		own.way = ways[run % count];
		own.seed += (uint64_t)(run / count);
		progress_show(&progress, "%s: run %" PRId64 " of %" PRId64, own.way->name,
			      run / count + 1, runs);
		figures_run(columns[run % count], run_trial, &own);
	}
	progress_wipe(&progress);
}

static void print_all(const struct plan *plan, int64_t runs, struct figures *const *columns,
		      size_t count)
{
	char head[256];

	snprintf(fill_title, sizeof(fill_title),
		 "set, new key: million a second, %" PRId64 " producers", plan->threads);
	snprintf(head, sizeof(head), "%s timers, tick %s, %s slots; medians of %" PRId64 " runs",
		 format_count(plan->count).characters, format_duration(plan->interval).characters,
		 format_count(plan->slots).characters, runs);
	figures_print_columns(head, columns, count);
}

int main(int argc, char **argv)
{
	struct plan plan = {.count = 1000000,
			    .threads = 2,
			    .interval = TW_MILLISECOND,
			    .slots = 512,
			    .idle = 5 * NANOSECONDS_PER_SECOND,
			    .seed = 1};
	const char *csv_path = NULL;
	int64_t runs = 5;
	int kind = 0;
	const struct program_option options[] = {
		{"kind", OPTION_CHOICE, &kind, .choices = "all,key,handle,alarm",
		 .help = "of timers"},
		{"do", OPTION_CHOICE, &plan.what, .choices = WHAT_TO_DO, .help = "one thing alone"},
		{"count", OPTION_COUNT, &plan.count, 1000, 200000000, .help = "timers"},
		{"threads", OPTION_COUNT, &plan.threads, 1, 1000, .help = "threads that call"},
		{"interval", OPTION_DURATION, &plan.interval, 1000, MINUTE, .help = "the tick"},
		{"slots", OPTION_COUNT, &plan.slots, 1, TW_SLOTS_MAX, .help = "the wheel's slots"},
		{"seconds", OPTION_SECONDS, &plan.idle, TW_MILLISECOND, TW_HOUR,
		 .help = "how long to watch an idle wheel"},
		FIGURES_OPTIONS(&runs, &csv_path),
		{0},
	};
	const struct way *ways[KINDS];
	struct figures *columns[KINDS];
	int count = 0;

	options_parse(argc, argv, "What does a timer cost?", options);
	figures_open(csv_path);
	for (int i = 0; i < KINDS; i++) {
		if (kind != 0 && kind != i + 1)
			continue;
		ways[count] = kinds[i].way;
		columns[count++] = figures_create(kinds[i].way->name, kinds[i].title, measures);
	}
	machine_print();
	run_all(&plan, runs, ways, columns, count);
	print_all(&plan, runs, columns, (size_t)count);
	figures_close();
	while (count > 0)
		figures_destroy(columns[--count]);
	return 0;
}
