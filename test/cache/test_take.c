/* SPDX-License-Identifier: MIT */
/*
 * tw_cache_take has one load a key at a time. The key may change meanwhile; the loader may fail,
 * have nothing, or ask for the key that it loads.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/stats.h"

CACHED(inline_and_threads, value_is_loaded_once_and_then_found, 10 * INTERVAL)
{
	struct source source;

	source_open(&source, "loaded");
	assert_taken(recorder, "key", &source, "loaded");
	assert_taken(recorder, "key", &source, "loaded");
	assert_holds(recorder, "key", "loaded");
	cache_pass(recorder, 10 * INTERVAL);
	assert_holds_none(recorder, "key");
	assert_taken(recorder, "key", &source, "loaded");
	assert_int_equal(source.loads, 2);
	assert_cache_counts(recorder->cache, .hits = 2, .misses = 3, .loads = 2, .inserts = 2,
			    .entries = 1);
}

CACHED(inline_and_threads, many_takers_share_one_load, TW_HOUR)
{
	struct load load;

	source_open(&load.source, "loaded");
	load_start(&load, recorder, "key");
	assert_holds_none(recorder, "key");
	assert_load_ends(&load, TW_OK, "loaded");
	assert_int_equal(load.source.loads, 1);
	assert_cache_counts(recorder->cache, .misses = TAKERS + 2, .loads = 1, .load_waits = TAKERS,
			    .inserts = 1, .entries = 1);
}

TEST(inline_and_threads, error_reaches_all_waiters_and_no_later_take)
{
	static const enum tw_status errors[] = {TW_SYSTEM, TW_CLOSED, TW_TIMED_OUT,
						(enum tw_status)4711, (enum tw_status) - 5};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
		struct load load;

		source_open(&load.source, "ignored");
		load.source.status = errors[i];
		load_start(&load, recorder, "key");
		assert_load_ends(&load, errors[i], NULL);
		assert_int_equal(load.first.status, errors[i]);
		assert_int_equal(load.others[0].status, errors[i]);
		assert_int_equal(cache_stats(recorder).load_errors, 1);
		assert_int_equal(cache_stats(recorder).wait_timeouts, 0);
		load.source.gated = false;
		load.source.status = TW_OK;
		assert_taken(recorder, "key", &load.source, "ignored");
		assert_int_equal(load.source.loads, 2);
		cache_recorder_close(recorder);
	}
}

CACHED(inline_and_threads, empty_value_is_a_value, TW_HOUR)
{
	const struct tw_cache_entry *entry;
	struct source source;

	source_open(&source, "");
	assert_taken(recorder, "key", &source, "");
	assert_status(take(recorder, "key", &source, 0, &entry), TW_OK);
	assert_non_null(tw_cache_entry_value(entry, NULL));
	tw_cache_entry_release(entry);
	assert_int_equal(source.loads, 1);
}

CACHED(inline_and_threads, loader_chooses_the_lifetime, 20 * INTERVAL)
{
	struct source source;

	source_open(&source, "value");
	assert_taken(recorder, "cache's own", &source, "value");
	source.expire = 5 * INTERVAL;
	assert_taken(recorder, "shorter", &source, "value");
	source.expire = TW_FOREVER;
	assert_taken(recorder, "for ever", &source, "value");
	assert_lives_for(recorder, "shorter", "value", 5 * INTERVAL);
	cache_pass(recorder, 15 * INTERVAL - 1);
	assert_holds(recorder, "cache's own", "value");
	cache_pass(recorder, 1);
	assert_holds_none(recorder, "cache's own");
	cache_pass(recorder, TW_HOUR);
	assert_holds(recorder, "for ever", "value");
}

CACHED(inline_and_threads, lifetime_of_a_loaded_value_counts_from_the_end_of_the_load,
       10 * INTERVAL)
{
	struct taker taker;
	struct source source;

	source_open(&source, "value");
	taker_start_load(&taker, recorder, "key", &source);
	cache_pass(recorder, 8 * INTERVAL);
	gate_open(&source.gate);
	assert_taker_ends(&taker, TW_OK, "value");
	assert_lives_for(recorder, "key", "value", 10 * INTERVAL);
}

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

CACHED(inline_and_threads, load_blocks_no_other_key_and_no_other_call, TW_HOUR, .shards = 1)
{
	struct taker loader;
	struct source source;
	struct source other;

	source_open(&source, "loaded");
	source_open(&other, "other");
	taker_start_load(&loader, recorder, "key", &source);
	assert_taken(recorder, "another key", &other, "other");
	cache_set(recorder, "third", "value");
	assert_holds(recorder, "third", "value");
	assert_status(tw_cache_delete(recorder->cache, "third", 5), TW_OK);
	assert_holds_none(recorder, "key");
	gate_open(&source.gate);
	assert_taker_ends(&loader, TW_OK, "loaded");
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
