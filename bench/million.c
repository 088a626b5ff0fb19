/* SPDX-License-Identifier: MIT */
/*
 * Does a million timers, set, moved and removed from several threads while they fire, come back
 * exactly once each and never early, and how late, how fast and in how much memory?
 *
 * Each thread owns a share of the keys: it sets them all, moves the second of each four and removes
 * the fourth. Every call and every value that comes back is noted in a ledger, which is audited at
 * the end. The rates include this bookkeeping; throughput.c measures without it.
 */
#include "support/csv.h"
#include "support/format.h"
#include "support/percentiles.h"
#include "support/keys.h"
#include "support/ledger.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"

#include <timingwheel/timingwheel.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One call of so many is timed by itself. */
#define SAMPLE_EVERY 64
#define SHORTEST_DELAY (100 * TW_MILLISECOND)
/* Nothing at all happened for the longest delay and so much more: something hangs. */
#define PATIENCE (30 * TW_SECOND)

enum command { COMMAND_SET, COMMAND_MOVE, COMMAND_REMOVE, COMMAND_COUNT };

static const char *const command_names[COMMAND_COUNT] = {"set", "move", "remove"};

/* What one worker saw. Its own to write, anyone's to read. */
struct witness {
	struct witness *next;
	struct percentiles *lateness_setting;
	struct percentiles *lateness_after;
	_Atomic uint64_t fired;
	_Atomic uint64_t returned;
	_Atomic uint64_t strangers; /* a value that came with another's key */
};

struct settings {
	int64_t count;
	int64_t threads;
	tw_duration interval;
	int64_t slots;
	int layout;
	tw_duration longest_delay;
	int64_t workers;
	int64_t seed;
	const char *csv_path;
	const char *summary_path;
	bool quiet;
};

struct job {
	/* Constant once the threads run. */
	struct settings settings;
	tw_duration shortest_delay;
	struct tw_wheel *wheel;
	struct ledger_entry *ledger;
	struct setter *setters;
	pthread_barrier_t barrier;
	int64_t call_overhead;
	int64_t start;
	int64_t resident_before;
	/* The first setter's, read after the join. */
	double seconds[COMMAND_COUNT];
	int64_t resident_after_set;
	/* Any thread's. */
	_Atomic bool setting;
	_Atomic(struct witness *) witnesses;
};

/* One of the threads that set, move and remove. */
struct setter {
	struct job *job;
	pthread_t thread;
	size_t first;
	size_t count;
	uint64_t given[COMMAND_COUNT];
	int64_t began[COMMAND_COUNT];
	struct generator generator;
	struct percentiles *call_times[COMMAND_COUNT];
};

/* What the progress line and the CSV file show. */
struct glance {
	double seconds;
	struct tw_stats stats;
	uint64_t returned;
	uint64_t fired;
	double fired_per_second;
	int64_t lateness_p50;
	int64_t lateness_p99;
	int64_t lateness_most;
	int64_t resident;
};

/* --- Values come back ------------------------------------------------------------------------- */

static _Thread_local struct witness *own_witness;

static struct witness *witness_of_thread(struct job *job)
{
	struct witness *witness = own_witness;

	if (witness)
		return witness;
	witness = process_allocate(sizeof(*witness));
	witness->lateness_setting = percentiles_create();
	witness->lateness_after = percentiles_create();
	witness->next = atomic_load_explicit(&job->witnesses, memory_order_relaxed);
	/* release: publishes the witness; pairs with the acquire in first_witness() */
	while (!atomic_compare_exchange_weak_explicit(&job->witnesses, &witness->next, witness,
						      memory_order_release, memory_order_relaxed))
		;
	own_witness = witness;
	return witness;
}

static struct witness *first_witness(struct job *job)
{
	/* acquire: pairs with the release in witness_of_thread() */
	return atomic_load_explicit(&job->witnesses, memory_order_acquire);
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	/* relaxed: a statistic with one writer, orders nothing */
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_one(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, read_counter(counter) + 1, memory_order_relaxed);
}

static bool key_is_its_own(const struct job *job, const struct tw_task *task)
{
	const struct ledger_entry *entry = task->value;
	struct random_key key =
		key_of((uint64_t)(entry - job->ledger), (uint64_t)job->settings.seed);

	return task->key_size == sizeof(key) && !memcmp(task->key, &key, sizeof(key));
}

static void take_back(struct job *job, const struct tw_task *task, enum ledger_fate fate,
		      tw_duration now)
{
	struct witness *witness = witness_of_thread(job);

	if (!key_is_its_own(job, task))
		add_one(&witness->strangers);
	if (ledger_return(task->value, fate, task->deadline, now))
		add_one(&witness->returned);
}

static void on_expiry(void *context, const struct tw_task *task)
{
	struct job *job = context;
	struct witness *witness = witness_of_thread(job);
	tw_duration now = tw_now(job->wheel);
	/* relaxed: which histogram a timer on the boundary counts in does not matter */
	bool setting = atomic_load_explicit(&job->setting, memory_order_relaxed);

	/* Of the two readings of its lateness the worse: ours and the wheel's own. */
	take_back(job, task, LEDGER_FIRED, task->lateness < 0 ? task->deadline - 1 : now);
	percentiles_record(setting ? witness->lateness_setting : witness->lateness_after,
			   now - task->deadline);
	add_one(&witness->fired);
}

static void on_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	static const enum ledger_fate fates[] = {
		[TW_REPLACED] = LEDGER_REPLACED,
		[TW_REMOVED] = LEDGER_REMOVED,
		[TW_STOPPED] = LEDGER_STOPPED,
	};

	take_back(context, task, fates[reason], task->deadline);
}

/* --- Setting, moving, removing ---------------------------------------------------------------- */

static enum tw_status call_wheel(struct job *job, enum command command, size_t index,
				 tw_duration delay)
{
	struct random_key key = key_of(index, (uint64_t)job->settings.seed);

	switch (command) {
	case COMMAND_SET:
		return tw_set_timer(job->wheel, &key, sizeof(key), &job->ledger[index], delay);
	case COMMAND_MOVE:
		return tw_move_timer(job->wheel, &key, sizeof(key), delay);
	default:
		return tw_remove_timer(job->wheel, &key, sizeof(key));
	}
}

static void give_command(struct setter *setter, enum command command, size_t index,
			 tw_duration delay)
{
	bool sampled = setter->given[command]++ % SAMPLE_EVERY == 0;
	int64_t start = sampled ? stopwatch_now() : 0;
	enum tw_status status = call_wheel(setter->job, command, index, delay);

	if (sampled)
		percentiles_record(setter->call_times[command],
				   stopwatch_now() - start - setter->job->call_overhead);
	if (status != TW_OK)
		process_fail("a %s was answered %s: %s", command_names[command],
			     tw_status_name(status), tw_status_text(status));
}

/* Gives the command and notes what it may lead to. `now` was just read; answers a new reading. */
static tw_duration note_command(struct setter *setter, enum command command, size_t index,
				tw_duration now)
{
	struct job *job = setter->job;
	struct ledger_entry *entry = &job->ledger[index];
	tw_duration delay = generator_range(&setter->generator, job->shortest_delay,
					    job->settings.longest_delay + 1);

	if (command == COMMAND_SET)
		ledger_ask_set(entry, now, delay);
	else if (command == COMMAND_MOVE)
		ledger_ask_move(entry, now, delay);
	else
		ledger_ask_remove(entry);
	give_command(setter, command, index, delay);
	now = tw_now(job->wheel);
	if (command == COMMAND_SET)
		ledger_asked_set(entry, now, delay);
	else if (command == COMMAND_MOVE)
		ledger_asked_move(entry, now, delay);
	return now;
}

/* Steps through a share in another order than it was set in; coprime to the share's size. */
static size_t stride_of(size_t count)
{
	return count % 611953 ? 611953 : 1;
}

static void run_share(struct setter *setter, enum command command)
{
	static const size_t quarters[COMMAND_COUNT] = {[COMMAND_MOVE] = 1, [COMMAND_REMOVE] = 3};
	size_t stride = command == COMMAND_SET ? 1 : stride_of(setter->count);
	tw_duration now = tw_now(setter->job->wheel);

	for (size_t i = 0; i < setter->count; i++) {
		size_t index = i * stride % setter->count;

		if (command == COMMAND_SET || index % 4 == quarters[command])
			now = note_command(setter, command, setter->first + index, now);
	}
}

static void end_phase(struct job *job, enum command command)
{
	enum tw_status status = tw_flush(job->wheel);
	int64_t end = stopwatch_now(), start = end;

	if (status != TW_OK)
		process_fail("tw_flush answered %s", tw_status_name(status));
	for (int64_t i = 0; i < job->settings.threads; i++) {
		if (job->setters[i].began[command] < start)
			start = job->setters[i].began[command];
	}
	job->seconds[command] = seconds_of(end - start);
	if (command == COMMAND_SET)
		job->resident_after_set = process_resident();
	if (command == COMMAND_REMOVE)
		atomic_store_explicit(&job->setting, false, memory_order_relaxed);
}

static void *setter_run(void *argument)
{
	struct setter *setter = argument;
	struct job *job = setter->job;

	for (enum command command = 0; command < COMMAND_COUNT; command++) {
		pthread_barrier_wait(&job->barrier);
		setter->began[command] = stopwatch_now();
		run_share(setter, command);
		pthread_barrier_wait(&job->barrier);
		if (setter == job->setters)
			end_phase(job, command);
	}
	return NULL;
}

static void setter_start(struct job *job, size_t number)
{
	struct setter *setter = &job->setters[number];
	size_t count = (size_t)job->settings.count, threads = (size_t)job->settings.threads;

	setter->job = job;
	setter->first = count * number / threads;
	setter->count = count * (number + 1) / threads - setter->first;
	setter->generator.state = scramble((uint64_t)job->settings.seed + number);
	for (enum command command = 0; command < COMMAND_COUNT; command++)
		setter->call_times[command] = percentiles_create();
	if (pthread_create(&setter->thread, NULL, setter_run, setter) != 0)
		process_fail("thread %zu could not be started", number + 1);
}

/* --- Watching --------------------------------------------------------------------------------- */

static void glance_lateness(struct job *job, struct glance *glance)
{
	struct percentiles *all = percentiles_create();

	for (struct witness *witness = first_witness(job); witness; witness = witness->next) {
		percentiles_merge(all, witness->lateness_setting);
		percentiles_merge(all, witness->lateness_after);
	}
	glance->lateness_p50 = percentiles_at(all, 50);
	glance->lateness_p99 = percentiles_at(all, 99);
	glance->lateness_most = percentiles_most(all);
	percentiles_destroy(all);
}

static void glance_counts(struct job *job, struct glance *glance)
{
	glance->seconds = seconds_of(stopwatch_now() - job->start);
	tw_get_stats(job->wheel, &glance->stats);
	for (struct witness *witness = first_witness(job); witness; witness = witness->next) {
		glance->fired += read_counter(&witness->fired);
		glance->returned += read_counter(&witness->returned);
	}
}

static struct glance glance_at(struct job *job, const struct glance *before)
{
	struct glance glance = {.resident = process_resident()};

	glance_counts(job, &glance);
	glance_lateness(job, &glance);
	if (glance.seconds > before->seconds)
		glance.fired_per_second =
			(double)(glance.fired - before->fired) / (glance.seconds - before->seconds);
	return glance;
}

/* Fits into 80 columns. */
static void show_head(const struct job *job)
{
	if (!job->settings.quiet)
		printf("%8s %10s %8s %9s %8s %8s %8s %9s\n", "", "pending", "fired/s", "late p50",
		       "p99", "max", "turn max", "resident");
}

static void show_glance(struct progress *progress, const struct glance *glance)
{
	progress_show(progress, "%6.1f s %10s %8s %9s %8s %8s %8s %9s", glance->seconds,
		      format_count((int64_t)glance->stats.pending).characters,
		      format_count((int64_t)glance->fired_per_second).characters,
		      format_duration(glance->lateness_p50).characters,
		      format_duration(glance->lateness_p99).characters,
		      format_duration(glance->lateness_most).characters,
		      format_duration(glance->stats.longest_turn).characters,
		      format_bytes(glance->resident).characters);
}

static void write_glance(struct csv csv, const struct glance *glance)
{
	csv_row(csv,
		"%.3f,%" PRIu64 ",%" PRIu64 ",%.0f,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
		",%" PRId64,
		glance->seconds, glance->stats.pending, glance->fired, glance->fired_per_second,
		glance->lateness_p50, glance->lateness_p99, glance->lateness_most,
		glance->stats.longest_turn, glance->resident);
}

/* When last something happened. */
struct movement {
	uint64_t events;
	int64_t when;
};

static bool is_over(struct job *job, struct movement *movement)
{
	struct glance glance = {0};
	uint64_t events;

	glance_counts(job, &glance);
	events = glance.returned + glance.stats.set + glance.stats.moved + glance.stats.removed;
	if (events != movement->events)
		*movement = (struct movement){events, stopwatch_now()};
	if (stopwatch_now() - movement->when > job->settings.longest_delay + PATIENCE)
		process_fail("\nNothing happens any more: %" PRIu64 " of %" PRId64
			     " values came back, %" PRIu64 " pending, %" PRIu64 " queued, %" PRIu64
			     " unfinished",
			     glance.returned, job->settings.count, glance.stats.pending,
			     glance.stats.queued, glance.stats.unfinished);
	return !atomic_load_explicit(&job->setting, memory_order_relaxed) &&
	       glance.returned == (uint64_t)job->settings.count;
}

static void watch(struct job *job, struct csv csv)
{
	struct progress progress = progress_start(stdout, job->settings.quiet);
	struct movement movement = {0, stopwatch_now()};
	struct glance shown = {0}, written = {0};

	progress.next += progress.interval;
	show_head(job);
	for (int round = 1; !is_over(job, &movement); round++) {
		stopwatch_sleep(20 * TW_MILLISECOND);
		if (csv.file && round % 5 == 0) {
			written = glance_at(job, &written);
			write_glance(csv, &written);
		}
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

static void print_command(struct job *job, enum command command, struct csv summary)
{
	struct percentiles *times = percentiles_create();
	uint64_t given = 0;
	double rate;

	for (int64_t i = 0; i < job->settings.threads; i++) {
		percentiles_merge(times, job->setters[i].call_times[command]);
		given += job->setters[i].given[command];
	}
	rate = (double)given / job->seconds[command];
	printf("  %-24s %12s %14s %10s %10s\n", command_names[command],
	       format_count((int64_t)given).characters, format_rate(rate).characters,
	       format_duration(percentiles_at(times, 50)).characters,
	       format_duration(percentiles_at(times, 99)).characters);
	csv_row(summary, "%s_per_second,%.0f", command_names[command], rate);
	percentiles_destroy(times);
}

static void print_lateness(struct job *job, struct csv summary, bool after)
{
	struct percentiles *all = percentiles_create();
	const char *name = after ? "after" : "while setting";

	for (struct witness *witness = first_witness(job); witness; witness = witness->next)
		percentiles_merge(all, after ? witness->lateness_after : witness->lateness_setting);
	printf("  %-24s %12s %14s %10s %10s\n", name,
	       format_count((int64_t)percentiles_count(all)).characters,
	       format_duration(percentiles_at(all, 50)).characters,
	       format_duration(percentiles_at(all, 99)).characters,
	       format_duration(percentiles_most(all)).characters);
	name = after ? "after" : "setting";
	csv_row(summary, "lateness_%s_p50_ns,%" PRId64, name, percentiles_at(all, 50));
	csv_row(summary, "lateness_%s_p99_ns,%" PRId64, name, percentiles_at(all, 99));
	csv_row(summary, "lateness_%s_max_ns,%" PRId64, name, percentiles_most(all));
	percentiles_destroy(all);
}

static void print_costs(const struct job *job, const struct outcome *outcome, struct csv summary)
{
	int64_t grown = job->resident_after_set - job->resident_before;
	int64_t ledger = job->settings.count * (int64_t)sizeof(struct ledger_entry);
	double bytes = (double)grown / (double)job->settings.count;

	printf("owner's longest turn       %s of work, %s by the clock\n",
	       format_duration(outcome->stats.longest_turn).characters,
	       format_duration(outcome->stats.longest_turn_wall).characters);
	printf("resident memory, peak      %s (%s of it the bookkeeping here)\n",
	       format_bytes(process_peak_resident()).characters, format_bytes(ledger).characters);
	printf("resident bytes a timer     %.0f\n", bytes);
	printf("CPU time                   %.2f s in %.2f s\n", outcome->cpu_seconds,
	       outcome->seconds);
	csv_row(summary, "longest_turn_ns,%" PRId64, outcome->stats.longest_turn);
	csv_row(summary, "longest_turn_wall_ns,%" PRId64, outcome->stats.longest_turn_wall);
	csv_row(summary, "bytes_per_timer,%.0f", bytes);
	csv_row(summary, "cpu_seconds,%.2f", outcome->cpu_seconds);
	csv_row(summary, "seconds,%.2f", outcome->seconds);
}

static void print_table(struct job *job, const struct outcome *outcome, struct csv summary)
{
	const struct tw_stats *stats = &outcome->stats;

	csv_row(summary, "machine,\"%s\"", machine_description());
	printf("%-26s %12s %14s %10s %10s\n", "commands", "", "a second", "call p50", "call p99");
	for (enum command command = 0; command < COMMAND_COUNT; command++)
		print_command(job, command, summary);
	printf("timers\n");
	printf("  %-24s %12s\n", "armed", format_count((int64_t)stats->set).characters);
	printf("  %-24s %12s (the others had fired before)\n", "moved",
	       format_count((int64_t)stats->moved).characters);
	printf("  %-24s %12s (the others had fired before)\n", "removed and released",
	       format_count((int64_t)outcome->verdict.removed).characters);
	printf("  %-24s %12s\n", "fired", format_count((int64_t)outcome->verdict.fired).characters);
	printf("%-26s %12s %14s %10s %10s\n", "lateness", "timers", "p50", "p99", "max");
	print_lateness(job, summary, false);
	print_lateness(job, summary, true);
	print_costs(job, outcome, summary);
}

/* Says what is wrong with a count, and answers whether it is. */
static bool differs(const char *what, uint64_t count, uint64_t expected)
{
	if (count == expected)
		return false;
	printf("WRONG: %s %s, should be %s\n", what, format_count((int64_t)count).characters,
	       format_count((int64_t)expected).characters);
	return true;
}

/* The wheel's own counts against what came back. */
static int count_wrong_statistics(const struct job *job, const struct outcome *outcome)
{
	const struct ledger_verdict *verdict = &outcome->verdict;
	const struct tw_stats *stats = &outcome->stats;
	uint64_t moved = verdict->fired_as_moved;
	/* With a deadline that the set and the move might both have given. */
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

static bool finish(struct job *job, struct csv summary)
{
	struct outcome outcome = {.seconds = seconds_of(stopwatch_now() - job->start)};

	for (int64_t i = 0; i < job->settings.threads; i++)
		pthread_join(job->setters[i].thread, NULL);
	tw_wait_idle(job->wheel);
	tw_get_stats(job->wheel, &outcome.stats);
	tw_destroy(job->wheel);
	outcome.cpu_seconds = seconds_of(stopwatch_process_cpu());
	outcome.verdict = ledger_audit(job->ledger, (size_t)job->settings.count);
	for (struct witness *witness = first_witness(job); witness; witness = witness->next)
		outcome.strangers += read_counter(&witness->strangers);
	print_table(job, &outcome, summary);
	return all_is_well(job, &outcome);
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
		{"slots", OPTION_COUNT, &settings->slots, 1, 1 << 24, .help = "the wheel's slots"},
		{"layout", OPTION_CHOICE, &settings->layout, .choices = "levels,rounds",
		 .help = "the wheel's layout"},
		{"seconds", OPTION_SECONDS, &settings->longest_delay, TW_MILLISECOND, 24 * TW_HOUR,
		 .help = "the longest delay; the shortest is 0.1 s"},
		{"workers", OPTION_COUNT, &settings->workers, 1, TW_WORKERS_MAX,
		 .help = "threads that run the tasks"},
		{"seed", OPTION_COUNT, &settings->seed, 0, INT64_C(1) << 53,
		 .help = "for keys and delays"},
		{"csv", OPTION_TEXT, &settings->csv_path, .help = "ten rows a second to this file"},
		{"summary", OPTION_TEXT, &settings->summary_path,
		 .help = "the table's figures to this file"},
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

/* Under one interval a move runs at once, which the audit would have to take for early. */
static tw_duration shortest_delay(const struct settings *settings)
{
	tw_duration shortest = SHORTEST_DELAY;

	if (shortest > settings->longest_delay / 10)
		shortest = settings->longest_delay / 10;
	return shortest < settings->interval ? settings->interval : shortest;
}

static void create_wheel(struct job *job)
{
	struct tw_options options = {
		.context = job,
		.release = on_release,
		.layout = job->settings.layout ? TW_LAYOUT_ROUNDS : TW_LAYOUT_LEVELS,
		.workers = (int)job->settings.workers,
		.name = "million",
	};
	enum tw_status status = tw_create(&job->wheel, job->settings.interval,
					  (size_t)job->settings.slots, on_expiry, &options);

	if (status != TW_OK)
		process_fail("tw_create answered %s: %s", tw_status_name(status),
			     tw_status_text(status));
}

static void start(struct job *job)
{
	const struct settings *settings = &job->settings;

	printf("%s\n", machine_description());
	printf("%s timers of %s to %s, %" PRId64 " threads, tick %s, %s slots, %s, %" PRId64
	       " workers\n",
	       format_count(settings->count).characters,
	       format_duration(job->shortest_delay).characters,
	       format_duration(settings->longest_delay).characters, settings->threads,
	       format_duration(settings->interval).characters,
	       format_count(settings->slots).characters, settings->layout ? "rounds" : "levels",
	       settings->workers);
	fflush(stdout);
	job->call_overhead = stopwatch_overhead();
	job->ledger = process_allocate((size_t)settings->count * sizeof(*job->ledger));
	job->setters = process_allocate((size_t)settings->threads * sizeof(*job->setters));
	pthread_barrier_init(&job->barrier, NULL, (unsigned)settings->threads);
	job->resident_before = process_resident();
	create_wheel(job);
	job->start = stopwatch_now();
	for (int64_t i = 0; i < settings->threads; i++)
		setter_start(job, (size_t)i);
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
				.seed = 1,
			},
		.setting = true,
	};
	struct csv csv, summary;
	bool well;

	parse(argc, argv, &job.settings);
	job.shortest_delay = shortest_delay(&job.settings);
	csv = csv_open(job.settings.csv_path,
		       "seconds,pending,fired,fired_per_second,lateness_p50_ns,lateness_p99_ns,"
		       "lateness_max_ns,longest_turn_ns,resident_bytes");
	summary = csv_open(job.settings.summary_path, "measure,value");
	start(&job);
	watch(&job, csv);
	well = finish(&job, summary);
	csv_close(csv);
	csv_close(summary);
	return well ? 0 : 1;
}
