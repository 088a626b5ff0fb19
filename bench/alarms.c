/* SPDX-License-Identifier: MIT */
/*
 * What do the deadlines of connections cost?
 *
 * Each of 100,000 connections has a timer, armed once, and each packet moves its timer to 30 s from
 * now. Threads get packets of random connections as fast as they can; each thread has connections
 * of its own. No timer comes due. Then timers are stopped and armed again, as by requests that are
 * answered in time. Every run is a process of its own.
 *
 * The baseline is a binary heap with one lock. It is compared with two ways of the library: alarms
 * embedded in the connections, and timers by handle. All read the clock for each packet.
 */
#include "support/csv.h"
#include "support/expect.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/generator.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"
#include "support/timer_heap.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define IDLE (30 * NANOSECONDS_PER_SECOND)

enum { THREADS_MOST = 64 };

/* All fields are doubles, one measure each. */
struct result {
	double one_per_second;   /* packets, one thread */
	double more_per_second;  /* with `threads` */
	double scaling;          /* how many times as many */
	double rearm_per_second; /* stops and arms again, one thread */
	double owner_share;      /* percent of a processor, while packets arrive */
	double bytes;            /* resident, a timer */
};

struct connection {
	struct tw_alarm idle;
	struct tw_timer timer;
	int64_t packets;
};

struct trial;

struct way {
	const char *name;
	const char *title;
	void (*open)(struct trial *trial, size_t i);
	void (*move)(struct trial *trial, size_t i);
	void (*stop)(struct trial *trial, size_t i);
};

struct plan {
	const struct way *way;
	int64_t count;
	int64_t threads;
	int64_t packets;
	uint64_t seed;
};

struct trial {
	const struct plan *plan;
	struct tw_wheel *wheel;
	struct timer_heap *heap;
	struct connection *connections;
};

struct reader {
	pthread_t thread;
	pthread_barrier_t *start;
	struct trial *trial;
	size_t first;
	size_t count;
	int64_t packets;
	int64_t cpu;
	struct generator generator;
	bool rearms;
};

/* --- The ways --------------------------------------------------------------------------------- */

static void on_idle(void *argument)
{
	(void)argument;
	process_fail("a timer ran that was not due");
}

static void alarm_open(struct trial *trial, size_t i)
{
	struct tw_alarm *idle = &trial->connections[i].idle;

	expect_ok(tw_alarm_init(trial->wheel, idle, on_idle, NULL), "tw_alarm_init");
	expect_ok(tw_alarm_set(idle, IDLE), "tw_alarm_set");
}

static void alarm_move(struct trial *trial, size_t i)
{
	expect_ok(tw_alarm_set(&trial->connections[i].idle, IDLE), "tw_alarm_set");
}

static void alarm_stop(struct trial *trial, size_t i)
{
	expect_ok(tw_alarm_stop(&trial->connections[i].idle), "tw_alarm_stop");
}

static const struct way alarms = {"alarms", "alarms", alarm_open, alarm_move, alarm_stop};

static void handle_open(struct trial *trial, size_t i)
{
	expect_ok(tw_after_func(trial->wheel, IDLE, on_idle, NULL, &trial->connections[i].timer),
		  "tw_after_func");
}

static void handle_move(struct trial *trial, size_t i)
{
	/* A stopped timer is replaced by a new one. */
	if (tw_timer_reset(trial->wheel, trial->connections[i].timer, IDLE) != TW_OK)
		handle_open(trial, i);
}

static void handle_stop(struct trial *trial, size_t i)
{
	expect_ok(tw_timer_stop(trial->wheel, trial->connections[i].timer), "tw_timer_stop");
}

static const struct way handles = {"handles", "by handle", handle_open, handle_move, handle_stop};

static void heap_move(struct trial *trial, size_t i)
{
	timer_heap_set(trial->heap, i, stopwatch_now() + IDLE);
}

static void heap_stop(struct trial *trial, size_t i)
{
	timer_heap_stop(trial->heap, i);
}

static const struct way baseline = {"heap", "heap, one lock", heap_move, heap_move, heap_stop};

/* --- Packets ---------------------------------------------------------------------------------- */

static void *reader_run(void *argument)
{
	struct reader *reader = argument;
	struct trial *trial = reader->trial;
	const struct way *way = trial->plan->way;
	int64_t cpu;

	pthread_barrier_wait(reader->start);
	cpu = stopwatch_thread_cpu();
	for (int64_t n = 0; n < reader->packets; n++) {
		size_t i = reader->first +
			   (size_t)generator_range(&reader->generator, 0, (int64_t)reader->count);

		trial->connections[i].packets++;
		if (reader->rearms)
			way->stop(trial, i);
		way->move(trial, i);
	}
	reader->cpu = stopwatch_thread_cpu() - cpu;
	return NULL;
}

/* Returns the packets a second; *owner becomes the processor time of other threads, percent. */
static double run_readers(struct trial *trial, int64_t threads, bool rearms, double *owner)
{
	struct reader readers[THREADS_MOST] = {0};
	int64_t packets = rearms ? trial->plan->packets / 8 : trial->plan->packets;
	size_t count = (size_t)(trial->plan->count / threads);
	pthread_barrier_t barrier;
	int64_t cpu = 0;
	int64_t start;
	int64_t took;

	pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
	for (int64_t i = 0; i < threads; i++) {
		readers[i] = (struct reader){.start = &barrier,
					     .trial = trial,
					     .first = (size_t)i * count,
					     .count = count,
					     .packets = packets,
					     .generator = {trial->plan->seed + (uint64_t)i},
					     .rearms = rearms};
		if (pthread_create(&readers[i].thread, NULL, reader_run, &readers[i]) != 0)
			process_fail("a reader could not be started");
	}
	start = stopwatch_now();
	cpu -= stopwatch_process_cpu();
	pthread_barrier_wait(&barrier);
	for (int64_t i = 0; i < threads; i++) {
		pthread_join(readers[i].thread, NULL);
		cpu -= readers[i].cpu;
	}
	cpu += stopwatch_process_cpu();
	took = stopwatch_now() - start;
	pthread_barrier_destroy(&barrier);
	*owner = cpu > 0 ? 100.0 * (double)cpu / (double)took : 0;
	return (double)(packets * threads) / seconds_of(took);
}

/* --- One run ---------------------------------------------------------------------------------- */

static void trial_open(struct trial *trial)
{
	const struct tw_options options = {.workers = 1, .max_workers = 2};

	if (trial->plan->way == &baseline)
		trial->heap = timer_heap_create((size_t)trial->plan->count);
	else
		expect_ok(tw_create(&trial->wheel, TW_MILLISECOND, 512, NULL, &options),
			  "tw_create");
	for (int64_t i = 0; i < trial->plan->count; i++)
		trial->plan->way->open(trial, (size_t)i);
	if (trial->wheel)
		expect_ok(tw_flush(trial->wheel), "tw_flush");
}

static void run_trial(const void *argument, void *result)
{
	const struct plan *plan = argument;
	struct result *measured = result;
	struct trial trial = {.plan = plan};
	size_t bytes = (size_t)plan->count * sizeof(*trial.connections);
	double unwanted;
	int64_t resident;

	trial.connections = process_allocate(bytes);
	resident = process_resident_exact();
	trial_open(&trial);
	measured->bytes = (double)(process_resident_exact() - resident) / (double)plan->count;
	/* These timers are embedded in the connections. */
	if (plan->way == &alarms)
		measured->bytes += sizeof(struct tw_alarm);
	measured->one_per_second = run_readers(&trial, 1, false, &measured->owner_share);
	measured->more_per_second = run_readers(&trial, plan->threads, false, &unwanted);
	measured->scaling = measured->more_per_second / measured->one_per_second;
	measured->rearm_per_second = run_readers(&trial, 1, true, &unwanted);
	tw_destroy(trial.wheel);
	if (trial.heap)
		timer_heap_destroy(trial.heap);
	free(trial.connections);
}

/* --- All runs --------------------------------------------------------------------------------- */

static void write_run(struct csv csv, const char *name, int run, const struct result *result)
{
	csv_row(csv, "%s,%d,one_per_second,%.0f", name, run, result->one_per_second);
	csv_row(csv, "%s,%d,more_per_second,%.0f", name, run, result->more_per_second);
	csv_row(csv, "%s,%d,scaling,%.3f", name, run, result->scaling);
	csv_row(csv, "%s,%d,rearm_per_second,%.0f", name, run, result->rearm_per_second);
	csv_row(csv, "%s,%d,owner_percent,%.3f", name, run, result->owner_share);
	csv_row(csv, "%s,%d,bytes_per_timer,%.1f", name, run, result->bytes);
}

enum { WAYS = 3 };

static const struct way *const ways[WAYS] = {&alarms, &handles, &baseline};

/* The ways take turns, so that a noisy time affects all. */
static void run_all(const struct plan *plan, int runs, struct csv csv,
		    struct figures *const columns[WAYS])
{
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < WAYS * runs; run++) {
		struct plan own = *plan;
		struct result result;

		own.way = ways[run % WAYS];
		own.seed = plan->seed + (uint64_t)(run / WAYS);
		progress_show(&progress, "%s: run %d of %d", own.way->title, run / WAYS + 1, runs);
		figures_run(columns[run % WAYS], run_trial, &own, &result, sizeof(result));
		write_run(csv, own.way->name, run / WAYS + 1, &result);
	}
	progress_wipe(&progress);
}

static void print_figures(struct figures *const columns[2], int64_t threads)
{
	char more[64];

	snprintf(more, sizeof(more), "packets, %" PRId64 " threads", threads);
	figures_print_head("million a second", columns);
	figures_print_rate("packets, 1 thread", columns, FIGURE(struct result, one_per_second));
	figures_print_rate(more, columns, FIGURE(struct result, more_per_second));
	figures_print_rate("stop and set", columns, FIGURE(struct result, rearm_per_second));
	printf("resident bytes a timer\n");
	figures_print_cost("armed", columns, FIGURE(struct result, bytes), format_count);
	printf("%s: %.2f times as many with %" PRId64
	       " threads; the owner has %.2f %% of a processor\n\n",
	       figures_title(columns[0]),
	       figures_median(columns[0], FIGURE(struct result, scaling)), threads,
	       figures_median(columns[0], FIGURE(struct result, owner_share)));
}

int main(int argc, char **argv)
{
	struct plan plan = {NULL, 100000, 2, 20000000, 1};
	struct figures *columns[WAYS];
	const char *csv_path = NULL;
	int64_t runs = 5;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan.count, 1000, 10000000, .help = "connections"},
		{"threads", OPTION_COUNT, &plan.threads, 1, THREADS_MOST,
		 .help = "threads that get packets, in the second part"},
		{"packets", OPTION_COUNT, &plan.packets, 8, 1000000000, .help = "for each thread"},
		FIGURES_OPTIONS(&runs, 1, &csv_path),
		{0},
	};
	struct csv csv;

	options_parse(argc, argv, "What do the deadlines of connections cost?", options);
	csv = csv_open(csv_path, "contender,run,measure,value");
	for (int i = 0; i < WAYS; i++)
		columns[i] = figures_create(ways[i]->title);
	printf("%s\n%s connections, %s packets a thread; medians of %" PRId64
	       " runs, least to most in brackets\n",
	       machine_description(), format_count(plan.count).characters,
	       format_count(plan.packets).characters, runs);
	run_all(&plan, (int)runs, csv, columns);
	for (int i = 0; i < WAYS - 1; i++)
		print_figures((struct figures *const[2]){columns[i], columns[WAYS - 1]},
			      plan.threads);
	for (int i = 0; i < WAYS; i++)
		figures_destroy(columns[i]);
	csv_close(csv);
	return 0;
}
