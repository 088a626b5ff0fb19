/* SPDX-License-Identifier: MIT */
/*
 * These calls walk through all entries in steps, while another thread sets, replaces and deletes
 * keys, so that tables change their size between two steps.
 */
#include "support/test.h"

#include "support/cache_recorder.h"
#include "support/seed.h"

#include "cache/cache.h" /* for reading tables and queues */

enum { STAYING = 500, COMING = 4000, TABLES = TEST_SHARE_OF(500), ROUNDS = 20 };

struct walks {
	struct tw_cache *cache;
	atomic_bool is_over;
	uint64_t seed;
	int visits[STAYING];
};

static struct cache_recorder *open_one_shard(const struct variant *variant,
					     enum tw_cache_policy policy)
{
	return cache_recorder_open_quiet(variant, TW_HOUR,
					 (struct tw_cache_options){.policy = policy, .shards = 1});
}

static uint64_t tables_of(struct shard *shard)
{
	uint64_t tables;

	turn_lock_take(&shard->lock);
	tables = shard->tables;
	turn_lock_let_go(&shard->lock);
	return tables;
}

static void set(struct tw_cache *cache, uint64_t key, uint64_t value)
{
	assert_status(tw_cache_set(cache, &key, sizeof(key), &value, sizeof(value)), TW_OK);
}

/* Grows tables by new keys; when these go, all is filed again, and tables shrink. */
static void *change(void *argument)
{
	struct walks *walks = argument;
	struct random random = random_from(walks->seed, 1);

	for (uint64_t round = 0; !atomic_load(&walks->is_over); round++) {
		for (uint64_t i = 0; i < COMING; i++)
			set(walks->cache, STAYING + i, round);
		for (uint64_t i = 0; i < STAYING; i++)
			set(walks->cache, random_below(&random, STAYING), round);
		for (uint64_t key = STAYING; key < STAYING + COMING; key++)
			(void)tw_cache_delete(walks->cache, &key, sizeof(key));
	}
	return NULL;
}

static pthread_t walks_begin(struct walks *walks, struct tw_cache *cache)
{
	pthread_t thread;

	memset(walks, 0, sizeof(*walks));
	walks->cache = cache;
	walks->seed = seed_choose();
	for (uint64_t key = 0; key < STAYING; key++)
		set(cache, key, 0);
	assert_int_equal(pthread_create(&thread, NULL, change, walks), 0);
	return thread;
}

static void walks_end(struct walks *walks, pthread_t thread)
{
	atomic_store(&walks->is_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static int visit(void *context, const struct tw_cache_entry *entry)
{
	struct walks *walks = context;
	uint64_t key;

	memcpy(&key, tw_cache_entry_key(entry, NULL), sizeof(key));
	if (key < STAYING)
		walks->visits[key]++;
	return 1;
}

static void each_meets_what_stays_once(void **state)
{
	struct cache_recorder *recorder = open_one_shard(*state, TW_POLICY_LRU);
	struct shard *shard = &recorder->cache->shards[0];
	struct walks walks;
	pthread_t thread = walks_begin(&walks, recorder->cache);

	while (tables_of(shard) < TABLES) {
		memset(walks.visits, 0, sizeof(walks.visits));
		assert_status(tw_cache_each(recorder->cache, visit, &walks), TW_OK);
		for (int key = 0; key < STAYING; key++)
			assert_int_equal(walks.visits[key], 1);
	}
	walks_end(&walks, thread);
	cache_recorder_close(recorder);
}

static void first_limit_knows_all(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct cache_recorder *recorder =
			open_one_shard(*state, round % 2 ? TW_POLICY_LRU : TW_POLICY_S3FIFO);
		struct shard *shard = &recorder->cache->shards[0];
		struct walks walks;
		pthread_t thread = walks_begin(&walks, recorder->cache);

		while (tables_of(shard) < 4)
			continue;
		assert_status(tw_cache_set_limit(recorder->cache, STAYING + COMING, 0), TW_OK);
		turn_lock_take(&shard->lock);
		assert_true(shard->policy.knows_all);
		assert_int_equal(shard->policy.main.count + shard->policy.small.count,
				 shard_table(shard)->count);
		turn_lock_let_go(&shard->lock);
		walks_end(&walks, thread);
		assert_status(tw_cache_set_limit(recorder->cache, 10, 0), TW_OK);
		assert_int_equal(cache_stats(recorder).entries, 10);
		cache_recorder_close(recorder);
	}
}

/* Another call with a limit has turned the policy on and not walked through the entries yet. */
static void limit_comes_while_another_call_turns_the_policy_on(void **state)
{
	for (int round = 0; round < 2; round++) {
		struct cache_recorder *recorder =
			open_one_shard(*state, round % 2 ? TW_POLICY_LRU : TW_POLICY_S3FIFO);
		struct shard *shard = &recorder->cache->shards[0];

		for (uint64_t key = 0; key < 10; key++)
			set(recorder->cache, key, 0);
		policy_turn_on(&shard->policy);
		for (uint64_t key = 5; key < 15; key++)
			set(recorder->cache, key, 1);
		assert_status(tw_cache_set_limit(recorder->cache, 15, 0), TW_OK);
		assert_int_equal(shard->policy.main.count + shard->policy.small.count, 15);
		assert_status(tw_cache_set_limit(recorder->cache, 10, 0), TW_OK);
		assert_int_equal(cache_stats(recorder).entries, 10);
		assert_status(tw_cache_clear(recorder->cache), TW_OK);
		assert_int_equal(shard->policy.main.count + shard->policy.small.count, 0);
		cache_recorder_close(recorder);
	}
}

static const struct CMUnitTest tests[] = {
	TEST_IN(levels_inline, limit_comes_while_another_call_turns_the_policy_on),
	TEST_IN(levels_inline, each_meets_what_stays_once),
	TEST_IN(levels_inline, first_limit_knows_all),
};

TEST_PROGRAM(tests)
