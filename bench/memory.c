/* SPDX-License-Identifier: MIT */
/*
 * How much memory do a wheel and a cache hold, and when do they return it to the system?
 *
 * Wheel: in a storm a million timers are set, all before the first is due, and fire within a
 * second. Then no call is made for 10 s. Resident memory is read when all are set, when all have
 * fired, and in the end. One timer in a hundred may be an hour away; keys of other lengths follow
 * on the same wheel; and 20 storms follow each other, a second apart, whose page faults are
 * counted.
 *
 * Cache: after each 4,096 sets resident memory is read, and the most of it compared with the bound,
 * 1.25 times max_bytes plus 4 MiB: with 24 sizes of values in turn, with sizes that drift, and
 * beside a reader that loses the processor inside a call, where the memory that was there when it
 * fell asleep is added to the bound.
 *
 * Every case is a process of its own. All figures are differences to the process before the wheel
 * or the cache was created; another one was created, used and destroyed before. The baselines are
 * the wheel's own peak, and the bound.
 */
#include "support/expect.h"
#include "support/fates.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"

#include <timingwheel/cache.h>
#include <timingwheel/timingwheel.h>

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MINUTE (60 * NANOSECONDS_PER_SECOND)
#define PATIENCE MINUTE
#define MEBIBYTE INT64_C(1048576)

enum { SLOTS = 512, KEY_MOST = 1000, VALUE_MOST = 16384, SETS_A_LOOK = 4096 };

enum { UNUSED, PEAK, FIRED, LATER, MAPPED, FIRST_FAULTS, LATER_FAULTS };

static const struct measure wheel_measures[] = {
	{"unused_bytes", "unused: KiB", 0x1p-10, 0},
	{"peak_bytes", "all set: MiB", 0x1p-20, 1},
	{"fired_bytes", "all fired: MiB", 0x1p-20, 1},
	{"later_bytes", "10 s later: MiB", 0x1p-20, 1},
	{"mapped_bytes", "address space when all are set: MiB", 0x1p-20, 1},
	{"first_faults", "page faults of the first storm", 1, 0},
	{"later_faults", "page faults of the last", 1, 0},
	{0},
};

enum { MOST, MAY_BE };

static const struct measure cache_measures[] = {
	{"most_bytes", "at most: MiB", 0x1p-20, 1},
	{"may_be_bytes", "bound: MiB", 0x1p-20, 1},
	{0},
};

struct plan {
	const struct load *load;
	int64_t count;
	int64_t calm;
	int64_t storms; /* those that follow each other */
};

struct load {
	const char *name;
	const char *title;
	void (*run)(const void *plan, double *result);
	bool by_handle;
	int survivors;       /* percent of the timers */
	size_t key_sizes[2]; /* sizes in a storm, and in one after it, which is measured */
};

/* --- A wheel ---------------------------------------------------------------------------------- */

struct trial {
	const struct plan *plan;
	struct tw_wheel *wheel;
	int64_t resident; /* before the wheel */
	int64_t mapped;
	struct generator generator;
	uint64_t number; /* timers set so far */
	int64_t due;     /* those that fire */
	size_t key_size;
};

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

/* The first 16 bytes of a key are random, the others equal. */
static void set(struct trial *trial, int64_t delay)
{
	struct random_key start = key_of(trial->number++, 1);
	unsigned char key[KEY_MOST];

	if (trial->plan->load->by_handle) {
		expect_ok(tw_after_func(trial->wheel, delay, on_run, NULL, NULL), "tw_after_func");
		return;
	}
	memset(key, 1, trial->key_size);
	memcpy(key, &start, sizeof(start));
	expect_ok(tw_set_timer(trial->wheel, key, trial->key_size, NULL, delay), "tw_set_timer");
}

/* Sets all timers. Survivors are due in an hour, the others within `spread` from `first` on. */
static void set_all(struct trial *trial, int64_t first, int64_t spread)
{
	for (int64_t i = 0; i < trial->plan->count; i++) {
		bool survives =
			generator_range(&trial->generator, 0, 100) < trial->plan->load->survivors;
		int64_t due = first + generator_range(&trial->generator, 0, spread);
		int64_t delay = survives ? 60 * MINUTE : due - stopwatch_now();

		set(trial, delay < 1 ? 1 : delay);
		trial->due += !survives;
	}
	expect_ok(tw_flush(trial->wheel), "tw_flush");
}

static void await_fired(struct trial *trial, int64_t last)
{
	while (fates_counted(FATE_RAN) < trial->due) {
		if (stopwatch_now() > last + PATIENCE)
			process_fail("%s: %" PRId64 " of %" PRId64 " timers have fired",
				     trial->plan->load->name, fates_counted(FATE_RAN), trial->due);
		stopwatch_sleep(5 * TW_MILLISECOND);
	}
}

static double resident(const struct trial *trial)
{
	return (double)(process_resident_exact() - trial->resident);
}

static void open_wheel(struct trial *trial)
{
	const struct tw_options options = {.max_workers = 2};

	expect_ok(tw_create(&trial->wheel, TW_MILLISECOND, SLOTS, on_expiry, &options),
		  "tw_create");
	/* This time is for its threads to start. */
	stopwatch_sleep(100 * TW_MILLISECOND);
}

/* Does what a process does only once, and opens the wheel. */
static void trial_begin(struct trial *trial, const struct plan *plan, double *result)
{
	*trial = (struct trial){.plan = plan, .generator = {1}, .key_size = KEY_MOST};
	open_wheel(trial);
	for (int i = 0; i < 100; i++)
		set(trial, TW_MILLISECOND);
	stopwatch_sleep(100 * TW_MILLISECOND);
	expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	tw_destroy(trial->wheel);
	process_trim_heap();
	trial->due = fates_counted(FATE_RAN);
	/* The first reading of a process takes memory itself. */
	(void)process_resident_exact();
	trial->resident = process_resident_exact();
	trial->mapped = process_address_space();
	open_wheel(trial);
	result[UNUSED] = resident(trial);
}

/* This allows 2.5 us for setting each timer. */
static void run_storm(struct trial *trial, size_t key_size, double *result)
{
	int64_t first = stopwatch_now() + NANOSECONDS_PER_SECOND / 2 + trial->plan->count * 2500;

	trial->key_size = key_size;
	set_all(trial, first, NANOSECONDS_PER_SECOND);
	result[PEAK] = resident(trial);
	result[MAPPED] = (double)(process_address_space() - trial->mapped);
	if (stopwatch_now() >= first)
		process_fail("the machine is too slow to set all timers before they are due");
	await_fired(trial, first + NANOSECONDS_PER_SECOND);
	result[FIRED] = resident(trial);
	stopwatch_sleep(trial->plan->calm);
	result[LATER] = resident(trial);
}

static void run_storms(const void *argument, double *result)
{
	const struct plan *plan = argument;
	const size_t *sizes = plan->load->key_sizes;
	struct trial trial;

	trial_begin(&trial, plan, result);
	run_storm(&trial, sizes[0], result);
	if (sizes[1])
		run_storm(&trial, sizes[1], result);
	tw_destroy(trial.wheel);
}

/* Each storm begins a second after the one before, or when that is over. */
static void run_repeated(const void *argument, double *result)
{
	const struct plan *plan = argument;
	struct trial trial;

	trial_begin(&trial, plan, result);
	trial.key_size = plan->load->key_sizes[0];
	for (int64_t i = 0; i < plan->storms; i++) {
		int64_t start = stopwatch_now(), faults = process_page_faults();
		int64_t first = start + NANOSECONDS_PER_SECOND / 2;

		set_all(&trial, first, NANOSECONDS_PER_SECOND / 4);
		await_fired(&trial, first + NANOSECONDS_PER_SECOND / 4);
		result[i == 0 ? FIRST_FAULTS : LATER_FAULTS] =
			(double)(process_page_faults() - faults);
		stopwatch_sleep(start + NANOSECONDS_PER_SECOND - stopwatch_now());
	}
	tw_destroy(trial.wheel);
}

/* --- A cache ---------------------------------------------------------------------------------- */

struct sizes {
	struct tw_cache *cache;
	int64_t before;
	int64_t most;
	uint64_t number;
};

static struct tw_cache *open_cache(int64_t max_bytes)
{
	const struct tw_cache_options options = {.max_bytes = (uint64_t)max_bytes};
	struct tw_cache *cache;

	expect_ok(tw_cache_create(&cache, TW_HOUR, &options), "tw_cache_create");
	return cache;
}

static struct sizes sizes_begin(int64_t max_bytes)
{
	/* This first cache allocates memory of the C library and of threads. */
	tw_cache_destroy(open_cache(max_bytes));
	process_trim_heap();
	return (struct sizes){.before = process_resident_exact(), .cache = open_cache(max_bytes)};
}

static void set_bytes(struct sizes *sizes, size_t size, int64_t bytes)
{
	static const char value[VALUE_MOST];

	for (int64_t set_so_far = 0; set_so_far < bytes; set_so_far += (int64_t)size + 100) {
		struct random_key key = key_of(sizes->number, 1);

		expect_ok(tw_cache_set(sizes->cache, &key, sizeof(key), value, size),
			  "tw_cache_set");
		if (++sizes->number % SETS_A_LOOK == 0) {
			int64_t now = process_resident_exact() - sizes->before;

			sizes->most = now > sizes->most ? now : sizes->most;
		}
	}
}

static void sizes_end(struct sizes *sizes, int64_t max_bytes, double *result)
{
	result[MOST] = (double)sizes->most;
	result[MAY_BE] = (double)(max_bytes + max_bytes / 4 + 4 * MEBIBYTE);
	tw_cache_destroy(sizes->cache);
}

static void run_turns(const void *plan, double *result)
{
	enum { SIZES = 24, PASSES = 2 };
	struct sizes sizes = sizes_begin(32 * MEBIBYTE);

	(void)plan;
	for (int i = 0; i < PASSES * SIZES; i++)
		/* The sizes go from 40 bytes to 15,000, up and down in large steps. */
		set_bytes(&sizes, (size_t)(40 + (i * 7 % SIZES) * (i * 7 % SIZES) * 28),
			  128 * MEBIBYTE);
	sizes_end(&sizes, 32 * MEBIBYTE, result);
}

static void run_drift(const void *plan, double *result)
{
	struct sizes sizes = sizes_begin(64 * MEBIBYTE);

	(void)plan;
	for (size_t size = 200; size <= 330; size += 10)
		set_bytes(&sizes, size, 128 * MEBIBYTE);
	sizes_end(&sizes, 64 * MEBIBYTE, result);
}

static _Atomic bool reader_may_go_on;
static _Atomic bool reader_sleeps;
static _Atomic bool reader_is_over;

/* It handles a signal, so it stops the reader wherever that is. */
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
	char value[100];

	for (uint64_t i = 0; !atomic_load(&reader_is_over); i++) {
		struct random_key key = key_of(i % 10000, 1);

		(void)tw_cache_get(argument, &key, sizeof(key), value, sizeof(value), NULL);
	}
	return NULL;
}

/* Lets the reader sleep for 300 ms, while others set. */
static void sleep_once(struct sizes *sizes, pthread_t reader)
{
	int64_t end;

	atomic_store(&reader_may_go_on, false);
	pthread_kill(reader, SIGUSR1);
	while (!atomic_load(&reader_sleeps))
		stopwatch_sleep(TW_MILLISECOND);
	for (end = stopwatch_now() + 300 * TW_MILLISECOND; stopwatch_now() < end;)
		set_bytes(sizes, 100, MEBIBYTE);
	atomic_store(&reader_may_go_on, true);
	while (atomic_load(&reader_sleeps))
		stopwatch_sleep(TW_MILLISECOND);
}

static void run_reader(const void *plan, double *result)
{
	enum { TIMES = 10 };
	struct sigaction action = {.sa_handler = sleep_inside};
	struct sizes sizes = sizes_begin(8 * MEBIBYTE);
	pthread_t thread;

	(void)plan;
	sigaction(SIGUSR1, &action, NULL);
	set_bytes(&sizes, 100, 64 * MEBIBYTE);
	if (pthread_create(&thread, NULL, look_up, sizes.cache) != 0)
		process_fail("a thread could not be started");
	for (int i = 0; i < TIMES; i++) {
		sleep_once(&sizes, thread);
		set_bytes(&sizes, 100, 16 * MEBIBYTE);
	}
	atomic_store(&reader_is_over, true);
	pthread_join(thread, NULL);
	sizes_end(&sizes, 8 * MEBIBYTE, result);
	result[MAY_BE] += (double)(10 * MEBIBYTE);
}

/* --- All cases -------------------------------------------------------------------------------- */

static const struct load wheel_loads[] = {
	{"keyed", "by key", run_storms, .key_sizes = {16}},
	{"handles", "by handle", run_storms, .by_handle = true, .key_sizes = {16}},
	{"keyed_stay", "by key, 1 % stay", run_storms, .survivors = 1, .key_sizes = {16}},
	{"handles_stay", "by handle, 1 % stay", run_storms, .by_handle = true, .survivors = 1,
	 .key_sizes = {16}},
	{"keys_200", "keys of 16 bytes, then of 200", run_storms, .key_sizes = {16, 200}},
	{"keys_1000", "keys of 16 bytes, then of 1,000", run_storms, .key_sizes = {16, KEY_MOST}},
	{"keyed_again", "a storm a second, by key", run_repeated, .key_sizes = {16}},
	{"handles_again", "a storm a second, by handle", run_repeated, .by_handle = true,
	 .key_sizes = {16}},
};

static const struct load cache_loads[] = {
	{"cache_turns", "24 sizes in turn, max_bytes 32 MiB", .run = run_turns},
	{"cache_drift", "sizes that drift, max_bytes 64 MiB", .run = run_drift},
	{"cache_reader", "a sleeping reader, max_bytes 8 MiB", .run = run_reader},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void run_loads(struct plan *plan, const struct load *loads, size_t count, const char *head,
		      const struct measure *measures, int64_t runs)
{
	struct progress progress = progress_start(stderr, false);
	struct figures *rows[COUNT_OF(wheel_loads)];

	for (size_t i = 0; i < count; i++) {
		rows[i] = figures_create(loads[i].name, loads[i].title, measures);
		plan->load = &loads[i];
		for (int64_t run = 1; run <= runs; run++) {
			progress_show(&progress, "%s: run %" PRId64 " of %" PRId64, loads[i].title,
				      run, runs);
			figures_run(rows[i], loads[i].run, plan);
		}
	}
	progress_wipe(&progress);
	figures_print_rows(head, rows, count);
	for (size_t i = 0; i < count; i++)
		figures_destroy(rows[i]);
}

int main(int argc, char **argv)
{
	struct plan plan = {.count = 1000000, .calm = 10 * TW_SECOND, .storms = 20};
	const char *csv_path = NULL;
	char head[128];
	int64_t runs = 1;
	int of = 0;
	const struct program_option options[] = {
		{"of", OPTION_CHOICE, &of, .choices = "all,wheel,cache", .help = "what"},
		{"count", OPTION_COUNT, &plan.count, 1000, 100000000, .help = "timers a storm"},
		{"calm", OPTION_SECONDS, &plan.calm, TW_MILLISECOND, MINUTE,
		 .help = "time without calls after a storm"},
		{"storms", OPTION_COUNT, &plan.storms, 2, 1000,
		 .help = "storms, a second from one to the next"},
		FIGURES_OPTIONS(&runs, &csv_path),
		{0},
	};

	options_parse(argc, argv, "What memory do a wheel and a cache hold?", options);
	figures_open(csv_path);
	machine_print();
	snprintf(head, sizeof(head), "Resident memory of a wheel, %s timers a storm",
		 format_count(plan.count).characters);
	if (of != 2)
		run_loads(&plan, wheel_loads, COUNT_OF(wheel_loads), head, wheel_measures, runs);
	if (of != 1)
		run_loads(&plan, cache_loads, COUNT_OF(cache_loads), "Resident memory of a cache",
			  cache_measures, runs);
	figures_close();
	return 0;
}
