/* SPDX-License-Identifier: MIT */
/*
 * What do a million timers cost that are due in an hour?
 *
 * Each wheel is filled in a process of its own and left alone. The measures are the CPU time of the
 * whole process, the wake-ups of its owner, and the context switches of all its threads (one is
 * this bench's own sleep). The baseline, go-zero's design, visits a slot each tick.
 */
#include "support/contender.h"
#include "support/csv.h"
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

#define MINUTE (60 * NANOSECONDS_PER_SECOND)

struct plan {
	const struct contender *contender;
	int64_t count;
	int64_t interval;
	int64_t slots;
	int64_t duration;
};

struct result {
	double cpu_percent;
	int64_t switches;
};

static void fill(const struct plan *plan, void *wheel)
{
	struct random_key *keys = keys_create((size_t)plan->count, 1);
	struct generator generator = {1};

	for (int64_t i = 0; i < plan->count; i++)
		plan->contender->calls->set(wheel, &keys[i],
					    generator_range(&generator, 60 * MINUTE, 61 * MINUTE));
	plan->contender->calls->flush(wheel);
	free(keys);
}

static void run_trial(const void *argument, void *memory)
{
	const struct plan *plan = argument;
	struct result *result = memory;
	void *wheel = contender_create(plan->contender, plan->interval, (size_t)plan->slots);
	int64_t switches, cpu, start;

	plan->contender->calls->start(wheel);
	fill(plan, wheel);
	/* The wheel now does the work that it deferred while it was busy. */
	stopwatch_sleep(NANOSECONDS_PER_SECOND);
	switches = process_voluntary_switches();
	cpu = stopwatch_process_cpu();
	start = stopwatch_now();
	stopwatch_sleep(plan->duration);
	result->cpu_percent =
		100.0 * (double)(stopwatch_process_cpu() - cpu) / (double)(stopwatch_now() - start);
	result->switches = process_voluntary_switches() - switches;
	plan->contender->calls->destroy(wheel);
}

static void parse(int argc, char **argv, struct plan *plan, const char **csv_path)
{
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan->count, 1, 500000000, .help = "timers"},
		{"interval", OPTION_DURATION, &plan->interval, 1000, MINUTE, .help = "the tick"},
		{"slots", OPTION_COUNT, &plan->slots, 1, TW_SLOTS_MAX, .help = "the slots"},
		{"seconds", OPTION_SECONDS, &plan->duration, 1000000, 60 * MINUTE,
		 .help = "how long to watch"},
		{"csv", OPTION_TEXT, csv_path, .help = "the table to this file"},
		{0},
	};

	options_parse(argc, argv, "What do timers an hour away cost while nothing happens?",
		      options);
}

static void print_head(const struct plan *plan)
{
	printf("%s\n%s timers an hour away, tick %s, %s slots, watched for %s\n\n",
	       machine_description(), format_count(plan->count).characters,
	       format_duration(plan->interval).characters, format_count(plan->slots).characters,
	       format_duration(plan->duration).characters);
	printf("%-24s %14s %20s\n", "", "% of a core", "voluntary switches");
}

static void run_contender(const struct plan *plan, struct csv csv)
{
	struct progress progress = progress_start(stderr, false);
	struct result result;

	progress_show(&progress, "%s: watching", plan->contender->title);
	if (!process_run_trial(run_trial, plan, &result, sizeof(result)))
		exit(1);
	progress_wipe(&progress);
	printf("%-24s %14.4f %20s\n", plan->contender->title, result.cpu_percent,
	       format_count(result.switches).characters);
	csv_row(csv, "%s,%.4f,%" PRId64 ",%.3f", plan->contender->name, result.cpu_percent,
		result.switches, seconds_of(plan->duration));
}

int main(int argc, char **argv)
{
	static const struct contender *const contenders[] = {&contender_levels, &contender_rounds,
							     &contender_buffered};
	struct plan plan = {NULL, 1000000, NANOSECONDS_PER_SECOND / 1000, 512,
			    10 * NANOSECONDS_PER_SECOND};
	const char *csv_path = NULL;
	struct csv csv;

	parse(argc, argv, &plan, &csv_path);
	csv = csv_open(csv_path, "contender,cpu_percent,voluntary_switches,seconds");
	print_head(&plan);
	for (size_t i = 0; i < sizeof(contenders) / sizeof(contenders[0]); i++) {
		plan.contender = contenders[i];
		run_contender(&plan, csv);
	}
	csv_close(csv);
	return 0;
}
