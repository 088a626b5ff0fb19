/* SPDX-License-Identifier: MIT */
/*
 * How many calls a second does a cache answer (--ask=rates), and how long is the longest of each
 * kind (--ask=longest)?
 *
 * Rates: a million entries of 16-byte keys and 64-byte values, which gets copy out. Threads on
 * cores of their own get and set keys drawn by Zipf's law with exponent 0.99, for a while each mix.
 * The baseline of caches with a limit is the one without; `make bench-peers` has other libraries.
 *
 * Longest: one thread fills a cache with new keys, so that its tables grow, replaces all values,
 * looks all up, moves all deadlines, deletes all, and fills it again. A second one looks keys up
 * and sets them beside the calls that go through all entries, and while all entries expire in one
 * tick. The time is processor time of the calling thread, page faults included. The baseline is the
 * machine: it touches fresh memory, 128 bytes for each key. Its longest call is a page fault of the
 * system; where others share the processors, their time is included.
 */
#include "support/cores.h"
#include "support/expect.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"
#include "support/zipf.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZIPF_EXPONENT 0.99
/* By then the maintenance has compacted tables and released idle memory. */
#define SETTLING (6 * NANOSECONDS_PER_SECOND)
#define TOO_LONG (NANOSECONDS_PER_SECOND / 5000) /* 200 us */

enum { DRAWS = 1 << 22, MOST_THREADS = 4, MANY = 64, CALLS_A_LOOK = 256, TOUCHED = 128 };

struct value {
	uint64_t words[8];
};

struct plan {
	const struct contender *contender; /* rates have one */
	enum tw_cache_policy policy;       /* policy of the longest calls */
	const uint32_t *draws;             /* numbers of keys */
	int64_t count;
	int64_t duration; /* time of each mix */
	uint64_t seed;
	cpu_set_t cores;
};

static struct tw_cache *open_cache(uint64_t max_entries, enum tw_cache_policy policy)
{
	const struct tw_cache_options options = {
		.max_entries = max_entries, .policy = policy, .jitter = -1};
	struct tw_cache *cache;

	expect_ok(tw_cache_create(&cache, TW_HOUR, &options), "tw_cache_create");
	return cache;
}

/* --- Contenders ------------------------------------------------------------------------------- */

static void cache_set(struct tw_cache *cache, const struct random_key *key,
		      const struct value *value)
{
	expect_ok(tw_cache_set(cache, key, sizeof(*key), value, sizeof(*value)), "tw_cache_set");
}

static bool cache_get(struct tw_cache *cache, const struct random_key *key, struct value *value)
{
	return tw_cache_get(cache, key, sizeof(*key), value, sizeof(*value), NULL) == TW_OK;
}

/* The limit is twice the keys, so that nothing is evicted. */
static const struct contender {
	const char *name;
	const char *title;
	bool has_limit;
	enum tw_cache_policy policy;
} contenders[] = {
	{"cache", "no limit", false, TW_POLICY_LRU},
	{"cache_s3fifo", "with a limit, S3-FIFO", true, TW_POLICY_S3FIFO},
	{"cache_lru", "with a limit, LRU", true, TW_POLICY_LRU},
};

enum { CONTENDERS = sizeof(contenders) / sizeof(contenders[0]) };

/* --- Rates ------------------------------------------------------------------------------------ */

static const struct mix {
	int sets; /* in a hundred calls */
	int threads;
} mixes[] = {{0, 1}, {0, 2}, {0, 4}, {10, 1}, {10, 2}, {10, 4}, {50, 1}, {50, 2}, {50, 4}};

enum { MIXES = sizeof(mixes) / sizeof(mixes[0]), ONE_BY_ONE = MIXES, AT_ONCE, BYTES };

static const struct measure rate_measures[] = {
	{"get_1_per_second", "gets/sets 100/0, threads: 1", 1e-6, 1},
	{"get_2_per_second", "gets/sets 100/0, threads: 2", 1e-6, 1},
	{"get_4_per_second", "gets/sets 100/0, threads: 4", 1e-6, 1},
	{"most_1_per_second", "gets/sets 90/10, threads: 1", 1e-6, 1},
	{"most_2_per_second", "gets/sets 90/10, threads: 2", 1e-6, 1},
	{"most_4_per_second", "gets/sets 90/10, threads: 4", 1e-6, 1},
	{"half_1_per_second", "gets/sets 50/50, threads: 1", 1e-6, 1},
	{"half_2_per_second", "gets/sets 50/50, threads: 2", 1e-6, 1},
	{"half_4_per_second", "gets/sets 50/50, threads: 4", 1e-6, 1},
	{"ready_per_second", "gets one by one, 1 thread, keys ready", 1e-6, 1},
	{"many_per_second", "gets of 64 in one call", 1e-6, 1},
	{"bytes", "resident memory of an entry: bytes", 1, 0},
	{0},
};

struct caller {
	pthread_t thread;
	size_t number; /* number of its core */
	const struct plan *plan;
	struct tw_cache *cache;
	pthread_barrier_t *start;
	_Atomic bool *is_over;
	size_t position; /* index in the draws */
	int sets;        /* in a hundred calls */
	struct generator generator;
	uint64_t calls;
};

static struct value value_of(const struct random_key *key, uint64_t version)
{
	return (struct value){{key->words[0], key->words[1], version}};
}

static void call_one(struct caller *caller)
{
	struct random_key key =
		key_of(caller->plan->draws[caller->position++ % DRAWS], caller->plan->seed);
	struct value value;

	if (generator_range(&caller->generator, 0, 100) < caller->sets) {
		value = value_of(&key, caller->calls);
		cache_set(caller->cache, &key, &value);
	} else if (!cache_get(caller->cache, &key, &value) || value.words[0] != key.words[0]) {
		process_fail("a key has not its value");
	}
}

static void *caller_run(void *argument)
{
	struct caller *caller = argument;

	cores_stay_on(&caller->plan->cores, caller->number);
	pthread_barrier_wait(caller->start);
	/* relaxed: an end flag, orders nothing */
	while (!atomic_load_explicit(caller->is_over, memory_order_relaxed)) {
		for (int i = 0; i < CALLS_A_LOOK; i++)
			call_one(caller);
		caller->calls += CALLS_A_LOOK;
	}
	return NULL;
}

static double run_mix(const struct plan *plan, struct tw_cache *cache, const struct mix *mix)
{
	struct caller callers[MOST_THREADS];
	pthread_barrier_t barrier;
	_Atomic bool is_over = false;
	uint64_t calls = 0;
	int64_t start;

	pthread_barrier_init(&barrier, NULL, (unsigned)mix->threads + 1);
	for (size_t i = 0; i < (size_t)mix->threads; i++) {
		callers[i] = (struct caller){.number = i,
					     .plan = plan,
					     .cache = cache,
					     .start = &barrier,
					     .is_over = &is_over,
					     .position = DRAWS / MOST_THREADS * i,
					     .sets = mix->sets,
					     .generator = {plan->seed * 1000 + i}};
		if (pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]) != 0)
			process_fail("a caller could not be started");
	}
	start = stopwatch_now();
	pthread_barrier_wait(&barrier);
	stopwatch_sleep(plan->duration);
	/* relaxed: an end flag, orders nothing; the join follows */
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	for (int i = 0; i < mix->threads; i++) {
		pthread_join(callers[i].thread, NULL);
		calls += callers[i].calls;
	}
	pthread_barrier_destroy(&barrier);
	return (double)calls / seconds_of(stopwatch_now() - start);
}

static size_t get_many(struct tw_cache *cache, const struct random_key *keys, struct value *values)
{
	struct tw_cache_lookup items[MANY];
	size_t found;

	for (size_t i = 0; i < MANY; i++)
		items[i] = (struct tw_cache_lookup){
			&keys[i], sizeof(keys[i]), &values[i], sizeof(values[i]), 0, TW_OK};
	tw_cache_get_many(cache, items, MANY, &found);
	return found;
}

static double run_batches(const struct plan *plan, struct tw_cache *cache, bool at_once)
{
	struct value values[MANY];
	struct random_key keys[MANY];
	int64_t start = stopwatch_now();
	size_t position = 0;
	uint64_t calls = 0;

	for (; stopwatch_now() - start < plan->duration; calls += MANY) {
		size_t found = 0;

		for (int i = 0; i < MANY; i++)
			keys[i] = key_of(plan->draws[position++ % DRAWS], plan->seed);
		if (at_once)
			found = get_many(cache, keys, values);
		for (int i = 0; i < MANY && !at_once; i++)
			found += cache_get(cache, &keys[i], &values[i]);
		if (found != MANY)
			process_fail("a key was not found");
	}
	return (double)calls / seconds_of(stopwatch_now() - start);
}

/* Fills the cache in random order. Returns the resident bytes an entry. */
static double fill(const struct plan *plan, struct tw_cache *cache)
{
	struct generator generator = {plan->seed};
	struct random_key *keys = keys_create((size_t)plan->count, plan->seed);
	int64_t resident = process_resident();

	keys_shuffle(keys, (size_t)plan->count, &generator);
	for (int64_t i = 0; i < plan->count; i++) {
		struct value value = value_of(&keys[i], 0);

		cache_set(cache, &keys[i], &value);
	}
	resident = process_resident() - resident;
	free(keys);
	return (double)resident / (double)plan->count;
}

static void run_rates_trial(const void *argument, double *result)
{
	const struct plan *plan = argument;
	uint64_t limit = plan->contender->has_limit ? 2 * (uint64_t)plan->count : 0;
	struct tw_cache *cache = open_cache(limit, plan->contender->policy);

	result[BYTES] = fill(plan, cache);
	stopwatch_sleep(SETTLING);
	for (int i = 0; i < MIXES; i++)
		result[i] = run_mix(plan, cache, &mixes[i]);
	result[ONE_BY_ONE] = run_batches(plan, cache, false);
	result[AT_ONCE] = run_batches(plan, cache, true);
	tw_cache_destroy(cache);
}

static uint32_t *draw(const struct plan *plan)
{
	uint32_t *draws = process_allocate(DRAWS * sizeof(*draws));
	struct zipf *zipf = zipf_create((size_t)plan->count, ZIPF_EXPONENT);
	struct generator generator = {plan->seed};

	for (size_t i = 0; i < DRAWS; i++)
		draws[i] = (uint32_t)zipf_draw(zipf, &generator);
	zipf_destroy(zipf);
	return draws;
}

/* The contenders take turns, so that a noisy time affects all. */
static void run_rates(struct plan *plan, int64_t runs)
{
	struct progress progress = progress_start(stderr, false);
	struct figures *columns[CONTENDERS];
	uint32_t *draws = draw(plan);
	char head[128];

	plan->draws = draws;
	for (int i = 0; i < CONTENDERS; i++)
		columns[i] = figures_create(contenders[i].name, contenders[i].title, rate_measures);
	for (int64_t run = 0; run < CONTENDERS * runs; run++) {
		plan->contender = &contenders[run % CONTENDERS];
		progress_show(&progress, "%s: run %" PRId64 " of %" PRId64, plan->contender->title,
			      run / CONTENDERS + 1, runs);
		figures_run(columns[run % CONTENDERS], run_rates_trial, plan);
	}
	progress_wipe(&progress);
	snprintf(head, sizeof(head), "Cache, %s entries: million calls a second",
		 format_count(plan->count).characters);
	figures_print_columns(head, columns, CONTENDERS);
	for (int i = 0; i < CONTENDERS; i++)
		figures_destroy(columns[i]);
	free(draws);
}

/* --- Longest calls ---------------------------------------------------------------------------- */

enum kind {
	FIRST_TOUCH,
	SET_NEW,
	REPLACE,
	GET,
	ACQUIRE,
	TOUCH,
	DELETE,
	SET_AGAIN,
	GET_BESIDE_EACH,
	SET_BESIDE_EACH,
	GET_BESIDE_LIMIT,
	SET_BESIDE_LIMIT,
	GET_BESIDE_CLEAR,
	SET_BESIDE_CLEAR,
	GET_BESIDE_EXPIRY,
	SET_BESIDE_EXPIRY,
	KINDS
};

static const char *const kind_titles[KINDS] = {
	[FIRST_TOUCH] = "touch 128 new bytes",
	[SET_NEW] = "set of a new key",
	[REPLACE] = "set of a known key",
	[GET] = "get",
	[ACQUIRE] = "acquire and release",
	[TOUCH] = "touch",
	[DELETE] = "delete",
	[SET_AGAIN] = "set after all were deleted",
	[GET_BESIDE_EACH] = "get beside each",
	[SET_BESIDE_EACH] = "set beside each",
	[GET_BESIDE_LIMIT] = "get beside set_limit",
	[SET_BESIDE_LIMIT] = "set beside set_limit",
	[GET_BESIDE_CLEAR] = "get beside clear",
	[SET_BESIDE_CLEAR] = "set beside clear",
	[GET_BESIDE_EXPIRY] = "get while all expire",
	[SET_BESIDE_EXPIRY] = "set while all expire",
};

enum { MEDIAN, P9999, LONGEST, TOO_LONG_CALLS, CALL_MEASURES };

static const struct measure call_measures[] = {
	{"median_ns", "median: us", 1e-3, 2},
	{"p9999_ns", "p99.99: us", 1e-3, 1},
	{"longest_ns", "longest: us", 1e-3, 0},
	{"too_long", "calls over 200 us", 1, 0},
	{0},
};

struct trial {
	const struct plan *plan;
	struct tw_cache *cache;
	double (*result)[CALL_MEASURES];
	char *memory; /* to be touched */
};

static enum tw_cache_verdict touch(void *context, const struct tw_cache_entry *entry,
				   struct tw_cache_value *lifetime)
{
	(void)context;
	(void)entry;
	lifetime->expire = 2 * TW_HOUR;
	return TW_CACHE_TOUCH;
}

static void call(const struct trial *trial, enum kind kind, int64_t number)
{
	struct random_key key = key_of((uint64_t)number, trial->plan->seed);
	struct tw_cache *cache = trial->cache;
	const struct tw_cache_entry *entry;
	struct value value = {{0}};

	switch (kind) {
	case FIRST_TOUCH:
		memset(trial->memory + number * TOUCHED, 1, TOUCHED);
		break;
	case GET:
		(void)cache_get(cache, &key, &value);
		break;
	case ACQUIRE:
		if (tw_cache_acquire(cache, &key, sizeof(key), 0, &entry) == TW_OK)
			tw_cache_entry_release(entry);
		break;
	case TOUCH:
		(void)tw_cache_compute(cache, &key, sizeof(key), touch, NULL);
		break;
	case DELETE:
		(void)tw_cache_delete(cache, &key, sizeof(key));
		break;
	default:
		cache_set(cache, &key, &value);
	}
}

struct durations {
	struct percentiles *percentiles;
	double too_long;
};

static void time_call(const struct trial *trial, enum kind kind, int64_t number,
		      struct durations *durations)
{
	int64_t start = stopwatch_thread_cpu();
	int64_t duration;

	call(trial, kind, number);
	duration = stopwatch_thread_cpu() - start;
	percentiles_record(durations->percentiles, duration);
	durations->too_long += duration > TOO_LONG;
}

static void report(const struct trial *trial, enum kind kind, struct durations *durations)
{
	double *result = trial->result[kind];

	result[MEDIAN] = (double)percentiles_at(durations->percentiles, 50);
	result[P9999] = (double)percentiles_at(durations->percentiles, 99.99);
	result[LONGEST] = (double)percentiles_most(durations->percentiles);
	result[TOO_LONG_CALLS] = durations->too_long;
	percentiles_destroy(durations->percentiles);
}

static void time_all(const struct trial *trial, enum kind kind)
{
	struct durations durations = {percentiles_create(), 0};

	for (int64_t i = 0; i < trial->plan->count; i++)
		time_call(trial, kind, i, &durations);
	report(trial, kind, &durations);
}

/* The kind of the sets follows that of the gets. */
struct beside {
	const struct trial *trial;
	enum kind get;
	_Atomic bool is_over;
	_Atomic bool has_begun;
};

static void *call_beside(void *argument)
{
	struct beside *beside = argument;
	const struct trial *trial = beside->trial;
	struct generator generator = {trial->plan->seed + 1};
	struct durations gets = {percentiles_create(), 0};
	struct durations sets = {percentiles_create(), 0};

	/* relaxed: flags, order nothing */
	while (!atomic_load_explicit(&beside->is_over, memory_order_relaxed)) {
		int64_t number = generator_range(&generator, 0, trial->plan->count);

		time_call(trial, GET, number, &gets);
		time_call(trial, SET_NEW, number, &sets);
		atomic_store_explicit(&beside->has_begun, true, memory_order_relaxed);
	}
	report(trial, beside->get, &gets);
	report(trial, beside->get + 1, &sets);
	return NULL;
}

static int visit(void *context, const struct tw_cache_entry *entry)
{
	(void)entry;
	++*(int64_t *)context;
	return 1;
}

/* Lets all entries expire in one tick, and waits until they are gone. */
static void expire_all(const struct trial *trial)
{
	int64_t due = stopwatch_now() + TW_SECOND / 2 + trial->plan->count * 3000;
	struct value value = {{0}};

	for (int64_t i = 0; i < trial->plan->count; i++) {
		struct random_key key = key_of((uint64_t)i, trial->plan->seed);
		int64_t left = due - stopwatch_now();

		if (left < TW_MILLISECOND)
			process_fail("this machine is too slow to set all entries in time");
		expect_ok(tw_cache_set_with_expire(trial->cache, &key, sizeof(key), &value,
						   sizeof(value), left),
			  "tw_cache_set_with_expire");
	}
	stopwatch_sleep(due - stopwatch_now() + TW_SECOND / 2);
}

static void go_through(const struct trial *trial, enum kind get)
{
	int64_t visits = 0;

	if (get == GET_BESIDE_EACH)
		(void)tw_cache_each(trial->cache, visit, &visits);
	else if (get == GET_BESIDE_CLEAR)
		(void)tw_cache_clear(trial->cache);
	else if (get == GET_BESIDE_LIMIT)
		(void)tw_cache_set_limit(trial->cache, (uint64_t)trial->plan->count / 10, 0);
	else
		expire_all(trial);
}

static void time_beside(const struct trial *trial, enum kind get)
{
	struct beside beside = {.trial = trial, .get = get};
	pthread_t thread;

	if (pthread_create(&thread, NULL, call_beside, &beside) != 0)
		process_fail("a thread could not be started");
	/* relaxed: flags, order nothing */
	while (!atomic_load_explicit(&beside.has_begun, memory_order_relaxed))
		continue;
	go_through(trial, get);
	atomic_store_explicit(&beside.is_over, true, memory_order_relaxed);
	pthread_join(thread, NULL);
}

/* The cache has room for half of the keys. */
static void run_longest_trial(const void *argument, void *result)
{
	const struct plan *plan = argument;
	uint64_t limit = (uint64_t)plan->count / 2;
	struct trial trial = {.plan = plan, .result = result};

	trial.memory = malloc((size_t)plan->count * TOUCHED);
	if (!trial.memory)
		process_fail("no memory");
	time_all(&trial, FIRST_TOUCH);
	free(trial.memory);
	trial.cache = open_cache(limit, plan->policy);
	for (enum kind kind = SET_NEW; kind <= SET_AGAIN; kind++)
		time_all(&trial, kind);
	time_beside(&trial, GET_BESIDE_EACH);
	time_beside(&trial, GET_BESIDE_LIMIT);
	(void)tw_cache_set_limit(trial.cache, limit, 0);
	for (int64_t i = 0; i < plan->count; i++)
		call(&trial, SET_NEW, i);
	time_beside(&trial, GET_BESIDE_CLEAR);
	time_beside(&trial, GET_BESIDE_EXPIRY);
	tw_cache_destroy(trial.cache);
}

static void run_longest(struct plan *plan, int64_t runs)
{
	struct progress progress = progress_start(stderr, false);
	struct figures *rows[KINDS];
	char head[128];

	for (int kind = 0; kind < KINDS; kind++)
		rows[kind] = figures_create(kind_titles[kind], kind_titles[kind], call_measures);
	for (int64_t run = 1; run <= runs; run++) {
		double result[KINDS][CALL_MEASURES];

		progress_show(&progress, "longest calls: run %" PRId64 " of %" PRId64, run, runs);
		if (!process_run_trial(run_longest_trial, plan, result, sizeof(result)))
			exit(1);
		for (int kind = 0; kind < KINDS; kind++)
			figures_add(rows[kind], result[kind]);
	}
	progress_wipe(&progress);
	snprintf(head, sizeof(head), "Cache, %s keys, room for half, %s",
		 format_count(plan->count).characters,
		 plan->policy == TW_POLICY_LRU ? "LRU" : "S3-FIFO");
	figures_print_rows(head, rows, KINDS);
	for (int kind = 0; kind < KINDS; kind++)
		figures_destroy(rows[kind]);
}

int main(int argc, char **argv)
{
	struct plan plan = {.count = 1000000, .duration = 300 * TW_MILLISECOND, .seed = 1};
	int64_t runs = 5;
	const char *csv_path = NULL;
	int ask = 0, policy = 0;
	const struct program_option options[] = {
		{"ask", OPTION_CHOICE, &ask, .choices = "all,rates,longest", .help = "what"},
		{"count", OPTION_COUNT, &plan.count, 1000, 100000000, .help = "keys"},
		{"duration", OPTION_DURATION, &plan.duration, TW_MILLISECOND, TW_MINUTE,
		 .help = "time of each mix"},
		{"policy", OPTION_CHOICE, &policy, .choices = "s3fifo,lru",
		 .help = "of the cache whose longest calls are measured"},
		FIGURES_OPTIONS(&runs, &csv_path),
		{0},
	};

	options_parse(argc, argv, "How many calls a second, and how long is the longest?", options);
	plan.policy = policy ? TW_POLICY_LRU : TW_POLICY_S3FIFO;
	plan.cores = cores_all();
	figures_open(csv_path);
	machine_print();
	if (ask != 2)
		run_rates(&plan, runs);
	if (ask != 1)
		run_longest(&plan, runs);
	figures_close();
	return 0;
}
