/* SPDX-License-Identifier: MIT */
/*
 * In a mixed run of all calls the allocation of each call stack fails, and from any point on all:
 * the call reports it and has changed nothing, no value is lost, no counter is wrong, and nothing
 * leaks (found by the address sanitizer's run). The cache's model (cache_model.h) checks it.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "model/cache_trial.h"
#include "support/stats.h"

#include "cache/cache.h" /* for taking the memory of filed hashes */
#include "faults/faults.h"

enum {
	KEYS = 200,
	ALLOCATIONS = 200,
	LARGE = 100000,
};

static uint64_t count_refusals(void)
{
	return (uint64_t)faults_injected(FAULT_ALLOCATION);
}

static void begin_trial(struct cache_trial *trial, uint64_t seed)
{
	const struct tw_cache_options options = {.jitter = -1, .shards = 2};

	cache_trial_refusals = count_refusals;
	cache_trial_begin_with(trial, random_from(seed, 1), &options, KEYS);
}

/* Continues until the allocation of that number from now has failed, with all after it. */
static void meet_fault(struct cache_trial *trial, long number)
{
	fail_allocation(number, true);
	/* There are far more allocations than one in forty steps. */
	for (long i = 0; !fault_was_met() && i < 40 * number + 1000; i++)
		cache_trial_step(trial);
	for (int i = 0; i < 100; i++)
		cache_trial_step(trial);
	assert_true(end_faults());
}

static void live_with_fault(void *seed)
{
	static struct cache_trial trial;

	begin_trial(&trial, *(uint64_t *)seed);
	begin_faults();
	for (int i = 0; i < 5 * KEYS; i++)
		cache_trial_step(&trial);
	(void)end_faults();
	cache_trial_end(&trial);
}

TEST(once, each_call_stack_may_be_without_memory)
{
	uint64_t seed = seed_choose();

	assert_true(fail_each(FAULT_ALLOCATION, live_with_fault, &seed) > 3);
	assert_true(fail_each(FAULT_REST, live_with_fault, &seed) > 3);
}

TEST(once, memory_may_run_out_at_any_allocation)
{
	static struct cache_trial trial;
	uint64_t seed = seed_choose();

	for (long number = 1; number <= ALLOCATIONS; number += TEST_PART) {
		begin_trial(&trial, seed);
		for (int times = 0; times < 5; times++)
			meet_fault(&trial, number);
		cache_trial_end(&trial);
	}
}

/* ---- Creation, and threads ---- */

static void ignore_removal(void *context, const struct tw_cache_entry *entry,
			   enum tw_cache_cause cause)
{
}

static enum tw_status load_nothing(void *context, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	return TW_NOT_FOUND;
}

/* Creates a cache with all options, on the wheel or, without one, on its own. */
static void create_with_fault(void *wheel)
{
	const struct tw_cache_options options = {.wheel = wheel,
						 .name = "faults",
						 .max_entries = 1000,
						 .negative_expire = TW_MINUTE,
						 .on_remove = ignore_removal,
						 .load = load_nothing,
						 .loaders = 1,
						 .refresh_after = TW_MINUTE,
						 .idle = TW_HOUR,
						 .stale_if_error = TW_MINUTE};
	int anything;
	struct tw_cache *cache = (void *)&anything;
	enum tw_status status;
	int error;
	bool met;

	begin_faults();
	errno = 0;
	status = tw_cache_create(&cache, TW_HOUR, &options);
	error = errno;
	met = end_faults();
	if (status == TW_OK) {
		tw_cache_destroy(cache);
		return;
	}
	assert_true(met);
	assert_null(cache);
	assert_status(status, error == EAGAIN ? TW_SYSTEM : TW_NO_MEMORY);
}

RECORDED(inline, creation_meets_each_failure)
{
	for (enum fault fault = 0; fault < FAULT_KINDS; fault++) {
		(void)fail_each(fault, create_with_fault, NULL);
		(void)fail_each(fault, create_with_fault, recorder->wheel);
	}
}

/* A thread that has used no cache yet looks up a key twice; the system has at first no room to
 * register the end of a thread. */
static void look_up_twice(void *recorder)
{
	struct tw_cache *cache = ((struct cache_recorder *)recorder)->cache;
	char value[10];

	fail_calls("pthread_setspecific", ENOMEM);
	assert_status(tw_cache_get(cache, "key", 3, value, 10, NULL), TW_NO_MEMORY);
	assert_true(end_faults());
	assert_status(tw_cache_get(cache, "key", 3, value, 10, NULL), TW_OK);
}

CACHED(inline, thread_without_room_for_its_end_is_refused, TW_HOUR)
{
	struct blocked_call call;

	cache_set(recorder, "key", "value");
	blocked_call_start(&call, look_up_twice, recorder);
	blocked_call_end(&call);
}

/* ---- By hand ---- */

/* A run has a cache on a wheel that its test drives. */
struct run {
	struct tw_wheel *wheel;
	struct tw_cache *cache;
};

static void run_open(struct run *run, const struct tw_cache_options *options)
{
	struct tw_options wheel_options = {.clock = TW_CLOCK_MANUAL,
					   .drive = TW_DRIVE_CALLER,
					   .workers = TW_WORKERS_INLINE,
					   .queue_capacity = 64};
	struct tw_cache_options with_wheel = *options;

	memset(run, 0, sizeof(*run));
	assert_status(tw_create(&run->wheel, INTERVAL, 16, ignore_task, &wheel_options), TW_OK);
	with_wheel.wheel = run->wheel;
	assert_status(tw_cache_create(&run->cache, TW_HOUR, &with_wheel), TW_OK);
}

static void run_close(struct run *run)
{
	tw_cache_destroy(run->cache);
	tw_destroy(run->wheel);
}

/* Such a value needs memory that the cache does not have yet. */
static void set_large_with_fault(void *value)
{
	struct run run;
	enum tw_status status;

	run_open(&run, &(struct tw_cache_options){.jitter = -1, .shards = 2});
	begin_faults();
	status = tw_cache_set(run.cache, "key", 3, value, LARGE);
	assert_int_equal(end_faults(), status == TW_NO_MEMORY);
	assert_int_equal(entries_of(run.cache), status == TW_OK);
	if (status != TW_OK)
		assert_status(tw_cache_set(run.cache, "key", 3, value, LARGE), TW_OK);
	run_close(&run);
}

TEST(once, set_of_a_large_value_meets_each_failure)
{
	static char value[LARGE];

	assert_true(fail_each(FAULT_ALLOCATION, set_large_with_fault, value) > 0);
}

/* Returns whether a flush ended before the deadline of an entry that could not be filed. */
static bool flush_ends_before_the_deadline(void)
{
	enum { MANY = 1000 };
	const tw_duration lifetime = 500 * TW_MILLISECOND; /* comes up after half of it */
	struct tw_options wheel_options = {0};
	struct tw_cache_options options = {.shards = 1, .jitter = -1};
	struct tw_wheel *wheel;
	struct pool_cell *cells = NULL;
	struct tw_cache *cache;
	size_t taken = 0;
	bool ends;

	assert_status(tw_create(&wheel, TW_MICROSECOND, 16, ignore_task, &wheel_options), TW_OK);
	options.wheel = wheel;
	assert_status(tw_cache_create(&cache, lifetime, &options), TW_OK);
	for (int key = 0; key < MANY; key++)
		assert_status(tw_cache_set(cache, &key, sizeof(key), "v", 1), TW_OK);
	fail_allocation(1, true);
	while (pool_take(cache->shared.pool, POOL_EXPIRY, 1, &cells, &taken) > 0)
		continue;
	fail_allocation(1, true);
	while (!fault_was_met() && entries_of(cache) == MANY)
		wait_for(TW_MILLISECOND);
	assert_status(tw_cache_flush(cache), TW_OK);
	ends = entries_of(cache) == MANY;
	end_faults();
	while (cells) {
		struct pool_cell *cell = cells;

		cells = cell->next;
		pool_give(cell);
	}
	tw_cache_destroy(cache);
	tw_destroy(wheel);
	return ends;
}

/* Under a running clock, such entries come up again and again, but no call waits for them all. On a
 * busy machine a flush may begin too late to show it. */
TEST(once, flush_ends_without_memory)
{
	int attempts = 0;

	while (!flush_ends_before_the_deadline())
		assert_in_range(++attempts, 1, 50);
}

/* Limits hold without memory for an eviction's notes. */
TEST(once, limits_hold_without_memory)
{
	const struct tw_cache_options options = {.max_entries = 1000, .jitter = -1};
	struct tw_cache_stats stats;
	struct run run;

	run_open(&run, &options);
	for (int key = 0; key < 1000; key++)
		assert_status(tw_cache_set(run.cache, &key, sizeof(key), "v", 1), TW_OK);
	fail_allocation(1, true);
	assert_status(tw_cache_set_limit(run.cache, 100, 0), TW_OK);
	assert_status(tw_cache_get_stats(run.cache, &stats), TW_OK);
	end_faults();
	assert_int_equal(stats.entries, 100);
	for (int key = 0; key < 1000; key++)
		assert_status(tw_cache_set(run.cache, &key, sizeof(key), "v", 1), TW_OK);
	assert_int_equal(entries_of(run.cache), 100);
	run_close(&run);
}

/* ---- At one moment ---- */

/* Fails the value's allocation, and not the loader's later ones. */
static enum tw_status load_without_memory(void *argument, const void *key, size_t key_size,
					  struct tw_cache_loading *loading)
{
	static const char value[4 << 20];
	size_t *size = argument;

	assert_status(give_copied(loading, "first", 5, 0), TW_OK);
	fail_allocation(1, true);
	assert_status(give_copied(loading, value, sizeof(value), 0), TW_NO_MEMORY);
	assert_true(end_faults());
	if (*size == 0)
		return TW_NO_MEMORY;
	return *size > 5 ? give_copied(loading, value, *size, 0) : TW_OK;
}

CACHED(inline, loader_sees_that_there_is_no_memory_for_its_value, TW_HOUR)
{
	static const size_t sizes[] = {0, 5, 4 << 20};
	const struct tw_cache_entry *entry;

	for (int i = 0; i < 3; i++) {
		size_t size = sizes[i];

		assert_status(tw_cache_take(recorder->cache, "key", 3, load_without_memory, &size,
					    0, &entry),
			      size > 0 ? TW_OK : TW_NO_MEMORY);
		if (size == 0) {
			assert_null(entry);
			assert_holds_none(recorder, "key");
			continue;
		}
		(void)tw_cache_entry_value(entry, &size);
		assert_int_equal(size, sizes[i]);
		tw_cache_entry_release(entry);
		assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	}
}

static enum tw_status load_new(void *argument, const void *key, size_t key_size,
			       struct tw_cache_loading *loading)
{
	atomic_fetch_add((atomic_int *)argument, 1);
	return give_copied(loading, "new", 3, 0);
}

/* The only place for a refreshing load is free again, too. */
TEST(inline, refresh_without_memory_is_for_the_next_lookup)
{
	atomic_int loads = 0;
	struct cache_recorder *recorder =
		cache_recorder_open_with(*state, TW_HOUR,
					 (struct tw_cache_options){.load = load_new,
								   .load_context = &loads,
								   .loaders = 1,
								   .refresh_after = TW_MINUTE,
								   .max_refreshing = 1});

	cache_set(recorder, "key", "old");
	cache_pass(recorder, 2 * TW_MINUTE);
	for (int i = 0; i < 3; i++) {
		fail_allocation(1, true);
		assert_holds(recorder, "key", "old");
		assert_true(end_faults());
	}
	assert_int_equal(atomic_load(&loads), 0);
	assert_holds(recorder, "key", "old");
	cache_pass(recorder, 0);
	assert_holds(recorder, "key", "new");
	cache_recorder_close(recorder);
}
