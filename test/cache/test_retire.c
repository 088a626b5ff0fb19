/* SPDX-License-Identifier: MIT */
/*
 * Threads keep some of a cache's memory for their next sets. It is freed when they make no more
 * sets, and is never reused while a reader sees it.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"

#include "cache/cache.h" /* for the contents of the pools */

enum { THREADS = 4, KEYS = 2000 };

static void *set_all_twice(void *argument)
{
	struct tw_cache *cache = argument;

	for (uint64_t i = 0; i < 2 * (uint64_t)KEYS; i++) {
		uint64_t key[2] = {i % KEYS, 0};

		if (tw_cache_set(cache, key, sizeof(key), "value", 5) != TW_OK)
			abort();
	}
	return NULL;
}

/* Returns the free cells of pages that also hold others. Filings of removed keys do not count. */
static uint64_t free_cells(struct tw_cache *cache)
{
	struct pool *pool = cache->shared.pool;
	uint64_t cells = 0;

	pthread_mutex_lock(&pool->lock);
	for (unsigned class = 0; class < POOL_SIZES; class ++)
		cells += pool->classes[class].free;
	pthread_mutex_unlock(&pool->lock);
	return cells;
}

/* A listener's last access to an entry requests maintenance, too. */
static void with_and_without_listener(const struct variant *variant, tw_duration expire,
				      void (*check)(struct cache_recorder *))
{
	check(cache_recorder_open(variant, expire));
	check(cache_recorder_open_quiet(variant, expire, (struct tw_cache_options){0}));
}

static void delete_all(struct tw_cache *cache)
{
	for (uint64_t i = 0; i < KEYS; i++) {
		uint64_t key[2] = {i, 0};

		assert_status(tw_cache_delete(cache, key, sizeof(key)), TW_OK);
	}
}

/* Checks this by the clock alone, without a call. */
static void assert_pool_gets_empty(struct cache_recorder *recorder)
{
	for (int i = 0; i < 500 && free_cells(recorder->cache) > 0; i++)
		cache_pass(recorder, INTERVAL);
	assert_int_equal(free_cells(recorder->cache), 0);
}

static void check_idle_threads_keep_no_memory(struct cache_recorder *recorder)
{
	struct tw_cache *cache = recorder->cache;
	uint64_t key[2] = {0, 0};
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, set_all_twice, cache), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	set_all_twice(cache);
	/* A refused set keeps no memory either. */
	assert_status(put_added(cache, key, sizeof(key), "value", 5, TW_HOUR), TW_EXISTS);
	assert_int_equal(cache_stats(recorder).entries, KEYS);
	for (; key[0] < KEYS / 2; key[0]++)
		assert_status(put_adopted(cache, key, sizeof(key), NULL, 0, 0, NULL, NULL, TW_HOUR),
			      TW_OK);
	delete_all(cache);
	assert_pool_gets_empty(recorder);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, idle_threads_keep_no_memory)
{
	with_and_without_listener(*state, TW_HOUR, check_idle_threads_keep_no_memory);
}

enum { COMING = 200 };

/* These threads use the cache, and wait until all have. */
struct coming {
	struct tw_cache *cache;
	pthread_barrier_t all;
	pthread_t threads[COMING];
};

static void *set_wait_and_end(void *argument)
{
	struct coming *coming = argument;
	uint64_t key = (uint64_t)(uintptr_t)&key;

	if (tw_cache_get(coming->cache, &key, sizeof(key), NULL, 0, NULL) != TW_NOT_FOUND ||
	    tw_cache_set(coming->cache, &key, sizeof(key), "value", 5) != TW_OK ||
	    tw_cache_delete(coming->cache, &key, sizeof(key)) == TW_CLOSED)
		abort();
	pthread_barrier_wait(&coming->all);
	pthread_barrier_wait(&coming->all);
	return NULL;
}

/* This happens by the clock alone, without a call. */
CACHED(inline_and_threads, memory_of_threads_counts_and_comes_back_when_they_end, TW_HOUR)
{
	enum { LITTLE = 4096 }; /* expiry blocks for removed keys */
	struct coming coming = {.cache = recorder->cache};
	struct tw_cache_stats before;
	struct tw_cache_stats stats;

	set_all_twice(recorder->cache);
	delete_all(recorder->cache);
	assert_pool_gets_empty(recorder);
	before = cache_stats(recorder);
	pthread_barrier_init(&coming.all, NULL, COMING + 1);
	for (int i = 0; i < COMING; i++)
		assert_int_equal(
			pthread_create(&coming.threads[i], NULL, set_wait_and_end, &coming), 0);
	pthread_barrier_wait(&coming.all);
	assert_in_range(cache_stats(recorder).memory_in_use, before.memory_in_use + COMING * 1024,
			before.memory_in_use + COMING * 1400);
	assert_true(cache_stats(recorder).memory >= cache_stats(recorder).memory_in_use);
	pthread_barrier_wait(&coming.all);
	for (int i = 0; i < COMING; i++)
		pthread_join(coming.threads[i], NULL);
	for (int i = 0;
	     i < 500 && cache_stats(recorder).memory_in_use >= before.memory_in_use + LITTLE; i++)
		cache_pass(recorder, INTERVAL);
	assert_in_range(cache_stats(recorder).memory_in_use, 0, before.memory_in_use + LITTLE);
	/* The system has it, too. */
	for (int i = 0; i < 10; i++)
		cache_pass(recorder, INTERVAL);
	stats = cache_stats(recorder);
	assert_in_range(stats.memory, stats.memory_in_use, stats.memory_in_use + (1 << 17));
	/* The threads' counts stay. */
	assert_int_equal(cache_stats(recorder).misses, before.misses + COMING);
	pthread_barrier_destroy(&coming.all);
}

static void ignore(void *context, const struct tw_task *task)
{
}

static void *set_one_and_end(void *cache)
{
	char key = 0;

	assert_status(tw_cache_set(cache, &key, 1, "value", 5), TW_OK);
	return NULL;
}

/* A thread's end requests maintenance, which may run while the cache is destroyed. */
TEST(once, cache_is_destroyed_as_threads_end)
{
	enum { ROUNDS = TEST_SHARE_OF(200), ENDING = 20 };

	for (int round = 0; round < ROUNDS; round++) {
		struct tw_cache_options options = {.shards = 1};
		struct tw_options of_wheel = {.workers = 1};
		pthread_t threads[ENDING];
		struct tw_cache *cache;

		assert_status(tw_create(&options.wheel, TW_MILLISECOND, 16, ignore, &of_wheel),
			      TW_OK);
		assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
		(void)set_one_and_end(cache);
		for (int i = 0; i < ENDING; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, set_one_and_end, cache),
					 0);
		for (int i = 0; i < ENDING; i++)
			pthread_join(threads[i], NULL);
		/* The next tick comes at any of these moments. */
		for (int64_t until = wall_clock() + round % 20 * TW_MILLISECOND / 10;
		     wall_clock() < until;)
			continue;
		tw_cache_destroy(cache);
		tw_destroy(options.wheel);
	}
}

struct asking {
	struct cache_recorder *recorder;
	atomic_bool ended;
};

static void *ask_on(void *argument)
{
	struct asking *asking = argument;
	struct tw_cache_stats stats;

	while (!atomic_load(&asking->ended))
		if (tw_cache_get_stats(asking->recorder->cache, &stats) != TW_OK ||
		    tw_cache_flush(asking->recorder->cache) != TW_OK)
			abort();
	return NULL;
}

CACHED_QUIET(threads, threads_come_and_go_while_others_set_and_ask, TW_HOUR,
	     .max_entries = KEYS / 2)
{
	enum { ROUNDS = 20 };
	struct coming coming = {.cache = recorder->cache};
	struct asking asking = {.recorder = recorder};
	pthread_t asker;
	pthread_t setters[ROUNDS];

	pthread_barrier_init(&coming.all, NULL, 2 + 1);
	assert_int_equal(pthread_create(&asker, NULL, ask_on, &asking), 0);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(pthread_create(&setters[i], NULL, set_all_twice, coming.cache), 0);
		for (int k = 0; k < 2; k++)
			assert_int_equal(
				pthread_create(&coming.threads[k], NULL, set_wait_and_end, &coming),
				0);
		pthread_barrier_wait(&coming.all);
		pthread_barrier_wait(&coming.all);
		for (int k = 0; k < 2; k++)
			pthread_join(coming.threads[k], NULL);
	}
	for (int i = 0; i < ROUNDS; i++)
		pthread_join(setters[i], NULL);
	atomic_store(&asking.ended, true);
	pthread_join(asker, NULL);
	assert_int_equal(cache_stats(recorder).misses, 2 * ROUNDS);
	assert_int_equal(cache_stats(recorder).inserts, 2 * ROUNDS + (uint64_t)ROUNDS * 2 * KEYS);
	pthread_barrier_destroy(&coming.all);
}

static const struct retired_batch *find_batch(const struct retiring_reader *thread)
{
	for (int i = 0; i < RETIRED_BATCHES; i++)
		if (thread->batches[i].list.first)
			return &thread->batches[i];
	return NULL;
}

static void set_another_often(struct cache_recorder *recorder)
{
	for (int i = 0; i < 200; i++)
		cache_set(recorder, "another", "value");
}

/* Otherwise each set would cost more, the more entries a thread inside keeps from being freed. */
CACHED_QUIET(inline, what_a_sleeping_reader_may_see_is_not_examined_at_each_look, TW_HOUR)
{
	enum { MANY = 200 };
	struct epochs *epochs = &recorder->cache->shared.epochs;
	struct reader *reader = epochs_add_reader(epochs);
	const struct retiring_reader *thread = retiring_reader(epochs_reader(epochs));
	const struct tw_cache_entry *first;
	const struct retired_batch *batch;

	assert_non_null(reader);
	for (uint64_t key = 0; key < MANY; key++)
		assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1), TW_OK);
	reader_enter(reader, epochs);
	for (uint64_t key = 0; key < MANY; key++)
		assert_status(tw_cache_delete(recorder->cache, &key, sizeof(key)), TW_OK);
	set_another_often(recorder);
	batch = find_batch(thread);
	assert_true(batch && batch->list.count >= MANY &&
		    batch->list.count == thread->batched_count);
	first = batch->list.first;
	for (int i = 0; i < MANY; i++) {
		cache_set(recorder, "another", "value");
		assert_ptr_equal(batch->list.first, first);
	}
	reader_leave(reader);
	set_another_often(recorder);
	assert_int_equal(thread->batched_count, 0);
}
