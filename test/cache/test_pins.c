/* SPDX-License-Identifier: MIT */
/*
 * Pinned entries stay readable whatever happens to their key and cache. That adopted values are
 * freed once, after their last reader, and stay the caller's if the adoption fails, is the exact
 * model's.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/gate.h"

/* Removes the entry "key" with its value "value". */
typedef void end_fn(struct cache_recorder *recorder);

static void end_by_delete(struct cache_recorder *recorder)
{
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
}

static void end_by_set(struct cache_recorder *recorder)
{
	cache_set(recorder, "key", "another");
}

static void end_by_expiry(struct cache_recorder *recorder)
{
	cache_pass(recorder, 12 * INTERVAL);
}

static void end_by_eviction(struct cache_recorder *recorder)
{
	for (int i = 0; i < 100; i++)
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "v", 1), TW_OK);
}

static void end_by_clear(struct cache_recorder *recorder)
{
	assert_status(tw_cache_clear(recorder->cache), TW_OK);
}

static void end_by_limit(struct cache_recorder *recorder)
{
	assert_status(tw_cache_set_limit(recorder->cache, 0, 1), TW_OK);
	assert_status(tw_cache_set_limit(recorder->cache, 10, 0), TW_OK);
}

static void end_by_destroy(struct cache_recorder *recorder)
{
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
}

static const struct {
	end_fn *end;
	enum tw_cache_cause cause;
} ends[] = {
	{end_by_delete, TW_CAUSE_EXPLICIT},  {end_by_set, TW_CAUSE_REPLACED},
	{end_by_expiry, TW_CAUSE_EXPIRED},   {end_by_eviction, TW_CAUSE_SIZE},
	{end_by_clear, TW_CAUSE_EXPLICIT},   {end_by_limit, TW_CAUSE_SIZE},
	{end_by_destroy, TW_CAUSE_SHUTDOWN},
};

enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

static struct cache_recorder *open_small(const struct variant *variant)
{
	return cache_recorder_open_with(
		variant, 10 * INTERVAL,
		(struct tw_cache_options){.policy = TW_POLICY_LRU, .max_entries = 10});
}

/* Later calls must not reuse a pinned entry's memory. */
static void use_memory(struct cache_recorder *recorder)
{
	if (recorder->cache == NULL)
		return;
	for (int i = 0; i < 1000; i++)
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "memory", 6), TW_OK);
	cache_settle(recorder);
	cache_settle(recorder);
}

static void assert_pin_holds(const struct tw_cache_entry *entry)
{
	size_t size;
	const void *key = tw_cache_entry_key(entry, &size);

	assert_int_equal(size, 3);
	assert_memory_equal(key, "key", 3);
	assert_value(entry, "value");
	assert_true(tw_cache_entry_deadline(entry) == 10 * INTERVAL);
}

TEST(inline_and_threads, pinned_entry_stays_readable_whatever_becomes_of_it)
{
	for (int i = 0; i < ENDS; i++) {
		struct cache_recorder *recorder = open_small(*state);
		const struct tw_cache_entry *first;
		const struct tw_cache_entry *second;

		cache_set(recorder, "key", "value");
		first = cache_pinned(recorder, "key");
		second = cache_pinned(recorder, "key");
		assert_ptr_equal(first, second);
		ends[i].end(recorder);
		if (recorder->cache != NULL)
			cache_settle(recorder);
		assert_removed(recorder, "value", ends[i].cause);
		use_memory(recorder);
		assert_pin_holds(first);
		assert_ptr_equal(tw_cache_entry_pin(first), first);
		tw_cache_entry_release(second);
		use_memory(recorder);
		assert_pin_holds(first);
		tw_cache_entry_release(first);
		use_memory(recorder);
		assert_pin_holds(first);
		tw_cache_entry_release(first);
		cache_recorder_close(recorder);
	}
}

static void pin_of_a_listener_outlives_its_call(struct cache_recorder *recorder,
						const struct tw_cache_entry *entry,
						enum tw_cache_cause cause)
{
	const struct tw_cache_entry **kept = recorder->argument;

	if (*kept == NULL)
		*kept = tw_cache_entry_pin(entry);
}

TEST(inline_and_threads, listener_may_keep_the_entry)
{
	for (int i = 0; i < ENDS; i++) {
		struct cache_recorder *recorder = open_small(*state);
		const struct tw_cache_entry *kept = NULL;

		recorder->argument = &kept;
		recorder->on_remove = pin_of_a_listener_outlives_its_call;
		cache_set(recorder, "key", "value");
		ends[i].end(recorder);
		if (recorder->cache != NULL)
			cache_settle(recorder);
		use_memory(recorder);
		assert_non_null(kept);
		assert_pin_holds(kept);
		tw_cache_entry_release(kept);
		cache_recorder_close(recorder);
	}
}

CACHED_BY(inline_and_threads, pin_does_not_lengthen_a_lifetime, open_small(*state))
{
	const struct tw_cache_entry *entry;

	cache_set(recorder, "key", "value");
	entry = cache_pinned(recorder, "key");
	cache_pass(recorder, 10 * INTERVAL);
	assert_holds_none(recorder, "key");
	cache_pass(recorder, 2 * INTERVAL);
	assert_int_equal(cache_stats(recorder).entries, 0);
	assert_int_equal(cache_stats(recorder).bytes, 0);
	assert_value(entry, "value");
	tw_cache_entry_release(entry);
	tw_cache_entry_release(NULL);
}

/* A sleeper is a reader that sleeps with a pinned entry. */
struct sleeper {
	struct cache_recorder *recorder;
	struct gate gate;
	bool sound;
};

static void *sleeper_run(void *argument)
{
	struct sleeper *sleeper = argument;
	const struct tw_cache_entry *entry;
	size_t size;

	if (tw_cache_acquire(sleeper->recorder->cache, "key", 3, 0, &entry) != TW_OK)
		abort();
	gate_pass(&sleeper->gate);
	sleeper->sound = memcmp(tw_cache_entry_value(entry, &size), "value", 5) == 0 && size == 5;
	tw_cache_entry_release(entry);
	return NULL;
}

static void count_free(void *value, size_t size, void *context)
{
	atomic_fetch_add((atomic_int *)context, 1);
}

TEST(inline_and_threads, reader_that_sleeps_with_a_pin_blocks_nobody)
{
	struct cache_recorder *recorder = open_small(*state);
	struct sleeper sleeper = {.recorder = recorder};
	atomic_int freed = 0;
	pthread_t thread;

	gate_init(&sleeper.gate);
	cache_set(recorder, "key", "value");
	assert_int_equal(pthread_create(&thread, NULL, sleeper_run, &sleeper), 0);
	gate_await(&sleeper.gate);
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	for (int i = 0; i < 1000; i++)
		assert_status(put_adopted(recorder->cache, &i, sizeof(i), &freed, sizeof(freed), 0,
					  count_free, &freed, TW_HOUR),
			      TW_OK);
	cache_settle(recorder);
	cache_settle(recorder);
	/* Values removed meanwhile are freed, although that reader is still inside. */
	assert_int_equal(atomic_load(&freed), 990);
	gate_open(&sleeper.gate);
	pthread_join(thread, NULL);
	assert_true(sleeper.sound);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, adopted_value_may_be_anything)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	static const char outlives[] = "outlives all";
	const struct tw_cache_entry *entry;
	size_t size = 1;

	assert_status(put_adopted(recorder->cache, "null", 4, NULL, 0, 0, NULL, NULL, TW_HOUR),
		      TW_OK);
	entry = cache_pinned(recorder, "null");
	assert_null(tw_cache_entry_value(entry, &size));
	assert_int_equal(size, 0);
	tw_cache_entry_release(entry);
	assert_status(put_adopted(recorder->cache, "static", 6, (void *)outlives, strlen(outlives),
				  0, NULL, NULL, TW_HOUR),
		      TW_OK);
	assert_holds(recorder, "static", outlives);
	assert_int_equal(cache_stats(recorder).bytes, 2 * cache_weight(4, 32) + strlen(outlives));
	cache_recorder_close(recorder);
}
