/* SPDX-License-Identifier: MIT */
/*
 * How long does the longest call of each kind take, and how fast are lookups of a hot set?
 *
 * One thread fills a cache with new keys, so that its tables grow, replaces all values, looks all
 * up, moves all deadlines, deletes all, and fills it again. A second one looks keys up and sets
 * them while the first makes the calls that go through all entries. The time is processor time of
 * the calling thread, page faults included. The cache has no limit, or one of half the keys under
 * either policy.
 *
 * The baseline is the machine: it touches fresh memory, 128 bytes for each key. Its longest call is
 * a page fault of the system; on a machine that shares its processors with others their time is
 * included. The minimum of the runs shows the library itself.
 *
 * The hot set is 16,000 entries of 16 + 64 bytes, drawn by Zipf's law with exponent 0.99, by one
 * thread and by two on cores of their own.
 */
#include "support/cores.h"
#include "support/csv.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"
#include "support/zipf.h"

#include <timingwheel/cache.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZIPF_EXPONENT 0.99
#define TOO_LONG (NANOSECONDS_PER_SECOND / 5000) /* 200 us */

enum { VALUE = 64, HOT = 16000, DRAWS = 1 << 20, HOT_CALLS_A_LOOK = 1024 };

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
	KINDS
};

static const char *const kind_titles[KINDS] = {
	[FIRST_TOUCH] = "touch 128 new bytes",
	[SET_NEW] = "set of a new key",
	[REPLACE] = "set of a known key",
	[GET] = "get",
	[ACQUIRE] = "acquire, release",
	[TOUCH] = "touch",
	[DELETE] = "delete",
	[SET_AGAIN] = "set after all were deleted",
	[GET_BESIDE_EACH] = "get beside each",
	[SET_BESIDE_EACH] = "set beside each",
	[GET_BESIDE_LIMIT] = "get beside set_limit",
	[SET_BESIDE_LIMIT] = "set beside set_limit",
	[GET_BESIDE_CLEAR] = "get beside clear",
	[SET_BESIDE_CLEAR] = "set beside clear",
};

static const struct variant {
	const char *name;
	const char *title;
	bool is_full; /* the limit is reached */
	enum tw_cache_policy policy;
} variants[] = {
	{"far_limit", "limit of twice the keys, LRU", false, TW_POLICY_LRU},
	{"lru", "limit of half the keys, LRU", true, TW_POLICY_LRU},
	{"s3fifo", "limit of half the keys, S3-FIFO", true, TW_POLICY_S3FIFO},
};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

/* All fields are doubles, one measure each. */
struct result {
	struct {
		double median;
		double p9999;
		double most;
		double too_long; /* calls */
	} kinds[KINDS];
};

struct hot_result {
	double acquire[2]; /* calls a second, of one thread and of two */
	double get[2];
};

struct plan {
	const struct variant *variant;
	int64_t count;
	int64_t duration; /* duration of each case of the hot set */
	uint64_t seed;
	cpu_set_t cores;
};

static struct tw_cache *open_cache(uint64_t max_entries, enum tw_cache_policy policy)
{
	struct tw_cache_options options = {.max_entries = max_entries, .policy = policy};
	struct tw_cache *cache;

	if (tw_cache_create(&cache, TW_HOUR, &options) != TW_OK)
		process_fail("no cache");
	return cache;
}

/* --- Longest calls ---------------------------------------------------------------------------- */

struct trial {
	const struct plan *plan;
	struct tw_cache *cache;
	struct result *result;
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
	char value[VALUE] = "value";

	switch (kind) {
	case FIRST_TOUCH:
		memset(trial->memory + number * 128, 1, 128);
		break;
	case GET:
		(void)tw_cache_get(cache, &key, sizeof(key), value, sizeof(value), NULL);
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
		if (tw_cache_set(cache, &key, sizeof(key), value, sizeof(value)) != TW_OK)
			process_fail("a set failed");
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
	trial->result->kinds[kind].median = (double)percentiles_at(durations->percentiles, 50);
	trial->result->kinds[kind].p9999 = (double)percentiles_at(durations->percentiles, 99.99);
	trial->result->kinds[kind].most = (double)percentiles_most(durations->percentiles);
	trial->result->kinds[kind].too_long = durations->too_long;
	percentiles_destroy(durations->percentiles);
}

static void time_all(const struct trial *trial, enum kind kind)
{
	struct durations durations = {percentiles_create(), 0};

	for (int64_t i = 0; i < trial->plan->count; i++)
		time_call(trial, kind, i, &durations);
	report(trial, kind, &durations);
}

struct beside {
	const struct trial *trial;
	enum kind get;
	enum kind set;
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

	/* relaxed: a flag, orders nothing */
	while (!atomic_load_explicit(&beside->is_over, memory_order_relaxed)) {
		int64_t number = generator_range(&generator, 0, trial->plan->count);

		time_call(trial, GET, number, &gets);
		time_call(trial, SET_NEW, number, &sets);
		atomic_store_explicit(&beside->has_begun, true, memory_order_relaxed);
	}
	report(trial, beside->get, &gets);
	report(trial, beside->set, &sets);
	return NULL;
}

static int visit(void *context, const struct tw_cache_entry *entry)
{
	(void)entry;
	++*(int64_t *)context;
	return 1;
}

static void go_through(const struct trial *trial, enum kind get)
{
	int64_t visits = 0;

	if (get == GET_BESIDE_EACH)
		(void)tw_cache_each(trial->cache, visit, &visits);
	else if (get == GET_BESIDE_CLEAR)
		(void)tw_cache_clear(trial->cache);
	else
		(void)tw_cache_set_limit(trial->cache, (uint64_t)trial->plan->count / 10, 0);
}

static void time_beside(const struct trial *trial, enum kind get, enum kind set)
{
	struct beside beside = {.trial = trial, .get = get, .set = set};
	pthread_t thread;

	if (pthread_create(&thread, NULL, call_beside, &beside) != 0)
		process_fail("a thread could not be started");
	/* relaxed: a flag, orders nothing */
	while (!atomic_load_explicit(&beside.has_begun, memory_order_relaxed))
		continue;
	go_through(trial, get);
	atomic_store_explicit(&beside.is_over, true, memory_order_relaxed);
	pthread_join(thread, NULL);
}

static void run_trial(const void *argument, void *result)
{
	const struct plan *plan = argument;
	uint64_t keys = (uint64_t)plan->count;
	uint64_t limit = plan->variant->is_full ? keys / 2 : 2 * keys;
	struct trial trial = {.plan = plan, .result = result};

	trial.memory = malloc((size_t)plan->count * 128);
	if (!trial.memory)
		process_fail("no memory");
	time_all(&trial, FIRST_TOUCH);
	free(trial.memory);
	trial.cache = open_cache(limit, plan->variant->policy);
	for (enum kind kind = SET_NEW; kind <= SET_AGAIN; kind++)
		time_all(&trial, kind);
	time_beside(&trial, GET_BESIDE_EACH, SET_BESIDE_EACH);
	time_beside(&trial, GET_BESIDE_LIMIT, SET_BESIDE_LIMIT);
	(void)tw_cache_set_limit(trial.cache, limit, 0);
	for (int64_t i = 0; i < plan->count; i++)
		call(&trial, SET_NEW, i);
	time_beside(&trial, GET_BESIDE_CLEAR, SET_BESIDE_CLEAR);
	tw_cache_destroy(trial.cache);
}

/* --- Hot set ---------------------------------------------------------------------------------- */

struct caller {
	pthread_t thread;
	const struct plan *plan;
	struct tw_cache *cache;
	const uint32_t *draws;
	size_t number;
	bool acquires;
	pthread_barrier_t *start;
	_Atomic bool *is_over;
	double per_second;
};

/* The key is a number: making a random key would take half as long as a lookup. */
static struct random_key hot_key(uint64_t number)
{
	return (struct random_key){{number, 0}};
}

static void look_up(const struct caller *caller, size_t draw)
{
	struct random_key key = hot_key(caller->draws[draw % DRAWS]);
	const struct tw_cache_entry *entry;
	char value[VALUE];

	if (!caller->acquires) {
		if (tw_cache_get(caller->cache, &key, sizeof(key), value, sizeof(value), NULL) !=
		    TW_OK)
			process_fail("a key was not found");
		return;
	}
	if (tw_cache_acquire(caller->cache, &key, sizeof(key), 0, &entry) != TW_OK)
		process_fail("a key was not found");
	tw_cache_entry_release(entry);
}

static void *caller_run(void *argument)
{
	struct caller *caller = argument;
	size_t draw = caller->number * (DRAWS / 2);
	int64_t calls = 0;
	int64_t start;

	cores_stay_on(&caller->plan->cores, caller->number);
	pthread_barrier_wait(caller->start);
	start = stopwatch_now();
	/* relaxed: an end flag, orders nothing */
	while (!atomic_load_explicit(caller->is_over, memory_order_relaxed)) {
		for (int i = 0; i < HOT_CALLS_A_LOOK; i++)
			look_up(caller, draw++);
		calls += HOT_CALLS_A_LOOK;
	}
	caller->per_second = (double)calls / seconds_of(stopwatch_now() - start);
	return NULL;
}

static double run_hot_case(const struct plan *plan, struct tw_cache *cache, const uint32_t *draws,
			   bool acquires, unsigned threads)
{
	struct caller callers[2];
	pthread_barrier_t start;
	_Atomic bool is_over = false;
	double per_second = 0;

	pthread_barrier_init(&start, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		callers[i] = (struct caller){.plan = plan,
					     .cache = cache,
					     .draws = draws,
					     .number = i,
					     .acquires = acquires,
					     .start = &start,
					     .is_over = &is_over};
		if (pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]) != 0)
			process_fail("a caller could not be started");
	}
	pthread_barrier_wait(&start);
	stopwatch_sleep(plan->duration);
	/* relaxed: an end flag, orders nothing; the join follows */
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(callers[i].thread, NULL);
		per_second += callers[i].per_second;
	}
	pthread_barrier_destroy(&start);
	return per_second;
}

static void run_hot_trial(const void *argument, void *result_memory)
{
	const struct plan *plan = argument;
	struct hot_result *result = result_memory;
	struct generator generator = {plan->seed};
	struct tw_cache *cache = open_cache(0, TW_POLICY_LRU);
	struct zipf *zipf = zipf_create(HOT, ZIPF_EXPONENT);
	uint32_t *draws = process_allocate(DRAWS * sizeof(*draws));
	char value[VALUE] = "value";

	for (uint64_t i = 0; i < HOT; i++) {
		struct random_key key = hot_key(i);

		if (tw_cache_set(cache, &key, sizeof(key), value, sizeof(value)) != TW_OK)
			process_fail("a set failed");
	}
	for (int i = 0; i < DRAWS; i++)
		draws[i] = (uint32_t)zipf_draw(zipf, &generator);
	for (unsigned threads = 1; threads <= 2; threads++) {
		result->acquire[threads - 1] = run_hot_case(plan, cache, draws, true, threads);
		result->get[threads - 1] = run_hot_case(plan, cache, draws, false, threads);
	}
	zipf_destroy(zipf);
	tw_cache_destroy(cache);
}

/* --- All runs --------------------------------------------------------------------------------- */

static void print_calls(const struct figures *figures)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct spread most =
			figures_spread(figures, FIGURE(struct result, kinds[kind].most));

		printf("  %-28s %10s %10s %10s %10s %8.0f\n", kind_titles[kind],
		       format_duration((int64_t)figures_median(
					       figures, FIGURE(struct result, kinds[kind].median)))
			       .characters,
		       format_duration((int64_t)figures_median(
					       figures, FIGURE(struct result, kinds[kind].p9999)))
			       .characters,
		       format_duration((int64_t)most.least).characters,
		       format_duration((int64_t)most.most).characters,
		       figures_median(figures, FIGURE(struct result, kinds[kind].too_long)));
	}
}

static void run_calls(struct plan *plan, int64_t runs, struct csv csv)
{
	for (int v = 0; v < VARIANTS; v++) {
		struct figures *figures = figures_create(variants[v].title);
		struct progress progress = progress_start(stderr, false);
		struct result result;

		plan->variant = &variants[v];
		for (int64_t run = 1; run <= runs; run++) {
			progress_show(&progress, "run %d: %s", (int)run, variants[v].title);
			figures_run(figures, run_trial, plan, &result, sizeof(result));
			for (int kind = 0; kind < KINDS; kind++)
				csv_row(csv, "%s,%d,%s,%.0f,%.0f,%.0f,%.0f", variants[v].name,
					(int)run, kind_titles[kind], result.kinds[kind].median,
					result.kinds[kind].p9999, result.kinds[kind].most,
					result.kinds[kind].too_long);
		}
		progress_wipe(&progress);
		printf("\n%-30s %10s %10s %21s %8s\n", variants[v].title, "median", "p99.99",
		       "longest, of the runs", "> 200 us");
		print_calls(figures);
		figures_destroy(figures);
	}
}

static void print_hot(const struct figures *figures, const char *title, size_t one, size_t two)
{
	printf("  %-28s %8.1f %8.1f %8.2f\n", title, figures_median(figures, one) / 1e6,
	       figures_median(figures, two) / 1e6,
	       figures_median(figures, two) / figures_median(figures, one));
}

static void run_hot(const struct plan *plan, int64_t runs, struct csv csv)
{
	struct figures *figures = figures_create("hot set");
	struct hot_result result;

	for (int64_t run = 1; run <= runs; run++) {
		figures_run(figures, run_hot_trial, plan, &result, sizeof(result));
		for (int i = 0; i < 2; i++) {
			csv_row(csv, "hot,%d,acquire of %d threads,%.0f,,,", (int)run, i + 1,
				result.acquire[i]);
			csv_row(csv, "hot,%d,get of %d threads,%.0f,,,", (int)run, i + 1,
				result.get[i]);
		}
	}
	printf("\n%-30s %8s %8s %8s\n", "hot set, million a second", "1 thread", "2", "ratio");
	print_hot(figures, "acquire, release", FIGURE(struct hot_result, acquire[0]),
		  FIGURE(struct hot_result, acquire[1]));
	print_hot(figures, "get of 64 bytes", FIGURE(struct hot_result, get[0]),
		  FIGURE(struct hot_result, get[1]));
	figures_destroy(figures);
}

int main(int argc, char **argv)
{
	struct plan plan = {.count = 1000000,
			    .duration = NANOSECONDS_PER_SECOND / 2,
			    .seed = 1,
			    .cores = cores_all()};
	int64_t runs = 3;
	const char *csv_path = NULL;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan.count, .least = 1000, .most = 20000000,
		 .help = "keys"},
		{"duration", OPTION_DURATION, &plan.duration, .least = 1,
		 .most = 60 * NANOSECONDS_PER_SECOND, .help = "time of each case of the hot set"},
		FIGURES_OPTIONS(&runs, 1, &csv_path),
		{0},
	};
	struct csv csv;

	options_parse(argc, argv, "How long does the longest call take?", options);
	csv = csv_open(csv_path, "variant,run,call,median,p9999,most,over_200us");
	machine_print();
	printf("%s keys of 16 bytes, values of 64; processor time of the calling thread\n",
	       format_count(plan.count).characters);
	run_calls(&plan, runs, csv);
	run_hot(&plan, runs, csv);
	csv_close(csv);
	return 0;
}
