/* SPDX-License-Identifier: MIT */
/*
 * How much memory does a wheel hold, and when does it return it to the system?
 *
 * In a storm a million timers are set, all before the first is due, and fire within a second. Then
 * no call is made for 12 s. Resident memory is sampled each 250 ms, when all are set, when all have
 * fired, and 10 s after that. Other cases are: one timer in a hundred, at random, is an hour away;
 * a storm each second; storms with keys of other lengths, one after the other on one wheel; and a
 * wheel that has never been used.
 *
 * Every run is a process of its own. All figures are differences to the process before the wheel
 * was created, with the threads, the C library and the code warm: another wheel was created, used
 * and destroyed before, and malloc's rest of it was released.
 *
 * The baseline is the wheel's own peak.
 */
#include "support/csv.h"
#include "support/expect.h"
#include "support/fates.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/spread.h"
#include "support/stopwatch.h"

#include <timingwheel/timingwheel.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND (NANOSECONDS_PER_SECOND / 1000)
#define MINUTE (60 * NANOSECONDS_PER_SECOND)
#define SAMPLE_PITCH (250 * MILLISECOND)
#define PATIENCE MINUTE
#define RECLAIMED_AFTER (10 * NANOSECONDS_PER_SECOND)

enum { SLOTS = 512, KEY_MOST = 1000, SAMPLES_MOST = 8192, TEETH_MOST = 1000 };

static const size_t key_sizes[] = {sizeof(struct random_key), 40, 100, 200, KEY_MOST};

enum { KEY_SIZE_COUNT = sizeof(key_sizes) / sizeof(key_sizes[0]) };

/* All fields are bytes. */
struct memory {
	int64_t resident;
	int64_t address_space;
	/* in tw_stats */
	int64_t counted;
	int64_t in_use;
};

struct sample {
	int64_t time; /* since the wheel was created */
	struct memory memory;
};

struct storm {
	struct memory peak;
	int64_t fired;       /* resident when the last timer has run */
	struct memory later; /* 10 s later, or at the end of a shorter calm */
	int64_t end;         /* at the end of the calm */
};

struct tooth {
	int64_t faults;
	int64_t duration;
};

struct result {
	struct memory made; /* before the first command */
	struct storm storms[KEY_SIZE_COUNT];
	struct tooth teeth[TEETH_MOST];
	struct memory after_teeth;
	size_t sample_count;
	struct sample samples[SAMPLES_MOST];
};

struct plan;
struct trial;

struct load {
	const char *name;
	const char *title;
	void (*set)(struct trial *trial, int64_t delay);
	void (*run)(struct trial *trial);
	int survivors;                               /* percent of the timers */
	void (*print_head)(const struct plan *plan); /* the head of the table, or NULL */
	void (*report)(const struct plan *plan, const struct result *result, struct csv summary);
};

struct plan {
	const struct load *load;
	int64_t count;
	int64_t calm;
	int64_t teeth;
	uint64_t seed;
};

struct trial {
	const struct plan *plan;
	struct result *result;
	struct tw_wheel *wheel;
	struct memory before; /* without the wheel */
	int64_t start;
	int64_t next_sample;
	struct storm *storm; /* the current one, whose peak is sought */
	struct generator generator;
	uint64_t number; /* timers set so far */
	int64_t due;     /* those that fire */
	size_t key_size;
};

/* --- Memory ----------------------------------------------------------------------------------- */

static struct memory process_memory(void)
{
	return (struct memory){.resident = process_resident_exact(),
			       .address_space = process_address_space()};
}

static struct memory wheel_memory(const struct trial *trial)
{
	struct memory now = process_memory();
	struct tw_stats stats = expect_stats(trial->wheel);

	return (struct memory){now.resident - trial->before.resident,
			       now.address_space - trial->before.address_space,
			       (int64_t)stats.memory, (int64_t)stats.memory_in_use};
}

static struct memory sample(struct trial *trial)
{
	struct result *result = trial->result;
	struct memory memory = wheel_memory(trial);
	int64_t now = stopwatch_now();

	if (result->sample_count < SAMPLES_MOST)
		result->samples[result->sample_count++] =
			(struct sample){now - trial->start, memory};
	if (memory.resident > trial->storm->peak.resident)
		trial->storm->peak = memory;
	trial->next_sample = now + SAMPLE_PITCH;
	return memory;
}

static void sample_if_due(struct trial *trial)
{
	if (stopwatch_now() >= trial->next_sample)
		sample(trial);
}

/* Sleeps until `end`, and takes the samples that are due before. */
static void sample_until(struct trial *trial, int64_t end)
{
	int64_t now;

	while ((now = stopwatch_now()) < end) {
		int64_t wake = trial->next_sample < end ? trial->next_sample : end;

		if (wake > now)
			stopwatch_sleep(wake - now);
		if (wake < end)
			sample(trial);
	}
}

/* --- Timers ----------------------------------------------------------------------------------- */

static void on_run(void *argument)
{
	(void)argument;
	fates_add(FATE_RAN);
}

static void on_expiry(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	fates_add(FATE_RAN);
}

/* The first 16 bytes are random, the others equal. */
static void set_keyed(struct trial *trial, int64_t delay)
{
	struct random_key start = key_of(trial->number++, trial->plan->seed);
	unsigned char key[KEY_MOST];

	memset(key, 1, trial->key_size);
	memcpy(key, &start, sizeof(start));
	expect_ok(tw_set_timer(trial->wheel, key, trial->key_size, NULL, delay), "tw_set_timer");
}

static void set_handle(struct trial *trial, int64_t delay)
{
	trial->number++;
	expect_ok(tw_after_func(trial->wheel, delay, on_run, NULL, NULL), "tw_after_func");
}

/* Sets all timers. Survivors are due in an hour, the others within `spread` from `first` on. */
static void set_all(struct trial *trial, int64_t first, int64_t spread)
{
	const struct load *load = trial->plan->load;

	for (int64_t i = 0; i < trial->plan->count; i++) {
		bool survives = generator_range(&trial->generator, 0, 100) < load->survivors;
		int64_t due = first + generator_range(&trial->generator, 0, spread);
		int64_t delay = survives ? 60 * MINUTE : due - stopwatch_now();

		load->set(trial, delay < 1 ? 1 : delay);
		trial->due += !survives;
		if (i % 256 == 0)
			sample_if_due(trial);
	}
}

/* `last` is the last deadline. */
static void await_fired(struct trial *trial, int64_t last)
{
	while (fates_counted(FATE_RAN) < trial->due) {
		int64_t now = stopwatch_now();

		if (now > last + PATIENCE)
			process_fail("%s: %" PRId64 " of %" PRId64 " timers have fired",
				     trial->plan->load->name, fates_counted(FATE_RAN), trial->due);
		sample_until(trial, now + 5 * MILLISECOND);
	}
}

/* --- The loads -------------------------------------------------------------------------------- */

static int64_t later_of(const struct plan *plan)
{
	return plan->calm < RECLAIMED_AFTER ? plan->calm : RECLAIMED_AFTER;
}

/* This allows 2.5 us for setting each timer. */
static void fire_storm(struct trial *trial, struct storm *storm)
{
	int64_t first = stopwatch_now() + NANOSECONDS_PER_SECOND / 2 + trial->plan->count * 2500;

	trial->storm = storm;
	set_all(trial, first, NANOSECONDS_PER_SECOND);
	expect_ok(tw_flush(trial->wheel), "tw_flush");
	sample(trial);
	if (stopwatch_now() >= first)
		process_fail("the machine is too slow to set all timers before they are due");
	await_fired(trial, first + NANOSECONDS_PER_SECOND);
	storm->fired = sample(trial).resident;
}

static void run_one_storm(struct trial *trial, struct storm *storm)
{
	int64_t start;

	fire_storm(trial, storm);
	start = stopwatch_now();
	sample_until(trial, start + later_of(trial->plan));
	storm->later = sample(trial);
	sample_until(trial, start + trial->plan->calm);
	storm->end = sample(trial).resident;
}

static void run_storm(struct trial *trial)
{
	run_one_storm(trial, trial->result->storms);
}

static void run_key_sizes(struct trial *trial)
{
	for (size_t i = 0; i < KEY_SIZE_COUNT; i++) {
		trial->key_size = key_sizes[i];
		run_one_storm(trial, &trial->result->storms[i]);
	}
}

/* Each storm begins a second after the one before, or when that is over. */
static void run_teeth(struct trial *trial)
{
	trial->storm = trial->result->storms;
	for (int64_t i = 0; i < trial->plan->teeth; i++) {
		int64_t start = stopwatch_now(), faults = process_page_faults();
		int64_t first = start + NANOSECONDS_PER_SECOND / 2;

		set_all(trial, first, NANOSECONDS_PER_SECOND / 4);
		await_fired(trial, first + NANOSECONDS_PER_SECOND / 4);
		sample_until(trial, start + NANOSECONDS_PER_SECOND);
		trial->result->teeth[i] =
			(struct tooth){process_page_faults() - faults, stopwatch_now() - start};
	}
	trial->result->after_teeth = wheel_memory(trial);
}

static void run_nothing(struct trial *trial)
{
	(void)trial;
}

/* --- One run ---------------------------------------------------------------------------------- */

static struct tw_wheel *create_wheel(void)
{
	struct tw_options options = {.max_workers = 2};
	struct tw_wheel *wheel;

	expect_ok(tw_create(&wheel, MILLISECOND, SLOTS, on_expiry, &options), "tw_create");
	/* This time is for its threads to start. */
	stopwatch_sleep(100 * MILLISECOND);
	return wheel;
}

/* Does what a process does only once. */
static void warm_up(struct trial *trial)
{
	trial->wheel = create_wheel();
	for (int i = 0; i < 100; i++) {
		set_keyed(trial, MILLISECOND);
		set_handle(trial, MILLISECOND);
	}
	stopwatch_sleep(100 * MILLISECOND);
	expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	expect_stats(trial->wheel);
	tw_destroy(trial->wheel);
	process_trim_heap();
	trial->due = fates_counted(FATE_RAN);
	process_memory();
}

static void run_trial(const void *argument, void *memory)
{
	struct trial trial = {
		.plan = argument,
		.result = memory,
		.key_size = sizeof(struct random_key),
	};

	trial.generator.state = trial.plan->seed;
	/* This makes it resident before anything is measured. */
	memset(trial.result, 0, sizeof(*trial.result));
	warm_up(&trial);
	trial.before = process_memory();
	trial.start = stopwatch_now();
	trial.wheel = create_wheel();
	trial.result->made = wheel_memory(&trial);
	trial.next_sample = stopwatch_now();
	trial.plan->load->run(&trial);
	tw_destroy(trial.wheel);
}

/* --- What came of it -------------------------------------------------------------------------- */

static void print_storm_head(const struct plan *plan)
{
	char later[64], end[64];

	snprintf(later, sizeof(later), "after %s", format_duration(later_of(plan)).characters);
	snprintf(end, sizeof(end), "after %s", format_duration(plan->calm).characters);
	printf("\n%-24s %8s %8s %10s %12s %10s %12s %8s %12s\n", "resident MiB", "made", "peak",
	       "all fired", later, "% of peak", end, "mapped", "by its stats");
}

static double mebibytes(int64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void print_storm(const char *title, int64_t made, const struct storm *storm)
{
	double peak = (double)storm->peak.resident;

	printf("  %-22s %8.1f %8.1f %10.1f %12.1f %10.1f %12.1f %7.2fx %12.1f\n", title,
	       mebibytes(made), mebibytes(storm->peak.resident), mebibytes(storm->fired),
	       mebibytes(storm->later.resident), 100 * (double)storm->later.resident / peak,
	       mebibytes(storm->end), (double)storm->peak.address_space / peak,
	       mebibytes(storm->later.counted));
}

static void write_storm(struct csv summary, const char *name, const struct storm *storm)
{
	csv_row(summary, "%s,peak_bytes,%" PRId64, name, storm->peak.resident);
	csv_row(summary, "%s,peak_address_space_bytes,%" PRId64, name, storm->peak.address_space);
	csv_row(summary, "%s,fired_bytes,%" PRId64, name, storm->fired);
	csv_row(summary, "%s,later_bytes,%" PRId64, name, storm->later.resident);
	csv_row(summary, "%s,later_told_bytes,%" PRId64, name, storm->later.counted);
	csv_row(summary, "%s,end_bytes,%" PRId64, name, storm->end);
}

static void report_storm(const struct plan *plan, const struct result *result, struct csv summary)
{
	print_storm(plan->load->title, result->made.resident, result->storms);
	write_storm(summary, plan->load->name, result->storms);
}

static void report_key_sizes(const struct plan *plan, const struct result *result,
			     struct csv summary)
{
	for (size_t i = 0; i < KEY_SIZE_COUNT; i++) {
		char title[64], name[64];

		snprintf(title, sizeof(title), "%s %zu bytes", i ? "  then of" : plan->load->title,
			 key_sizes[i]);
		snprintf(name, sizeof(name), "keys_%zu", key_sizes[i]);
		print_storm(title, result->made.resident, &result->storms[i]);
		write_storm(summary, name, &result->storms[i]);
	}
}

static void print_teeth_head(const struct plan *plan)
{
	printf("\n%-24s %8s %11s %10s %10s %12s\n", "page faults", "first", "later, p50", "most",
	       "MiB at end", "a storm took");
	(void)plan;
}

/* Summarizes the storms except the first, which counts only if it is alone. */
static struct spread later_teeth(const struct plan *plan, const struct result *result,
				 bool durations)
{
	double values[TEETH_MOST];
	size_t count = 0;

	for (int64_t i = plan->teeth > 1; i < plan->teeth; i++)
		values[count++] =
			(double)(durations ? result->teeth[i].duration : result->teeth[i].faults);
	return spread_of(values, count);
}

static void report_teeth(const struct plan *plan, const struct result *result, struct csv summary)
{
	struct spread faults = later_teeth(plan, result, false);
	struct spread durations = later_teeth(plan, result, true);
	const char *name = plan->load->name;

	printf("  %-22s %8s %11s %10s %10.1f %12s\n", plan->load->title,
	       format_count(result->teeth[0].faults).characters,
	       format_count((int64_t)faults.median).characters,
	       format_count((int64_t)faults.most).characters,
	       mebibytes(result->after_teeth.resident),
	       format_duration((int64_t)durations.median).characters);
	csv_row(summary, "%s,first_faults,%" PRId64, name, result->teeth[0].faults);
	csv_row(summary, "%s,later_faults,%.0f", name, faults.median);
	csv_row(summary, "%s,later_faults_most,%.0f", name, faults.most);
	csv_row(summary, "%s,after_bytes,%" PRId64, name, result->after_teeth.resident);
	csv_row(summary, "%s,tooth_ns,%.0f", name, durations.median);
}

static void report_unused(const struct plan *plan, const struct result *result, struct csv summary)
{
	printf("\na wheel of %d slots before its first command: %s resident, ", SLOTS,
	       format_bytes(result->made.resident).characters);
	printf("%s mapped\n", format_bytes(result->made.address_space).characters);
	csv_row(summary, "%s,made_bytes,%" PRId64, plan->load->name, result->made.resident);
	csv_row(summary, "%s,made_address_space_bytes,%" PRId64, plan->load->name,
		result->made.address_space);
}

/* --- All runs --------------------------------------------------------------------------------- */

static const struct load loads[] = {
	{"storm_keyed", "storm, by key", set_keyed, run_storm, 0, print_storm_head, report_storm},
	{"storm_handles", "storm, by handle", set_handle, run_storm, 0, print_storm_head,
	 report_storm},
	{"survivors_keyed", "1 % stay, by key", set_keyed, run_storm, 1, print_storm_head,
	 report_storm},
	{"survivors_handles", "1 % stay, by handle", set_handle, run_storm, 1, print_storm_head,
	 report_storm},
	{"key_sizes", "storm, keys of", set_keyed, run_key_sizes, 0, print_storm_head,
	 report_key_sizes},
	{"teeth_keyed", "a storm a second, by key", set_keyed, run_teeth, 0, print_teeth_head,
	 report_teeth},
	{"teeth_handles", "by handle", set_handle, run_teeth, 0, print_teeth_head, report_teeth},
	{"unused", "unused", NULL, run_nothing, 0, NULL, report_unused},
};

enum { LOAD_COUNT = sizeof(loads) / sizeof(loads[0]) };

static void write_samples(struct csv csv, const struct plan *plan, const struct result *result)
{
	for (size_t i = 0; i < result->sample_count; i++) {
		const struct sample *sample = &result->samples[i];

		csv_row(csv, "%s,%.3f,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
			plan->load->name, seconds_of(sample->time), sample->memory.resident,
			sample->memory.address_space, sample->memory.counted,
			sample->memory.in_use);
	}
}

static void run_load(const struct plan *plan, struct csv csv, struct csv summary)
{
	static struct result result;
	struct progress progress = progress_start(stderr, false);

	progress_show(&progress, "%s", plan->load->name);
	if (!process_run_trial(run_trial, plan, &result, sizeof(result)))
		exit(1);
	progress_wipe(&progress);
	plan->load->report(plan, &result, summary);
	fflush(stdout);
	write_samples(csv, plan, &result);
}

/* Runs one load or all, with a head over loads that share a table. */
static void run_all(struct plan *plan, int only, struct csv csv, struct csv summary)
{
	const struct load *end = loads + (only < 0 ? LOAD_COUNT : only + 1);
	void (*head)(const struct plan *) = NULL;

	for (plan->load = loads + (only < 0 ? 0 : only); plan->load < end; plan->load++) {
		if (plan->load->print_head && plan->load->print_head != head)
			plan->load->print_head(plan);
		head = plan->load->print_head;
		run_load(plan, csv, summary);
	}
}

/* *load becomes a load's number + 1, or 0 for all. */
static void parse(int argc, char **argv, struct plan *plan, int *load, const char **csv_path,
		  const char **summary_path)
{
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan->count, 1000, 100000000, .help = "timers a storm"},
		{"calm", OPTION_SECONDS, &plan->calm, SAMPLE_PITCH, MINUTE,
		 .help = "time without calls after a storm"},
		{"teeth", OPTION_COUNT, &plan->teeth, 1, TEETH_MOST,
		 .help = "storms, a second from one to the next"},
		{"load", OPTION_CHOICE, load,
		 .choices = "all,storm_keyed,storm_handles,survivors_keyed,survivors_handles,"
			    "key_sizes,teeth_keyed,teeth_handles,unused",
		 .help = "which"},
		{"csv", OPTION_TEXT, csv_path, .help = "four rows a second to this file"},
		{"summary", OPTION_TEXT, summary_path, .help = "the tables' figures to this file"},
		{0},
	};

	options_parse(argc, argv,
		      "What memory does a wheel hold, and when does the system get it back?",
		      options);
}

int main(int argc, char **argv)
{
	struct plan plan = {NULL, 1000000, 12 * NANOSECONDS_PER_SECOND, 20, 1};
	const char *csv_path = NULL, *summary_path = NULL;
	struct csv csv, summary;
	int load = 0;

	parse(argc, argv, &plan, &load, &csv_path, &summary_path);
	csv = csv_open(csv_path, "load,seconds,resident_bytes,address_space_bytes,"
				 "memory_bytes,memory_in_use_bytes");
	summary = csv_open(summary_path, "load,measure,value");
	csv_row(summary, "all,timers,%" PRId64, plan.count);
	csv_row(summary, "all,later_ns,%" PRId64, later_of(&plan));
	printf("%s\n%s timers a storm, tick 1 ms, %d slots\n", machine_description(),
	       format_count(plan.count).characters, SLOTS);
	run_all(&plan, load - 1, csv, summary);
	csv_close(csv);
	csv_close(summary);
	return 0;
}
