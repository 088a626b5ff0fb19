/* SPDX-License-Identifier: MIT */
/* tw_cache_set_many and tw_cache_delete_many treat each key like a single one. */
#include "support/test.h"

#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/stats.h"

static struct tw_cache_item item_of(const char *key, const char *value)
{
	return (struct tw_cache_item){
		.key = key, .key_size = strlen(key), .value = value, .value_size = strlen(value)};
}

static void items_are_set_each_with_its_own_lifetime(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, 10 * INTERVAL);
	struct tw_cache_item items[] = {item_of("a", "1"), item_of("b", "2"), item_of("c", "")};
	size_t set = 0;

	items[1].expire = 20 * INTERVAL;
	items[2].expire = TW_FOREVER;
	cache_set(recorder, "a", "old");
	assert_status(tw_cache_set_many(recorder->cache, items, 3, &set), TW_OK);
	assert_int_equal(set, 3);
	cache_settle(recorder);
	assert_removed(recorder, "old", TW_CAUSE_REPLACED);
	assert_lives_for(recorder, "a", "1", 10 * INTERVAL);
	assert_lives_for(recorder, "b", "2", 10 * INTERVAL);
	assert_holds(recorder, "c", "");
	cache_recorder_close_balanced(recorder);
}

static void items_of_one_key_take_effect_in_order(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct tw_cache_item items[100];
	char values[100][12];
	size_t set;

	for (int i = 0; i < 100; i++) {
		snprintf(values[i], sizeof(values[i]), "%d", i);
		items[i] = item_of(i % 3 == 0 ? "key" : "other", values[i]);
	}
	assert_status(tw_cache_set_many(recorder->cache, items, 100, &set), TW_OK);
	assert_int_equal(set, 100);
	assert_holds(recorder, "key", "99");
	assert_holds(recorder, "other", "98");
	assert_int_equal(cache_stats(recorder).entries, 2);
	cache_settle(recorder);
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_REPLACED), 98);
	/* The order is that of the sets. */
	for (int last = -1, i = 0; i < 98; i++) {
		struct removal removal = removal_at(recorder, (size_t)i);

		if (memcmp(removal.key, "key", 3) != 0)
			continue;
		removal.value[removal.value_size] = '\0';
		assert_true(atoi((char *)removal.value) > last);
		last = atoi((char *)removal.value);
	}
	cache_recorder_close_balanced(recorder);
}

static void bad_items_are_refused_and_the_others_set(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open_with(
		*state, TW_HOUR, (struct tw_cache_options){.max_bytes = 1000, .shards = 1});
	static char large[2001];
	struct tw_cache_item items[] = {
		item_of("a", "1"), item_of("", "2"),    item_of("c", "3"), item_of("d", "4"),
		item_of("e", "5"), item_of("f", large), item_of("g", "7"), item_of("h", ""),
	};
	static const enum tw_status expected[] = {TW_OK,      TW_INVALID, TW_INVALID, TW_INVALID,
						  TW_INVALID, TW_FULL,    TW_OK,      TW_OK};
	size_t set = 0;

	memset(large, 'l', sizeof(large) - 1);
	items[2].value = NULL;
	items[3].expire = -1;
	items[4].value_size = (size_t)UINT32_MAX + 1;
	items[5].value_size = sizeof(large) - 1;
	items[7].value = NULL;
	assert_status(tw_cache_set_many(recorder->cache, items, 8, &set), TW_OK);
	for (int i = 0; i < 8; i++)
		assert_status(items[i].status, expected[i]);
	assert_int_equal(set, 3);
	assert_holds(recorder, "a", "1");
	assert_holds(recorder, "g", "7");
	assert_holds(recorder, "h", "");
	assert_int_equal(cache_stats(recorder).entries, 3);
	cache_recorder_close_balanced(recorder);
}

static void bad_arguments_of_many_are_refused(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct tw_cache *cache = recorder->cache;
	struct tw_cache_item item = item_of("a", "1");
	struct tw_cache_key key = {"a", 1, TW_OK};
	size_t count = 4711;

	assert_status(tw_cache_set_many(NULL, &item, 1, &count), TW_INVALID);
	assert_int_equal(count, 0);
	assert_status(tw_cache_set_many(cache, NULL, 1, NULL), TW_INVALID);
	assert_status(tw_cache_set_many(cache, NULL, 0, NULL), TW_OK);
	assert_status(tw_cache_delete_many(NULL, &key, 1, NULL), TW_INVALID);
	assert_status(tw_cache_delete_many(cache, NULL, 1, NULL), TW_INVALID);
	assert_status(tw_cache_delete_many(cache, NULL, 0, NULL), TW_OK);
	key.key_size = 0;
	assert_status(tw_cache_delete_many(cache, &key, 1, &count), TW_OK);
	assert_status(key.status, TW_INVALID);
	assert_int_equal(count, 0);
	assert_status(tw_cache_stop(cache), TW_OK);
	assert_status(tw_cache_set_many(cache, &item, 1, &count), TW_CLOSED);
	assert_status(tw_cache_delete_many(cache, &key, 1, &count), TW_CLOSED);
	cache_recorder_close(recorder);
}

enum { CROWD = 10000 };

struct crowd {
	struct tw_cache_item items[CROWD];
	struct tw_cache_key keys[CROWD];
	int numbers[CROWD];
};

static struct crowd *crowd_new(void)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	assert_non_null(crowd);
	for (int i = 0; i < CROWD; i++) {
		crowd->numbers[i] = i;
		crowd->items[i] = (struct tw_cache_item){.key = &crowd->numbers[i],
							 .key_size = sizeof(int),
							 .value = &crowd->numbers[i],
							 .value_size = sizeof(int)};
		crowd->keys[i] = (struct tw_cache_key){&crowd->numbers[i], sizeof(int), TW_INVALID};
	}
	return crowd;
}

/* The tables grow meanwhile, in one shard and in many. */
static void crowds_come_and_go_at_once(void **state)
{
	static const unsigned shards[] = {1, 64};

	for (int s = 0; s < 2; s++) {
		struct cache_recorder *recorder = cache_recorder_open_with(
			*state, TW_HOUR, (struct tw_cache_options){.shards = shards[s]});
		struct crowd *crowd = crowd_new();
		size_t count;

		assert_status(tw_cache_set_many(recorder->cache, crowd->items, CROWD, &count),
			      TW_OK);
		assert_int_equal(count, CROWD);
		for (int i = 0; i < CROWD; i++) {
			int found = -1;

			assert_status(tw_cache_get(recorder->cache, &i, sizeof(i), &found,
						   sizeof(found), NULL),
				      TW_OK);
			assert_int_equal(found, i);
		}
		assert_status(
			tw_cache_delete_many(recorder->cache, crowd->keys + 1, CROWD - 1, &count),
			TW_OK);
		assert_int_equal(count, CROWD - 1);
		assert_int_equal(cache_stats(recorder).entries, 1);
		assert_status(tw_cache_delete_many(recorder->cache, crowd->keys, CROWD, &count),
			      TW_OK);
		assert_int_equal(count, 1);
		assert_status(crowd->keys[0].status, TW_OK);
		assert_status(crowd->keys[1].status, TW_NOT_FOUND);
		cache_settle(recorder);
		assert_int_equal(removal_count_of(recorder, TW_CAUSE_EXPLICIT), CROWD);
		free(crowd);
		cache_recorder_close_balanced(recorder);
	}
}

/* Most shards have nothing that could make room. */
static void crowds_keep_the_limit(void **state)
{
	static const struct tw_cache_options limits[] = {{.max_entries = 1000, .shards = 8},
							 {.max_entries = 10, .shards = 64}};

	for (int i = 0; i < 2; i++) {
		struct cache_recorder *recorder =
			cache_recorder_open_with(*state, TW_HOUR, limits[i]);
		struct crowd *crowd = crowd_new();
		size_t count;

		assert_status(tw_cache_set_many(recorder->cache, crowd->items, CROWD, &count),
			      TW_OK);
		assert_int_equal(count, CROWD);
		assert_int_equal(cache_stats(recorder).entries, limits[i].max_entries);
		free(crowd);
		cache_settle(recorder);
		cache_recorder_close_balanced(recorder);
	}
}

static void many_changes_override_loads(void **state)
{
	for (int deletes = 0; deletes < 2; deletes++) {
		struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
		struct tw_cache_item items[] = {item_of("other", "1"), item_of("key", "2")};
		struct tw_cache_key keys[] = {{"other", 5, TW_OK}, {"key", 3, TW_OK}};
		struct taker taker;
		struct source source;

		source_open(&source, "loaded");
		taker_start_load(&taker, recorder, "key", &source);
		if (deletes)
			assert_status(tw_cache_delete_many(recorder->cache, keys, 2, NULL), TW_OK);
		else
			assert_status(tw_cache_set_many(recorder->cache, items, 2, NULL), TW_OK);
		gate_open(&source.gate);
		assert_taker_ends(&taker, TW_OK, "loaded");
		if (deletes)
			assert_holds_none(recorder, "key");
		else
			assert_holds(recorder, "key", "2");
		cache_recorder_close(recorder);
	}
}

static const struct CMUnitTest tests[] = {
	TEST_CACHE(items_are_set_each_with_its_own_lifetime),
	TEST_CACHE(items_of_one_key_take_effect_in_order),
	TEST_CACHE(bad_items_are_refused_and_the_others_set),
	TEST_CACHE(bad_arguments_of_many_are_refused),
	TEST_CACHE(crowds_come_and_go_at_once),
	TEST_CACHE(crowds_keep_the_limit),
	TEST_CACHE(many_changes_override_loads),
};

TEST_PROGRAM(tests)
