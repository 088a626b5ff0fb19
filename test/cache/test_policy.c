/* SPDX-License-Identifier: MIT */
/*
 * A model of the policy chooses which entry is evicted, and no more are evicted than the limits
 * demand.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"

#include "cache/cache.h" /* for reading the uses */

static struct cache_recorder *open_limited(const struct variant *variant,
					   enum tw_cache_policy policy, uint64_t max_entries,
					   uint64_t max_bytes)
{
	return cache_recorder_open_with(variant, TW_HOUR,
					(struct tw_cache_options){.policy = policy,
								  .max_entries = max_entries,
								  .max_bytes = max_bytes,
								  .shards = 1});
}

CACHE_SCRIPT(inline_and_threads, every_kind_of_use_keeps_an_entry, TW_HOUR,
	     "letters abc;"
	     "{get a|acquire a|many a|take a|touch a 1h|set a a|replace a a 1h} = any;"
	     "letters de; get b = NOT_FOUND; get c = NOT_FOUND; get a = a",
	     .policy = TW_POLICY_LRU, .max_entries = 3, .shards = 1)

CACHE_SCRIPT(inline_and_threads, visits_and_failures_are_no_use, TW_HOUR,
	     "letters abc; each = a b c; set a a 0 = INVALID; get none = NOT_FOUND; set d d;"
	     "get a = NOT_FOUND",
	     .policy = TW_POLICY_LRU, .max_entries = 3, .shards = 1)

/* Such lookups have a path of their own. */
#define LOOK "get 'key of a' = a; get 'key of b' = b;"
#define USUAL                                                             \
	"set 'key of a' a; set 'key of b' b; set 'key of c' c;" LOOK LOOK \
	"set 'key of d' d; get 'key of c' = NOT_FOUND;" LOOK
CACHE_SCRIPT(inline_and_threads, gets_of_usual_keys_are_uses_by_lru, TW_HOUR, USUAL,
	     .policy = TW_POLICY_LRU, .max_entries = 3, .shards = 1)
CACHE_SCRIPT(inline_and_threads, gets_of_usual_keys_are_uses_by_s3fifo, TW_HOUR, USUAL,
	     .policy = TW_POLICY_S3FIFO, .max_entries = 3, .shards = 1)

/* An eviction examines only some entries: the others keep their uses. */
TEST(inline, eviction_is_short_where_all_is_used)
{
	enum { KEYS = 1000, LOOKS = 512, USES = 3 };
	struct cache_recorder *recorder = open_limited(*state, TW_POLICY_S3FIFO, KEYS, 0);
	struct shard *shard = &recorder->cache->shards[0];
	struct tw_cache_entry *entry;
	int changed = 0;

	for (int key = 0; key <= KEYS; key++) {
		assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1), TW_OK);
		for (int use = 0; use < USES && key < KEYS; use++)
			assert_status(
				tw_cache_get(recorder->cache, &key, sizeof(key), NULL, 0, NULL),
				TW_TRUNCATED);
	}
	assert_int_equal(cache_stats(recorder).entries, KEYS);
	for (size_t i = 0; i <= shard->table->mask; i++)
		for (int k = 0; k < BUCKET_SLOTS; k++) {
			entry = slot_entry(slot_load(&shard->table->buckets[i].slots[k]));
			changed += entry && atomic_load(&entry->uses) != USES;
		}
	assert_in_range(changed, 1, LOOKS + 1);
	cache_recorder_close(recorder);
}

/* All entries of the main queue were evicted meanwhile. */
CACHED_BY(inline, eviction_that_may_look_no_more_takes_a_key_that_was_used_once,
	  open_limited(*state, TW_POLICY_S3FIFO, 10, 0))
{
	struct shard *shard = &recorder->cache->shards[0];
	unsigned looks = 0;
	const struct tw_cache_entry *victim;

	cache_set_letters(recorder, "ab");
	victim = policy_victim(&shard->policy, true, NULL, &looks);
	assert_value(victim, "a");
	assert_int_equal(looks, 0);
}

static uint64_t weigh_by_first_byte(void *context, const void *key, size_t key_size,
				    const void *value, size_t value_size)
{
	return value_size > 0 ? *(const unsigned char *)value : 0;
}

enum { MODEL_LIMIT = 100, MODEL_KEYS = 300 };

enum place { GONE, SMALL, MAIN, PLACES };

/* The model has the policies in their simplest form: the entries of a queue are marked with it, and
 * its first entry has the least order. */
struct model {
	struct tw_cache *cache;
	bool is_lru;
	bool by_weight;
	bool was_full;
	double share;
	double flow;
	struct model_key {
		enum place place;
		unsigned uses;
		uint64_t order;
	} keys[MODEL_KEYS];
	uint64_t time;
	/* These are the sizes of the queues. */
	size_t counts[PLACES];
	size_t weights[PLACES];
	struct ghost ghost;
};

static unsigned char model_weight(const struct model *model, int key)
{
	return model->by_weight ? (unsigned char)(1 + key % 7) : 1;
}

static uint32_t model_hash(const struct model *model, int key)
{
	return (uint32_t)key_hash_wide(&model->cache->shared.seed, &key, sizeof(key));
}

static void model_put(struct model *model, int key, enum place place)
{
	struct model_key *of = &model->keys[key];

	model->counts[of->place]--;
	model->weights[of->place] -= model_weight(model, key);
	of->place = place;
	of->order = ++model->time;
	model->counts[place]++;
	model->weights[place] += model_weight(model, key);
}

static int model_first(const struct model *model, enum place place)
{
	int first = -1;

	for (int key = 0; key < MODEL_KEYS; key++)
		if (model->keys[key].place == place &&
		    (first < 0 || model->keys[key].order < model->keys[first].order))
			first = key;
	return first;
}

static int model_victim(struct model *model)
{
	for (;;) {
		double small = (double)model->weights[SMALL];
		double all = (double)(model->weights[SMALL] + model->weights[MAIN]);
		enum place place = model->counts[MAIN] == 0 || (model->counts[SMALL] > 0 &&
								small >= model->share * all)
					   ? SMALL
					   : MAIN;
		int key = model_first(model, place);
		unsigned uses = model->keys[key].uses;

		if (uses < (place == SMALL ? 2 : 1))
			return key;
		model->keys[key].uses = place == SMALL ? 0 : uses - 1;
		model_put(model, key, MAIN);
	}
}

static void model_evict(struct model *model)
{
	int key = model_victim(model);
	double all = (double)(model->counts[SMALL] + model->counts[MAIN] + 1);
	bool was_main = model->keys[key].place == MAIN;

	model->was_full = true;
	if (!model->is_lru) {
		model->flow += ((was_main ? 0 : 1) - model->flow) / all;
		ghost_reserve(&model->ghost, (size_t)all);
		ghost_add(&model->ghost, model_hash(model, key), was_main);
	}
	model_put(model, key, GONE);
}

static double at_least_one(double ratio)
{
	return ratio > 1 ? ratio : 1;
}

/* Returns the queue of a new key. */
static enum place model_learn(struct model *model, int key)
{
	double all = (double)(model->counts[SMALL] + model->counts[MAIN] + 1);
	double flow = model->flow;
	struct ghost_memory memory;

	if (model->is_lru || !model->was_full)
		return MAIN;
	if (!ghost_take(&model->ghost, model_hash(model, key), (size_t)all, &memory))
		return SMALL;
	if (memory.was_main)
		model->share -= at_least_one(flow / (1 - flow)) / 2 / all;
	else if ((double)(memory.age + model->counts[SMALL]) <= 0.9 * all)
		model->share += at_least_one((1 - flow) / flow) / 2 / all;
	if (model->share < 0.05)
		model->share = 0.05;
	if (model->share > 0.9)
		model->share = 0.9;
	return memory.was_main ? SMALL : MAIN;
}

static void model_set(struct model *model, int key)
{
	struct model_key *of = &model->keys[key];

	if (of->place != GONE) {
		of->uses += of->uses < 3;
		return;
	}
	while (model->weights[SMALL] + model->weights[MAIN] + model_weight(model, key) >
	       MODEL_LIMIT)
		model_evict(model);
	of->uses = 0;
	model_put(model, key, model_learn(model, key));
}

static void step(struct model *model, struct random *random, int scan)
{
	/* Small keys are more popular. */
	int key = (int)random_below(random, random_below(random, MODEL_KEYS) + 1);
	struct model_key *of;
	unsigned char weight;

	if (scan >= 0)
		key = scan;
	of = &model->keys[key];
	weight = model_weight(model, key);
	switch (random_below(random, 10)) {
	case 0:
		assert_status(tw_cache_delete(model->cache, &key, sizeof(key)),
			      of->place != GONE ? TW_OK : TW_NOT_FOUND);
		if (of->place != GONE)
			model_put(model, key, GONE);
		break;
	case 1:
	case 2:
	case 3:
		assert_status(tw_cache_set(model->cache, &key, sizeof(key), &weight, 1), TW_OK);
		model_set(model, key);
		break;
	default:
		assert_status(tw_cache_get(model->cache, &key, sizeof(key), NULL, 0, NULL),
			      of->place != GONE ? TW_TRUNCATED : TW_NOT_FOUND);
		of->uses += of->place != GONE && of->uses < 3;
	}
}

/* Every fourth thousand of steps is a loop over all keys. */
TEST(inline, policies_do_what_a_model_of_them_does)
{
	uint64_t seed = seed_choose();

	for (int round = 0; round < 4; round++) {
		struct tw_cache_options options = {.policy = round % 2 ? TW_POLICY_LRU
								       : TW_POLICY_S3FIFO,
						   .max_entries = round < 2 ? MODEL_LIMIT : 0,
						   .max_bytes = round < 2 ? 0 : MODEL_LIMIT,
						   .weigh = weigh_by_first_byte,
						   .shards = 1};
		struct cache_recorder *recorder =
			cache_recorder_open_with(*state, TW_HOUR, options);
		struct random random = random_from(seed, (uint64_t)round);
		struct model model = {.cache = recorder->cache,
				      .is_lru = round % 2,
				      .by_weight = round >= 2,
				      .share = 0.1,
				      .flow = 0.5};

		ghost_init(&model.ghost);
		for (int i = 0; i < TEST_SHARE_OF(50000); i++)
			step(&model, &random, i / 1000 % 4 == 3 ? i % MODEL_KEYS : -1);
		assert_int_equal(cache_stats(recorder).entries,
				 model.counts[SMALL] + model.counts[MAIN]);
		assert_true(cache_stats(recorder).removed[TW_CAUSE_SIZE] > 100);
		ghost_forget(&model.ghost);
		cache_recorder_close(recorder);
	}
}

static double hits_in_hundred(struct cache_recorder *recorder, uint64_t seed, bool with_scans)
{
	struct random random = random_from(seed, 1);
	uint64_t once = 1000000;
	int hits = 0;

	for (int i = 0; i < 50000; i++) {
		uint64_t key = random_below(&random, random_below(&random, 3000) + 1);

		key = random_below(&random, key + 1);
		if (with_scans && random_once_in(&random, 3))
			key = once++;
		if (tw_cache_get(recorder->cache, &key, sizeof(key), NULL, 0, NULL) == TW_TRUNCATED)
			hits++;
		else
			assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1),
				      TW_OK);
	}
	return hits / 500.0;
}

TEST(inline, s3fifo_hits_more_often_than_lru_on_skewed_keys_and_scans)
{
	uint64_t seed = seed_choose();

	for (int with_scans = 0; with_scans < 2; with_scans++) {
		struct cache_recorder *lru = open_limited(*state, TW_POLICY_LRU, 200, 0);
		struct cache_recorder *s3fifo = open_limited(*state, TW_POLICY_S3FIFO, 200, 0);
		double lru_hits = hits_in_hundred(lru, seed, with_scans);
		double s3fifo_hits = hits_in_hundred(s3fifo, seed, with_scans);

		print_message("%s scans: LRU %.1f, S3-FIFO %.1f of a hundred\n",
			      with_scans ? "with" : "without", lru_hits, s3fifo_hits);
		assert_true(s3fifo_hits > lru_hits + 1);
		cache_recorder_close(lru);
		cache_recorder_close(s3fifo);
	}
}

/* The cache remembers evicted keys, at most its number of entries. */
TEST(inline_and_threads, memory_of_the_evicted_shrinks_with_the_limit)
{
	enum { MANY = 50000, FEW = 500 };
	struct cache_recorder *recorder = open_limited(*state, TW_POLICY_S3FIFO, MANY, 0);

	for (int i = 0; i < MANY + 1000; i++)
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "v", 1), TW_OK);
	assert_status(tw_cache_set_limit(recorder->cache, FEW, 0), TW_OK);
	for (int i = 0; i < 2 * FEW; i++)
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "v", 1), TW_OK);
	cache_settle(recorder);
	assert_in_range(cache_stats(recorder).memory_in_use, FEW * 64, FEW * 200);
	cache_recorder_close(recorder);
}

CACHED(inline_and_threads, value_as_heavy_as_the_limit_fits_alone, TW_HOUR, .max_bytes = 100,
       .weigh = weigh_by_first_byte)
{
	assert_status(tw_cache_set(recorder->cache, "one", 3, "\1", 1), TW_OK);
	assert_status(tw_cache_set(recorder->cache, "heavy", 5, "\144", 1), TW_OK);
	assert_int_equal(cache_stats(recorder).bytes, 100);
	assert_holds_none(recorder, "one");
	assert_status(tw_cache_set(recorder->cache, "heavier", 7, "\145", 1), TW_FULL);
	assert_int_equal(cache_stats(recorder).bytes, 100);
}

CACHED_BY(inline_and_threads, value_too_heavy_is_refused_and_leaves_the_old_one,
	  open_limited(*state, TW_POLICY_LRU, 0, 216))
{
	static const char too_heavy[150];
	static const char just_light[100];

	cache_set(recorder, "key", "value");
	cache_set(recorder, "other", "value");
	assert_status(tw_cache_set(recorder->cache, "key", 3, too_heavy, 150), TW_FULL);
	assert_status(put_added(recorder->cache, "new", 3, too_heavy, 150, 1), TW_FULL);
	assert_status(put_replaced(recorder->cache, "key", 3, too_heavy, 150, 1), TW_FULL);
	assert_holds(recorder, "key", "value");
	assert_holds(recorder, "other", "value");
	assert_int_equal(cache_stats(recorder).bytes, 2 * cache_weight(3, 5));
	assert_status(tw_cache_set(recorder->cache, "key", 3, just_light, 100), TW_OK);
	assert_status(cache_get(recorder, "key"), TW_OK);
	assert_holds_none(recorder, "other");
	assert_int_equal(cache_stats(recorder).bytes, cache_weight(3, 100));
	cache_settle(recorder);
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_REPLACED), 1);
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_SIZE), 1);
}

struct setter {
	pthread_t thread;
	struct tw_cache *cache;
	uint64_t first;
};

static void *setter_run(void *argument)
{
	struct setter *setter = argument;

	for (uint64_t i = 0; i < TEST_SHARE_OF(50000); i++) {
		uint64_t key = setter->first + i;

		if (tw_cache_set(setter->cache, &key, sizeof(key), &key, sizeof(key)) != TW_OK)
			abort();
	}
	return NULL;
}

CACHED_QUIET(inline_and_threads, limit_holds_for_all_shards_together, TW_HOUR, .max_entries = 777,
	     .shards = 64)
{
	enum { SETTERS = 4 };
	struct setter setters[SETTERS];
	struct tw_cache_stats stats;

	for (uint64_t i = 0; i < SETTERS; i++) {
		setters[i] = (struct setter){.cache = recorder->cache, .first = i << 32};
		assert_int_equal(pthread_create(&setters[i].thread, NULL, setter_run, &setters[i]),
				 0);
	}
	for (int i = 0; i < SETTERS; i++)
		pthread_join(setters[i].thread, NULL);
	stats = cache_stats(recorder);
	assert_true(stats.entries <= 777);
	assert_true(stats.entries > 700);
}

/* LRU and ARC have no hits here: each key is evicted before its next use. */
TEST(inline, s3fifo_keeps_most_of_a_loop_that_does_not_quite_fit)
{
	enum { LIMIT = 1000, KEYS = 1050, ROUNDS = 50 };
	struct cache_recorder *recorder = open_limited(*state, TW_POLICY_S3FIFO, LIMIT, 0);
	int hits = 0;

	for (int i = 0; i < ROUNDS * KEYS; i++) {
		int key = i % KEYS;

		if (tw_cache_get(recorder->cache, &key, sizeof(key), NULL, 0, NULL) == TW_TRUNCATED)
			hits++;
		else
			assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1),
				      TW_OK);
	}
	assert_in_range(hits, ROUNDS * KEYS * 74 / 100, ROUNDS * KEYS);
	cache_recorder_close(recorder);
}

TEST(once, evicted_keys_are_remembered_as_long_as_the_window_is)
{
	enum { COUNT = 1000 };
	struct random random = random_from(seed_choose(), 1);
	struct ghost_memory memory;
	struct ghost ghost;
	uint32_t hashes[2 * COUNT];
	int known = 0;

	ghost_init(&ghost);
	ghost_reserve(&ghost, COUNT);
	for (int i = 0; i < 2 * COUNT; i++) {
		hashes[i] = (uint32_t)random_below(&random, UINT32_MAX);
		ghost_add(&ghost, hashes[i], i % 2);
	}
	for (int i = 0; i < 2 * COUNT; i++) {
		if (!ghost_take(&ghost, hashes[i], COUNT, &memory))
			continue;
		assert_int_equal(memory.age, 2 * COUNT - 1 - i);
		assert_int_equal(memory.was_main, i % 2);
		known++;
		assert_false(ghost_take(&ghost, hashes[i], COUNT, &memory));
	}
	/* Some share a bucket with more than eight others. */
	assert_in_range(known, COUNT * 95 / 100, COUNT);
	ghost_forget(&ghost);
}
