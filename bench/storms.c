/* SPDX-License-Identifier: MIT */
/*
 * Does a crowd of a million stall the wheel?
 *
 * Five storms, each on a fresh wheel in a process of its own: all timers lie in one coarse slot and
 * must come down level by level; all are due in one tick; all are drained; all are stopped one by
 * one; the wheel is stopped. Meanwhile a heartbeat beats on the same wheel each 10 ms: how late is
 * it usually, with the timers resident and nothing else to do, and how late in the storm? A beat
 * that is missed counts with its lateness, and so do those after it. And how long was the owner's
 * longest turn, from the first timer set to the end of the storm? ("Before": until the storm
 * began.) It is told in processor time of the owner's thread, and as wall time, which counts what
 * other threads had of the core meanwhile.
 *
 * As in a process that has run for a while, successive timers do not lie next to each other in
 * memory: the library's were all set and stopped before, in random order.
 *
 * The baseline is the classic wheel that empties a coarse slot at once (support/cascading_wheel.h).
 * Tasks do nothing but count. When the wheel is drained or stopped, the heartbeat is stopped first;
 * after the draining it starts anew.
 */
#include "support/csv.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/progress.h"
#include "support/storm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MILLISECOND (NANOSECONDS_PER_SECOND / 1000)
#define MINUTE (60 * NANOSECONDS_PER_SECOND)

static const struct {
	const char *name;
	const char *title;
} storms[STORM_COUNT] = {
	[STORM_SLOT] = {"slot", "all in one coarse slot"},
	[STORM_TICK] = {"tick", "all due in one tick"},
	[STORM_DRAIN] = {"drain", "all drained"},
	[STORM_STOPS] = {"stops", "all stopped one by one"},
	[STORM_STOP] = {"stop", "wheel stopped"},
};

enum { MEASURE_COUNT = sizeof(struct storm_result) / sizeof(double) };

static const char *const measure_names[MEASURE_COUNT] = {
	"turn_before_work_ns", "turn_before_wall_ns", "turn_work_ns",  "turn_wall_ns",
	"usual_p50_ns",        "usual_p99_ns",        "usual_max_ns",  "storm_p50_ns",
	"storm_p99_ns",        "storm_max_ns",        "over_after_ns",
};

/* --- All runs --------------------------------------------------------------------------------- */

static void write_run(struct csv csv, const struct storm_plan *plan, int run,
		      const struct storm_result *result)
{
	for (size_t i = 0; i < MEASURE_COUNT; i++) {
		bool is_beat = i >= FIGURE(struct storm_result, storm) &&
			       i < FIGURE(struct storm_result, after);

		if (plan->storm != STORM_STOP || !is_beat)
			csv_row(csv, "%s,%s,%d,%s,%.0f", plan->rival->name,
				storms[plan->storm].name, run, measure_names[i],
				((const double *)result)[i]);
	}
}

static struct figures *run_rival(const struct storm_plan *plan, int runs, struct csv csv)
{
	struct figures *figures = figures_create(plan->rival->title);
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < runs; run++) {
		struct storm_plan own = *plan;
		struct storm_result result;

		progress_show(&progress, "%s, %s: run %d of %d", storms[plan->storm].title,
			      plan->rival->title, run + 1, runs);
		own.seed = plan->seed + (uint64_t)run;
		figures_run(figures, storm_run, &own, &result, sizeof(result));
		write_run(csv, plan, run + 1, &result);
	}
	progress_wipe(&progress);
	return figures;
}

/* The medians, measure by measure. */
static struct storm_result medians_of(const struct figures *figures)
{
	double medians[MEASURE_COUNT];
	struct storm_result result;

	for (size_t i = 0; i < MEASURE_COUNT; i++)
		medians[i] = figures_median(figures, i);
	memcpy(&result, medians, sizeof(result));
	return result;
}

static void print_duration(double nanoseconds)
{
	printf(" %9s", format_duration((int64_t)nanoseconds).characters);
}

static void print_lateness(const struct lateness *lateness)
{
	printf(" |");
	print_duration(lateness->p50);
	print_duration(lateness->p99);
	print_duration(lateness->most);
}

static void print_row(const struct storm_plan *plan, const struct storm_result *result)
{
	printf("  %-16s", plan->rival->title);
	print_duration(result->before.work);
	print_duration(result->turns.work);
	print_duration(result->turns.wall);
	print_lateness(&result->usual);
	if (plan->storm != STORM_STOP)
		print_lateness(&result->storm);
	else
		printf(" |%10s%10s%10s", "-", "-", "-");
	printf(" |");
	print_duration(result->after);
	printf("\n");
	fflush(stdout);
}

struct settings {
	struct storm_plan plan;
	int64_t runs;
	int64_t baseline_runs;
	int only; /* 0: all; or a storm's number + 1 */
	const char *csv_path;
};

static void print_head(const struct settings *settings)
{
	const struct storm_plan *plan = &settings->plan;

	printf("%s\n%s timers %s, tick %s, %s slots; medians of %" PRId64 " runs (baseline %" PRId64
	       ")\n\n",
	       machine_description(), format_count(plan->count).characters,
	       plan->keyed ? "with keys" : "by handle", format_duration(plan->interval).characters,
	       format_count(plan->slots).characters, settings->runs, settings->baseline_runs);
	printf("  %-16s %-29s | %-29s | %-29s |\n", "", "longest turn", "heartbeat late, usually",
	       "heartbeat late, in the storm");
	printf("  %-16s %9s %9s %9s | %9s %9s %9s | %9s %9s %9s | %9s\n", "", "before", "in all",
	       "wall", "p50", "p99", "max", "p50", "p99", "max", "over after");
}

static void run_storm(struct settings *settings, enum storm storm, struct csv csv)
{
	const struct storm_rival *const rivals[] = {&storm_library, &storm_cascading};
	const int64_t runs[] = {settings->runs, settings->baseline_runs};

	printf("%s\n", storms[storm].title);
	settings->plan.storm = storm;
	for (int i = 0; i < 2; i++) {
		struct figures *figures;
		struct storm_result result;

		settings->plan.rival = rivals[i];
		if (runs[i] == 0)
			continue;
		figures = run_rival(&settings->plan, (int)runs[i], csv);
		result = medians_of(figures);
		figures_destroy(figures);
		print_row(&settings->plan, &result);
	}
}

static void parse(int argc, char **argv, struct settings *settings)
{
	struct storm_plan *plan = &settings->plan;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan->count, 1, 100000000, .help = "timers"},
		{"slots", OPTION_COUNT, &plan->slots, 32, 256,
		 .help = "of a level, rounded up to 2^n; "
			 "the coarse slot takes their square in ticks"},
		{"interval", OPTION_DURATION, &plan->interval, 1000, 10 * MILLISECOND,
		 .help = "the tick"},
		{"calm", OPTION_SECONDS, &plan->calm, NANOSECONDS_PER_SECOND / 2, MINUTE,
		 .help = "how long to watch before the storm"},
		{"keyed", OPTION_FLAG, &plan->keyed, .help = "timers with keys, not by handle"},
		{"heartbeat", OPTION_CHOICE, &plan->heartbeat, .choices = "handle,keyed",
		 .help = "the library's"},
		{"workers", OPTION_COUNT, &plan->workers, 0, TW_WORKERS_MAX / 2,
		 .help = "the library's; 0: tasks run on the owner"},
		{"storm", OPTION_CHOICE, &settings->only,
		 .choices = "all,slot,tick,drain,stops,stop", .help = "which"},
		{"baseline-runs", OPTION_COUNT, &settings->baseline_runs, 0, FIGURES_RUNS,
		 .help = "runs of the baseline"},
		FIGURES_OPTIONS(&settings->runs, 0, &settings->csv_path),
		{0},
	};

	options_parse(argc, argv, "Does a crowd of a million stall the wheel?", options);
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.plan = {.count = 1000000,
			 .interval = MILLISECOND,
			 .slots = 64,
			 .calm = 2 * NANOSECONDS_PER_SECOND,
			 .workers = 2,
			 .seed = 1},
		.runs = 5,
		.baseline_runs = 3,
	};
	struct csv csv;

	parse(argc, argv, &settings);
	while (settings.plan.slots & (settings.plan.slots - 1))
		settings.plan.slots += settings.plan.slots & -settings.plan.slots;
	csv = csv_open(settings.csv_path, "contender,storm,run,measure,value");
	print_head(&settings);
	for (enum storm storm = 0; storm < STORM_COUNT; storm++) {
		if (settings.only == 0 || settings.only == (int)storm + 1)
			run_storm(&settings, storm, csv);
	}
	csv_close(csv);
	return 0;
}
