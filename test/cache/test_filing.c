/* SPDX-License-Identifier: MIT */
/*
 * A shard files when its keys expire: it keeps about twice as many filings as needed at most, and
 * each entry is removed in the tick of its deadline, whatever happened to its key.
 */
#include "support/test.h"

#include "support/cache_check.h"
#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/stats.h"

#include "cache/cache.h" /* for counting filings */

enum { KEYS = 3000, ROUNDS = TEST_SHARE_OF(400), CHANGES = 500, SPARE = 64 };

static struct cache_recorder *open_one_shard(const struct variant *variant, tw_duration idle,
					     double jitter)
{
	return cache_recorder_open_quiet(
		variant, 1000 * INTERVAL,
		(struct tw_cache_options){.shards = 1, .idle = idle, .jitter = jitter});
}

static size_t filed(const struct cache_recorder *recorder)
{
	return recorder->cache->shards[0].expiry.count;
}

/* A change drops what one block has, which may be nothing: then the next change goes on. */
static void assert_little_is_filed(const struct cache_recorder *recorder)
{
	size_t count = recorder->cache->shards[0].table->count;

	assert_in_range(filed(recorder), 0, 2 * count + count / EXPIRY_BLOCK_MOST + 2 * SPARE);
}

CACHED_BY(inline, removed_keys_leave_little_behind, open_one_shard(*state, 0, -1))
{
	struct tw_cache *cache = recorder->cache;

	for (int key = 0; key < 20 * KEYS; key++) {
		int old = key - KEYS;

		assert_status(tw_cache_set(cache, &key, sizeof(key), "v", 1), TW_OK);
		if (old >= 0)
			assert_status(tw_cache_delete(cache, &old, sizeof(old)), TW_OK);
		assert_little_is_filed(recorder);
	}
	assert_int_equal(cache_stats(recorder).entries, KEYS);
	assert_status(tw_cache_clear(cache), TW_OK);
	assert_little_is_filed(recorder);
}

/* The filings of the key are all at one place, where one of them is wanted. */
CACHED_BY(inline_and_threads, key_that_comes_and_goes_among_others_leaves_little_behind,
	  open_one_shard(*state, 0, -1))
{
	enum { OTHERS = 50 };

	for (int key = 0; key < OTHERS; key++)
		assert_status(tw_cache_set_with_expire(recorder->cache, &key, sizeof(key), "v", 1,
						       (key % 5 + 1) * 100 * INTERVAL),
			      TW_OK);
	for (int i = 0; i < KEYS; i++) {
		cache_set_for(recorder, "key", "value", 500 * INTERVAL);
		assert_little_is_filed(recorder);
		assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	}
	cache_set_for(recorder, "key", "value", 500 * INTERVAL);
	cache_check(recorder->cache);
	for (int left = OTHERS; left > 0; left -= OTHERS / 5) {
		cache_pass(recorder, 100 * INTERVAL - 1);
		assert_int_equal(cache_stats(recorder).entries, left + 1);
		cache_pass(recorder, 1);
	}
	assert_int_equal(cache_stats(recorder).entries, 0);
	assert_int_equal(filed(recorder), 0);
}

/* With jitter each deadline that is the earliest so far may be filed, others not. */
CACHED_BY(inline, key_that_is_set_again_and_again_is_filed_seldom, open_one_shard(*state, 0, 0.05))
{
	for (int i = 0; i < 10000; i++)
		cache_set(recorder, "key", "value");
	assert_true(filed(recorder) <= 10);
}

CACHED_BY(inline_and_threads, lookups_and_later_deadlines_file_nothing,
	  open_one_shard(*state, 50 * INTERVAL, -1))
{
	struct tw_cache *cache = recorder->cache;

	cache_set(recorder, "key", "value");
	for (int i = 0; i < 200; i++) {
		assert_holds(recorder, "key", "value");
		assert_status(touch_key(cache, "key", 3, (1000 + i) * INTERVAL), TW_OK);
		cache_set_for(recorder, "key", "value", (2000 + i) * INTERVAL);
		assert_int_equal(filed(recorder), 1);
		cache_pass(recorder, INTERVAL / 2);
	}
}

struct world {
	struct cache_recorder *recorder;
	struct random random;
	tw_duration deadlines[KEYS]; /* 0 if the key has no entry */
};

static tw_duration random_lifetime(struct world *world)
{
	static const int64_t ticks[] = {3, 40, 1500, 50000};

	return random_between(&world->random, 1, ticks[random_below(&world->random, 4)] * INTERVAL);
}

static void change_one(struct world *world)
{
	struct tw_cache *cache = world->recorder->cache;
	int key = (int)random_below(&world->random, KEYS);
	tw_duration now = tw_now(world->recorder->wheel);
	tw_duration lifetime = random_lifetime(world);
	bool is_there = world->deadlines[key] > now;
	enum tw_status status = is_there ? TW_OK : TW_NOT_FOUND;

	switch (random_below(&world->random, 8)) {
	case 0:
	case 1:
		assert_status(tw_cache_delete(cache, &key, sizeof(key)), status);
		world->deadlines[key] = 0;
		break;
	case 2:
		assert_status(touch_key(cache, &key, sizeof(key), lifetime), status);
		if (is_there)
			world->deadlines[key] = now + lifetime;
		break;
	case 3:
		assert_status(
			tw_cache_set_with_expire(cache, &key, sizeof(key), "v", 1, TW_FOREVER),
			TW_OK);
		world->deadlines[key] = TW_FOREVER;
		break;
	default:
		assert_status(tw_cache_set_with_expire(cache, &key, sizeof(key), "v", 1, lifetime),
			      TW_OK);
		world->deadlines[key] = now + lifetime;
	}
}

/* Checks without any lookup that exactly the expired entries are gone. */
static void assert_only_live_are_left(struct world *world)
{
	tw_duration now = tw_now(world->recorder->wheel);
	/* A deadline between two ticks counts for the second; a lookup may remove it earlier. */
	tw_duration tick = now / INTERVAL * INTERVAL;
	size_t entries = cache_stats(world->recorder).entries;
	size_t least = 0;
	size_t most = 0;

	for (int key = 0; key < KEYS; key++) {
		least += world->deadlines[key] > now;
		most += world->deadlines[key] > tick;
	}
	assert_in_range(entries, least, most);
	assert_little_is_filed(world->recorder);
}

TEST(inline_and_threads, entries_leave_in_their_tick)
{
	static const int64_t passes[] = {1, 5, 90, 3000};
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->random = random_from(seed_choose(), 0);
	world->recorder = open_one_shard(*state, 0, -1);
	for (int round = 0; round < ROUNDS; round++) {
		int64_t most = passes[random_below(&world->random, 4)] * INTERVAL;

		for (int i = 0; i < CHANGES; i++)
			change_one(world);
		cache_pass(world->recorder, random_between(&world->random, 1, most));
		assert_only_live_are_left(world);
	}
	cache_recorder_close(world->recorder);
	free(world);
}

/* Keys of one hash come up together, and each leaves by its own deadline. */
CACHED_BY(inline_and_threads, keys_of_one_hash_leave_each_in_its_tick,
	  open_one_shard(*state, 0, -1))
{
	enum { COLLIDING = 40 };
	struct tw_cache *cache = recorder->cache;
	/* See keys_of_one_hash_are_distinguished in test_calls.c. */
	uint64_t key[2] = {cache->shared.seed.words[2], 0};

	for (key[1] = 0; key[1] < COLLIDING; key[1]++)
		assert_status(tw_cache_set_with_expire(cache, key, sizeof(key), "v", 1,
						       (tw_duration)(key[1] * 25 + 1) * INTERVAL),
			      TW_OK);
	for (unsigned left = COLLIDING; left > 0; left--) {
		cache_pass(recorder, left == COLLIDING ? INTERVAL - 1 : 25 * INTERVAL - 1);
		assert_int_equal(cache_stats(recorder).entries, left);
		cache_pass(recorder, 1);
		assert_int_equal(cache_stats(recorder).entries, left - 1);
		assert_true(filed(recorder) <= COLLIDING);
	}
}

/* Microseconds are the shortest ticks to file by, and deadlines after 146 years never come. */
TEST(once, entries_leave_in_centuries_of_microseconds)
{
	enum { DECADES = 14 };
	const tw_duration decade = INT64_C(3652) * 24 * TW_HOUR;
	struct cache_recorder *recorder = cache_recorder_create_with(&levels_inline, TW_MICROSECOND,
								     16, (struct tw_options){0});
	struct tw_cache_options options = cache_recorder_options(recorder);

	options.on_remove = NULL;
	options.shards = 1;
	cache_recorder_start(recorder, TW_HOUR, &options);
	for (int i = 1; i <= DECADES; i++)
		assert_status(tw_cache_set_with_expire(recorder->cache, &i, sizeof(i), "v", 1,
						       i * decade),
			      TW_OK);
	for (int left = DECADES; left > 0; left--) {
		assert_status(tw_advance(recorder->wheel, decade - TW_MICROSECOND), TW_OK);
		assert_int_equal(entries_of(recorder->cache), left);
		assert_status(tw_advance(recorder->wheel, TW_MICROSECOND), TW_OK);
		assert_int_equal(entries_of(recorder->cache), left - 1);
	}
	cache_recorder_close(recorder);
}
