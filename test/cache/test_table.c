/* SPDX-License-Identifier: MIT */
/* Lookups search and find in tables whose keys were replaced for a long time. */
#include "support/test.h"

#include "support/cache_recorder.h"

#include "cache/cache.h" /* for reading the buckets */

enum { SLOTS = 512 * BUCKET_SLOTS, TURNOVERS = TEST_SHARE_OF(300), KEYS = TEST_SHARE_OF(30000) };

static struct cache_recorder *open_limited(const struct variant *variant, uint64_t max_entries,
					   enum tw_cache_policy policy)
{
	return cache_recorder_open_quiet(variant, TW_HOUR,
					 (struct tw_cache_options){.max_entries = max_entries,
								   .policy = policy,
								   .shards = 1});
}

/* Returns the average number of buckets that the lookup of a missing key searches. */
static double table_miss_length(const struct table *table)
{
	size_t searched = 0;

	for (size_t home = 0; home <= table->mask; home++) {
		size_t length = 1;

		while (length <= table->mask &&
		       bucket_was_passed(table_bucket(table, home + length - 1)))
			length++;
		searched += length;
	}
	return (double)searched / (double)(table->mask + 1);
}

TEST(inline, misses_stay_short_where_keys_come_and_go)
{
	/* These percentages of the slots are as full as a table gets, and too full. */
	static const unsigned loads[] = {74, 80, 86};

	for (int i = 0; i < 3; i++) {
		uint64_t count = SLOTS * loads[i] / 100;
		enum tw_cache_policy policy = i % 2 ? TW_POLICY_LRU : TW_POLICY_S3FIFO;
		struct cache_recorder *recorder = open_limited(*state, count, policy);
		double length;

		for (uint64_t key = 0; key < TURNOVERS * count; key++)
			assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1),
				      TW_OK);
		length = table_miss_length(recorder->cache->shards[0].table);
		print_message("%u of 100 slots: a miss searches %.1f buckets\n", loads[i], length);
		assert_true(length < 10);
		cache_recorder_close(recorder);
	}
}

/* Each removed key decrements the counts of the buckets that it passed, also in crowds. */
TEST(inline, buckets_whose_keys_are_gone_were_passed_by_nobody)
{
	const uint64_t count = SLOTS * 7 / 10;
	struct cache_recorder *recorder = open_limited(*state, count, TW_POLICY_LRU);
	const uint64_t last = TURNOVERS * count;

	for (uint64_t key = 0; key < last; key++)
		assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1), TW_OK);
	assert_true(table_miss_length(recorder->cache->shards[0].table) > 1);
	for (uint64_t key = last - count; key < last; key++)
		assert_status(tw_cache_delete(recorder->cache, &key, sizeof(key)), TW_OK);
	assert_true(table_miss_length(recorder->cache->shards[0].table) == 1);
	cache_recorder_close(recorder);
}

/* Returns the next key from *key on whose hash has that tag. */
static uint64_t find_tagged(const struct tw_cache *cache, uint64_t tag, uint64_t *key)
{
	while (key_hash_wide(&cache->shared.seed, key, sizeof(*key)) >> 48 != tag)
		++*key;
	return (*key)++;
}

/* An empty slot before it has the tag 0, too. */
CACHED_BY(inline, key_with_the_tag_of_empty_slots_is_found, open_limited(*state, 0, TW_POLICY_LRU))
{
	struct tw_cache *cache = recorder->cache;
	uint64_t next = 1;
	const uint64_t other = find_tagged(cache, 1, &next);
	const uint64_t key = find_tagged(cache, 0, &next);
	const uint64_t absent = find_tagged(cache, 0, &next);
	uint64_t value = 0;
	size_t size = 1;

	assert_status(tw_cache_set(cache, &other, sizeof(other), "v", 1), TW_OK);
	assert_status(tw_cache_set(cache, &key, sizeof(key), &key, sizeof(key)), TW_OK);
	assert_status(tw_cache_delete(cache, &other, sizeof(other)), TW_OK);
	assert_status(tw_cache_get(cache, &key, sizeof(key), &value, sizeof(value), &size), TW_OK);
	assert_true(value == key && size == sizeof(value));
	assert_status(tw_cache_get(cache, &absent, sizeof(absent), &value, sizeof(value), &size),
		      TW_NOT_FOUND);
	assert_int_equal(size, 0);
}

CACHED_BY(inline, table_of_a_cleared_cache_is_small_again, open_limited(*state, 0, TW_POLICY_LRU))
{
	enum { MANY = 20000 };
	struct shard *shard = &recorder->cache->shards[0];

	/* This also happens while a larger one is being made. */
	for (int key = 0; key < MANY || !shard->next; key++)
		assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1), TW_OK);
	assert_true(shard->table->mask + 1 >= MANY / BUCKET_SLOTS);
	assert_status(tw_cache_clear(recorder->cache), TW_OK);
	assert_true(shard->table->mask + 1 <= MANY / BUCKET_SLOTS / 16);
}

/* ---- Another size ---- */

struct model {
	struct cache_recorder *recorder;
	uint64_t values[KEYS]; /* 0 if it is not there */
};

static void model_compare(const struct model *model)
{
	for (uint64_t key = 0; key < KEYS; key++) {
		uint64_t value = 0;
		enum tw_status status = tw_cache_get(model->recorder->cache, &key, sizeof(key),
						     &value, sizeof(value), NULL);

		assert_int_equal(value, model->values[key]);
		assert_status(status, value != 0 ? TW_OK : TW_NOT_FOUND);
	}
}

static void model_change(struct model *model, uint64_t key, uint64_t value)
{
	struct tw_cache *cache = model->recorder->cache;
	struct shard *shard = &cache->shards[0];
	const struct table *next = shard->next;
	size_t copied = shard->next_copied;
	uint64_t tables = shard->tables;

	if (value != 0)
		assert_status(tw_cache_set(cache, &key, sizeof(key), &value, sizeof(value)), TW_OK);
	else
		assert_status(tw_cache_delete(cache, &key, sizeof(key)),
			      model->values[key] != 0 ? TW_OK : TW_NOT_FOUND);
	model->values[key] = value;
	if (shard->tables != tables) {
		assert_true(shard->tables == tables + 1);
		model_compare(model);
	} else if (shard->next && shard->next == next) {
		assert_true(shard->next_copied - copied <= 4);
	}
}

/* Sets a key again where the copying is, or has just been. */
static void model_change_at_copied(struct model *model, struct random *random, uint64_t value)
{
	enum { AROUND = 4 };
	const struct shard *shard = &model->recorder->cache->shards[0];
	const struct bucket *bucket;
	size_t number = shard->next_copied + (size_t)random_below(random, 2 * AROUND);

	if (!shard->next || number < AROUND)
		return;
	bucket = table_bucket(shard->table, number - AROUND);
	for (int i = 0; i < BUCKET_SLOTS; i++) {
		const struct tw_cache_entry *entry = slot_entry(slot_load(&bucket->slots[i]));
		uint64_t key;

		if (!entry)
			continue;
		memcpy(&key, entry_key(entry), sizeof(key));
		model_change(model, key, value);
		return;
	}
}

TEST(inline, table_changes_its_size_in_steps)
{
	static struct model model;
	struct random random = random_from(seed_choose(), 0);
	const struct shard *shard;
	size_t largest;

	model = (struct model){.recorder = open_limited(*state, 0, TW_POLICY_LRU)};
	shard = &model.recorder->cache->shards[0];
	/* First mostly new keys come, with some replaced and deleted; then the reverse. */
	for (uint64_t i = 1; i <= 4 * KEYS; i++) {
		model_change(&model, random_below(&random, KEYS),
			     random_once_in(&random, 8) ? 0 : i);
		model_change_at_copied(&model, &random, i);
	}
	largest = shard->table->mask;
	assert_true(largest >= KEYS / BUCKET_SLOTS && shard->tables >= 4);
	for (uint64_t i = 1; i <= 8 * KEYS; i++)
		model_change(&model, random_below(&random, KEYS),
			     random_once_in(&random, 100) ? i : 0);
	assert_true(shard->table->mask <= largest / 2 || shard->next);
	model_compare(&model);
	cache_recorder_close(model.recorder);
}
