/* SPDX-License-Identifier: MIT */
/*
 * These calls of one key come between the steps of another call: a lookup between a touch's two
 * stores, time that passes while a set weighs, a take between a delete and the end of the earlier
 * load; and flushes that must not wait, or must repair.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"

#include "cache/cache.h"

static struct cache_recorder *open_sliding(const struct variant *variant, tw_duration idle)
{
	return cache_recorder_open_with(variant, TW_HOUR, (struct tw_cache_options){.idle = idle});
}

/* A lookup between the two stores of a touch must not make it forget to file the entry again. */
CACHED_BY(inline_and_threads, touch_that_meets_its_own_deadline_still_expires_in_time,
	  open_sliding(*state, 100 * INTERVAL))
{
	const struct tw_cache_entry *entry;

	cache_set(recorder, "key", "value");
	entry = cache_pinned(recorder, "key");
	time_store(&entry_extension(entry)->end, 2 * INTERVAL);
	assert_holds(recorder, "key", "value");
	tw_cache_entry_release(entry);
	assert_status(touch_key(recorder->cache, "key", 3, 2 * INTERVAL), TW_OK);
	cache_pass(recorder, 4 * INTERVAL);
	cache_settle(recorder);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
	assert_int_equal(removal_at(recorder, 0).deadline, 2 * INTERVAL);
}

/* A hit that sees the new end before the touch has filed the deadline files it itself. */
CACHED_BY(inline_and_threads, touch_that_a_hit_was_ahead_of_still_expires_in_time,
	  open_sliding(*state, 100 * INTERVAL))
{
	tw_duration deadline = 100 * INTERVAL;
	struct tw_cache_entry *entry;

	cache_set(recorder, "key", "value");
	entry = (struct tw_cache_entry *)cache_pinned(recorder, "key");
	/* This is the touch's first store; then the hit's part, which had seen the old end. */
	time_store(&entry_extension(entry)->end, 2 * INTERVAL);
	assert_true(entry_move_deadline(entry, &deadline, 2 * INTERVAL));
	tw_cache_entry_release(entry);
	assert_status(touch_key(recorder->cache, "key", 3, 2 * INTERVAL), TW_OK);
	cache_pass(recorder, 4 * INTERVAL);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
}

/* Returns ten for any value; "late" takes half a tick to weigh. */
static uint64_t weigh_late(void *recorder, const void *key, size_t key_size, const void *value,
			   size_t value_size)
{
	if (value_size == 4 && memcmp(value, "late", 4) == 0)
		tw_advance(((struct cache_recorder *)recorder)->wheel, INTERVAL / 2);
	return 10;
}

static struct cache_recorder *open_weighing(const struct variant *variant, tw_cache_weigh_fn *weigh,
					    uint64_t max_bytes)
{
	return cache_recorder_open_with(
		variant, TW_HOUR,
		(struct tw_cache_options){.weigh = weigh, .max_bytes = max_bytes});
}

CACHED_BY(inline_and_threads, set_goes_by_the_time_of_the_change,
	  open_weighing(*state, weigh_late, 0))
{
	struct tw_cache *cache = recorder->cache;
	const struct tw_cache_entry *entry;

	cache_set_for(recorder, "key", "first", INTERVAL / 2);
	assert_status(put_replaced(cache, "key", 3, "late", 4, INTERVAL), TW_NOT_FOUND);
	cache_set_for(recorder, "key", "second", INTERVAL / 4);
	assert_status(put_added(cache, "key", 3, "late", 4, INTERVAL), TW_OK);
	entry = cache_pinned(recorder, "key");
	assert_int_equal(tw_cache_entry_deadline(entry), 2 * INTERVAL);
	tw_cache_entry_release(entry);
	cache_set_for(recorder, "other", "third", INTERVAL / 4);
	cache_set(recorder, "other", "late");
	cache_settle(recorder);
	assert_removed(recorder, "first", TW_CAUSE_EXPIRED);
	assert_removed(recorder, "second", TW_CAUSE_EXPIRED);
	assert_removed(recorder, "third", TW_CAUSE_EXPIRED);
}

struct nested {
	struct cache_recorder *recorder;
	struct source source; /* source of the inner load */
};

/* Deletes the key that it loads, and takes it from another source. */
static enum tw_status load_deleted(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	struct nested *nested = argument;
	const struct tw_cache_entry *entry;

	assert_status(take(nested->recorder, "key", &nested->source, TW_FOREVER, &entry),
		      TW_INVALID);
	assert_status(tw_cache_delete(nested->recorder->cache, key, key_size), TW_NOT_FOUND);
	assert_taken(nested->recorder, "key", &nested->source, "inner");
	return give_copied(loading, "outer", 5, 0);
}

CACHED(inline_and_threads, loader_may_delete_its_own_key_and_take_it_from_elsewhere, TW_HOUR)
{
	struct nested nested = {.recorder = recorder};
	const struct tw_cache_entry *entry;

	source_open(&nested.source, "inner");
	assert_status(
		tw_cache_take(recorder->cache, "key", 3, load_deleted, &nested, TW_FOREVER, &entry),
		TW_OK);
	assert_value(entry, "outer");
	tw_cache_entry_release(entry);
	assert_holds(recorder, "key", "inner");
	assert_int_equal(cache_stats(recorder).loads, 2);
	assert_int_equal(cache_stats(recorder).load_waits, 0);
}

struct flushing {
	struct cache_recorder *recorder;
	struct tw_cache *other; /* its listener flushes */
	atomic_int status;
};

static void flush_run(void *argument)
{
	struct flushing *flushing = argument;

	tw_cache_set(flushing->recorder->cache, "key", 3, "value", 5);
	tw_cache_delete(flushing->recorder->cache, "key", 3);
	atomic_store(&flushing->status, (int)tw_cache_flush(flushing->recorder->cache));
}

static void flush_in_listener(void *context, const struct tw_cache_entry *entry,
			      enum tw_cache_cause cause)
{
	flush_run(context);
}

static void assert_flush_was_refused(struct flushing *flushing, size_t removals)
{
	assert_int_equal(atomic_load(&flushing->status), TW_INVALID);
	cache_settle(flushing->recorder);
	assert_int_equal(times_removed(flushing->recorder, "value"), removals);
	atomic_store(&flushing->status, -1);
}

CACHED(inline_and_threads, flush_that_would_wait_for_itself_is_refused, TW_HOUR)
{
	struct flushing flushing = {.recorder = recorder};
	struct tw_cache_options options = cache_recorder_options(recorder);

	options.context = &flushing;
	options.on_remove = flush_in_listener;
	assert_status(tw_cache_create(&flushing.other, TW_HOUR, &options), TW_OK);
	assert_status(tw_after_func(recorder->wheel, INTERVAL, flush_run, &flushing, NULL), TW_OK);
	cache_pass(recorder, INTERVAL);
	assert_flush_was_refused(&flushing, 1);
	assert_status(tw_cache_set(flushing.other, "key", 3, "value", 5), TW_OK);
	assert_status(tw_cache_delete(flushing.other, "key", 3), TW_OK);
	assert_status(tw_cache_flush(flushing.other), TW_OK);
	assert_flush_was_refused(&flushing, 2);
	tw_cache_destroy(flushing.other);
}

CACHED(inline_and_threads, flush_removes_what_was_past_its_deadline_by_the_last_tick, TW_HOUR)
{
	cache_pass(recorder, INTERVAL / 4);
	cache_set_for(recorder, "before", "before", INTERVAL / 2);
	cache_set_for(recorder, "at", "at", INTERVAL * 3 / 4);
	cache_set_for(recorder, "after", "after", INTERVAL);
	/* The alarms must not do it. */
	for (unsigned i = 0; i <= recorder->cache->shard_mask; i++)
		(void)tw_alarm_stop(&recorder->cache->shards[i].alarm);
	cache_pass(recorder, INTERVAL * 3 / 4 - 1);
	assert_holds_none(recorder, "before");
	assert_holds(recorder, "at", "at");
	cache_pass(recorder, INTERVAL / 2);
	assert_holds_none(recorder, "at");
	assert_holds_none(recorder, "after");
	assert_int_equal(removal_count(recorder), 0);
	cache_settle(recorder);
	assert_removed(recorder, "before", TW_CAUSE_EXPIRED);
	assert_removed(recorder, "at", TW_CAUSE_EXPIRED);
	assert_int_equal(times_removed(recorder, "after"), 0);
	cache_pass(recorder, INTERVAL);
	cache_settle(recorder);
	assert_removed(recorder, "after", TW_CAUSE_EXPIRED);
}
