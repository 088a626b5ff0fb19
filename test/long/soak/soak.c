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
 *     soak --seconds=2h --seed=7
 *
 * A line is printed for each quiet time. The bound of the lateness is generous, as the machine may
 * be busy; memory is not checked under a sanitizer, which has its own. The seed decides what the
 * threads draw, though not when. The last line is "N passed, N failed".
 */
#include "base/compiler.h"
#include "checks.h"
#include "disturber.h"
#include "support/expect.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>

#define MEBIBYTE INT64_C(1048576)
#define CACHE_LIMIT (16 * MEBIBYTE)
#define LOOK_TIME (100 * TW_MILLISECOND)
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
	int64_t start;
	int64_t seconds;
	int64_t seed;
	int64_t storm_size;
	int64_t resident_most;
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

/* ---- Checks ---- */

static int64_t entries_of(const char *folder)
{
	DIR *entries = opendir(folder);
	const struct dirent *entry;
	int64_t count = 0;

	while (entries && (entry = readdir(entries)))
		count += entry->d_name[0] != '.';
	if (entries)
		closedir(entries);
	return count;
}

static struct held_by_process look(bool is_busy)
{
	struct held_by_process now = {
		.resident = is_busy ? process_resident() : process_resident_exact(),
		.threads = entries_of("/proc/self/task"),
		.descriptors = entries_of("/proc/self/fd"),
	};

	if (now.resident > soak.resident_most)
		soak.resident_most = now.resident;
	return now;
}

static void check_lateness(void)
{
	for (int i = 0; i < PLACES_MOST; i++) {
		struct tw_stats stats = expect_stats(soak.stage.places[i].wheel);

		check_at_most("lateness, p99", stats.lateness.p99, LATENESS_P99);
		check_at_most("lateness", stats.lateness.max, LATENESS_MOST);
	}
}

/* ---- Busy and quiet times ---- */

static void be_busy(int64_t duration)
{
	int64_t end = stopwatch_now() + duration;

	atomic_store(&soak.stage.is_over, false);
	while (stopwatch_now() < end) {
		members_tend(soak.members, USERS + 1);
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
	check_lateness();
	printf("%8.1f s: %s operations, resident %s after at most %s, all back in %s\n",
	       checks_seconds(),
	       format_count((int64_t)(atomic_load(&soak.stage.operations) +
				      atomic_load(&soak.disturber.passing.operations)))
		       .characters,
	       format_bytes(now.resident).characters, format_bytes(soak.resident_most).characters,
	       format_duration(stopwatch_now() - start).characters);
	fflush(stdout);
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
	const struct program_option options[] = {
		{"seconds", OPTION_SECONDS, &soak.seconds, 1, 100 * TW_HOUR, .help = "to run"},
		{"seed", OPTION_COUNT, &soak.seed, 0, INT64_MAX, .help = "of all that is drawn"},
		{"storm", OPTION_COUNT, &soak.storm_size, 1, 1000000, .help = "timers at once"},
		{0},
	};

	soak.seconds = 30 * TW_SECOND;
	soak.seed = 1;
	soak.storm_size = 300000;
	process_use_one_heap();
	options_parse(argc, argv, "Does all come back, however long it runs?", options);
	machine_print();
	checks_begin((uint64_t)soak.seed);
	open_wheels();
	open_caches();
	open_members();
	soak.start = stopwatch_now();
	run();
	close_all();
	return !checks_report();
}
