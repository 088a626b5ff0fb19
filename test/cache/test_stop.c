/* SPDX-License-Identifier: MIT */
/*
 * A cache is stopped: these are the threads that are woken, and the entries that stay. The statuses
 * of calls are in test_parameters.c.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
#include "support/cache_source.h"

/* What was loaded is not kept. */
CACHE_SCRIPT(inline_and_threads, takes_that_wait_are_woken_and_the_load_goes_on, TW_HOUR,
	     "source loaded gated; begin a take key; reached; begin 20 b take key;"
	     "await load_waits 20; stop; ended b = CLOSED; go; ended a = loaded; inserts = 0")

CACHED(inline_and_threads, entries_expire_and_are_reported_after_the_stop, TW_HOUR)
{
	const struct tw_cache_entry *pinned;

	cache_set_for(recorder, "short", "expired", INTERVAL);
	cache_set(recorder, "deleted", "deleted");
	cache_set(recorder, "left", "left");
	pinned = cache_pinned(recorder, "left");
	assert_status(tw_cache_delete(recorder->cache, "deleted", 7), TW_OK);
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	cache_pass(recorder, 3 * INTERVAL);
	assert_removed(recorder, "expired", TW_CAUSE_EXPIRED);
	assert_removed(recorder, "deleted", TW_CAUSE_EXPLICIT);
	assert_int_equal(cache_stats(recorder).entries, 1);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_removed(recorder, "left", TW_CAUSE_SHUTDOWN);
	assert_value(pinned, "left");
	tw_cache_entry_release(pinned);
}

static void stop_in_listener(struct cache_recorder *recorder, const struct tw_cache_entry *entry,
			     enum tw_cache_cause cause)
{
	if (tw_cache_stop(recorder->cache) != (cause == TW_CAUSE_EXPLICIT ? TW_OK : TW_CLOSED) ||
	    cache_get(recorder, "other") != TW_CLOSED)
		abort();
}

CACHED(inline_and_threads, listener_may_stop_its_cache, TW_HOUR)
{
	recorder->on_remove = stop_in_listener;
	cache_set(recorder, "key", "value");
	cache_set(recorder, "other", "other");
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	cache_pass(recorder, INTERVAL);
	assert_removed(recorder, "value", TW_CAUSE_EXPLICIT);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_removed(recorder, "other", TW_CAUSE_SHUTDOWN);
}

static enum tw_status load_and_stop(void *argument, const void *key, size_t key_size,
				    struct tw_cache_loading *loading)
{
	struct source *source = argument;

	if (tw_cache_stop(source->cache) != TW_OK)
		abort();
	return source_load(source, key, key_size, loading);
}

CACHED(inline_and_threads, loader_may_stop_its_cache, TW_HOUR)
{
	const struct tw_cache_entry *entry;
	struct source source;

	source_open(&source, "loaded");
	source.cache = recorder->cache;
	assert_status(
		tw_cache_take(recorder->cache, "key", 3, load_and_stop, &source, TW_HOUR, &entry),
		TW_OK);
	assert_value(entry, "loaded");
	tw_cache_entry_release(entry);
	assert_int_equal(cache_stats(recorder).entries, 0);
}

/* ---- Threads that nobody joins ---- */

enum { SETTERS = 8 };

struct setters {
	struct tw_cache *cache;
	atomic_int at_work;
	atomic_int sets;
};

static void *set_until_closed(void *argument)
{
	struct setters *setters = argument;
	int key = (int)gettid();

	pthread_detach(pthread_self());
	while (tw_cache_set(setters->cache, &key, sizeof(key), "v", 1) != TW_CLOSED)
		atomic_fetch_add(&setters->sets, 1);
	/* This is its last access to the cache and to this struct. */
	atomic_fetch_sub(&setters->at_work, 1);
	return NULL;
}

CACHED(inline_and_threads, threads_that_nobody_joins_end_with_the_cache, TW_HOUR)
{
	static struct setters setters;
	struct tw_cache_stats stats;
	pthread_t thread;

	setters = (struct setters){.cache = recorder->cache, .at_work = SETTERS};
	for (int i = 0; i < SETTERS; i++)
		assert_int_equal(pthread_create(&thread, NULL, set_until_closed, &setters), 0);
	WAIT_UNTIL(atomic_load(&setters.sets) > 1000);
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	stats = cache_stats(recorder);
	WAIT_UNTIL(atomic_load(&setters.at_work) == 0);
	/* No set succeeded after the stop. */
	assert_int_equal(cache_stats(recorder).inserts, stats.inserts);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_int_equal(removal_count(recorder), stats.inserts);
}
