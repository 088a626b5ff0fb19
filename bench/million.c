/* SPDX-License-Identifier: MIT */
/*
 * Do a million timers, set, moved and removed by several threads, each come back exactly once and
 * never early, and how late, how fast and in how much memory?
 *
 * Each thread owns a share of the keys: it sets them all, moves the second of each four and removes
 * the fourth. Every call and every value that comes back is noted in a ledger, which is audited at
 * the end. The rates include this bookkeeping; timers.c measures without it.
 */
#include "support/expect.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/setter.h"
#include "support/stopwatch.h"
#include "support/witness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SHORTEST_DELAY (100 * TW_MILLISECOND)
/* After the longest delay and this time without any event, something hangs. */
#define PATIENCE (30 * TW_SECOND)

struct settings {
	int64_t count;
	int64_t threads;
	tw_duration interval;
	int64_t slots;
	int layout;
	tw_duration longest_delay;
	int64_t workers;
	int64_t queue;
	int64_t rate;
	int64_t seed;
	bool quiet;
};

struct job {
	/* Constant once the threads run. */
	struct settings settings;
	struct setters *setters;
	int64_t start;
	int64_t cpu_before; /* nanoseconds of the process */
	int64_t resident_before;
	/* Any thread may write these. */
	struct witnesses witnesses;
};

/* These are the figures of the progress line. */
struct glance {
	double seconds;
	struct tw_stats stats;
	struct witness_counts counts;
	double fired_per_second;
	int64_t lateness_p50;
	int64_t lateness_p99;
	int64_t lateness_most;
	int64_t resident;
};

/* --- Watching --------------------------------------------------------------------------------- */

static void glance_lateness(const struct job *job, struct glance *glance)
{
	struct percentiles *all = percentiles_create();

	witnesses_add_lateness(&job->witnesses, false, all);
	witnesses_add_lateness(&job->witnesses, true, all);
	glance->lateness_p50 = percentiles_at(all, 50);
	glance->lateness_p99 = percentiles_at(all, 99);
	glance->lateness_most = percentiles_most(all);
	percentiles_destroy(all);
}

static void glance_counts(const struct job *job, struct glance *glance)
{
	glance->seconds = seconds_of(stopwatch_now() - job->start);
	glance->stats = expect_stats(job->witnesses.wheel);
	glance->counts = witnesses_counts(&job->witnesses);
}

static struct glance glance_at(const struct job *job, const struct glance *before)
{
	struct glance glance = {.resident = process_resident()};

	glance_counts(job, &glance);
	glance_lateness(job, &glance);
	if (glance.seconds > before->seconds)
		glance.fired_per_second = (double)(glance.counts.fired - before->counts.fired) /
					  (glance.seconds - before->seconds);
	return glance;
}

/* The line fits into 80 columns. */
static void show_head(const struct job *job)
{
	if (!job->settings.quiet)
		printf("%8s %10s %8s %9s %8s %8s %9s\n", "", "pending", "fired/s", "late p50",
		       "p99", "max", "resident");
}

static void show_glance(struct progress *progress, const struct glance *glance)
{
	progress_show(progress, "%6.1f s %10s %8s %9s %8s %8s %9s", glance->seconds,
		      format_count((int64_t)glance->stats.pending).characters,
		      format_count((int64_t)glance->fired_per_second).characters,
		      format_duration(glance->lateness_p50).characters,
		      format_duration(glance->lateness_p99).characters,
		      format_duration(glance->lateness_most).characters,
		      format_bytes(glance->resident).characters);
}

/* This is the time of the last event. */
struct movement {
	uint64_t events;
	int64_t when;
};

static bool is_over(const struct job *job, struct movement *movement)
{
	struct glance glance = {0};
	uint64_t events;

	glance_counts(job, &glance);
	events = glance.counts.returned + glance.stats.set + glance.stats.moved +
		 glance.stats.removed;
	if (events != movement->events)
		*movement = (struct movement){events, stopwatch_now()};
	if (stopwatch_now() - movement->when > job->settings.longest_delay + PATIENCE)
		process_fail("\nNothing happens any more: %" PRIu64 " of %" PRId64
			     " values came back, %" PRIu64 " pending, %" PRIu64 " unfinished",
			     glance.counts.returned, job->settings.count, glance.stats.pending,
			     glance.stats.unfinished);
	return witnesses_are_after(&job->witnesses) &&
	       glance.counts.returned == (uint64_t)job->settings.count;
}

static void watch(const struct job *job)
{
	struct progress progress = progress_start(stdout, job->settings.quiet);
	struct movement movement = {0, stopwatch_now()};
	struct glance shown = {0};

	progress.next += progress.interval;
	show_head(job);
	while (!is_over(job, &movement)) {
		stopwatch_sleep(20 * TW_MILLISECOND);
		if (progress_is_due(&progress)) {
			shown = glance_at(job, &shown);
			show_glance(&progress, &shown);
		}
	}
	progress_wipe(&progress);
}

/* --- The end ---------------------------------------------------------------------------------- */

struct outcome {
	struct ledger_verdict verdict;
	struct tw_stats stats;
	uint64_t strangers;
	double seconds;
	double cpu_seconds;
};

static void print_command(const struct job *job, enum setter_phase phase)
{
	struct setters_phase done = setters_phase(job->setters, phase);
	const char *name = setter_phase_names[phase];

	printf("  %-24s %12s %14s %10s %10s\n", name, format_count((int64_t)done.given).characters,
	       format_rate(done.per_second).characters,
	       format_duration(percentiles_at(done.call_times, 50)).characters,
	       format_duration(percentiles_at(done.call_times, 99)).characters);
	percentiles_destroy(done.call_times);
}

static void print_lateness(const struct job *job, bool after)
{
	struct percentiles *all = percentiles_create();

	witnesses_add_lateness(&job->witnesses, after, all);
	printf("  %-24s %12s %14s %10s %10s\n", after ? "after" : "while setting",
	       format_count((int64_t)percentiles_count(all)).characters,
	       format_duration(percentiles_at(all, 50)).characters,
	       format_duration(percentiles_at(all, 99)).characters,
	       format_duration(percentiles_most(all)).characters);
	percentiles_destroy(all);
}

static void print_costs(const struct job *job, const struct outcome *outcome)
{
	int64_t grown = setters_resident_when_set(job->setters) - job->resident_before;
	int64_t ledger = job->settings.count * (int64_t)sizeof(struct ledger_entry);
	double bytes = (double)grown / (double)job->settings.count;

	printf("resident memory, peak      %s (%s of it the bookkeeping here)\n",
	       format_bytes(process_peak_resident()).characters, format_bytes(ledger).characters);
	printf("resident bytes a timer     %.0f\n", bytes);
	printf("CPU time                   %.2f s in %.2f s\n", outcome->cpu_seconds,
	       outcome->seconds);
}

static void print_table(const struct job *job, const struct outcome *outcome)
{
	const struct tw_stats *stats = &outcome->stats;

	printf("%-26s %12s %14s %10s %10s\n", "commands", "", "a second", "call p50", "call p99");
	for (enum setter_phase phase = 0; phase < SETTER_PHASES; phase++)
		print_command(job, phase);
	printf("timers\n");
	printf("  %-24s %12s\n", "armed", format_count((int64_t)stats->set).characters);
	printf("  %-24s %12s (the others had fired before)\n", "moved",
	       format_count((int64_t)stats->moved).characters);
	printf("  %-24s %12s (the others had fired before)\n", "removed and released",
	       format_count((int64_t)outcome->verdict.removed).characters);
	printf("  %-24s %12s\n", "fired", format_count((int64_t)outcome->verdict.fired).characters);
	printf("%-26s %12s %14s %10s %10s\n", "lateness", "timers", "p50", "p99", "max");
	print_lateness(job, false);
	print_lateness(job, true);
	print_costs(job, outcome);
}

/* Reports a wrong count. Returns whether it is wrong. */
static bool differs(const char *what, uint64_t count, uint64_t expected)
{
	if (count == expected)
		return false;
	printf("WRONG: %s %s, should be %s\n", what, format_count((int64_t)count).characters,
	       format_count((int64_t)expected).characters);
	return true;
}

/* Compares the wheel's counts with the ledger. */
static int count_wrong_statistics(const struct job *job, const struct outcome *outcome)
{
	const struct ledger_verdict *verdict = &outcome->verdict;
	const struct tw_stats *stats = &outcome->stats;
	uint64_t moved = verdict->fired_as_moved;
	/* Both the set and the move might have given these deadlines. */
	uint64_t either = verdict->fired_as_set + moved - verdict->fired;
	int wrong = 0;

	wrong += differs("timers armed by the statistics", stats->set,
			 (uint64_t)job->settings.count);
	wrong += differs("timers fired by the statistics", stats->fired, verdict->fired);
	wrong += differs("timers removed by the statistics", stats->removed, verdict->removed);
	wrong += differs("values replaced by the statistics", stats->replaced, 0);
	wrong += differs("timers pending at the end", stats->pending, 0);
	if (stats->moved + either < moved || stats->moved > moved)
		wrong += differs("timers moved by the statistics", stats->moved, moved);
	return wrong;
}

static bool all_is_well(const struct job *job, const struct outcome *outcome)
{
	const struct ledger_verdict *verdict = &outcome->verdict;
	int wrong = 0;

	wrong += differs("values with another's key", outcome->strangers, 0);
	wrong += differs("values released for no reason", verdict->wrong_reason, 0);
	wrong += differs("deadlines later than asked for", verdict->wrong_deadline, 0);
	wrong += verdict->early + verdict->lost + verdict->twice > 0;
	if (!wrong)
		wrong += count_wrong_statistics(job, outcome);
	printf("early %s, lost %s, twice %s%s\n", format_count((int64_t)verdict->early).characters,
	       format_count((int64_t)verdict->lost).characters,
	       format_count((int64_t)verdict->twice).characters,
	       wrong ? ": FAILED" : ": every value came back exactly once");
	return !wrong;
}

static bool finish(struct job *job)
{
	struct tw_wheel *wheel = job->witnesses.wheel;
	struct outcome outcome = {
		.seconds = seconds_of(stopwatch_now() - job->start),
		.cpu_seconds = seconds_of(stopwatch_process_cpu() - job->cpu_before),
	};
	bool well;

	setters_join(job->setters);
	expect_ok(tw_wait_idle(wheel), "tw_wait_idle");
	outcome.stats = expect_stats(wheel);
	tw_destroy(wheel);
	outcome.verdict = ledger_audit(job->witnesses.ledger, (size_t)job->settings.count);
	outcome.strangers = witnesses_counts(&job->witnesses).strangers;
	print_table(job, &outcome);
	well = all_is_well(job, &outcome);
	setters_destroy(job->setters);
	free(job->witnesses.ledger);
	return well;
}

/* --- The beginning ---------------------------------------------------------------------------- */

static void parse(int argc, char **argv, struct settings *settings)
{
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &settings->count, 1, 500000000, .help = "timers"},
		{"threads", OPTION_COUNT, &settings->threads, 1, 1000,
		 .help = "threads that set, move and remove"},
		{"interval", OPTION_DURATION, &settings->interval, 1000, TW_HOUR,
		 .help = "the wheel's tick"},
		{"slots", OPTION_COUNT, &settings->slots, 1, TW_SLOTS_MAX,
		 .help = "the wheel's slots"},
		{"layout", OPTION_CHOICE, &settings->layout, .choices = "levels,rounds",
		 .help = "the wheel's layout"},
		{"seconds", OPTION_SECONDS, &settings->longest_delay, TW_MILLISECOND, 24 * TW_HOUR,
		 .help = "the longest delay; the shortest is 0.1 s"},
		{"rate", OPTION_COUNT, &settings->rate, 0, INT64_C(1) << 40,
		 .help = "commands a second, of all threads, 0 for as fast as they can"},
		{"workers", OPTION_COUNT, &settings->workers, 1, TW_WORKERS_MAX,
		 .help = "threads that run the tasks"},
		{"queue", OPTION_COUNT, &settings->queue, 1, TW_QUEUE_CAPACITY_MAX,
		 .help = "commands that may wait"},
		{"seed", OPTION_COUNT, &settings->seed, 0, INT64_C(1) << 53,
		 .help = "for keys and delays"},
		{"quiet", OPTION_FLAG, &settings->quiet, .help = "no progress, only the table"},
		{0},
	};

	options_parse(argc, argv, "Do a million timers come back once each, how late, how fast?",
		      options);
	if (settings->longest_delay < settings->interval)
		options_refuse("--seconds=%s: must be at least the interval, %s",
			       format_duration(settings->longest_delay).characters,
			       format_duration(settings->interval).characters);
}

/* A move to less than one interval runs at once, which the audit would take for early. */
static tw_duration shortest_delay(const struct settings *settings)
{
	tw_duration shortest = SHORTEST_DELAY;

	if (shortest > settings->longest_delay / 10)
		shortest = settings->longest_delay / 10;
	return shortest < settings->interval ? settings->interval : shortest;
}

static void print_head(const struct job *job)
{
	const struct settings *settings = &job->settings;

	machine_print();
	printf("%s timers of %s to %s, %" PRId64 " threads, %s commands a second\n",
	       format_count(settings->count).characters,
	       format_duration(shortest_delay(settings)).characters,
	       format_duration(settings->longest_delay).characters, settings->threads,
	       settings->rate ? format_count(settings->rate).characters : "all the");
	printf("tick %s, %s slots, %s, %" PRId64 " workers\n",
	       format_duration(settings->interval).characters,
	       format_count(settings->slots).characters, settings->layout ? "rounds" : "levels",
	       settings->workers);
	fflush(stdout);
}

static void create_wheel(struct job *job)
{
	struct tw_options options = {
		.context = &job->witnesses,
		.release = witnesses_release,
		.layout = job->settings.layout ? TW_LAYOUT_ROUNDS : TW_LAYOUT_LEVELS,
		.workers = (int)job->settings.workers,
		.max_workers = (int)job->settings.workers,
		.queue_capacity = (size_t)job->settings.queue,
		.name = "million",
	};

	expect_ok(tw_create(&job->witnesses.wheel, job->settings.interval,
			    (size_t)job->settings.slots, witnesses_execute, &options),
		  "tw_create");
}

static void start(struct job *job)
{
	const struct settings *settings = &job->settings;
	struct setters_plan plan = {
		.count = settings->count,
		.threads = settings->threads,
		.rate = settings->rate,
		.seed = (uint64_t)settings->seed,
		.shortest_delay = shortest_delay(settings),
		.longest_delay = settings->longest_delay,
		.witnesses = &job->witnesses,
	};

	job->witnesses.seed = plan.seed;
	job->witnesses.ledger =
		process_allocate((size_t)settings->count * sizeof(struct ledger_entry));
	job->resident_before = process_resident();
	job->cpu_before = stopwatch_process_cpu();
	create_wheel(job);
	job->start = stopwatch_now();
	job->setters = setters_start(&plan);
}

int main(int argc, char **argv)
{
	struct job job = {
		.settings =
			{
				.count = 1000000,
				.threads = 4,
				.interval = TW_MILLISECOND,
				.slots = 512,
				.longest_delay = 10 * TW_SECOND,
				.workers = 2,
				.queue = 8192,
				.rate = 1000000,
				.seed = 1,
			},
	};
	bool well;

	parse(argc, argv, &job.settings);
	print_head(&job);
	start(&job);
	watch(&job);
	well = finish(&job);
	return well ? 0 : 1;
}
