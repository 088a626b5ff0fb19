/* SPDX-License-Identifier: MIT */
/*
 * Does a crowd of a million timers stall the wheel?
 *
 * Five storms run, each on a fresh wheel in a process of its own:
 * - all timers are in one coarse slot and must cascade level by level
 * - all are due in one tick
 * - all are drained
 * - all are stopped one by one
 * - the wheel is stopped
 *
 * Meanwhile a heartbeat beats on the same wheel each 10 ms. Measured is its lateness before, with
 * the timers resident and no other work, and in the storm, from the crowd's first cascade until the
 * last of it has run. Lateness counts from the deadline; one tick of it is within the contract. A
 * missed beat counts with its lateness, and so do those after it.
 *
 * Successive timers are not adjacent in memory, as in a process that has run for a while: the
 * library's were all set and stopped before, in random order.
 *
 * The baseline is the classic wheel that empties a coarse slot at once (support/cascading_wheel.h).
 * Tasks only count. When the wheel is drained or stopped, the heartbeat is stopped first; it
 * restarts after draining.
 *
 * With --crowds, only the first two storms run, with four million timers, on the library's wheels
 * of 16 and 512 slots, with ticks of 100 us and 1 ms, beside beats of 10 ms and of ten heartbeats
 * of 100 ms, 10 ms apart. The coarse slot is the coarsest of at most a second (five seconds in the
 * storms above). With few slots a beat may also cascade from a coarse slot. Where that slot holds
 * part of the crowd, the beat counts on a line of its own: its deadline and the time of its set
 * determine the level, and so the slot. The last line is the lower bound of a turn on this machine:
 * the time of a bare loop that touches as much idle memory. A virtual machine may have to fetch
 * each of its huge pages from its host again.
 */
#include "support/csv.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/progress.h"
#include "support/stopwatch.h"
#include "support/storm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MILLISECOND (NANOSECONDS_PER_SECOND / 1000)
#define MINUTE (60 * NANOSECONDS_PER_SECOND)

static const struct {
	const char *name;
	const char *title;
	int64_t coarse; /* the longest that the coarse slot may span */
} storms[STORM_COUNT] = {
	[STORM_SLOT] = {"slot", "all in one coarse slot", 5 * NANOSECONDS_PER_SECOND},
	[STORM_TICK] = {"tick", "all due in one tick", NANOSECONDS_PER_SECOND},
	[STORM_DRAIN] = {"drain", "all drained", 0},
	[STORM_STOPS] = {"stops", "all stopped one by one", 0},
	[STORM_STOP] = {"stop", "wheel stopped", 0},
};

enum { MEASURE_COUNT = sizeof(struct storm_result) / sizeof(double) };

static const char *const measure_names[MEASURE_COUNT] = {
	"usual_beats",   "usual_p50_ns",  "usual_p90_ns",  "usual_p99_ns",
	"usual_max_ns",  "storm_beats",   "storm_p50_ns",  "storm_p90_ns",
	"storm_p99_ns",  "storm_max_ns",  "shared_beats",  "shared_p50_ns",
	"shared_p90_ns", "shared_p99_ns", "shared_max_ns", "over_after_ns",
};

/* --- All runs --------------------------------------------------------------------------------- */

/* Returns whether this is a measure of beats without any beat. */
static bool lacks_beats(const struct storm_result *result, size_t measure)
{
	if (measure < FIGURE(struct storm_result, storm) ||
	    measure >= FIGURE(struct storm_result, after))
		return false;
	if (measure < FIGURE(struct storm_result, shared))
		return result->storm.beats == 0;
	return result->shared.beats == 0;
}

static void write_run(struct csv csv, const struct storm_plan *plan, int run,
		      const struct storm_result *result)
{
	for (size_t i = 0; i < MEASURE_COUNT; i++) {
		if (!lacks_beats(result, i))
			csv_row(csv,
				"%s,%s,%d,%s,%.0f,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
				plan->rival->name, storms[plan->storm].name, run, measure_names[i],
				((const double *)result)[i], plan->count, plan->interval,
				plan->slots, plan->beat);
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

/* These are the medians of each measure. */
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
	if (lateness->beats == 0) {
		printf(" |%10s%10s%10s%10s", "-", "-", "-", "-");
		return;
	}
	printf(" |");
	print_duration(lateness->p50);
	print_duration(lateness->p90);
	print_duration(lateness->p99);
	print_duration(lateness->most);
}

static void print_row(const char *title, const struct storm_result *result)
{
	printf("  %-26s", title);
	print_lateness(&result->usual);
	print_lateness(&result->storm);
	printf(" |");
	print_duration(result->after);
	printf("\n");
	if (result->shared.beats > 0) {
		printf("  %-26s |%40s", "  those in a slot of theirs", "");
		print_lateness(&result->shared);
		printf(" |\n");
	}
	fflush(stdout);
}

static void run_row(const struct storm_plan *plan, const char *title, int64_t runs, struct csv csv)
{
	struct figures *figures = run_rival(plan, (int)runs, csv);
	struct storm_result result = medians_of(figures);

	figures_destroy(figures);
	print_row(title, &result);
}

struct settings {
	struct storm_plan plan; /* zeros where not given */
	int64_t runs;
	int64_t baseline_runs;
	int only; /* a storm's number + 1, or 0 for all */
	bool crowds;
	const char *csv_path;
};

static void print_head(const struct settings *settings)
{
	const struct storm_plan *plan = &settings->plan;

	printf("%s\n%s timers %s; medians of %" PRId64 " runs", machine_description(),
	       format_count(plan->count).characters, plan->keyed ? "with keys" : "by handle",
	       settings->runs);
	if (!settings->crowds)
		printf(" (baseline %" PRId64 "); tick %s, %s slots, beat %s",
		       settings->baseline_runs, format_duration(plan->interval).characters,
		       format_count(plan->slots).characters,
		       format_duration(plan->beat).characters);
	printf("\n\n  %-26s | %-39s | %-39s |\n", "", "heartbeat late, usually",
	       "heartbeat late, in the storm");
	printf("  %-26s |", settings->crowds ? "slots x tick" : "");
	for (int i = 0; i < 2; i++)
		printf(" %9s %9s %9s %9s |", "p50", "p90", "p99", "max");
	printf(" %9s\n", "over after");
}

static void run_storm(const struct settings *settings, enum storm storm, struct csv csv)
{
	const struct storm_rival *const rivals[] = {&storm_library, &storm_cascading};
	const int64_t runs[] = {settings->runs, settings->baseline_runs};
	struct storm_plan plan = settings->plan;

	plan.storm = storm;
	plan.coarse = storms[storm].coarse;
	for (int i = 0; i < 2; i++) {
		plan.rival = rivals[i];
		if (runs[i] > 0)
			run_row(&plan, plan.rival->title, runs[i], csv);
	}
}

/* --- Crowds ----------------------------------------------------------------------------------- */

/* Sets *value to one of two values, or keeps a given one. Returns false for its second turn. */
static bool choose(int64_t *value, int64_t less, int64_t more, bool second)
{
	if (*value != 0)
		return !second;
	*value = second ? more : less;
	return true;
}

static void run_crowd(const struct settings *settings, enum storm storm, struct csv csv)
{
	for (unsigned i = 0; i < 8; i++) {
		struct storm_plan plan = settings->plan;
		char title[128];

		if (!choose(&plan.slots, 16, 512, i & 4) ||
		    !choose(&plan.interval, MILLISECOND / 10, MILLISECOND, i & 2) ||
		    !choose(&plan.beat, BEAT_STEP, 10 * BEAT_STEP, i & 1))
			continue;
		plan.storm = storm;
		plan.coarse = NANOSECONDS_PER_SECOND;
		plan.rival = &storm_library;
		snprintf(title, sizeof(title), "%" PRId64 " x %s, beat %s", plan.slots,
			 format_duration(plan.interval).characters,
			 format_duration(plan.beat).characters);
		run_row(&plan, title, settings->runs, csv);
	}
}

/* Touches a line in each huge page. Returns the processor time that it takes. */
static int64_t touch_pages(volatile char *memory, size_t size, size_t page)
{
	int64_t start = stopwatch_thread_cpu();

	for (size_t at = 0; at < size; at += page)
		memory[at]++;
	return stopwatch_thread_cpu() - start;
}

static void print_idle_memory(const struct settings *settings)
{
	const size_t page = (size_t)2 << 20;
	size_t size = (size_t)settings->plan.count * 100 / page * page + page;
	char *memory = aligned_alloc(page, size);
	int64_t at_once;

	if (!memory)
		return;
	(void)madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 1, size);
	at_once = touch_pages(memory, size, page);
	stopwatch_sleep(settings->plan.calm);
	printf("a bare loop that touches each 2 MiB of %s: %s at once, ",
	       format_bytes((int64_t)size).characters, format_duration(at_once).characters);
	printf("%s after %s\n", format_duration(touch_pages(memory, size, page)).characters,
	       format_duration(settings->plan.calm).characters);
	free(memory);
}

/* --- The command line ------------------------------------------------------------------------- */

static void parse(int argc, char **argv, struct settings *settings)
{
	struct storm_plan *plan = &settings->plan;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan->count, 1, 100000000,
		 .help = "timers; by default a million, with --crowds four"},
		{"slots", OPTION_COUNT, &plan->slots, 16, 512,
		 .help = "slots of a level, rounded up to 2^n; by default 64; --crowds: 16, 512"},
		{"interval", OPTION_DURATION, &plan->interval, 1000, 10 * MILLISECOND,
		 .help = "the tick; by default 1 ms, with --crowds 100 us too"},
		{"beat", OPTION_DURATION, &plan->beat, BEAT_STEP, BEAT_PERIOD_MOST,
		 .help = "time between two beats; by default 10 ms, with --crowds 100 ms too"},
		{"calm", OPTION_SECONDS, &plan->calm, NANOSECONDS_PER_SECOND / 2, MINUTE,
		 .help = "how long to watch before the storm"},
		{"keyed", OPTION_FLAG, &plan->keyed, .help = "timers with keys, not by handle"},
		{"heartbeat", OPTION_CHOICE, &plan->heartbeat, .choices = "handle,keyed",
		 .help = "timers of the library's hearts"},
		{"workers", OPTION_COUNT, &plan->workers, 0, TW_WORKERS_MAX / 2,
		 .help = "the library's workers; with 0 tasks run on the owner"},
		{"storm", OPTION_CHOICE, &settings->only,
		 .choices = "all,slot,tick,drain,stops,stop", .help = "which"},
		{"crowds", OPTION_FLAG, &settings->crowds,
		 .help = "slot and tick on several wheels, without the baseline"},
		{"baseline-runs", OPTION_COUNT, &settings->baseline_runs, 0, FIGURES_RUNS,
		 .help = "runs of the baseline"},
		FIGURES_OPTIONS(&settings->runs, 0, &settings->csv_path),
		{0},
	};

	options_parse(argc, argv, "Does a crowd of a million stall the wheel?", options);
	if (plan->slots != 0)
		while (plan->slots & (plan->slots - 1))
			plan->slots += plan->slots & -plan->slots;
	if (plan->count == 0)
		plan->count = settings->crowds ? 4000000 : 1000000;
	if (settings->crowds)
		return;
	plan->slots = plan->slots ? plan->slots : 64;
	plan->interval = plan->interval ? plan->interval : MILLISECOND;
	plan->beat = plan->beat ? plan->beat : BEAT_STEP;
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.plan = {.calm = 2 * NANOSECONDS_PER_SECOND, .workers = 2, .seed = 1},
		.runs = 5,
		.baseline_runs = 3,
	};
	struct csv csv;

	parse(argc, argv, &settings);
	csv = csv_open(settings.csv_path, "contender,storm,run,measure,value,"
					  "count,interval_ns,slots,beat_ns");
	print_head(&settings);
	for (enum storm storm = 0; storm < (settings.crowds ? STORM_DRAIN : STORM_COUNT); storm++) {
		if (settings.only != 0 && settings.only != (int)storm + 1)
			continue;
		printf("%s\n", storms[storm].title);
		(settings.crowds ? run_crowd : run_storm)(&settings, storm, csv);
	}
	if (settings.crowds)
		print_idle_memory(&settings);
	csv_close(csv);
	return 0;
}
