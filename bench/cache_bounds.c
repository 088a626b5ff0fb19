/* SPDX-License-Identifier: MIT */
/*
 * What memory does a cache with a limit in bytes take at most, and what do other threads and other
 * caches cost a call?
 *
 * Memory: after each 4,096 sets the process's resident bytes are sampled, less those before the
 * cache was created. The cases are:
 * - 32 MiB of max_bytes and 24 value sizes in turn; each until four times the limit has passed
 * - 64 MiB and sizes that drift
 * - 8 MiB and a reader that loses the processor inside a call: a signal handler stops it ten
 *   times for 300 ms, wherever it is
 *
 * The bound is 1.25 times max_bytes plus 4 MiB. With the sleeping reader the memory that was there
 * when it fell asleep is added.
 *
 * Calls: nanoseconds of processor time of a set of 100 bytes and of 8 KiB, after 2,000 threads that
 * used the cache have ended, and with 1,000 live ones; of a get, where one thread uses one cache
 * after the other; and of a flush on a wheel that its caller drives, by removal, in real time.
 *
 * The baseline is the bound, and the call without other threads and caches. Each row is a process
 * of its own.
 */
#include "support/csv.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <timingwheel/cache.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEBIBYTE INT64_C(1048576)
#define MILLISECOND (NANOSECONDS_PER_SECOND / 1000)

enum { VALUE_MOST = 16384, SETS_A_LOOK = 4096, CALLS = 200000, ENDED = 2000, LIVE = 1000 };

static struct tw_cache *open_cache(int64_t max_bytes)
{
	struct tw_cache_options options = {.max_bytes = (uint64_t)max_bytes};
	struct tw_cache *cache;

	if (tw_cache_create(&cache, TW_HOUR, &options) != TW_OK)
		process_fail("no cache");
	return cache;
}

static void set(struct tw_cache *cache, uint64_t number, size_t size)
{
	static const char value[VALUE_MOST];
	struct random_key key = key_of(number, 1);

	if (tw_cache_set(cache, &key, sizeof(key), value, size) != TW_OK)
		process_fail("a set failed");
}

/* --- Memory ----------------------------------------------------------------------------------- */

struct memory {
	double most; /* resident bytes, over all samples */
	double may;
};

struct sizes {
	struct tw_cache *cache;
	int64_t before;
	int64_t most;
	uint64_t number;
};

static struct sizes sizes_begin(int64_t max_bytes)
{
	/* This first cache allocates memory of the C library and of threads. */
	tw_cache_destroy(open_cache(max_bytes));
	process_trim_heap();
	return (struct sizes){.before = process_resident_exact(), .cache = open_cache(max_bytes)};
}

static void sizes_look(struct sizes *sizes)
{
	int64_t now = process_resident_exact() - sizes->before;

	sizes->most = now > sizes->most ? now : sizes->most;
}

static void set_bytes(struct sizes *sizes, size_t size, int64_t bytes)
{
	for (int64_t set_so_far = 0; set_so_far < bytes; set_so_far += (int64_t)size + 100) {
		set(sizes->cache, sizes->number++, size);
		if (sizes->number % SETS_A_LOOK == 0)
			sizes_look(sizes);
	}
}

static void sizes_end(struct sizes *sizes, int64_t max_bytes, struct memory *memory)
{
	memory->most = (double)sizes->most;
	memory->may = (double)(max_bytes + max_bytes / 4 + 4 * MEBIBYTE);
	tw_cache_destroy(sizes->cache);
}

static void run_turns(const void *argument, void *result)
{
	enum { SIZES = 24, PASSES = 2 };
	struct sizes sizes = sizes_begin(32 * MEBIBYTE);

	(void)argument;
	for (int i = 0; i < PASSES * SIZES; i++)
		/* The sizes go from 40 bytes to 15,000, up and down in large steps. */
		set_bytes(&sizes, (size_t)(40 + (i * 7 % SIZES) * (i * 7 % SIZES) * 28),
			  128 * MEBIBYTE);
	sizes_end(&sizes, 32 * MEBIBYTE, result);
}

static void run_drift(const void *argument, void *result)
{
	struct sizes sizes = sizes_begin(64 * MEBIBYTE);

	(void)argument;
	for (size_t size = 200; size <= 330; size += 10)
		set_bytes(&sizes, size, 128 * MEBIBYTE);
	sizes_end(&sizes, 64 * MEBIBYTE, result);
}

static _Atomic bool reader_may_go_on;
static _Atomic bool reader_sleeps;
static _Atomic bool reader_is_over;

static void sleep_inside(int signal)
{
	const struct timespec pause = {0, 1000000};

	(void)signal;
	atomic_store(&reader_sleeps, true);
	while (!atomic_load(&reader_may_go_on))
		nanosleep(&pause, NULL);
	atomic_store(&reader_sleeps, false);
}

static void *look_up(void *argument)
{
	struct tw_cache *cache = argument;
	char value[100];

	for (uint64_t i = 0; !atomic_load(&reader_is_over); i++) {
		struct random_key key = key_of(i % 10000, 1);

		(void)tw_cache_get(cache, &key, sizeof(key), value, sizeof(value), NULL);
	}
	return NULL;
}

static void run_reader(const void *argument, void *result)
{
	enum { TIMES = 10 };
	struct sigaction action = {.sa_handler = sleep_inside};
	struct sizes sizes = sizes_begin(8 * MEBIBYTE);
	struct memory *memory = result;
	pthread_t thread;

	(void)argument;
	sigaction(SIGUSR1, &action, NULL);
	set_bytes(&sizes, 100, 64 * MEBIBYTE);
	if (pthread_create(&thread, NULL, look_up, sizes.cache) != 0)
		process_fail("a thread could not be started");
	for (int i = 0; i < TIMES; i++) {
		int64_t end;

		atomic_store(&reader_may_go_on, false);
		pthread_kill(thread, SIGUSR1);
		while (!atomic_load(&reader_sleeps))
			stopwatch_sleep(MILLISECOND);
		for (end = stopwatch_now() + 300 * MILLISECOND; stopwatch_now() < end;)
			set_bytes(&sizes, 100, MEBIBYTE);
		atomic_store(&reader_may_go_on, true);
		while (atomic_load(&reader_sleeps))
			stopwatch_sleep(MILLISECOND);
		set_bytes(&sizes, 100, 16 * MEBIBYTE);
	}
	atomic_store(&reader_is_over, true);
	pthread_join(thread, NULL);
	sizes_end(&sizes, 8 * MEBIBYTE, memory);
	memory->may += (double)(10 * MEBIBYTE);
}

/* --- Calls ------------------------------------------------------------------------------------ */

struct calls {
	double nanoseconds;
};

struct crowd {
	int64_t ended;
	int64_t live;
	int64_t caches;
	size_t size;
};

struct thread {
	pthread_t thread;
	struct tw_cache *cache;
	pthread_barrier_t *used; /* NULL if it ends at once */
	pthread_barrier_t *end;
};

static void *use_once(void *argument)
{
	struct thread *thread = argument;

	for (uint64_t i = 0; i < 100; i++)
		set(thread->cache, i, 100);
	if (thread->used) {
		pthread_barrier_wait(thread->used);
		pthread_barrier_wait(thread->end);
	}
	return NULL;
}

static void start(struct thread *thread)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	if (pthread_create(&thread->thread, &attributes, use_once, thread) != 0)
		process_fail("a thread could not be started");
	pthread_attr_destroy(&attributes);
}

static double time_sets(struct tw_cache *cache, size_t size)
{
	uint64_t keys = 32 * (uint64_t)MEBIBYTE / (size + 200);
	int64_t started;

	for (uint64_t i = 0; i < keys; i++)
		set(cache, i, size);
	started = stopwatch_thread_cpu();
	for (uint64_t i = 0; i < CALLS; i++)
		set(cache, scramble(i) % keys, size);
	return (double)(stopwatch_thread_cpu() - started) / CALLS;
}

static void run_sets(const void *argument, void *result)
{
	const struct crowd *crowd = argument;
	struct thread *threads = process_allocate((size_t)(crowd->live + 1) * sizeof(*threads));
	struct tw_cache *cache = open_cache(0);
	pthread_barrier_t used;
	pthread_barrier_t end;

	for (int64_t i = 0; i < crowd->ended; i++) {
		struct thread thread = {.cache = cache};

		start(&thread);
		pthread_join(thread.thread, NULL);
	}
	pthread_barrier_init(&used, NULL, (unsigned)crowd->live + 1);
	pthread_barrier_init(&end, NULL, (unsigned)crowd->live + 1);
	for (int64_t i = 0; i < crowd->live; i++) {
		threads[i] = (struct thread){.cache = cache, .used = &used, .end = &end};
		start(&threads[i]);
	}
	pthread_barrier_wait(&used);
	((struct calls *)result)->nanoseconds = time_sets(cache, crowd->size);
	pthread_barrier_wait(&end);
	for (int64_t i = 0; i < crowd->live; i++)
		pthread_join(threads[i].thread, NULL);
	tw_cache_destroy(cache);
}

static void run_nothing(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

static void run_caches(const void *argument, void *result)
{
	const struct crowd *crowd = argument;
	size_t count = (size_t)crowd->caches;
	struct tw_cache **caches = process_allocate(count * sizeof(struct tw_cache *));
	struct random_key key = key_of(1, 1);
	struct tw_options inline_wheel = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct tw_cache_options options = {.shards = 1};
	int64_t started;
	char value[100];

	if (tw_create(&options.wheel, TW_SECOND, 300, run_nothing, &inline_wheel) != TW_OK)
		process_fail("no wheel");
	for (size_t i = 0; i < count; i++) {
		if (tw_cache_create(&caches[i], TW_HOUR, &options) != TW_OK)
			process_fail("no cache");
		set(caches[i], 1, sizeof(value));
	}
	for (size_t i = 0; i < count; i++)
		(void)tw_cache_get(caches[i], &key, sizeof(key), value, sizeof(value), NULL);
	started = stopwatch_thread_cpu();
	for (size_t i = 0; i < CALLS; i++)
		if (tw_cache_get(caches[i % count], &key, sizeof(key), value, sizeof(value),
				 NULL) != TW_OK)
			process_fail("a get failed");
	((struct calls *)result)->nanoseconds = (double)(stopwatch_thread_cpu() - started) / CALLS;
	for (size_t i = 0; i < count; i++)
		tw_cache_destroy(caches[i]);
	tw_destroy(options.wheel);
	free(caches);
}

static void count_removal(void *context, const struct tw_cache_entry *entry,
			  enum tw_cache_cause cause)
{
	(void)entry;
	(void)cause;
	++*(uint64_t *)context;
}

static void run_flush(const void *argument, void *result)
{
	enum { ENTRIES = 100000 };
	struct tw_options inline_wheel = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	uint64_t removals = 0;
	struct tw_cache_options options = {.on_remove = count_removal, .context = &removals};
	struct tw_cache *cache;
	int64_t started;

	(void)argument;
	if (tw_create(&options.wheel, TW_SECOND, 300, run_nothing, &inline_wheel) != TW_OK ||
	    tw_cache_create(&cache, TW_HOUR, &options) != TW_OK)
		process_fail("no cache");
	for (uint64_t i = 0; i < ENTRIES; i++)
		set(cache, i, 100);
	started = stopwatch_now();
	if (tw_cache_clear(cache) != TW_OK || tw_cache_flush(cache) != TW_OK)
		process_fail("no flush");
	((struct calls *)result)->nanoseconds = (double)(stopwatch_now() - started) / ENTRIES;
	if (removals != ENTRIES)
		process_fail("the listener missed removals");
	tw_cache_destroy(cache);
	tw_destroy(options.wheel);
}

/* --- All runs --------------------------------------------------------------------------------- */

static const struct memory_row {
	const char *title;
	void (*run)(const void *argument, void *result);
} memory_rows[] = {
	{"24 sizes in turn, 32 MiB", run_turns},
	{"sizes that drift, 64 MiB", run_drift},
	{"a sleeping reader, 8 MiB", run_reader},
};

static const struct calls_row {
	const char *title;
	void (*run)(const void *argument, void *result);
	struct crowd crowd;
	int baseline; /* the number of its baseline's row, -1 in a baseline */
} calls_rows[] = {
	{"set of 100 bytes, alone", run_sets, {.size = 100}, -1},
	{"  after 2,000 threads", run_sets, {.size = 100, .ended = ENDED}, 0},
	{"  with 1 other thread", run_sets, {.size = 100, .live = 1}, 0},
	{"  with 1,000 other threads", run_sets, {.size = 100, .live = LIVE}, 2},
	{"set of 8 KiB, alone", run_sets, {.size = 8192}, -1},
	{"  after 2,000 threads", run_sets, {.size = 8192, .ended = ENDED}, 4},
	{"  with 1 other thread", run_sets, {.size = 8192, .live = 1}, 4},
	{"  with 1,000 other threads", run_sets, {.size = 8192, .live = LIVE}, 6},
	{"get, of 1 cache", run_caches, {.caches = 1}, -1},
	{"  of 10 caches in turn", run_caches, {.caches = 10}, 8},
	{"  of 100", run_caches, {.caches = 100}, 8},
	{"  of 1,000", run_caches, {.caches = 1000}, 8},
	{"  of 10,000", run_caches, {.caches = 10000}, 8},
	{"flush, driven, a removal", run_flush, {0}, -1},
};

enum {
	MEMORY_ROWS = sizeof(memory_rows) / sizeof(memory_rows[0]),
	CALLS_ROWS = sizeof(calls_rows) / sizeof(calls_rows[0])
};

static void run_memory(int64_t runs, struct csv csv)
{
	printf("\n%-28s %12s %12s %8s\n", "memory, the most", "resident", "may be", "ratio");
	for (int row = 0; row < MEMORY_ROWS; row++) {
		struct figures *figures = figures_create(memory_rows[row].title);
		struct memory memory;

		for (int64_t run = 1; run <= runs; run++) {
			figures_run(figures, memory_rows[row].run, NULL, &memory, sizeof(memory));
			csv_row(csv, "\"%s\",%d,%.0f,%.0f", memory_rows[row].title, (int)run,
				memory.most, memory.may);
		}
		memory.most = figures_spread(figures, FIGURE(struct memory, most)).most;
		printf("%-28s %12s %12s %8.2f\n", memory_rows[row].title,
		       format_bytes((int64_t)memory.most).characters,
		       format_bytes((int64_t)memory.may).characters, memory.most / memory.may);
		figures_destroy(figures);
	}
}

static void run_calls(int64_t runs, struct csv csv)
{
	double medians[CALLS_ROWS];

	printf("\n%-28s %12s %12s\n", "a call", "median", "times");
	for (int row = 0; row < CALLS_ROWS; row++) {
		const struct calls_row *calls = &calls_rows[row];
		struct figures *figures = figures_create(calls->title);
		struct calls result;

		for (int64_t run = 1; run <= runs; run++) {
			figures_run(figures, calls->run, &calls->crowd, &result, sizeof(result));
			csv_row(csv, "\"%s\",%d,%.1f,", calls->title, (int)run, result.nanoseconds);
		}
		medians[row] = figures_median(figures, FIGURE(struct calls, nanoseconds));
		printf("%-28s %9.1f ns", calls->title, medians[row]);
		if (calls->baseline >= 0)
			printf(" %12.2f", medians[row] / medians[calls->baseline]);
		printf("\n");
		figures_destroy(figures);
	}
}

int main(int argc, char **argv)
{
	int64_t runs = 3;
	const char *csv_path = NULL;
	const struct program_option options[] = {
		FIGURES_OPTIONS(&runs, 1, &csv_path),
		{0},
	};
	struct csv csv;

	options_parse(argc, argv, "What does a cache take, whatever happens?", options);
	csv = csv_open(csv_path, "row,run,figure,may_be");
	machine_print();
	run_memory(runs, csv);
	run_calls(runs, csv);
	csv_close(csv);
	return 0;
}
