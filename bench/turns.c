/* SPDX-License-Identifier: MIT */
/*
 * How long is the owner's longest turn?
 *
 * Seven loads each give the owner much to do at once, each on a fresh wheel, in a process of its
 * own: many drains, timers that are due together, keys that are set and moved at a pace, handles
 * stopped while other threads wait for flushes, tw_each over all pending timers while two threads
 * set and remove. The longest turn is reported in processor time of the owner's thread, which is
 * its work, and in wall time, which includes other threads' use of the core. It is that of the
 * wheel's whole life, including the filling.
 *
 * The 16 drains are requested before the owner runs: a caller drives that wheel, and begins when
 * all of them are queued. Of the 2,000, the library admits 64 at a time.
 *
 * On a machine that shares its processors with others, a thread's processor time includes their
 * time. The first row therefore measures the machine alone: 0.1 ms of arithmetic, repeated as long
 * as the moves take. Its longest shows how a longest turn of 0.1 ms would be reported. The minimum
 * of the runs shows the library itself.
 */
#include "support/csv.h"
#include "support/expect.h"
#include "support/fates.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/pace.h"
#include "support/process.h"
#include "support/progress.h"

#include <timingwheel/timingwheel.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MILLISECOND (NANOSECONDS_PER_SECOND / 1000)
#define MINUTE (60 * NANOSECONDS_PER_SECOND)
#define PACE 1000 /* nanoseconds from one call to the next: a million a second */

enum {
	FEW_DRAINS = 16,
	MANY_DRAINS = 2000,
	SLOTS = 512,
	FLUSHERS = 2,
	SETTERS = 2,
	SETTER_KEYS = 100000, /* keys of a setter, beside the timers that stay */
	WALKS = 3
};

struct plan {
	const struct load *load;
	int64_t count;
	int64_t duration; /* how long the moves take */
	uint64_t seed;
};

/* All fields are doubles, one measure each. */
struct result {
	double work; /* nanoseconds of processor time */
	double wall;
	double turns;
};

struct trial {
	const struct plan *plan;
	struct tw_wheel *wheel;
	struct generator generator;
	atomic_bool is_over; /* the flushers may end */
};

struct load {
	const char *name;
	const char *title;
	size_t slots;
	enum tw_layout layout;
	enum tw_drive drive;
	void (*run)(struct trial *trial);
};

static void on_run(void *argument)
{
	(void)argument;
	fates_add(FATE_RAN);
}

static void on_expiry(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	process_fail("a timer with a key ran that was not due");
}

static void on_drained(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	fates_add(FATE_DRAINED);
}

static void expect_fate(enum fate fate, int64_t count)
{
	if (fates_counted(fate) != count)
		process_fail("%s timers came back, there were %s",
			     format_count(fates_counted(fate)).characters,
			     format_count(count).characters);
}

static int64_t random_delay(struct trial *trial)
{
	return generator_range(&trial->generator, 1 * MINUTE, 60 * MINUTE);
}

static struct tw_timer set_handle(struct trial *trial, int64_t delay)
{
	struct tw_timer timer;

	expect_ok(tw_after_func(trial->wheel, delay, on_run, NULL, &timer), "tw_after_func");
	return timer;
}

/* --- The loads -------------------------------------------------------------------------------- */

static void run_drains(struct trial *trial, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		set_handle(trial, random_delay(trial));
		expect_ok(tw_drain(trial->wheel, on_drained, NULL), "tw_drain");
	}
	expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	expect_fate(FATE_DRAINED, count);
}

static void run_few_drains(struct trial *trial)
{
	run_drains(trial, FEW_DRAINS);
}

static void run_many_drains(struct trial *trial)
{
	run_drains(trial, MANY_DRAINS);
}

/* Sets four times the count, due in one tick after the last set, at 1 us a timer. */
static void run_due(struct trial *trial)
{
	int64_t count = 4 * trial->plan->count;
	int64_t due = tw_now(trial->wheel) + NANOSECONDS_PER_SECOND / 2 + count * 1000;

	for (int64_t i = 0; i < count; i++)
		set_handle(trial, due - tw_now(trial->wheel));
	if (tw_now(trial->wheel) >= due)
		process_fail("the machine is too slow to set all timers before they are due");
	stopwatch_sleep(due - tw_now(trial->wheel) + MILLISECOND);
	expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	expect_fate(FATE_RAN, count);
}

static void run_moves(struct trial *trial)
{
	int64_t count = trial->plan->count, moves = trial->plan->duration / PACE;
	struct random_key *keys = keys_create((size_t)count, trial->plan->seed);
	struct pace pace = pace_start(PACE);

	for (int64_t i = 0; i < count + moves; i++) {
		const struct random_key *key = &keys[i % count];
		int64_t delay = random_delay(trial), start = pace_await(&pace);

		if (i < count)
			expect_ok(tw_set_timer(trial->wheel, key, sizeof(*key), NULL, delay),
				  "tw_set_timer");
		else
			expect_ok(tw_move_timer(trial->wheel, key, sizeof(*key), delay),
				  "tw_move_timer");
		pace_took(&pace, start);
	}
	expect_ok(tw_flush(trial->wheel), "tw_flush");
	if (expect_stats(trial->wheel).moved != (uint64_t)moves)
		process_fail("not every move found its key");
	free(keys);
}

static void *flusher_run(void *argument)
{
	struct trial *trial = argument;

	/* relaxed: an end flag, orders nothing */
	while (!atomic_load_explicit(&trial->is_over, memory_order_relaxed))
		expect_ok(tw_flush(trial->wheel), "tw_flush");
	return NULL;
}

/* Stops all timers in random order. */
static void stop_all(struct trial *trial, struct tw_timer *timers, int64_t count)
{
	for (int64_t left = count; left > 0; left--) {
		int64_t chosen = generator_range(&trial->generator, 0, left);

		expect_ok(tw_timer_stop(trial->wheel, timers[chosen]), "tw_timer_stop");
		timers[chosen] = timers[left - 1];
	}
}

static void run_stops(struct trial *trial)
{
	int64_t count = trial->plan->count;
	struct tw_timer *timers = process_allocate((size_t)count * sizeof(*timers));
	pthread_t flushers[FLUSHERS];

	for (int64_t i = 0; i < count; i++)
		timers[i] = set_handle(trial, random_delay(trial));
	for (int i = 0; i < FLUSHERS; i++) {
		if (pthread_create(&flushers[i], NULL, flusher_run, trial) != 0)
			process_fail("a thread could not be started");
	}
	stop_all(trial, timers, count);
	expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	/* relaxed: an end flag, orders nothing */
	atomic_store_explicit(&trial->is_over, true, memory_order_relaxed);
	for (int i = 0; i < FLUSHERS; i++)
		pthread_join(flushers[i], NULL);
	free(timers);
}

struct setter {
	struct trial *trial;
	uint64_t first; /* its first key */
	uint64_t number;
};

static void *setter_run(void *argument)
{
	struct setter *setter = argument;
	struct trial *trial = setter->trial;
	struct generator generator = {trial->plan->seed + setter->first};

	/* relaxed: an end flag, orders nothing */
	while (!atomic_load_explicit(&trial->is_over, memory_order_relaxed)) {
		uint64_t key =
			setter->first + (uint64_t)generator_range(&generator, 0, SETTER_KEYS);

		if (setter->number++ % 2 == 0)
			expect_ok(tw_set_timer(trial->wheel, &key, sizeof(key), NULL,
					       generator_range(&generator, MINUTE, 60 * MINUTE)),
				  "tw_set_timer");
		else
			expect_ok(tw_remove_timer(trial->wheel, &key, sizeof(key)),
				  "tw_remove_timer");
	}
	return NULL;
}

static int count_visit(void *count, const struct tw_pending_timer *timer)
{
	(void)timer;
	++*(int64_t *)count;
	return 1;
}

/* Half of the timers have keys, half are handles. */
static void run_walks(struct trial *trial)
{
	int64_t count = trial->plan->count;
	struct setter setters[SETTERS];
	pthread_t threads[SETTERS];

	for (uint64_t i = 0; i < (uint64_t)count / 2; i++) {
		expect_ok(tw_set_timer(trial->wheel, &i, sizeof(i), NULL, random_delay(trial)),
			  "tw_set_timer");
		set_handle(trial, random_delay(trial));
	}
	for (uint64_t i = 0; i < SETTERS; i++) {
		setters[i] = (struct setter){trial, (uint64_t)count + i * SETTER_KEYS, 0};
		if (pthread_create(&threads[i], NULL, setter_run, &setters[i]) != 0)
			process_fail("a thread could not be started");
	}
	for (int i = 0; i < WALKS; i++) {
		int64_t visits = 0;

		expect_ok(tw_each(trial->wheel, count_visit, &visits), "tw_each");
		if (visits < count / 2 * 2 || visits > count + SETTERS * SETTER_KEYS)
			process_fail("%s timers were visited", format_count(visits).characters);
	}
	/* relaxed: an end flag, orders nothing */
	atomic_store_explicit(&trial->is_over, true, memory_order_relaxed);
	for (int i = 0; i < SETTERS; i++)
		pthread_join(threads[i], NULL);
}

/* Measures the machine as turns are measured. */
static void run_machine(const struct plan *plan, struct result *result)
{
	struct generator generator = {plan->seed};
	int64_t end = stopwatch_now() + plan->duration;
	uint64_t sum = 0;

	for (int64_t wall = 0, work; wall < end; result->turns++) {
		int64_t began = stopwatch_now(), began_work = stopwatch_thread_cpu();

		do {
			for (int i = 0; i < 1000; i++)
				sum += generator_next(&generator);
			work = stopwatch_thread_cpu() - began_work;
		} while (work < MILLISECOND / 10);
		wall = stopwatch_now();
		result->work = (double)work > result->work ? (double)work : result->work;
		if ((double)(wall - began) > result->wall)
			result->wall = (double)(wall - began);
	}
	/* Without this the compiler could leave the arithmetic out. */
	if (sum == 0)
		process_fail("the sum of all numbers is 0");
}

static const struct load loads[] = {
	{"machine", "this machine: 0.1 ms of arithmetic", 0, 0, 0, NULL},
	{"drains_levels", "16 drains at once, 2^20 slots, levels", TW_SLOTS_MAX, TW_LAYOUT_LEVELS,
	 TW_DRIVE_CALLER, run_few_drains},
	{"drains_rounds", "16 drains at once, 2^20 slots, rounds", TW_SLOTS_MAX, TW_LAYOUT_ROUNDS,
	 TW_DRIVE_CALLER, run_few_drains},
	{"drains", "2,000 drains", SLOTS, TW_LAYOUT_LEVELS, TW_DRIVE_THREAD, run_many_drains},
	{"due", "4 x as many handles, due at once", SLOTS, TW_LAYOUT_LEVELS, TW_DRIVE_THREAD,
	 run_due},
	{"moves", "keys set and moved, a million a second", SLOTS, TW_LAYOUT_LEVELS,
	 TW_DRIVE_THREAD, run_moves},
	{"stops", "handles stopped beside flushes", SLOTS, TW_LAYOUT_LEVELS, TW_DRIVE_THREAD,
	 run_stops},
	{"walks", "tw_each beside sets and removes", SLOTS, TW_LAYOUT_LEVELS, TW_DRIVE_THREAD,
	 run_walks},
};

enum { LOAD_COUNT = sizeof(loads) / sizeof(loads[0]) };

/* --- All runs --------------------------------------------------------------------------------- */

static void run_trial(const void *argument, void *memory)
{
	const struct plan *plan = argument;
	const struct load *load = plan->load;
	struct result *result = memory;
	struct trial trial = {.plan = plan, .generator = {plan->seed}};
	struct tw_options options = {
		.layout = load->layout, .drive = load->drive, .max_workers = 2};
	struct tw_stats stats;

	if (!load->run) {
		run_machine(plan, result);
		return;
	}
	expect_ok(tw_create(&trial.wheel, MILLISECOND, load->slots, on_expiry, &options),
		  "tw_create");
	load->run(&trial);
	stats = expect_stats(trial.wheel);
	result->work = (double)stats.longest_turn;
	result->wall = (double)stats.longest_turn_wall;
	result->turns = (double)stats.turns;
	tw_destroy(trial.wheel);
}

static void print_duration(double nanoseconds)
{
	printf(" %9s", format_duration((int64_t)nanoseconds).characters);
}

static void print_row(const char *title, const struct figures *figures)
{
	struct spread work = figures_spread(figures, FIGURE(struct result, work));
	struct spread wall = figures_spread(figures, FIGURE(struct result, wall));

	printf("  %-40s", title);
	print_duration(work.least);
	print_duration(work.median);
	print_duration(work.most);
	printf(" |");
	print_duration(wall.median);
	print_duration(wall.most);
	printf(" | %9s\n",
	       format_count((int64_t)figures_median(figures, FIGURE(struct result, turns)))
		       .characters);
	fflush(stdout);
}

static void run_load(struct plan plan, int64_t runs, struct csv csv)
{
	struct figures *figures = figures_create(plan.load->title);
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < runs; run++) {
		struct result result;

		progress_show(&progress, "%s: run %d of %" PRId64, plan.load->title, run + 1, runs);
		figures_run(figures, run_trial, &plan, &result, sizeof(result));
		csv_row(csv, "%s,%d,%.0f,%.0f,%.0f", plan.load->name, run + 1, result.work,
			result.wall, result.turns);
		plan.seed++;
	}
	progress_wipe(&progress);
	print_row(plan.load->title, figures);
	figures_destroy(figures);
}

int main(int argc, char **argv)
{
	struct plan plan = {NULL, 1000000, 3 * NANOSECONDS_PER_SECOND, 1};
	const char *csv_path = NULL;
	int64_t runs = 5;
	int only = 0;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan.count, 1, 10000000,
		 .help = "timers, except of drains"},
		{"seconds", OPTION_SECONDS, &plan.duration, MILLISECOND, MINUTE,
		 .help = "how long to move keys"},
		{"load", OPTION_CHOICE, &only,
		 .choices = "all,machine,drains_levels,drains_rounds,drains,due,moves,stops,walks",
		 .help = "which"},
		{"runs", OPTION_COUNT, &runs, 1, FIGURES_RUNS, .help = "runs; medians are printed"},
		{"csv", OPTION_TEXT, &csv_path, .help = "every run's figures to this file"},
		{0},
	};
	struct csv csv;

	options_parse(argc, argv, "How long is the owner's longest turn?", options);
	csv = csv_open(csv_path, "load,run,longest_turn_ns,longest_turn_wall_ns,turns");
	printf("%s\n%s timers, tick 1 ms, %d slots; least, median and most of %" PRId64 " runs\n\n",
	       machine_description(), format_count(plan.count).characters, SLOTS, runs);
	printf("  %-40s %29s | %19s |\n", "", "longest turn, work", "by the clock");
	printf("  %-40s %9s %9s %9s | %9s %9s | %9s\n", "", "least", "median", "max", "median",
	       "max", "turns");
	for (int i = 0; i < LOAD_COUNT; i++) {
		plan.load = &loads[i];
		if (only == 0 || only == i + 1)
			run_load(plan, runs, csv);
	}
	csv_close(csv);
	return 0;
}
