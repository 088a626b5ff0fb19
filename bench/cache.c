/* SPDX-License-Identifier: MIT */
/*
 * How many calls a second does the cache take from 1, 2 and 4 threads, what does an entry cost in
 * memory, and what is gained by asking for many keys at once?
 *
 * The cache holds all keys. The 16-byte keys are drawn by Zipf's law with exponent 0.99, and their
 * 64-byte values are copied out. A mix has 0, 10 or 50 sets in a hundred calls. Each thread calls
 * as fast as it can for a given time and is pinned to a core; otherwise two threads would sometimes
 * share a core and not contend. Every run is a process of its own, which fills its cache in random
 * order first and then makes no call for 6 s.
 *
 * The baseline is support/simple_cache.h: uthash behind one mutex, with neither expiry nor limit.
 * The library's cache expires its entries in all cases. It is measured without a limit and, under
 * both policies, with a limit that is not reached.
 */
#include "support/cores.h"
#include "support/csv.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/simple_cache.h"
#include "support/stopwatch.h"
#include "support/zipf.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MIXES = 3,
	THREAD_CASES = 3,
	MOST_THREADS = 4,
	DRAWS = 1 << 23, /* drawn before the timed part; each thread starts elsewhere */
	MANY = 64,       /* keys of a tw_cache_get_many */
	CALLS_A_LOOK = 256
};

#define ZIPF_EXPONENT 0.99
/* By then the maintenance has compacted tables and released idle memory. */
#define SETTLING (6 * NANOSECONDS_PER_SECOND)
#define LIFETIME (10 * TW_MINUTE)

static const int mix_sets[MIXES] = {0, 10, 50}; /* sets in a hundred calls */
static const char *const mix_names[MIXES] = {"100/0", "90/10", "50/50"};
static const int thread_cases[THREAD_CASES] = {1, 2, 4};

/* --- Contenders ------------------------------------------------------------------------------- */

struct contender {
	const char *name; /* in the CSV file */
	const char *title;
	void *(*create)(int64_t count);
	void (*destroy)(void *cache);
	void (*set)(void *cache, const struct random_key *key, const struct simple_value *value);
	bool (*get)(void *cache, const struct random_key *key, struct simple_value *value);
	/* may be NULL */
	size_t (*get_many)(void *cache, const struct random_key *keys, struct simple_value *values,
			   size_t count);
};

static void *open_cache(uint64_t max_entries, enum tw_cache_policy policy)
{
	struct tw_cache_options options = {.max_entries = max_entries, .policy = policy};
	struct tw_cache *cache;

	if (tw_cache_create(&cache, LIFETIME, &options) != TW_OK)
		process_fail("no cache");
	return cache;
}

static void *create_unlimited(int64_t count)
{
	(void)count;
	return open_cache(0, TW_POLICY_LRU);
}

static void *create_lru(int64_t count)
{
	return open_cache(2 * (uint64_t)count, TW_POLICY_LRU);
}

static void *create_s3fifo(int64_t count)
{
	return open_cache(2 * (uint64_t)count, TW_POLICY_S3FIFO);
}

static void destroy_cache(void *cache)
{
	tw_cache_destroy(cache);
}

static void cache_set(void *cache, const struct random_key *key, const struct simple_value *value)
{
	if (tw_cache_set(cache, key, sizeof(*key), value, sizeof(*value)) != TW_OK)
		process_fail("a set failed");
}

static bool cache_get(void *cache, const struct random_key *key, struct simple_value *value)
{
	return tw_cache_get(cache, key, sizeof(*key), value, sizeof(*value), NULL) == TW_OK;
}

static size_t cache_get_many(void *cache, const struct random_key *keys,
			     struct simple_value *values, size_t count)
{
	struct tw_cache_lookup items[MANY];
	size_t found;

	for (size_t i = 0; i < count; i++)
		items[i] = (struct tw_cache_lookup){
			&keys[i], sizeof(keys[i]), &values[i], sizeof(values[i]), 0, TW_OK};
	tw_cache_get_many(cache, items, count, &found);
	return found;
}

static void *create_simple(int64_t count)
{
	(void)count;
	return simple_cache_create();
}

static void destroy_simple(void *cache)
{
	simple_cache_destroy(cache);
}

static void simple_set(void *cache, const struct random_key *key, const struct simple_value *value)
{
	simple_cache_set(cache, key, value);
}

static bool simple_get(void *cache, const struct random_key *key, struct simple_value *value)
{
	return simple_cache_get(cache, key, value);
}

/* The library comes first, the baseline last. */
static const struct contender contenders[] = {
	{"cache", "no limit", create_unlimited, destroy_cache, cache_set, cache_get,
	 cache_get_many},
	{"cache_lru", "limit, LRU", create_lru, destroy_cache, cache_set, cache_get,
	 cache_get_many},
	{"cache_s3fifo", "limit, S3-FIFO", create_s3fifo, destroy_cache, cache_set, cache_get,
	 cache_get_many},
	{"uthash_mutex", "uthash + mutex", create_simple, destroy_simple, simple_set, simple_get,
	 NULL},
};

enum { CONTENDERS = sizeof(contenders) / sizeof(contenders[0]) };

/* --- One run ---------------------------------------------------------------------------------- */

struct plan {
	const struct contender *contender;
	const uint32_t *draws; /* numbers of keys */
	int64_t count;
	int64_t duration; /* duration of each case */
	uint64_t seed;
	cpu_set_t cores;
};

/* All fields are doubles, one measure each. */
struct result {
	double per_second[MIXES][THREAD_CASES];
	double single_per_second; /* one thread, gets alone: keys prepared, one by one */
	double many_per_second;   /* prepared keys, MANY at once */
	double bytes_per_entry;
};

struct caller {
	pthread_t thread;
	size_t number; /* number of its core */
	const struct plan *plan;
	void *cache;
	pthread_barrier_t *start;
	_Atomic bool *ended;
	size_t position; /* index in the draws */
	int sets;        /* in a hundred calls */
	struct generator generator;
	uint64_t calls;
};

static struct simple_value value_of(const struct random_key *key, uint64_t version)
{
	struct simple_value value = {{key->words[0], key->words[1], version}};

	return value;
}

static void get_one(const struct plan *plan, void *cache, const struct random_key *key)
{
	struct simple_value value;

	if (!plan->contender->get(cache, key, &value) || value.words[0] != key->words[0])
		process_fail("a key has not its value");
}

static void call_some(struct caller *caller)
{
	const struct plan *plan = caller->plan;

	for (int i = 0; i < CALLS_A_LOOK; i++) {
		struct random_key key = key_of(plan->draws[caller->position], plan->seed);

		caller->position = (caller->position + 1) % DRAWS;
		if (generator_range(&caller->generator, 0, 100) < caller->sets) {
			struct simple_value value = value_of(&key, caller->calls);

			plan->contender->set(caller->cache, &key, &value);
		} else {
			get_one(plan, caller->cache, &key);
		}
	}
	caller->calls += CALLS_A_LOOK;
}

static void *caller_run(void *argument)
{
	struct caller *caller = argument;

	cores_stay_on(&caller->plan->cores, caller->number);
	pthread_barrier_wait(caller->start);
	/* relaxed: an end flag, orders nothing */
	while (!atomic_load_explicit(caller->ended, memory_order_relaxed))
		call_some(caller);
	return NULL;
}

static double run_case(const struct plan *plan, void *cache, int sets, int threads)
{
	struct caller callers[MOST_THREADS] = {0};
	pthread_barrier_t barrier;
	_Atomic bool ended = false;
	uint64_t calls = 0;
	int64_t start;

	pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		callers[i].number = (size_t)i;
		callers[i].plan = plan;
		callers[i].cache = cache;
		callers[i].start = &barrier;
		callers[i].ended = &ended;
		callers[i].position = (size_t)(DRAWS / MOST_THREADS) * (size_t)i;
		callers[i].sets = sets;
		callers[i].generator.state = plan->seed * 1000 + (uint64_t)i;
		if (pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]) != 0)
			process_fail("a caller could not be started");
	}
	start = stopwatch_now();
	pthread_barrier_wait(&barrier);
	stopwatch_sleep(plan->duration);
	/* relaxed: an end flag, orders nothing; the join follows */
	atomic_store_explicit(&ended, true, memory_order_relaxed);
	for (int i = 0; i < threads; i++) {
		pthread_join(callers[i].thread, NULL);
		calls += callers[i].calls;
	}
	pthread_barrier_destroy(&barrier);
	return (double)calls / seconds_of(stopwatch_now() - start);
}

static void get_batch(const struct plan *plan, void *cache, const struct random_key *keys,
		      bool at_once)
{
	struct simple_value values[MANY];

	if (at_once && plan->contender->get_many(cache, keys, values, MANY) != MANY)
		process_fail("a key was not found");
	for (int i = 0; i < MANY && !at_once; i++) {
		if (!plan->contender->get(cache, &keys[i], &values[i]))
			process_fail("a key was not found");
	}
}

static double run_batches(const struct plan *plan, void *cache, bool at_once)
{
	struct random_key keys[MANY];
	int64_t start = stopwatch_now();
	size_t position = 0;
	uint64_t calls = 0;

	while (stopwatch_now() - start < plan->duration) {
		for (int i = 0; i < MANY; i++, position = (position + 1) % DRAWS)
			keys[i] = key_of(plan->draws[position], plan->seed);
		get_batch(plan, cache, keys, at_once);
		calls += MANY;
	}
	return (double)calls / seconds_of(stopwatch_now() - start);
}

/* Fills the cache in random order. Returns the resident bytes an entry. */
static double fill(const struct plan *plan, void *cache)
{
	struct generator generator = {plan->seed};
	struct random_key *keys = keys_create((size_t)plan->count, plan->seed);
	int64_t resident = process_resident();

	keys_shuffle(keys, (size_t)plan->count, &generator);
	for (int64_t i = 0; i < plan->count; i++) {
		struct simple_value value = value_of(&keys[i], 0);

		plan->contender->set(cache, &keys[i], &value);
	}
	resident = process_resident() - resident;
	free(keys);
	return (double)resident / (double)plan->count;
}

static void run_trial(const void *argument, void *result_memory)
{
	const struct plan *plan = argument;
	struct result *result = result_memory;
	void *cache = plan->contender->create(plan->count);

	result->bytes_per_entry = fill(plan, cache);
	stopwatch_sleep(SETTLING);
	for (int mix = 0; mix < MIXES; mix++) {
		for (int i = 0; i < THREAD_CASES; i++)
			result->per_second[mix][i] =
				run_case(plan, cache, mix_sets[mix], thread_cases[i]);
	}
	result->single_per_second = run_batches(plan, cache, false);
	if (plan->contender->get_many)
		result->many_per_second = run_batches(plan, cache, true);
	plan->contender->destroy(cache);
}

/* --- All runs --------------------------------------------------------------------------------- */

static void write_run(struct csv csv, const char *name, int run, const struct result *result)
{
	for (int mix = 0; mix < MIXES; mix++) {
		for (int i = 0; i < THREAD_CASES; i++)
			csv_row(csv, "%s,%d,%s,%d,per_second,%.0f", name, run, mix_names[mix],
				thread_cases[i], result->per_second[mix][i]);
	}
	csv_row(csv, "%s,%d,100/0,1,single_per_second,%.0f", name, run, result->single_per_second);
	if (result->many_per_second > 0)
		csv_row(csv, "%s,%d,100/0,1,many_per_second,%.0f", name, run,
			result->many_per_second);
	csv_row(csv, "%s,%d,,,bytes_per_entry,%.1f", name, run, result->bytes_per_entry);
}

/* The contenders take turns, so that a noisy time affects all. */
static void run_all(struct plan *plan, int64_t runs, int64_t baseline_runs,
		    struct figures *const *columns, struct csv csv)
{
	struct progress progress = progress_start(stderr, false);
	struct result result;

	for (int run = 1; run <= runs || run <= baseline_runs; run++) {
		for (int k = 0; k < CONTENDERS; k++) {
			if (run > (k == CONTENDERS - 1 ? baseline_runs : runs))
				continue;
			progress_show(&progress, "run %d: %s", run, contenders[k].title);
			plan->contender = &contenders[k];
			figures_run(columns[k], run_trial, plan, &result, sizeof(result));
			write_run(csv, contenders[k].name, run, &result);
		}
	}
	progress_wipe(&progress);
}

/* --- The table -------------------------------------------------------------------------------- */

#define RATE(mix, i) FIGURE(struct result, per_second[mix][i])

static void print_rates(struct figures *const *columns, int mix)
{
	for (int i = 0; i < THREAD_CASES; i++) {
		printf("  %-7s %d thread%c  ", mix_names[mix], thread_cases[i],
		       thread_cases[i] > 1 ? 's' : ' ');
		for (int k = 0; k < CONTENDERS; k++) {
			struct spread rate = figures_spread(columns[k], RATE(mix, i));

			printf(" %6.2f (%5.2f to %5.2f)", rate.median / 1e6, rate.least / 1e6,
			       rate.most / 1e6);
		}
		printf(" %7.1fx\n", figures_median(columns[0], RATE(mix, i)) /
					    figures_median(columns[CONTENDERS - 1], RATE(mix, i)));
	}
}

static void print_row(const char *title, struct figures *const *columns, size_t measure,
		      double unit)
{
	printf("  %-18s", title);
	for (int k = 0; k < CONTENDERS; k++)
		printf(" %22.2f", figures_median(columns[k], measure) / unit);
	printf("\n");
}

static void print_figures(struct figures *const *columns)
{
	const size_t single = FIGURE(struct result, single_per_second);
	const size_t many = FIGURE(struct result, many_per_second);

	printf("\n%-20s", "million calls a second");
	for (int k = 0; k < CONTENDERS; k++)
		printf(" %22s", contenders[k].title);
	printf(" %8s\n", "ratio");
	for (int mix = 0; mix < MIXES; mix++)
		print_rates(columns, mix);
	printf("one thread, keys ready\n");
	print_row("one by one", columns, single, 1e6);
	print_row("64 at once", columns, many, 1e6);
	printf("  times faster: %.2f\n",
	       figures_median(columns[0], many) / figures_median(columns[0], single));
	printf("4 threads against 2, 90/10: %.2f\n",
	       figures_median(columns[0], RATE(1, 2)) / figures_median(columns[0], RATE(1, 1)));
	print_row("bytes an entry", columns, FIGURE(struct result, bytes_per_entry), 1);
}

/* --- The command line ------------------------------------------------------------------------- */

struct settings {
	struct plan plan;
	int64_t runs;
	int64_t baseline_runs;
	const char *csv_path;
};

static void parse(int argc, char **argv, struct settings *settings)
{
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &settings->plan.count, 1000, 100000000,
		 .help = "entries in the cache"},
		{"duration", OPTION_DURATION, &settings->plan.duration, TW_MILLISECOND, TW_MINUTE,
		 .help = "time of each case"},
		{"baseline-runs", OPTION_COUNT, &settings->baseline_runs, 1, FIGURES_RUNS,
		 .help = "runs of the baseline"},
		FIGURES_OPTIONS(&settings->runs, 1, &settings->csv_path),
		{0},
	};

	options_parse(argc, argv, "How many calls a second, at what cost an entry?", options);
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

int main(int argc, char **argv)
{
	struct settings settings = {
		.plan = {.count = 1000000, .duration = 300 * TW_MILLISECOND, .seed = 1},
		.runs = 9,
		.baseline_runs = 9,
	};
	struct figures *columns[CONTENDERS];
	uint32_t *draws;
	struct csv csv;

	parse(argc, argv, &settings);
	csv = csv_open(settings.csv_path, "contender,run,mix,threads,measure,value");
	draws = draw(&settings.plan);
	settings.plan.draws = draws;
	settings.plan.cores = cores_all();
	printf("%s\n%s entries, 16-byte keys, 64-byte values, Zipf %.2f; medians of %" PRId64
	       " runs (baseline %" PRId64 "), least to most in brackets\n",
	       machine_description(), format_count(settings.plan.count).characters, ZIPF_EXPONENT,
	       settings.runs, settings.baseline_runs);
	for (int k = 0; k < CONTENDERS; k++)
		columns[k] = figures_create(contenders[k].title);
	run_all(&settings.plan, settings.runs, settings.baseline_runs, columns, csv);
	print_figures(columns);
	for (int k = 0; k < CONTENDERS; k++)
		figures_destroy(columns[k]);
	csv_close(csv);
	free(draws);
	return 0;
}
