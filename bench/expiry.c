/* SPDX-License-Identifier: MIT */
/*
 * A million timers are due in one tick: how long until all have run, and how long does that keep
 * the owner from anything else?
 *
 * The tasks do nothing. The time counts from the deadline, so up to a tick of it is waiting for the
 * tick. Every run is a process of its own; the baseline is go-zero's design.
 */
#include "support/contender.h"
#include "support/csv.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/spread.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_RUNS 99

struct plan {
	const struct contender *contender;
	int64_t count;
	int64_t interval;
	int64_t slots;
};

/* All doubles, one measure each. */
struct result {
	double nanoseconds;       /* from the deadline until all have run */
	double cpu;               /* nanoseconds of CPU time in it, all threads */
	double longest_turn;      /* the owner's, nanoseconds of CPU time, the filling included */
	double longest_turn_wall; /* by the clock */
};

enum { MEASURE_COUNT = sizeof(struct result) / sizeof(double) };

static void run_trial(const void *argument, void *memory)
{
	const struct plan *plan = argument;
	struct result *result = memory;
	struct random_key *keys = keys_create((size_t)plan->count, 1);
	void *wheel = plan->contender->create(plan->interval, (size_t)plan->slots);
	int64_t due = plan->contender->set_together(wheel, keys, (size_t)plan->count);
	int64_t cpu;

	stopwatch_sleep(due - stopwatch_now() - plan->interval);
	cpu = stopwatch_process_cpu();
	/* Up to the end of the tick: only then all are due, which is what can be waited for. */
	stopwatch_sleep(due - stopwatch_now() + plan->interval);
	plan->contender->wait_fired(wheel, (size_t)plan->count);
	result->nanoseconds = (double)(stopwatch_now() - due);
	result->cpu = (double)(stopwatch_process_cpu() - cpu);
	result->longest_turn = (double)plan->contender->state(wheel).longest_turn;
	result->longest_turn_wall = (double)plan->contender->state(wheel).longest_turn_wall;
	if (plan->contender->state(wheel).fired != plan->count)
		process_fail("%s: %s tasks ran, should be %s", plan->contender->name,
			     format_count(plan->contender->state(wheel).fired).characters,
			     format_count(plan->count).characters);
	plan->contender->destroy(wheel);
	free(keys);
}

static void run_contender(const struct plan *plan, int runs, struct csv csv)
{
	double values[MEASURE_COUNT][MAX_RUNS];
	struct spread spreads[MEASURE_COUNT];
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < runs; run++) {
		struct result result;

		progress_show(&progress, "%s: run %d of %d", plan->contender->title, run + 1, runs);
		if (!process_run_trial(run_trial, plan, &result, sizeof(result)))
			exit(1);
		for (int i = 0; i < MEASURE_COUNT; i++)
			values[i][run] = ((double *)&result)[i];
		csv_row(csv, "%s,%d,%.0f,%.0f,%.0f,%.0f", plan->contender->name, run + 1,
			result.nanoseconds, result.cpu, result.longest_turn,
			result.longest_turn_wall);
	}
	progress_wipe(&progress);
	for (int i = 0; i < MEASURE_COUNT; i++)
		spreads[i] = spread_of(values[i], (size_t)runs);
	printf("%-24s %14s %14.0f %14.0f %14s %14s\n", plan->contender->title,
	       format_duration((int64_t)spreads[0].median).characters,
	       spreads[0].median / (double)plan->count, spreads[1].median / (double)plan->count,
	       format_duration((int64_t)spreads[2].median).characters,
	       format_duration((int64_t)spreads[3].median).characters);
}

int main(int argc, char **argv)
{
	static const struct contender *const contenders[] = {&contender_levels, &contender_rounds,
							     &contender_buffered};
	struct plan plan = {NULL, 1000000, NANOSECONDS_PER_SECOND / 1000, 512};
	const char *csv_path = NULL;
	int64_t runs = 5;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan.count, 1, 500000000, .help = "timers"},
		{"interval", OPTION_DURATION, &plan.interval, 1000, NANOSECONDS_PER_SECOND,
		 .help = "the tick"},
		{"slots", OPTION_COUNT, &plan.slots, 1, 1 << 24, .help = "the slots"},
		{"runs", OPTION_COUNT, &runs, 1, MAX_RUNS, .help = "runs; medians are printed"},
		{"csv", OPTION_TEXT, &csv_path, .help = "every run's figures to this file"},
		{0},
	};
	struct csv csv;

	options_parse(argc, argv, "How long do timers take that are all due in one tick?", options);
	csv = csv_open(csv_path,
		       "contender,run,nanoseconds,cpu_ns,longest_turn_ns,longest_turn_wall_ns");
	printf("%s\n%s timers due in one tick of %s, %s slots; medians of %" PRId64
	       " runs\n\n%-24s %14s %14s %14s %14s %14s\n",
	       machine_description(), format_count(plan.count).characters,
	       format_duration(plan.interval).characters, format_count(plan.slots).characters, runs,
	       "", "all have run", "ns a timer", "CPU ns a timer", "longest turn", "by the clock");
	for (size_t i = 0; i < sizeof(contenders) / sizeof(contenders[0]); i++) {
		plan.contender = contenders[i];
		run_contender(&plan, (int)runs, csv);
	}
	csv_close(csv);
	return 0;
}
