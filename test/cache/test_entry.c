/* SPDX-License-Identifier: MIT */
/*
 * These tests are about a value in its entry: its alignment, for all ways of setting it and all
 * that may come before it; about adopted values: which calls free them; and about chains of values
 * that hold each other.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/stats.h"

#include "cache/cache.h" /* for moving entries */

enum { ALIGNMENT = 8, KEY_MOST = 40, VALUE_MOST = 70 };

static const unsigned char bytes[80000];

/* Keys and values have these sizes too. */
static const size_t long_keys[] = {255, 256, 1001, 4095, TW_KEY_SIZE_MAX};
static const size_t long_values[] = {1001, 4093, 16300, 16368, 16384, 65535, 80000};

static void assert_aligned(const struct tw_cache_entry *entry, size_t value_size)
{
	size_t size;
	const void *value = tw_cache_entry_value(entry, &size);

	assert_int_equal(size, value_size);
	assert_int_equal((uintptr_t)value % ALIGNMENT, 0);
	/* The sanitizer of undefined behaviour checks these addresses. */
	for (size_t i = 0; i < size / sizeof(uint64_t); i++)
		assert_int_equal(((const uint64_t *)value)[i], 0);
}

static enum tw_status load_bytes(void *size, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	return give_copied(loading, bytes, *(size_t *)size, 0);
}

static enum tw_cache_verdict compute_bytes(void *size, const struct tw_cache_entry *entry,
					   struct tw_cache_value *computed)
{
	computed->data = bytes;
	computed->size = *(size_t *)size;
	return TW_CACHE_REPLACE;
}

enum way { WAY_SET, WAY_COMPUTE, WAY_LOAD, WAYS };

/* Sets a value of that size, and checks it. */
static void check_way(struct tw_cache *cache, enum way way, size_t key_size, size_t value_size)
{
	const struct tw_cache_entry *entry;

	switch (way) {
	case WAY_SET:
		assert_status(tw_cache_set(cache, bytes, key_size, bytes, value_size), TW_OK);
		break;
	case WAY_COMPUTE:
		assert_status(tw_cache_compute(cache, bytes, key_size, compute_bytes, &value_size),
			      TW_OK);
		break;
	default:
		(void)tw_cache_delete(cache, bytes, key_size);
		assert_status(tw_cache_take(cache, bytes, key_size, load_bytes, &value_size,
					    TW_FOREVER, &entry),
			      TW_OK);
		assert_aligned(entry, value_size);
		tw_cache_entry_release(entry);
	}
	assert_status(tw_cache_acquire(cache, bytes, key_size, 0, &entry), TW_OK);
	assert_aligned(entry, value_size);
	tw_cache_entry_release(entry);
}

static void check_sizes(struct tw_cache *cache)
{
	for (size_t key = 1; key <= KEY_MOST; key++)
		for (size_t value = 0; value <= VALUE_MOST; value++)
			check_way(cache, (enum way)((key + value) % WAYS), key, value);
	for (size_t i = 0; i < sizeof(long_keys) / sizeof(long_keys[0]); i++)
		for (size_t k = 0; k < sizeof(long_values) / sizeof(long_values[0]); k++)
			for (int way = 0; way < WAYS; way++)
				check_way(cache, (enum way)way, long_keys[i], long_values[k]);
}

static uint64_t weigh_one(void *context, const void *key, size_t key_size, const void *value,
			  size_t value_size)
{
	return 1;
}

/* Each option puts another field before the key. */
TEST(inline_and_threads, copied_value_begins_at_a_multiple_of_8)
{
	const struct tw_cache_options options[] = {
		{.idle = 0},
		{.idle = TW_MINUTE},
		{.weigh = weigh_one},
		{.refresh_after = TW_MINUTE, .load = load_bytes},
		{.refresh_after = TW_MINUTE, .load = load_bytes, .idle = TW_MINUTE},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct cache_recorder *recorder =
			cache_recorder_open_quiet(*state, TW_HOUR, options[i]);

		check_sizes(recorder->cache);
		cache_recorder_close(recorder);
	}
}

static int visit_aligned(void *count, const struct tw_cache_entry *entry)
{
	size_t size;

	(void)tw_cache_entry_value(entry, &size);
	assert_aligned(entry, size);
	++*(size_t *)count;
	return 1;
}

CACHED_QUIET(inline_and_threads, moved_value_begins_at_a_multiple_of_8, TW_HOUR)
{
	enum { KEYS = 20000, KEPT_EVERY = 50 };
	struct tw_cache *cache = recorder->cache;
	size_t count = 0;

	for (uint32_t key = 0; key < KEYS; key++)
		assert_status(tw_cache_set(cache, &key, sizeof(key), bytes, key % 100), TW_OK);
	for (uint32_t key = 0; key < KEYS; key++)
		if (key % KEPT_EVERY != 0)
			assert_status(tw_cache_delete(cache, &key, sizeof(key)), TW_OK);
	for (int i = 0; i < 10; i++)
		cache_settle(recorder);
	assert_status(tw_cache_each(cache, visit_aligned, &count), TW_OK);
	assert_int_equal(count, KEYS / KEPT_EVERY);
}

/* ---- Values that hold pins ---- */

enum { LINKS = TEST_HAS_SANITIZER ? 100000 : 1000000, LAST = LINKS - 1 };

static void release_pin(void *pin, size_t size, void *freed)
{
	tw_cache_entry_release(pin);
	/* relaxed: read after the thread has ended */
	atomic_fetch_add_explicit((atomic_int *)freed, 1, memory_order_relaxed);
}

/* Each value is a pin of the entry before it. Returns a pin of the last one. */
static struct tw_cache_entry *chain_make(struct tw_cache *cache, atomic_int *freed)
{
	const struct tw_cache_entry *pin = NULL;

	for (uint32_t key = 0; key < LINKS; key++) {
		assert_status(put_adopted(cache, &key, sizeof(key), (void *)pin, 0, 1, release_pin,
					  freed, TW_HOUR),
			      TW_OK);
		assert_status(tw_cache_acquire(cache, &key, sizeof(key), 0, &pin), TW_OK);
	}
	return (struct tw_cache_entry *)pin;
}

struct end_of_chain {
	struct cache_recorder *recorder;
	struct tw_cache_entry *pin;
};

static void *chain_release(void *argument)
{
	tw_cache_entry_release(((struct end_of_chain *)argument)->pin);
	return NULL;
}

static void *chain_delete(void *argument)
{
	const uint32_t last = LAST;

	(void)tw_cache_delete(((struct end_of_chain *)argument)->recorder->cache, &last,
			      sizeof(last));
	return NULL;
}

static void *chain_destroy(void *argument)
{
	struct cache_recorder *recorder = ((struct end_of_chain *)argument)->recorder;

	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	return NULL;
}

static void run_with_small_stack(void *(*run)(void *), void *argument)
{
	enum { STACK = TEST_HAS_SANITIZER ? 1 << 19 : 1 << 16 };
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attributes, run, argument), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

/* All are out of the cache, and the last one's pin is released. */
TEST(inline_and_threads, chain_that_hangs_on_a_pin_is_freed_on_a_small_stack)
{
	atomic_int freed = 0;
	struct end_of_chain end = {
		cache_recorder_open_quiet(*state, TW_HOUR, (struct tw_cache_options){0}), NULL};

	end.pin = chain_make(end.recorder->cache, &freed);
	assert_status(tw_cache_clear(end.recorder->cache), TW_OK);
	cache_settle(end.recorder);
	assert_int_equal(freed, 0);
	run_with_small_stack(chain_release, &end);
	assert_int_equal(freed, LINKS);
	cache_recorder_close(end.recorder);
}

/* The last one leaves the cache after its pin has been released. */
TEST(inline_and_threads, chain_that_hangs_on_an_entry_is_freed_on_a_small_stack)
{
	static void *(*const ends[])(void *) = {chain_delete, chain_destroy};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		atomic_int freed = 0;
		struct end_of_chain end = {
			cache_recorder_open_quiet(*state, TW_HOUR, (struct tw_cache_options){0}),
			NULL};

		tw_cache_entry_release(chain_make(end.recorder->cache, &freed));
		for (uint32_t key = 0; key < LAST; key++)
			assert_status(tw_cache_delete(end.recorder->cache, &key, sizeof(key)),
				      TW_OK);
		assert_int_equal(freed, 0);
		run_with_small_stack(ends[i], &end);
		if (end.recorder->cache)
			cache_settle(end.recorder);
		assert_int_equal(freed, LINKS);
		cache_recorder_close(end.recorder);
	}
}

/* ---- Calls that free nothing ---- */

static void count_free(void *value, size_t size, void *freed)
{
	++*(int *)freed;
}

/* Ends loads after the test's check. */
static enum tw_status load_late(void *may_end, const void *key, size_t key_size,
				struct tw_cache_loading *loading)
{
	WAIT_UNTIL(atomic_load((atomic_bool *)may_end));
	return TW_LOAD_FAILED;
}

static void write_nothing(void *context, const char *text, size_t size)
{
}

/* Looks the key up by each call that the header names; the key is old, and has a reload queued. */
static void look_at(struct tw_cache *cache, const char *key)
{
	const struct tw_cache_entry *entry;
	struct tw_cache_stats stats;
	struct tw_cache_lookup item = {.key = key, .key_size = 1};

	assert_status(tw_cache_get(cache, key, 1, NULL, 0, NULL), TW_TRUNCATED);
	assert_status(tw_cache_get_many(cache, &item, 1, NULL), TW_OK);
	assert_status(tw_cache_acquire(cache, key, 1, 0, &entry), TW_OK);
	tw_cache_entry_release(entry);
	assert_status(tw_cache_acquire(cache, key, 1, TW_CACHE_NO_USE, &entry), TW_OK);
	tw_cache_entry_release(entry);
	assert_status(tw_cache_get_stats(cache, &stats), TW_OK);
	assert_status(tw_cache_write_metrics(cache, write_nothing, NULL, NULL), TW_OK);
	assert_true(entries_of(cache) > 0);
}

/* The entries are expired and about to be examined early, which removes them at the next change. No
 * thread drives the wheel. */
TEST(once, lookups_and_statistics_free_no_adopted_value)
{
	/* Sets end long before the deadlines; otherwise they would remove expired entries. */
	enum { KEYS = 300, LOOKS = 100, LIFE = TW_SECOND / 2 };
	struct tw_options of_wheel = {.drive = TW_DRIVE_CALLER};
	atomic_bool may_end = false;
	struct tw_cache_options options = {.jitter = -1,
					   .refresh_after = 1,
					   .max_refreshing = 2 * LOOKS,
					   .load = load_late,
					   .load_context = &may_end,
					   .shards = 1};
	struct tw_cache *cache;
	int freed = 0;

	assert_status(tw_create(&options.wheel, TW_MILLISECOND, 16, ignore_task, &of_wheel), TW_OK);
	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	for (char key = 0; key < LOOKS; key++)
		assert_status(tw_cache_set(cache, &key, 1, "value", 5), TW_OK);
	for (int key = 0; key < KEYS; key++)
		assert_status(
			put_adopted(cache, &key, sizeof(key), NULL, 0, 1, count_free, &freed, LIFE),
			TW_OK);
	while (!cache->shards[0].expiry.due) {
		assert_status(tw_cache_set(cache, "passing", 7, "value", 5), TW_OK);
		assert_status(tw_cache_delete(cache, "passing", 7), TW_OK);
	}
	freed = 0;
	/* The deadlines pass on the coarse clock too. */
	for (tw_duration now = tw_now(options.wheel);
	     tw_now(options.wheel) < now + LIFE + 20 * TW_MILLISECOND;)
		continue;
	for (char key = 0; key < LOOKS; key++)
		look_at(cache, &key);
	assert_int_equal(freed, 0);
	assert_non_null(cache->shards[0].expiry.due);
	atomic_store(&may_end, true);
	tw_cache_destroy(cache);
	tw_destroy(options.wheel);
	assert_in_range(freed, 1, KEYS);
}
