/* SPDX-License-Identifier: MIT */
/*
 * tw_cache_take has one load a key at a time. The key may change meanwhile; the loader may fail,
 * have nothing, or ask for the key that it loads.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
#include "support/cache_source.h"
#include "support/stats.h"

CACHE_SCRIPT(inline_and_threads, value_is_loaded_once_and_then_found, 10 * INTERVAL,
	     "source loaded; take key = loaded; take key = loaded; get key = loaded; pass 10;"
	     "get key = NOT_FOUND; take key = loaded; loads = 2;"
	     "counts = hits 2 misses 3 loads_begun 2 inserts 2 entries 1")

CACHE_SCRIPT(inline_and_threads, many_takers_share_one_load, TW_HOUR,
	     "source loaded gated; begin a take key; reached; begin 20 b take key;"
	     "await load_waits 20; get key = NOT_FOUND; go; ended a = loaded; ended b = loaded;"
	     "loads = 1; counts = misses 22 loads_begun 1 load_waits 20 inserts 1 entries 1")

TEST(inline_and_threads, error_reaches_all_waiters_and_no_later_take)
{
	static const char *const errors[] = {"SYSTEM", "CLOSED", "TIMED_OUT", "4711", "-5"};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		cache_script_run(*state, TW_HOUR, (struct tw_cache_options){0}, __FILE__, __LINE__,
				 "source ignored %s gated; begin a take key; reached;"
				 "begin 20 b take key; await load_waits 20; go; ended a = %s;"
				 "ended b = %s; load_errors = 1; wait_timeouts = 0; source ignored;"
				 "take key = ignored; loads = 2",
				 errors[i], errors[i], errors[i]);
}

CACHE_SCRIPT(inline_and_threads, empty_value_is_a_value, TW_HOUR,
	     "source ''; take key = ''; take key wait 0 = ''; loads = 1")

CACHE_SCRIPT(inline_and_threads, loader_chooses_the_lifetime, 20 * INTERVAL,
	     "source value; take usual = value; source value lives 5; take shorter = value;"
	     "source value lives never; take forever = value; lives shorter value 5; pass 15-1ns;"
	     "get usual = value; pass 1ns; get usual = NOT_FOUND; pass 1h; get forever = value")

CACHE_SCRIPT(inline_and_threads, lifetime_of_a_loaded_value_counts_from_the_end_of_the_load,
	     10 * INTERVAL,
	     "source value gated; begin a take key; reached; pass 8; go; ended a = value;"
	     "lives key value 10")

CACHE_SCRIPT(inline_and_threads, load_blocks_no_other_key_and_no_other_call, TW_HOUR,
	     "source loaded gated; begin a take key; reached; other second;"
	     "take beside other = second; set third value; get third = value; delete third;"
	     "get key = NOT_FOUND; go; ended a = loaded",
	     .shards = 1)

TEST(inline_and_threads, waiter_gives_up_at_its_own_limit)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	const struct tw_cache_entry *entry = (const void *)state;
	struct taker loader;
	struct source source;
	int64_t began;

	source_open(&source, "loaded");
	taker_start_load(&loader, recorder, "key", &source);
	began = wall_clock();
	assert_status(take(recorder, "key", &source, 20 * TW_MILLISECOND, &entry), TW_TIMED_OUT);
	assert_true(wall_clock() - began >= 20 * TW_MILLISECOND);
	assert_null(entry);
	assert_status(take(recorder, "key", &source, 0, &entry), TW_TIMED_OUT);
	assert_status(take(recorder, "key", &source, -TW_HOUR, &entry), TW_TIMED_OUT);
	assert_int_equal(cache_stats(recorder).load_waits, 3);
	assert_int_equal(cache_stats(recorder).wait_timeouts, 3);
	gate_open(&source.gate);
	assert_taker_ends(&loader, TW_OK, "loaded");
	assert_holds(recorder, "key", "loaded");
	assert_int_equal(source.loads, 1);
	cache_recorder_close(recorder);
}

/* Loads one key and then takes the other's. */
static enum tw_status load_other(void *argument, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	struct source *source = argument;
	const struct tw_cache_entry *entry;
	enum tw_status status;

	gate_pass(&source->gate);
	status = tw_cache_take(source->cache, source->value, strlen(source->value), load_other,
			       source, source->wait, &entry);
	tw_cache_entry_release(entry);
	if (status != TW_OK)
		return status;
	return give_copied(loading, "value", 5, 0);
}

static void *take_other(void *argument)
{
	struct taker *taker = argument;

	taker->status = tw_cache_take(taker->recorder->cache, taker->key, strlen(taker->key),
				      load_other, taker->source, TW_FOREVER, &taker->entry);
	return NULL;
}

CACHED(inline_and_threads, loader_that_takes_its_own_key_gets_an_error, TW_HOUR)
{
	const struct tw_cache_entry *entry;
	struct source source;

	source_open(&source, "key");
	source.cache = recorder->cache;
	source.wait = TW_FOREVER;
	gate_open(&source.gate);
	assert_status(
		tw_cache_take(recorder->cache, "key", 3, load_other, &source, TW_FOREVER, &entry),
		TW_INVALID);
	assert_null(entry);
	/* The refused take has not waited. */
	assert_cache_counts(recorder->cache, .misses = 2, .loads = 1, .load_errors = 1);
}

TEST(inline_and_threads, loaders_that_wait_for_each_other_end_by_their_wait)
{
	static const char *const keys[] = {"a", "b", "c"};
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct source sources[3];
	struct taker takers[3];

	for (int i = 0; i < 3; i++) {
		source_open(&sources[i], keys[(i + 1) % 3]);
		sources[i].cache = recorder->cache;
		sources[i].wait = i < 2 ? TW_FOREVER : 0;
		takers[i] =
			(struct taker){.recorder = recorder, .key = keys[i], .source = &sources[i]};
		assert_int_equal(pthread_create(&takers[i].thread, NULL, take_other, &takers[i]),
				 0);
		gate_await(&sources[i].gate);
	}
	gate_open(&sources[0].gate);
	gate_open(&sources[1].gate);
	WAIT_UNTIL(cache_stats(recorder).load_waits == 2);
	/* The third take would close the circle, and fails. The others return that. */
	gate_open(&sources[2].gate);
	for (int i = 0; i < 3; i++)
		assert_taker_ends(&takers[i], TW_TIMED_OUT, NULL);
	assert_int_equal(cache_stats(recorder).wait_timeouts, 1);
	cache_recorder_close(recorder);
}

/* Loads smaller numbers first; the key is a number as text. */
static enum tw_status load_chain(void *argument, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	struct cache_recorder *recorder = argument;
	char below = (char)(*(const char *)key - 1);
	const struct tw_cache_entry *entry;
	enum tw_status status = TW_OK;

	if (below >= '0') {
		status = tw_cache_take(recorder->cache, &below, 1, load_chain, recorder, 0, &entry);
		tw_cache_entry_release(entry);
	}
	return status != TW_OK ? status : give_copied(loading, key, key_size, 0);
}

CACHED(inline_and_threads, loader_may_take_other_keys, TW_HOUR)
{
	const struct tw_cache_entry *entry;

	assert_status(tw_cache_take(recorder->cache, "9", 1, load_chain, recorder, 0, &entry),
		      TW_OK);
	assert_value(entry, "9");
	tw_cache_entry_release(entry);
	assert_int_equal(cache_stats(recorder).loads, 10);
	assert_holds(recorder, "0", "0");
}

/* A listener may be waiting for this very load. */
static enum tw_status load_flushing(void *argument, const void *key, size_t key_size,
				    struct tw_cache_loading *loading)
{
	struct cache_recorder *recorder = argument;

	if (tw_cache_flush(recorder->cache) != TW_INVALID)
		return TW_SYSTEM;
	tw_cache_destroy(recorder->cache);
	return give_copied(loading, key, key_size, 0);
}

CACHED(inline_and_threads, flush_and_destroy_in_a_loader_do_nothing, TW_HOUR)
{
	const struct tw_cache_entry *entry;

	assert_status(tw_cache_take(recorder->cache, "key", 3, load_flushing, recorder, 0, &entry),
		      TW_OK);
	tw_cache_entry_release(entry);
	assert_holds(recorder, "key", "key");
}
