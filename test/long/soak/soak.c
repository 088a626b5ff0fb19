/* SPDX-License-Identifier: MIT */
/*
 * Wheels and caches in one process are used for a long time, as in servers: does each value come
 * back once and in time, and are all resources of the system released?
 *
 * The run has busy and quiet times. In a busy time, threads that come and go use four wheels (both
 * layouts, driven by an owner, inline, by a caller) and two caches by all kinds of calls, and
 * beside them there are storms, drains, forks, and wheels and caches that are stopped while busy
 * (disturber.h). Then all is drained and cleared, each value must have come back, and within
 * BACK_TIME resident memory, threads and descriptors must be what they were before.
 *
 *     soak --seconds=2h --seed=7 --csv=soak.csv --summary=soak.md
 *
 * A line of the CSV file covers five seconds. The bound of the lateness is generous, as the machine
 * may be busy; memory is not checked under a sanitizer, which has its own. The seed decides what
 * the threads draw, though not when. The last line is "N passed, N failed".
 */
#include "base/sanitizer.h"
#include "checks.h"
#include "disturber.h"
#include "lateness.h"
#include "resources.h"
#include "support/csv.h"
#include "support/expect.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MEBIBYTE INT64_C(1048576)
#define CACHE_LIMIT (16 * MEBIBYTE)
#define LOOK_TIME (100 * TW_MILLISECOND)
#define LINE_TIME (5 * TW_SECOND)
#define BUSY_TIME (45 * TW_SECOND) /* shorter in a short run */
#define BACK_TIME (60 * TW_SECOND) /* in which resources must be released */
#define MEMORY_LEFT (8 * MEBIBYTE) /* this much memory may stay */
#define LATENESS_P99 (5 * TW_SECOND)
#define LATENESS_MOST (60 * TW_SECOND)

enum { USERS = PLACE_USERS, CALLER_DRIVEN = 3 };

/* This is what the process held before the first busy time. */
struct held_by_process {
	int64_t resident;
	int64_t threads;
	int64_t descriptors;
};

static struct soak {
	struct stage stage;
	struct user users[USERS];
	struct disturber disturber;
	struct member members[USERS + 1]; /* the last is the disturber */
	pthread_t driver;
	atomic_bool driver_ends;
	struct held_by_process before;
	struct csv csv;
	int64_t start;
	int64_t seconds;
	int64_t seed;
	int64_t storm_size;
	/* These are counts. */
	uint64_t threads_started;
	uint64_t quiet_times;
	uint64_t fired_before; /* at the last line */
	int64_t line_due;
	int64_t resident_most;
	int64_t resident_last; /* after the last quiet time */
	int64_t threads_most;
	int64_t descriptors_most;
	int64_t back_most; /* the longest release of all */
} soak;

/* ---- What is used ---- */

static void *drive(void *argument)
{
	struct tw_wheel *wheel = soak.stage.places[CALLER_DRIVEN].wheel;
	tw_duration until_next;

	while (!atomic_load(&soak.driver_ends)) {
		expect_ok(tw_poll(wheel, &until_next), "tw_poll");
		stopwatch_sleep(until_next < TW_MILLISECOND ? until_next : TW_MILLISECOND);
	}
	return argument;
}

/* All members are users of the lasting wheels, and so are the disturber's storms. */
static void open_place(int number, tw_duration interval, size_t slots,
		       const struct tw_options *options)
{
	place_open(&soak.stage.places[number], interval, slots, options, USERS,
		   (size_t)soak.storm_size, (uint64_t)(soak.seed * PLACES_MOST + number));
}

static void open_wheels(void)
{
	open_place(0, TW_MILLISECOND, 512,
		   &(struct tw_options){.name = "levels", .max_workers = 4});
	open_place(1, 5 * TW_MILLISECOND, 300,
		   &(struct tw_options){.name = "rounds",
					.layout = TW_LAYOUT_ROUNDS,
					.queue_capacity = 1024,
					.when_full = TW_WHEN_FULL_FAIL,
					.max_workers = 4});
	open_place(2, 2 * TW_MILLISECOND, 64,
		   &(struct tw_options){.name = "inline",
					.clock = TW_CLOCK_BOOTTIME,
					.workers = TW_WORKERS_INLINE});
	open_place(CALLER_DRIVEN, 10 * TW_MILLISECOND, 100,
		   &(struct tw_options){
			   .name = "caller", .layout = TW_LAYOUT_ROUNDS, .drive = TW_DRIVE_CALLER});
	soak.stage.place_count = PLACES_MOST;
	thread_start_or_fail(&soak.driver, drive, NULL);
}

/* The first is on a wheel of its own, with the same clock. */
static void open_caches(void)
{
	for (int i = 0; i < CACHES_MOST; i++) {
		struct cache_use *use = &soak.stage.caches[i];
		struct tw_cache_options options = {
			.wheel = i == 0 ? NULL : soak.stage.places[0].wheel,
			.max_bytes = (uint64_t)CACHE_LIMIT,
			.policy = i == 0 ? TW_POLICY_LRU : TW_POLICY_S3FIFO,
			.context = use,
			.on_remove = cache_use_on_remove,
		};

		use->wheel = soak.stage.places[0].wheel;
		expect_ok(tw_cache_create(&use->cache, TW_MINUTE, &options), "tw_cache_create");
	}
	soak.stage.cache_count = CACHES_MOST;
}

static void open_members(void)
{
	for (int i = 0; i < USERS; i++) {
		user_open(&soak.users[i], &soak.stage, (unsigned)i, (uint64_t)soak.seed);
		soak.members[i].run = user_run;
		soak.members[i].argument = &soak.users[i];
	}
	disturber_open(&soak.disturber, &soak.stage, (uint64_t)soak.seed);
	soak.members[USERS].run = disturber_run;
	soak.members[USERS].argument = &soak.disturber;
}

static void close_all(void)
{
	for (int i = 0; i < CACHES_MOST; i++) {
		struct cache_use *use = &soak.stage.caches[i];
		struct tw_cache_stats stats;

		tw_cache_get_stats(use->cache, &stats);
		tw_cache_destroy(use->cache);
		cache_use_check(use, &stats);
	}
	atomic_store(&soak.driver_ends, true);
	pthread_join(soak.driver, NULL);
	for (int i = 0; i < PLACES_MOST; i++) {
		atomic_store(&soak.stage.places[i].model.stop_begun, true);
		tw_destroy(soak.stage.places[i].wheel);
		place_close(&soak.stage.places[i]);
	}
	for (int i = 0; i < USERS; i++)
		user_close(&soak.users[i]);
	disturber_close(&soak.disturber);
}

/* ---- Lines ---- */

static uint64_t operations(void)
{
	return atomic_load(&soak.stage.operations) +
	       atomic_load(&soak.disturber.passing.operations);
}

/* Returns the fired timers of the lasting wheels, keyed and by handle. */
static uint64_t fired(void)
{
	uint64_t count = 0;

	for (int i = 0; i < PLACES_MOST; i++)
		count += atomic_load(&soak.stage.places[i].model.back[WAY_RUN]);
	return count;
}

static int64_t most_of(int64_t most, int64_t now)
{
	return now > most ? now : most;
}

static int64_t memory_of_wheels(int64_t *pending)
{
	uint64_t memory = 0;

	*pending = 0;
	for (int i = 0; i < PLACES_MOST; i++) {
		struct tw_stats stats = expect_stats(soak.stage.places[i].wheel);

		memory += stats.memory;
		*pending += (int64_t)stats.pending;
	}
	return (int64_t)memory;
}

static int64_t memory_of_caches(void)
{
	uint64_t memory = 0;

	for (int i = 0; i < CACHES_MOST; i++) {
		struct tw_cache_stats stats;

		tw_cache_get_stats(soak.stage.caches[i].cache, &stats);
		memory += stats.memory;
	}
	return (int64_t)memory;
}

static void write_line(bool is_busy, const struct held_by_process *now)
{
	struct lateness lateness = lateness_of_interval();
	uint64_t fired_now = fired();
	int64_t pending;
	int64_t wheels = memory_of_wheels(&pending);

	csv_row(soak.csv,
		"%.1f,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64
		",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
		checks_seconds(), is_busy ? "busy" : "quiet", operations(),
		fired_now - soak.fired_before, lateness.count, lateness.p50, lateness.p99,
		lateness.most, pending, now->resident, wheels, memory_of_caches(), now->threads,
		now->descriptors);
	if (soak.csv.file)
		fflush(soak.csv.file);
	soak.fired_before = fired_now;
	check_at_most("lateness, p99 of an interval", lateness.p99, LATENESS_P99);
	check_at_most("lateness", lateness.most, LATENESS_MOST);
}

static struct held_by_process look(bool is_busy)
{
	struct held_by_process now = {
		.resident = is_busy ? process_resident() : process_resident_exact(),
		.threads = resources_threads(),
		.descriptors = resources_descriptors(),
	};

	soak.resident_most = most_of(soak.resident_most, now.resident);
	soak.threads_most = most_of(soak.threads_most, now.threads);
	soak.descriptors_most = most_of(soak.descriptors_most, now.descriptors);
	if (stopwatch_now() >= soak.line_due) {
		soak.line_due += LINE_TIME;
		write_line(is_busy, &now);
	}
	return now;
}

/* ---- Busy and quiet times ---- */

static void be_busy(int64_t duration)
{
	int64_t end = stopwatch_now() + duration;

	atomic_store(&soak.stage.is_over, false);
	while (stopwatch_now() < end) {
		soak.threads_started += members_tend(soak.members, USERS + 1);
		(void)look(true);
		stopwatch_sleep(LOOK_TIME);
	}
	atomic_store(&soak.stage.is_over, true);
	members_join(soak.members, USERS + 1);
}

static void empty_all(void)
{
	for (int i = 0; i < PLACES_MOST; i++) {
		struct place *place = &soak.stage.places[i];

		act_drain(&place->users[STORM]);
		act_wait_idle(&place->users[STORM]);
		place_check_empty(place);
	}
	for (int i = 0; i < CACHES_MOST; i++) {
		struct cache_use *use = &soak.stage.caches[i];

		cache_use_release_pins(use);
		expect_ok(tw_cache_clear(use->cache), "tw_cache_clear");
		expect_ok(tw_cache_flush(use->cache), "tw_cache_flush");
	}
}

static bool is_back(const struct held_by_process *now)
{
	bool has_own_memory = SANITIZER_ADDRESS || SANITIZER_THREAD;

	return now->threads == soak.before.threads && now->descriptors == soak.before.descriptors &&
	       (has_own_memory || now->resident <= soak.before.resident + MEMORY_LEFT);
}

static void be_quiet(void)
{
	int64_t start = stopwatch_now();
	struct held_by_process now;

	empty_all();
	do {
		stopwatch_sleep(LOOK_TIME);
		process_trim_heap();
		now = look(false);
	} while (!is_back(&now) && stopwatch_now() < start + BACK_TIME);
	check_equal("threads after a quiet time", now.threads, soak.before.threads);
	check_equal("descriptors after a quiet time", now.descriptors, soak.before.descriptors);
	if (!SANITIZER_ADDRESS && !SANITIZER_THREAD)
		check_at_most("resident bytes after a quiet time", now.resident,
			      soak.before.resident + MEMORY_LEFT);
	soak.back_most = most_of(soak.back_most, stopwatch_now() - start);
	soak.resident_last = now.resident;
	soak.quiet_times++;
	printf("%8.1f s: %s operations, resident %s after at most %s, all back in %s\n",
	       checks_seconds(), format_count((int64_t)operations()).characters,
	       format_bytes(now.resident).characters, format_bytes(soak.resident_most).characters,
	       format_duration(stopwatch_now() - start).characters);
	fflush(stdout);
}

/* ---- The summary ---- */

static void write_row(FILE *file, const char *what, const char *value)
{
	fprintf(file, "| %s | %s |\n", what, value);
}

static void write_count(FILE *file, const char *what, uint64_t count)
{
	write_row(file, what, format_count((int64_t)count).characters);
}

static void write_summary(FILE *file, const char *commit)
{
	struct lateness lateness = lateness_of_all();
	char hours[32];

	snprintf(hours, sizeof(hours), "%.2f", seconds_of(stopwatch_now() - soak.start) / 3600);
	write_row(file, "Soak", "");
	write_row(file, "---", "--:");
	write_row(file, "machine", machine_description());
	write_row(file, "commit", commit);
	write_count(file, "seed", (uint64_t)soak.seed);
	write_row(file, "hours", hours);
	write_count(file, "operations", operations());
	write_count(file, "tasks run", lateness.count);
	write_count(file, "threads that used wheels and caches", soak.threads_started);
	write_count(file, "storms", atomic_load(&soak.disturber.storms));
	write_count(file, "drains beside them", atomic_load(&soak.disturber.drains));
	write_count(file, "wheels and caches stopped and destroyed",
		    atomic_load(&soak.disturber.wheels));
	write_count(file, "forks", atomic_load(&soak.disturber.forks));
	write_count(file, "quiet times", soak.quiet_times);
	write_row(file, "resident memory before", format_bytes(soak.before.resident).characters);
	write_row(file, "… the highest", format_bytes(soak.resident_most).characters);
	write_row(file, "… after the last quiet time", format_bytes(soak.resident_last).characters);
	write_row(file, "longest until all was back", format_duration(soak.back_most).characters);
	write_count(file, "threads before, and after each quiet time",
		    (uint64_t)soak.before.threads);
	write_count(file, "… at most", (uint64_t)soak.threads_most);
	write_count(file, "descriptors before, and after each quiet time",
		    (uint64_t)soak.before.descriptors);
	write_count(file, "… at most", (uint64_t)soak.descriptors_most);
	write_row(file, "lateness p50", format_duration(lateness.p50).characters);
	write_row(file, "… p99", format_duration(lateness.p99).characters);
	write_row(file, "… at most", format_duration(lateness.most).characters);
}

static void report_run(const char *path, const char *commit)
{
	FILE *file = path ? fopen(path, "w") : NULL;

	write_summary(stdout, commit);
	if (path && !file)
		process_fail("%s can't be written", path);
	if (!file)
		return;
	write_summary(file, commit);
	fclose(file);
}

/* ---- The run ---- */

static void run(void)
{
	int64_t busy = soak.seconds / 2 < BUSY_TIME ? soak.seconds / 2 : BUSY_TIME;

	stopwatch_sleep(LOOK_TIME); /* all threads have begun */
	soak.before = look(false);
	while (stopwatch_now() - soak.start < soak.seconds) {
		be_busy(busy);
		be_quiet();
	}
}

int main(int argc, char **argv)
{
	const char *csv = NULL;
	const char *summary = NULL;
	const char *commit = "unknown";
	const struct program_option options[] = {
		{"seconds", OPTION_SECONDS, &soak.seconds, 1, 100 * TW_HOUR, .help = "to run"},
		{"seed", OPTION_COUNT, &soak.seed, 0, INT64_MAX, .help = "of all that is drawn"},
		{"storm", OPTION_COUNT, &soak.storm_size, 1, 1000000, .help = "timers at once"},
		{"csv", OPTION_TEXT, &csv, .help = "a line each five seconds"},
		{"summary", OPTION_TEXT, &summary, .help = "a table in Markdown"},
		{"commit", OPTION_TEXT, &commit, .help = "for the summary"},
		{0},
	};

	soak.seconds = 30 * TW_SECOND;
	soak.seed = 1;
	soak.storm_size = 300000;
	process_use_one_heap();
	options_parse(argc, argv, "Does all come back, however long it runs?", options);
	machine_print();
	checks_begin((uint64_t)soak.seed);
	lateness_begin();
	soak.csv = csv_open(csv, "seconds,phase,operations,fired,tasks,lateness_p50,lateness_p99,"
				 "lateness_max,pending,resident,wheels,caches,threads,descriptors");
	open_wheels();
	open_caches();
	open_members();
	soak.start = stopwatch_now();
	soak.line_due = soak.start + LINE_TIME;
	run();
	close_all();
	(void)lateness_of_interval(); /* adds the last one to the whole */
	report_run(summary, commit);
	csv_close(soak.csv);
	lateness_end();
	return !checks_report();
}
