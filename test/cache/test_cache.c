/* SPDX-License-Identifier: MIT */
/*
 * These are go-zero's promises about its cache, with the figures of its own tests: set, delete,
 * take, limits. The clock is manual.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"

CACHED(inline, values_set_are_got_until_they_expire, 2 * TW_SECOND)
{
	cache_set(recorder, "first", "first element");
	cache_set_for(recorder, "second", "second element", 3 * TW_SECOND);
	assert_holds(recorder, "first", "first element");
	assert_holds(recorder, "second", "second element");
	cache_pass(recorder, 2200 * TW_MILLISECOND);
	assert_holds_none(recorder, "first");
	assert_holds(recorder, "second", "second element");
}

CACHED(inline, deleted_value_is_gone, 2 * TW_SECOND)
{
	cache_set(recorder, "first", "first element");
	cache_set(recorder, "second", "second element");
	assert_status(tw_cache_delete(recorder->cache, "first", 5), TW_OK);
	assert_status(tw_cache_delete(recorder->cache, "first", 5), TW_NOT_FOUND);
	assert_holds_none(recorder, "first");
	assert_holds(recorder, "second", "second element");
}

/* ---- Takes ---- */

struct crowd {
	struct cache_recorder *recorder;
	struct source source;
	pthread_barrier_t begin;
	atomic_int values;
};

static enum tw_status load_slowly(void *argument, const void *key, size_t key_size,
				  struct tw_cache_loading *loading)
{
	const struct timespec moment = {0, 20000000};
	struct crowd *crowd = argument;

	nanosleep(&moment, NULL);
	return source_load(&crowd->source, key, key_size, loading);
}

static void *take_first(void *argument)
{
	struct crowd *crowd = argument;
	const struct tw_cache_entry *entry;
	size_t size;

	pthread_barrier_wait(&crowd->begin);
	if (tw_cache_take(crowd->recorder->cache, "first", 5, load_slowly, crowd, TW_FOREVER,
			  &entry) == TW_OK &&
	    memcmp(tw_cache_entry_value(entry, &size), "first element", 13) == 0 && size == 13)
		atomic_fetch_add(&crowd->values, 1);
	tw_cache_entry_release(entry);
	return NULL;
}

CACHED(inline, hundred_takes_load_once, 2 * TW_SECOND)
{
	enum { TAKES = 100 };
	struct crowd crowd = {.recorder = recorder};
	struct tw_cache_stats stats;
	pthread_t threads[TAKES];

	source_open(&crowd.source, "first element");
	pthread_barrier_init(&crowd.begin, NULL, TAKES);
	for (int i = 0; i < TAKES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_first, &crowd), 0);
	for (int i = 0; i < TAKES; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&crowd.begin);
	assert_int_equal(crowd.source.loads, 1);
	assert_int_equal(crowd.values, TAKES);
	stats = cache_stats(recorder);
	assert_int_equal(stats.loads, 1);
	assert_int_equal(stats.hits + stats.misses, TAKES);
	assert_int_equal(stats.load_waits, stats.misses - 1);
	assert_holds(recorder, "first", "first element");
}

CACHED(inline, error_of_a_load_is_returned_and_not_kept, 2 * TW_SECOND)
{
	struct source source;

	source_open(&source, NULL);
	source.status = TW_SYSTEM;
	for (int i = 1; i <= 2; i++) {
		assert_not_taken(recorder, "first", &source, TW_SYSTEM);
		assert_int_equal(source.loads, i);
	}
	assert_holds_none(recorder, "first");
}

/* ---- Limits ---- */

CACHED(inline, limit_of_three_evicts_the_oldest_and_keeps_the_one_read, 2 * TW_SECOND,
       .policy = TW_POLICY_LRU, .max_entries = 3)
{
	cache_set_letters(recorder, "123");
	assert_holds(recorder, "1", "1");
	cache_set(recorder, "4", "4");
	assert_holds(recorder, "1", "1");
	assert_holds_none(recorder, "2");
	cache_set(recorder, "5", "5");
	assert_holds_none(recorder, "3");
	assert_holds(recorder, "1", "1");
}

CACHED(inline, value_set_makes_others_go_and_not_itself, TW_MINUTE, .max_entries = 10, .shards = 64)
{
	char key[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		cache_set(recorder, key, "value");
		assert_holds(recorder, key, "value");
	}
	assert_int_equal(cache_stats(recorder).entries, 10);
}
