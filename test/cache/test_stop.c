/* SPDX-License-Identifier: MIT */
/*
 * A cache is stopped: these are the statuses of calls, the threads that are woken, and the entries
 * that stay.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
#include "support/cache_source.h"

static int visit_none(void *context, const struct tw_cache_entry *entry)
{
	abort();
}

static enum tw_status load_none(void *argument, const void *key, size_t key_size,
				struct tw_cache_loading *loading)
{
	abort();
}

static void assert_all_is_closed(struct tw_cache *cache)
{
	static char adopted[] = "adopted";
	char buffer[8] = "before";
	struct tw_cache_lookup item = {"key", 3, buffer, sizeof(buffer), 0, TW_OK};
	const struct tw_cache_entry *entry = (const void *)buffer;
	size_t size = 1;

	assert_status(tw_cache_set(cache, "key", 3, "v", 1), TW_CLOSED);
	assert_status(tw_cache_set_with_expire(cache, "key", 3, "v", 1, TW_HOUR), TW_CLOSED);
	assert_status(put_added(cache, "new", 3, "v", 1, TW_HOUR), TW_CLOSED);
	assert_status(put_replaced(cache, "key", 3, "v", 1, TW_HOUR), TW_CLOSED);
	assert_status(put_adopted(cache, "key", 3, adopted, 7, 0, NULL, NULL, TW_HOUR), TW_CLOSED);
	assert_status(tw_cache_get(cache, "key", 3, buffer, sizeof(buffer), &size), TW_CLOSED);
	assert_int_equal(size, 0);
	/* The short path of a get is for keys of 8 bytes and more. */
	assert_status(tw_cache_get(cache, "long key", 8, buffer, sizeof(buffer), NULL), TW_CLOSED);
	assert_status(tw_cache_acquire(cache, "key", 3, 0, &entry), TW_CLOSED);
	assert_null(entry);
	assert_status(tw_cache_get_many(cache, &item, 1, &size), TW_CLOSED);
	assert_string_equal(buffer, "before");
	assert_status(tw_cache_take(cache, "key", 3, load_none, NULL, TW_HOUR, &entry), TW_CLOSED);
	assert_status(tw_cache_delete(cache, "key", 3), TW_CLOSED);
	assert_status(touch_key(cache, "key", 3, TW_HOUR), TW_CLOSED);
	assert_status(tw_cache_clear(cache), TW_CLOSED);
	assert_status(tw_cache_each(cache, visit_none, NULL), TW_CLOSED);
	assert_status(tw_cache_set_limit(cache, 1, 1), TW_CLOSED);
	assert_status(tw_cache_flush(cache), TW_CLOSED);
	assert_status(tw_cache_stop(cache), TW_CLOSED);
	/* Bad arguments are refused as before. */
	assert_status(tw_cache_get(cache, NULL, 3, buffer, sizeof(buffer), NULL), TW_INVALID);
	assert_status(tw_cache_delete(cache, "key", 0), TW_INVALID);
}

CACHED(inline_and_threads, stopped_cache_answers_closed, TW_HOUR)
{
	struct tw_cache_stats before;
	struct tw_cache_stats after;

	cache_set(recorder, "key", "value");
	cache_set(recorder, "long key", "value");
	before = cache_stats(recorder);
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	assert_all_is_closed(recorder->cache);
	after = cache_stats(recorder);
	/* A refused set has created its entry: the fields from here on may have changed. */
	assert_memory_equal(&before, &after, offsetof(struct tw_cache_stats, memory));
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_SHUTDOWN), 2);
}

CACHED(inline_and_threads, sliding_cache_answers_closed_too, TW_HOUR, .idle = TW_MINUTE)
{
	cache_set(recorder, "key", "value");
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	assert_all_is_closed(recorder->cache);
}

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

/* ---- A server with threads that nobody joins ---- */

enum { SERVERS = 8, SERVER_KEYS = 64 };

struct server {
	struct cache_recorder *recorder;
	atomic_int number;
	atomic_int at_work;
	atomic_int calls;
};

static enum tw_status serve_once(struct tw_cache *cache, int number, int turn)
{
	int key = (number + turn) % SERVER_KEYS;
	const struct tw_cache_entry *entry;
	enum tw_status status;

	switch (number % 4) {
	case 0:
		return tw_cache_set(cache, &key, sizeof(key), &turn, sizeof(turn));
	case 1:
		return tw_cache_get(cache, &key, sizeof(key), NULL, 0, NULL);
	case 2:
		return tw_cache_delete(cache, &key, sizeof(key));
	default:
		status = tw_cache_acquire(cache, &key, sizeof(key), 0, &entry);
		tw_cache_entry_release(entry);
		return status;
	}
}

static void *server_run(void *argument)
{
	struct server *server = argument;
	int number = atomic_fetch_add(&server->number, 1);

	pthread_detach(pthread_self());
	for (int turn = 0; serve_once(server->recorder->cache, number, turn) != TW_CLOSED; turn++)
		atomic_fetch_add(&server->calls, 1);
	/* This is its last access to the cache and to this struct. */
	atomic_fetch_sub(&server->at_work, 1);
	return NULL;
}

TEST(inline_and_threads, threads_that_nobody_joins_end_with_the_cache)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	static struct server server;
	struct tw_cache_stats stats;
	pthread_t thread;

	server = (struct server){.recorder = recorder, .at_work = SERVERS};
	for (int i = 0; i < SERVERS; i++)
		assert_int_equal(pthread_create(&thread, NULL, server_run, &server), 0);
	WAIT_UNTIL(atomic_load(&server.calls) > 1000);
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	stats = cache_stats(recorder);
	WAIT_UNTIL(atomic_load(&server.at_work) == 0);
	/* No set succeeded after the stop. */
	assert_int_equal(cache_stats(recorder).inserts, stats.inserts);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_int_equal(removal_count(recorder), stats.inserts);
	cache_recorder_close(recorder);
}
