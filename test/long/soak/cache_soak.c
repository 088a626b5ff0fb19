/* SPDX-License-Identifier: MIT */
/*
 * A cache with a limit in bytes is used for a long time, as in servers: does its memory stay within
 * the bound of cache.h, and are all its answers correct?
 *
 * Threads come and go, and set, get, pin, delete, touch and take values whose sizes change their
 * kind every few seconds. Beside them one thread disturbs: a reader loses the processor inside a
 * call, the listener blocks, the limit falls for a while, all is cleared or visited slowly. Ten
 * times a second the process's resident memory is sampled; at the end all is cleared and must be
 * released within ten seconds. Under a sanitizer, which has memory of its own, only the cache's own
 * figures are checked.
 *
 *     cache_soak --seconds=600 --seed=7
 *
 * The bound is 1.25 times the highest limit of the last ten seconds plus 4 MiB; plus memory of
 * pins, and queued removals; plus the memory from before a reader lost the processor; plus the
 * threads' stacks and values.
 *
 * The seed decides what the threads do, though not when. The last line is "N passed, N failed": the
 * samples of the memory, and the checks at the end.
 */
#include "cache_use.h"
#include "checks.h"
#include "members.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include "base/sanitizer.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define MEBIBYTE INT64_C(1048576)
#define LIMIT (32 * MEBIBYTE)
#define LOW_LIMIT (8 * MEBIBYTE)
#define LOOK_TIME (100 * TW_MILLISECOND)
#define LINE_TIME (10 * TW_SECOND)
#define BACK_TIME (10 * TW_SECOND) /* in which memory must be released */

enum {
	THREADS = 6,
	QUEUED_MOST = 2000,
	LOOKS_BACK = 110, /* a bit more than BACK_TIME */
	/* This is for a thread's stack and heap. */
	THREAD_BYTES = 128 << 10
};

static struct soak {
	/* These are constant once the threads run. */
	struct cache_use use;
	uint64_t seed;
	int64_t seconds;
	int64_t base; /* resident bytes without a cache */
	/* Any thread may use these. */
	atomic_bool is_over;
	_Atomic int64_t limit;         /* the highest that holds or is about to */
	_Atomic int64_t asleep_until;  /* for the reader */
	_Atomic int64_t blocked_until; /* for the listener */
	/* Only the main thread uses these. */
	int64_t limits[LOOKS_BACK]; /* at the last samples, in a ring */
	int64_t pinned[LOOKS_BACK];
	uint64_t above; /* samples above the bound without a sleeping reader */
	uint64_t looks;
} soak;

/* ---- Threads that use the cache ---- */

static void user_run(void *argument)
{
	struct cache_user *user = argument;
	int64_t end =
		stopwatch_now() + generator_range(&user->generator, 100, 3000) * TW_MILLISECOND;

	while (stopwatch_now() < end && !atomic_load(&soak.is_over))
		for (int i = 0; i < 100; i++)
			cache_user_act(user);
}

/* ---- What disturbs them ---- */

static void sleep_until(_Atomic int64_t *until)
{
	const struct timespec pause = {0, 1000000};

	while (stopwatch_now() < atomic_load(until))
		nanosleep(&pause, NULL);
}

static void sleep_inside(int signal)
{
	(void)signal;
	sleep_until(&soak.asleep_until);
}

static void *reader_run(void *unused)
{
	static char value[CACHE_VALUE_MOST];
	size_t size;

	for (uint64_t i = 0; !atomic_load(&soak.is_over); i++) {
		uint64_t number = scramble(i) % CACHE_KEYS;

		(void)tw_cache_get(soak.use.cache, &number, sizeof(number), value, sizeof(value),
				   &size);
	}
	return unused;
}

/* Sleeps while it is blocked, until many removals are queued. */
static void on_remove(void *use, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	struct tw_cache_stats stats;

	cache_use_on_remove(use, entry, cause);
	while (stopwatch_now() < atomic_load(&soak.blocked_until)) {
		stopwatch_sleep(TW_MILLISECOND);
		if (tw_cache_get_stats(soak.use.cache, &stats) == TW_OK &&
		    stats.queued_removals > QUEUED_MOST)
			atomic_store(&soak.blocked_until, 0);
	}
}

static int visit_slowly(void *context, const struct tw_cache_entry *entry)
{
	int *left = context;

	cache_use_judge(&soak.use, entry, 0);
	stopwatch_sleep(TW_MILLISECOND);
	return --*left > 0;
}

static void set_limit(int64_t limit)
{
	if (limit > atomic_load(&soak.limit))
		atomic_store(&soak.limit, limit);
	if (tw_cache_set_limit(soak.use.cache, 0, (uint64_t)limit) != TW_OK)
		atomic_fetch_add(&soak.use.wrong, 1);
	atomic_store(&soak.limit, limit);
}

static void disturb(struct generator *generator, pthread_t reader)
{
	int64_t soon = stopwatch_now() + generator_range(generator, 100, 1500) * TW_MILLISECOND;
	int visits = (int)generator_range(generator, 1, 1000);

	switch (generator_range(generator, 0, 12)) {
	case 0:
		(void)tw_cache_clear(soak.use.cache);
		break;
	case 1:
		(void)tw_cache_flush(soak.use.cache);
		break;
	case 2:
		(void)tw_cache_each(soak.use.cache, visit_slowly, &visits);
		break;
	case 3:
	case 4:
		atomic_store(&soak.blocked_until, soon);
		break;
	case 5:
	case 6:
	case 7:
		atomic_store(&soak.asleep_until, soon);
		pthread_kill(reader, SIGUSR1);
		break;
	case 8:
		set_limit(atomic_load(&soak.limit) == LIMIT ? LOW_LIMIT : LIMIT);
		break;
	default:
		atomic_store(&soak.use.sizes, (uint32_t)generator_range(generator, 0, SIZES));
		atomic_store(&soak.use.size, (uint64_t)generator_range(generator, 30, 3000));
	}
}

static void *disturber_run(void *argument)
{
	pthread_t reader = *(pthread_t *)argument;
	struct generator generator = {soak.seed};

	while (!atomic_load(&soak.is_over)) {
		stopwatch_sleep(generator_range(&generator, 50, 1500) * TW_MILLISECOND);
		atomic_fetch_add(&soak.use.size, 7); /* for drifting sizes */
		disturb(&generator, reader);
	}
	return NULL;
}

/* ---- Looking ---- */

static int64_t most_of(const int64_t *ring)
{
	int64_t most = 0;

	for (int i = 0; i < LOOKS_BACK; i++)
		most = ring[i] > most ? ring[i] : most;
	return most;
}

struct look {
	int64_t resident;
	int64_t may;
	struct tw_cache_stats stats;
};

/* The bound follows from the last ten seconds, the time for releasing memory. */
static struct look look(void)
{
	struct look now;
	unsigned place = (unsigned)(soak.looks++ % LOOKS_BACK);
	int64_t most;

	tw_cache_get_stats(soak.use.cache, &now.stats);
	soak.pinned[place] = (int64_t)now.stats.memory_pinned;
	soak.limits[place] = atomic_load(&soak.limit);
	now.resident = process_resident_exact() - soak.base;
	tw_cache_get_stats(soak.use.cache, &now.stats);
	if ((int64_t)now.stats.memory_pinned > soak.pinned[place])
		soak.pinned[place] = (int64_t)now.stats.memory_pinned;
	most = most_of(soak.limits) * 5 / 4;
	now.may = 2 * most + 4 * MEBIBYTE + most_of(soak.pinned) +
		  THREADS * (CACHE_VALUE_MOST + THREAD_BYTES);
	soak.above += now.resident > now.may - most;
	return now;
}

static void look_and_judge(bool shows)
{
	struct look now = look();

	if (!SANITIZER_ADDRESS && !SANITIZER_THREAD)
		check_at_most("resident bytes", now.resident, now.may);
	shows |= now.resident > now.may;
	if (shows)
		printf("%6.1f s: %9s of %9s, %9s of the cache, %9s retired, %9s pinned; %9s "
		       "entries, %s sets, %s refused\n",
		       checks_seconds(), format_bytes(now.resident).characters,
		       format_bytes(now.may).characters,
		       format_bytes((int64_t)now.stats.memory).characters,
		       format_bytes((int64_t)now.stats.memory_retired).characters,
		       format_bytes((int64_t)now.stats.memory_pinned).characters,
		       format_count((int64_t)now.stats.entries).characters,
		       format_count((int64_t)atomic_load(&soak.use.sets)).characters,
		       format_count((int64_t)now.stats.refused).characters);
	fflush(stdout);
}

static void watch(struct member *members)
{
	int64_t start = stopwatch_now();
	int64_t shown = start;

	while (stopwatch_now() - start < soak.seconds) {
		bool shows = stopwatch_now() - shown >= LINE_TIME;

		members_tend(members, THREADS);
		look_and_judge(shows);
		if (shows)
			shown += LINE_TIME;
		stopwatch_sleep(LOOK_TIME);
	}
}

/* No thread uses the cache any more. */
static void check_that_all_comes_back(void)
{
	int64_t end = stopwatch_now() + BACK_TIME;
	int64_t should = 4 * MEBIBYTE + THREADS * THREAD_BYTES;
	int64_t resident;

	cache_use_release_pins(&soak.use);
	(void)tw_cache_clear(soak.use.cache);
	do {
		stopwatch_sleep(LOOK_TIME);
		process_trim_heap();
		resident = process_resident_exact() - soak.base;
	} while (resident > should && stopwatch_now() < end);
	if (!SANITIZER_ADDRESS && !SANITIZER_THREAD)
		check_at_most("resident bytes after a clear", resident, should);
}

/* ---- The run ---- */

static void open_cache(void)
{
	struct tw_cache_options options = {
		.wheel = soak.use.wheel,
		.max_bytes = (uint64_t)LIMIT,
		.policy = soak.seed % 2 ? TW_POLICY_S3FIFO : TW_POLICY_LRU,
		.context = &soak.use,
		.on_remove = on_remove,
	};

	if (tw_cache_create(&soak.use.cache, TW_MINUTE, &options) != TW_OK)
		process_fail("no cache");
}

static void execute_nothing(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

static void run(struct member *members)
{
	struct sigaction action = {.sa_handler = sleep_inside};
	struct tw_cache_stats stats;
	pthread_t reader;
	pthread_t disturber;

	sigaction(SIGUSR1, &action, NULL);
	thread_start_or_fail(&reader, reader_run, NULL);
	thread_start_or_fail(&disturber, disturber_run, &reader);
	watch(members);
	atomic_store(&soak.is_over, true);
	members_join(members, THREADS);
	pthread_join(disturber, NULL);
	pthread_join(reader, NULL);
	check_that_all_comes_back();
	tw_cache_get_stats(soak.use.cache, &stats);
	tw_cache_destroy(soak.use.cache);
	check_at_most("runs without a set", atomic_load(&soak.use.sets) == 0, 0);
	cache_use_check(&soak.use, &stats);
	printf("%" PRIu64 " of %" PRIu64 " looks found more than without readers that sleep\n",
	       soak.above, soak.looks);
	tw_destroy(soak.use.wheel);
}

int main(int argc, char **argv)
{
	static struct cache_user users[THREADS];
	static struct member members[THREADS];
	int64_t seed = 1;
	const struct program_option options[] = {
		{"seconds", OPTION_SECONDS, &soak.seconds, 1, 100 * TW_HOUR, .help = "to run"},
		{"seed", OPTION_COUNT, &seed, 0, INT64_MAX, .help = "of all that is drawn"},
		{0},
	};

	soak.seconds = 20 * TW_SECOND;
	process_use_one_heap();
	options_parse(argc, argv, "Does a cache's memory stay within its bound?", options);
	machine_print();
	soak.seed = (uint64_t)seed;
	checks_begin(soak.seed);
	atomic_store(&soak.limit, LIMIT);
	for (int i = 0; i < THREADS; i++) {
		users[i] = (struct cache_user){
			.use = &soak.use,
			.generator = {scramble(soak.seed * THREADS + (uint64_t)i)},
			.value = process_allocate(CACHE_VALUE_MOST),
		};
		members[i].run = user_run;
		members[i].argument = &users[i];
	}
	if (tw_create(&soak.use.wheel, TW_MILLISECOND, 512, execute_nothing, NULL) != TW_OK)
		process_fail("no wheel");
	process_trim_heap();
	soak.base = process_resident_exact();
	open_cache();
	run(members);
	for (int i = 0; i < THREADS; i++)
		free(users[i].value);
	return !checks_report();
}
