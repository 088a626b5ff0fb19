/* SPDX-License-Identifier: MIT */
/*
 * Limits change while the cache is in use, and at the end nothing is left.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/cache_calls.h"
#include "support/cache_recorder.h"

#include "cache/cache.h" /* for a limit without its eviction */

static struct cache_recorder *open_quiet(const struct variant *variant, tw_duration expire,
					 enum tw_cache_policy policy)
{
	return cache_recorder_open_quiet(
		variant, expire,
		(struct tw_cache_options){.policy = policy, .max_entries = UINT64_MAX});
}

static void set_numbers(struct tw_cache *cache, uint64_t count)
{
	unsigned char value[64] = {0};

	for (uint64_t key = 0; key < count; key++) {
		memcpy(value, &key, sizeof(key));
		assert_status(
			tw_cache_set(cache, &key, sizeof(key), value, sizeof(value) - key % 32),
			TW_OK);
	}
}

enum { MANY = TEST_SHARE_OF(1000000), FEW = 1000 };

struct onlooker {
	pthread_t thread;
	struct tw_cache *cache;
	uint64_t stream;
	atomic_bool *ended;
	atomic_ulong reads;
	int wrong;
};

static void *reader_run(void *argument)
{
	struct onlooker *reader = argument;
	struct random random = random_from(1, reader->stream);

	while (!atomic_load(reader->ended)) {
		uint64_t key = random_below(&random, MANY);
		uint64_t value;
		enum tw_status status =
			tw_cache_get(reader->cache, &key, sizeof(key), &value, sizeof(value), NULL);

		reader->wrong += status != TW_NOT_FOUND && (status != TW_TRUNCATED || value != key);
		atomic_fetch_add(&reader->reads, 1);
	}
	return NULL;
}

static void lower_while_it_is_read(const struct variant *variant, enum tw_cache_policy policy)
{
	enum { READERS = 2 };
	struct cache_recorder *recorder = open_quiet(variant, TW_HOUR, policy);
	struct onlooker readers[READERS];
	struct tw_cache_stats stats;
	atomic_bool ended = false;
	unsigned long before = 0;
	unsigned long meanwhile = 0;

	assert_status(tw_cache_set_limit(recorder->cache, MANY, 0), TW_OK);
	set_numbers(recorder->cache, MANY);
	assert_int_equal(cache_stats(recorder).entries, MANY);
	for (uint64_t i = 0; i < READERS; i++) {
		readers[i] =
			(struct onlooker){.cache = recorder->cache, .stream = i, .ended = &ended};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, reader_run, &readers[i]),
				 0);
	}
	for (int i = 0; i < READERS; i++) {
		WAIT_UNTIL(atomic_load(&readers[i].reads) > 0);
		before += atomic_load(&readers[i].reads);
	}
	assert_status(tw_cache_set_limit(recorder->cache, FEW, 0), TW_OK);
	stats = cache_stats(recorder);
	for (int i = 0; i < READERS; i++)
		meanwhile += atomic_load(&readers[i].reads);
	atomic_store(&ended, true);
	for (int i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		assert_int_equal(readers[i].wrong, 0);
	}
	assert_true(meanwhile > before);
	assert_int_equal(stats.entries, FEW);
	assert_int_equal(stats.removed[TW_CAUSE_SIZE], MANY - FEW);
	stats = cache_stats(recorder);
	assert_int_equal(stats.hits + stats.misses,
			 atomic_load(&readers[0].reads) + atomic_load(&readers[1].reads));
	cache_recorder_close(recorder);
}

TEST(threads, limit_is_lowered_while_the_cache_is_read)
{
	lower_while_it_is_read(*state, TW_POLICY_LRU);
	lower_while_it_is_read(*state, TW_POLICY_S3FIFO);
}

static void set_limits(void *cache)
{
	assert_status(tw_cache_set_limit(cache, 1000, 1 << 20), TW_OK);
}

/* One lock is around all three, so of two calls at once one sets all of them last. */
CACHED_BY(inline_and_threads, limits_are_set_under_one_lock,
	  open_quiet(*state, TW_HOUR, TW_POLICY_S3FIFO))
{
	struct shared_state *shared = &recorder->cache->shared;
	struct blocked_call call;

	pthread_mutex_lock(&shared->pool->lock);
	blocked_call_start(&call, set_limits, recorder->cache);
	blocked_call_falls_asleep(&call);
	assert_true(counter_read(&shared->max_entries) > 1000);
	assert_int_equal(counter_read(&shared->max_bytes), 0);
	assert_int_equal(shared->pool->limit, 0);
	pthread_mutex_unlock(&shared->pool->lock);
	blocked_call_end(&call);
	assert_int_equal(counter_read(&shared->max_entries), 1000);
	assert_int_equal(counter_read(&shared->max_bytes), 1 << 20);
	assert_int_equal(shared->pool->limit, 1 << 20);
}

static uint64_t weigh_most(void *context, const void *key, size_t key_size, const void *value,
			   size_t value_size)
{
	return UINT64_MAX;
}

TEST(inline_and_threads, heaviest_values_have_a_sum_without_overflow)
{
	enum { COUNT = 70000, FEW_HEAVY = 10 };
	struct cache_recorder *recorder = cache_recorder_open_quiet(
		*state, TW_HOUR,
		(struct tw_cache_options){.max_entries = COUNT, .weigh = weigh_most});

	set_numbers(recorder->cache, COUNT);
	assert_int_equal(cache_stats(recorder).entries, COUNT);
	assert_int_equal(cache_stats(recorder).bytes / TW_CACHE_WEIGHT_MAX, COUNT);
	assert_status(tw_cache_set_limit(recorder->cache, 0, FEW_HEAVY * TW_CACHE_WEIGHT_MAX),
		      TW_OK);
	assert_int_equal(cache_stats(recorder).entries, FEW_HEAVY);
	cache_recorder_close(recorder);
}

/* These sets come while tw_cache_set_limit() is about to evict. */
CACHED_BY(inline_and_threads, sets_evict_little_each_when_the_limit_has_fallen,
	  open_quiet(*state, TW_HOUR, TW_POLICY_LRU))
{
	enum { KEYS = 20000, MOST = 500, SET_MOST = 3 * 64 };
	struct tw_cache *cache = recorder->cache;
	uint64_t entries = KEYS;
	int sets = 0;

	assert_status(tw_cache_set_limit(cache, KEYS, 0), TW_OK);
	set_numbers(cache, KEYS);
	cache_set_limits(cache, MOST, 0);
	for (; entries > MOST; sets++) {
		uint64_t before = entries;
		uint64_t key = KEYS + (uint64_t)sets;

		assert_status(tw_cache_set(cache, &key, sizeof(key), "v", 1), TW_OK);
		entries = cache_stats(recorder).entries;
		assert_in_range(entries, before - SET_MOST, before);
	}
	assert_in_range(sets, KEYS / SET_MOST, KEYS / 64);
}

/* The value weighs as much as many others. */
TEST(inline_and_threads, set_of_much_keeps_the_limit)
{
	enum { KEYS = 3000, WEIGHT = 100, LARGE = 2000 };

	for (int i = 0; i < 6; i++) {
		struct cache_recorder *recorder = cache_recorder_open_quiet(
			*state, TW_HOUR,
			(struct tw_cache_options){.max_bytes = KEYS * WEIGHT,
						  .policy = (enum tw_cache_policy)(i % 2),
						  .shards = 1u << i / 2 * 2});
		struct tw_cache *cache = recorder->cache;

		for (uint64_t key = 0; key < KEYS; key++)
			assert_status(put_adopted(cache, &key, sizeof(key), NULL, 0, WEIGHT, NULL,
						  NULL, TW_HOUR),
				      TW_OK);
		assert_int_equal(cache_stats(recorder).entries, KEYS);
		assert_status(put_adopted(cache, "large", 5, NULL, 0, LARGE * WEIGHT, NULL, NULL,
					  TW_HOUR),
			      TW_OK);
		assert_int_equal(cache_stats(recorder).entries, KEYS - LARGE + 1);
		assert_int_equal(cache_stats(recorder).bytes, KEYS * WEIGHT);
		/* All others have to go. */
		assert_status(put_adopted(cache, "largest", 7, "v", 1, KEYS * WEIGHT, NULL, NULL,
					  TW_HOUR),
			      TW_OK);
		assert_int_equal(cache_stats(recorder).entries, 1);
		assert_holds(recorder, "largest", "v");
		cache_recorder_close(recorder);
	}
}

TEST(inline_and_threads, limit_may_come_and_go)
{
	for (int policy = 0; policy < 2; policy++) {
		struct cache_recorder *recorder =
			open_quiet(*state, TW_HOUR, policy ? TW_POLICY_S3FIFO : TW_POLICY_LRU);

		set_numbers(recorder->cache, 5000);
		assert_int_equal(cache_stats(recorder).entries, 5000);
		assert_status(tw_cache_set_limit(recorder->cache, 300, 0), TW_OK);
		assert_int_equal(cache_stats(recorder).entries, 300);
		set_numbers(recorder->cache, 5000);
		assert_int_equal(cache_stats(recorder).entries, 300);
		assert_status(tw_cache_set_limit(recorder->cache, 0, 0), TW_OK);
		set_numbers(recorder->cache, 5000);
		assert_int_equal(cache_stats(recorder).entries, 5000);
		assert_status(tw_cache_set_limit(recorder->cache, UINT64_MAX, UINT64_MAX), TW_OK);
		set_numbers(recorder->cache, 6000);
		assert_int_equal(cache_stats(recorder).entries, 6000);
		assert_status(tw_cache_set_limit(recorder->cache, 0, 10000), TW_OK);
		assert_true(cache_stats(recorder).bytes <= 10000);
		assert_true(cache_stats(recorder).bytes > 9800);
		assert_status(tw_cache_set_limit(recorder->cache, 10, 10000), TW_OK);
		assert_int_equal(cache_stats(recorder).entries, 10);
		assert_status(tw_cache_set_limit(recorder->cache, 0, 1), TW_OK);
		assert_int_equal(cache_stats(recorder).entries, 0);
		assert_int_equal(cache_stats(recorder).bytes, 0);
		cache_recorder_close(recorder);
	}
}

CACHED(inline_and_threads, cache_without_a_limit_gets_none_later, TW_HOUR)
{
	cache_set_letters(recorder, "ab");
	assert_status(tw_cache_set_limit(recorder->cache, 1, 0), TW_INVALID);
	assert_status(tw_cache_set_limit(recorder->cache, 0, 0), TW_INVALID);
	cache_set_letters(recorder, "cd");
	assert_int_equal(cache_stats(recorder).entries, 4);
}

TEST(inline_and_threads, number_of_shards_follows_from_the_limits)
{
	static const struct tw_cache_options limits[] = {
		{.max_entries = 0},
		{.max_entries = (uint64_t)1 << 40, .max_bytes = (uint64_t)1 << 40},
		/* There are fewer shards if each would have little. */
		{.max_entries = 8 * 512},
		{.max_bytes = 8 * 32768},
		{.max_bytes = 10}};
	static const unsigned masks[] = {63, 63, 7, 7, 0};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct cache_recorder *recorder =
			cache_recorder_open_with(*state, TW_HOUR, limits[i]);

		assert_int_equal(recorder->cache->shard_mask, masks[i]);
		cache_recorder_close(recorder);
	}
}

/* Returns the value as its own weight. */
static uint64_t weigh_by_value(void *context, const void *key, size_t key_size, const void *value,
			       size_t value_size)
{
	uint64_t weight;

	assert_int_equal(value_size, sizeof(weight));
	memcpy(&weight, value, sizeof(weight));
	return weight;
}

TEST(inline_and_threads, value_without_a_weight_is_weighed)
{
	struct cache_recorder *recorder = cache_recorder_open_with(
		*state, TW_HOUR,
		(struct tw_cache_options){.max_bytes = 1000, .weigh = weigh_by_value});
	struct tw_cache *cache = recorder->cache;
	uint64_t weight = 70;
	const struct tw_cache_value heavy = {
		.data = &weight, .size = sizeof(weight), .weight = 500};

	assert_status(tw_cache_set(cache, "copied", 6, &weight, sizeof(weight)), TW_OK);
	assert_status(
		put_adopted(cache, "adopted", 7, &weight, sizeof(weight), 0, NULL, NULL, TW_HOUR),
		TW_OK);
	assert_int_equal(cache_stats(recorder).bytes, 2 * weight);
	assert_status(
		put_adopted(cache, "adopted", 7, &weight, sizeof(weight), 30, NULL, NULL, TW_HOUR),
		TW_OK);
	assert_int_equal(cache_stats(recorder).bytes, weight + 30);
	assert_status(tw_cache_put(cache, "copied", 6, &heavy, TW_CACHE_PUT_SET), TW_OK);
	assert_int_equal(cache_stats(recorder).bytes, 500 + 30);
	/* Nothing weighs nothing. */
	weight = 0;
	assert_status(tw_cache_set(cache, "copied", 6, &weight, sizeof(weight)), TW_OK);
	assert_int_equal(cache_stats(recorder).bytes, 1 + 30);
	cache_recorder_close(recorder);
}

/* Weighs a key, which is a random number, as 1 to 1,024. */
static uint64_t weigh_by_key(void *context, const void *key, size_t key_size, const void *value,
			     size_t value_size)
{
	uint64_t number;

	memcpy(&number, key, key_size);
	return number % 1024 + 1;
}

/* Each shard gains and loses at random with each set, and the errors must not add up. */
TEST(inline_and_threads, shards_keep_their_shares_of_a_limit_by_weight)
{
	enum { SHARDS = 8, SHARE = 200 * 512, SETS = TEST_SHARE_OF(200000) };
	struct cache_recorder *recorder = cache_recorder_open_quiet(
		*state, TW_HOUR,
		(struct tw_cache_options){
			.max_bytes = SHARDS * SHARE, .weigh = weigh_by_key, .shards = SHARDS});
	struct random random = random_from(seed_choose(), 0);

	for (int i = 0; i < SETS; i++) {
		uint64_t key = random_next(&random);

		assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1), TW_OK);
	}
	for (int i = 0; i < SHARDS; i++) {
		assert_true(recorder->cache->shards[i].bytes > SHARE * 9 / 10);
		assert_true(recorder->cache->shards[i].bytes < SHARE * 11 / 10);
	}
	cache_recorder_close(recorder);
}

/* ---- What makes room first ---- */

static void set_between(struct tw_cache *cache, uint64_t first, uint64_t end, tw_duration expire)
{
	for (uint64_t key = first; key < end; key++)
		assert_status(tw_cache_set_with_expire(cache, &key, sizeof(key), &key, sizeof(key),
						       expire),
			      TW_OK);
}

/* These expire within a tick, in which no alarm runs. */
static void expire_before_live_ones(const struct variant *variant, enum tw_cache_policy policy,
				    bool by_weight, tw_duration begin)
{
	enum { LIVE = 200, SHORT = 300 };
	struct tw_cache_options options = {.policy = policy, .shards = 1};
	struct cache_recorder *recorder;
	struct tw_cache_stats stats;

	if (by_weight)
		options.max_bytes = (LIVE + SHORT) * cache_weight(8, 8);
	else
		options.max_entries = LIVE + SHORT;
	recorder = cache_recorder_open_quiet(variant, TW_HOUR, options);
	cache_pass(recorder, begin);
	set_between(recorder->cache, 0, LIVE, TW_HOUR);
	set_between(recorder->cache, LIVE, LIVE + SHORT / 2, INTERVAL / 8);
	set_between(recorder->cache, LIVE + SHORT / 2, LIVE + SHORT, INTERVAL / 4);
	assert_status(tw_advance(recorder->wheel, INTERVAL / 2), TW_OK);
	set_between(recorder->cache, LIVE + SHORT, LIVE + 2 * SHORT, TW_HOUR);
	stats = cache_stats(recorder);
	assert_int_equal(stats.removed[TW_CAUSE_SIZE], 0);
	assert_int_equal(stats.removed[TW_CAUSE_EXPIRED], SHORT);
	/* Now only live entries are left. */
	set_between(recorder->cache, LIVE + 2 * SHORT, LIVE + 2 * SHORT + 10, TW_HOUR);
	assert_int_equal(cache_stats(recorder).removed[TW_CAUSE_SIZE], 10);
	cache_pass(recorder, 2 * INTERVAL);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, expired_entries_make_room_before_live_ones)
{
	for (int i = 0; i < 8; i++)
		expire_before_live_ones(*state, i % 2 ? TW_POLICY_LRU : TW_POLICY_S3FIFO, i & 2,
					i & 4 ? 1000 * INTERVAL : INTERVAL);
}

/* Such an entry's lifetime ends during the check of due entries. */
CACHED_QUIET(inline_and_threads, entry_of_a_moment_may_come_where_others_expire, TW_HOUR,
	     .max_entries = 64, .shards = 1)
{
	cache_pass(recorder, 1000 * INTERVAL);
	for (uint64_t round = 0; round < 100; round++) {
		set_between(recorder->cache, 100 * round, 100 * round + 64, INTERVAL / 32 + 1);
		assert_status(tw_advance(recorder->wheel, INTERVAL / 16), TW_OK);
		set_between(recorder->cache, 100 * round, 100 * round + 99, INTERVAL / 32 + 1);
		assert_true(cache_stats(recorder).entries <= 64);
	}
	cache_pass(recorder, 2 * INTERVAL);
	assert_int_equal(cache_stats(recorder).entries, 0);
}

/* ---- Absences ---- */

static enum tw_status find_nothing(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	++*(unsigned *)argument;
	return TW_NOT_FOUND;
}

/* Takes keys that the source does not have. Returns the number of loads. */
static unsigned take_nothing(struct tw_cache *cache, uint64_t first, uint64_t end)
{
	const struct tw_cache_entry *entry;
	unsigned loads = 0;

	for (uint64_t key = first; key < end; key++)
		assert_status(tw_cache_take(cache, &key, sizeof(key), find_nothing, &loads,
					    TW_FOREVER, &entry),
			      TW_NOT_FOUND);
	return loads;
}

static unsigned count_values(struct tw_cache *cache, uint64_t first, uint64_t end)
{
	unsigned values = 0;

	for (uint64_t key = first; key < end; key++)
		values += tw_cache_get(cache, &key, sizeof(key), NULL, 0, NULL) == TW_TRUNCATED;
	return values;
}

/* Each key is absent and taken once: the small queue is the defence. Under LRU no value stays. */
TEST(inline, values_in_use_stay_in_a_flood_of_absences)
{
	enum { ROOM = 1000, VALUES = 900, ABSENCES = 100000, NOWHERE = 1 << 30 };

	for (int kind = 0; kind < 4; kind++) {
		bool is_lru = kind & 1;
		struct tw_cache_options options = {.policy = is_lru ? TW_POLICY_LRU
								    : TW_POLICY_S3FIFO,
						   .negative_expire = TW_HOUR};
		struct cache_recorder *recorder;

		if (kind & 2)
			options.max_bytes = ROOM * cache_weight(8, 8);
		else
			options.max_entries = ROOM;
		recorder = cache_recorder_open_quiet(*state, 2 * TW_HOUR, options);
		set_between(recorder->cache, 0, VALUES, TW_HOUR);
		assert_int_equal(count_values(recorder->cache, 0, VALUES), VALUES);
		assert_int_equal(take_nothing(recorder->cache, NOWHERE, NOWHERE + ABSENCES),
				 ABSENCES);
		assert_in_range(count_values(recorder->cache, 0, VALUES), is_lru ? 0 : 700,
				is_lru ? 0 : VALUES);
		cache_recorder_close(recorder);
	}
}
