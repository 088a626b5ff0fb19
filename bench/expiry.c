/* SPDX-License-Identifier: MIT */
/*
 * A million timers are due in one tick: how long until all have run, and how long does that keep
 * the owner busy?
 *
 * The tasks do nothing. The time counts from the deadline, so up to a tick of it is waiting for the
 * tick. Every run is a process of its own; the baseline is go-zero's design.
 */
#include "support/contender.h"
#include "support/csv.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"

#include <timingwheel/timingwheel.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct plan {
	const struct contender *contender;
	int64_t count;
	int64_t interval;
	int64_t slots;
};

/* All fields are doubles, one measure each. */
struct result {
	double nanoseconds; /* from the deadline until all have run */
	double cpu;         /* nanoseconds of CPU time in it, all threads */
};

static void run_trial(const void *argument, void *memory)
{
	const struct plan *plan = argument;
	struct result *result = memory;
	struct random_key *keys = keys_create((size_t)plan->count, 1);
	void *wheel = contender_create(plan->contender, plan->interval, (size_t)plan->slots);
	int64_t due = plan->contender->calls->set_together(wheel, keys, (size_t)plan->count);
	int64_t cpu;

	stopwatch_sleep(due - stopwatch_now() - plan->interval);
	cpu = stopwatch_process_cpu();
	/* All timers are due only at the end of the tick, so this waits until then. */
	stopwatch_sleep(due - stopwatch_now() + plan->interval);
	plan->contender->calls->wait_fired(wheel, (size_t)plan->count);
	result->nanoseconds = (double)(stopwatch_now() - due);
	result->cpu = (double)(stopwatch_process_cpu() - cpu);
	if (plan->contender->calls->state(wheel).fired != plan->count)
		process_fail("%s: %s tasks ran, should be %s", plan->contender->name,
			     format_count(plan->contender->calls->state(wheel).fired).characters,
			     format_count(plan->count).characters);
	plan->contender->calls->destroy(wheel);
	free(keys);
}

static const struct contender *const contenders[] = {&contender_levels, &contender_rounds,
						     &contender_buffered};

enum { CONTENDERS = sizeof(contenders) / sizeof(contenders[0]) };

static void run_contender(const struct plan *plan, int run, struct csv csv, struct figures *figures)
{
	struct result result;

	figures_run(figures, run_trial, plan, &result, sizeof(result));
	csv_row(csv, "%s,%d,%.0f,%.0f", plan->contender->name, run + 1, result.nanoseconds,
		result.cpu);
}

/* The contenders take turns, so that a noisy time affects all. */
static void run_all(struct plan *plan, int runs, struct csv csv, struct figures *const rows[])
{
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < runs; run++) {
		for (int i = 0; i < CONTENDERS; i++) {
			plan->contender = contenders[i];
			progress_show(&progress, "%s: run %d of %d", plan->contender->title,
				      run + 1, runs);
			run_contender(plan, run, csv, rows[i]);
		}
	}
	progress_wipe(&progress);
}

static void print_row(const char *title, const struct figures *row, int64_t count)
{
	double all = figures_median(row, FIGURE(struct result, nanoseconds));
	double cpu = figures_median(row, FIGURE(struct result, cpu));

	printf("%-24s %14s %14.0f %14.0f\n", title, format_duration((int64_t)all).characters,
	       all / (double)count, cpu / (double)count);
}

static void print_head(const struct plan *plan, int64_t runs)
{
	printf("%s\n%s timers due in one tick of %s, %s slots; medians of %" PRId64 " runs\n\n",
	       machine_description(), format_count(plan->count).characters,
	       format_duration(plan->interval).characters, format_count(plan->slots).characters,
	       runs);
}

static void print_rows(struct figures *const rows[], int64_t count)
{
	printf("%-24s %14s %14s %14s\n", "", "all have run", "ns a timer", "CPU ns a timer");
	for (int i = 0; i < CONTENDERS; i++)
		print_row(contenders[i]->title, rows[i], count);
}

int main(int argc, char **argv)
{
	struct plan plan = {NULL, 1000000, NANOSECONDS_PER_SECOND / 1000, 512};
	const char *csv_path = NULL;
	int64_t runs = 5;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan.count, 1, 500000000, .help = "timers"},
		{"interval", OPTION_DURATION, &plan.interval, 1000, NANOSECONDS_PER_SECOND,
		 .help = "the tick"},
		{"slots", OPTION_COUNT, &plan.slots, 1, TW_SLOTS_MAX, .help = "the slots"},
		FIGURES_OPTIONS(&runs, 1, &csv_path),
		{0},
	};
	struct figures *rows[CONTENDERS];
	struct csv csv;

	options_parse(argc, argv, "How long do timers take that are all due in one tick?", options);
	csv = csv_open(csv_path, "contender,run,nanoseconds,cpu_ns");
	print_head(&plan, runs);
	for (int i = 0; i < CONTENDERS; i++)
		rows[i] = figures_create(contenders[i]->title);
	run_all(&plan, (int)runs, csv, rows);
	print_rows(rows, plan.count);
	for (int i = 0; i < CONTENDERS; i++)
		figures_destroy(rows[i]);
	csv_close(csv);
	return 0;
}
