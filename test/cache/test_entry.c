/* SPDX-License-Identifier: MIT */
/* A value where it lies: its alignment, however it came there, and whatever is before it. */
#include "support/test.h"

#include "support/cache_recorder.h"

#include "cache/cache.h" /* to have entries moved */

#include <stdbool.h>
#include <string.h>

enum { ALIGNMENT = 8, KEY_MOST = 40, VALUE_MOST = 70 };

static const unsigned char bytes[80000];

/* Keys and values of these sizes too. */
static const size_t long_keys[] = {255, 256, 1001, 4095, TW_KEY_SIZE_MAX};
static const size_t long_values[] = {1001, 4093, 16300, 16368, 16384, 65535, 80000};

static void assert_aligned(const struct tw_cache_entry *entry, size_t value_size)
{
	size_t size;
	const void *value = tw_cache_entry_value(entry, &size);

	assert_int_equal(size, value_size);
	assert_int_equal((uintptr_t)value % ALIGNMENT, 0);
	/* The sanitizer of undefined behaviour looks at these addresses. */
	for (size_t i = 0; i < size / sizeof(uint64_t); i++)
		assert_int_equal(((const uint64_t *)value)[i], 0);
}

static enum tw_status load_bytes(void *size, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	(void)key;
	(void)key_size;
	return tw_cache_load_copy(loading, bytes, *(size_t *)size, 0);
}

static enum tw_cache_verdict compute_bytes(void *size, const struct tw_cache_entry *entry,
					   struct tw_cache_computed *computed)
{
	(void)entry;
	computed->value = bytes;
	computed->value_size = *(size_t *)size;
	return TW_CACHE_REPLACE;
}

enum way { WAY_SET, WAY_SET_MANY, WAY_COMPUTE, WAY_LOAD, WAYS };

/* Puts a value of that size in, and looks at it. */
static void check_way(struct tw_cache *cache, enum way way, size_t key_size, size_t value_size)
{
	struct tw_cache_item item = {
		.key = bytes, .key_size = key_size, .value = bytes, .value_size = value_size};
	const struct tw_cache_entry *entry;
	size_t set;

	switch (way) {
	case WAY_SET:
		assert_status(tw_cache_set(cache, bytes, key_size, bytes, value_size), TW_OK);
		break;
	case WAY_SET_MANY:
		assert_status(tw_cache_set_many(cache, &item, 1, &set), TW_OK);
		assert_status(item.status, TW_OK);
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
	assert_status(tw_cache_acquire(cache, bytes, key_size, &entry), TW_OK);
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
	(void)context;
	(void)key;
	(void)key_size;
	(void)value;
	(void)value_size;
	return 1;
}

/* Each option puts something else before the key. */
static void copied_value_begins_at_a_multiple_of_8(void **state)
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

static void moved_value_begins_at_a_multiple_of_8(void **state)
{
	enum { KEYS = 20000, KEPT_EVERY = 50 };
	struct cache_recorder *recorder =
		cache_recorder_open_quiet(*state, TW_HOUR, (struct tw_cache_options){0});
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
	cache_recorder_close(recorder);
}

static const struct CMUnitTest tests[] = {
	TEST_CACHE(copied_value_begins_at_a_multiple_of_8),
	TEST_CACHE(moved_value_begins_at_a_multiple_of_8),
};

TEST_PROGRAM(tests)
