/* SPDX-License-Identifier: MIT */
/*
 * Each limit holds in each unit: the user's weights, empty values, adopted values, absences. After
 * every call the limit holds in the caller's unit, and no more entries are evicted than necessary.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"

enum { PUTS = 500, KEPT = 100 };

/* The user's function returns this. */
static uint64_t answer;

static uint64_t weigh_answer(void *context, const void *key, size_t key_size, const void *value,
			     size_t value_size)
{
	return answer;
}

static enum tw_status load_absence(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	return TW_NOT_FOUND;
}

static enum tw_status load_value(void *size, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	static const char bytes[1000];

	return give_copied(loading, bytes, *(const size_t *)size, 0);
}

enum way { COPIED, LOADED, ADOPTED, ABSENT };

/* A unit is a kind of entry and its weight. */
static const struct unit {
	const char *name;
	enum way way;
	size_t value_size;
	bool is_weighed; /* by the user's function, which returns this: */
	uint64_t answer;
	uint64_t given; /* the weight of an adopted value */
	uint64_t weight;
} units[] = {
	{"empty values", COPIED, 0, false, 0, 0, 104},
	{"values", COPIED, 100, false, 0, 0, 200},
	{"loaded values", LOADED, 100, false, 0, 0, 200},
	{"values that weigh 1", COPIED, 1000, true, 1, 0, 1},
	{"empty values that weigh 1", COPIED, 0, true, 1, 0, 1},
	{"loaded values that weigh 7", LOADED, 1000, true, 7, 0, 7},
	{"values that weigh nothing", COPIED, 1000, true, 0, 0, 1},
	{"values that weigh most", COPIED, 1, true, TW_CACHE_WEIGHT_MAX, 0, TW_CACHE_WEIGHT_MAX},
	{"values that weigh more", COPIED, 1, true, UINT64_MAX, 0, TW_CACHE_WEIGHT_MAX},
	{"adopted values", ADOPTED, 1 << 20, false, 0, 0, (1 << 20) + 136},
	{"adopted values of no bytes", ADOPTED, 0, false, 0, 0, 136},
	{"adopted values with a weight", ADOPTED, 1 << 20, false, 0, 3, 3},
	{"adopted values with a huge weight", ADOPTED, 1, false, 0, UINT64_MAX,
	 TW_CACHE_WEIGHT_MAX},
	{"adopted values that are weighed", ADOPTED, 1 << 20, true, 5, 0, 5},
	{"adopted values with both", ADOPTED, 1 << 20, true, 5, 9, 9},
	{"absences", ABSENT, 0, false, 0, 0, 104},
	{"absences beside weights", ABSENT, 0, true, 1000, 0, 1},
};

enum { UNITS = sizeof(units) / sizeof(units[0]) };

static enum tw_status put(struct tw_cache *cache, const struct unit *unit, uint64_t key)
{
	static char bytes[1 << 20];
	size_t size = unit->value_size;
	const struct tw_cache_entry *entry;
	enum tw_status status;

	switch (unit->way) {
	case COPIED:
		return tw_cache_set(cache, &key, sizeof(key), bytes, size);
	case ADOPTED:
		return put_adopted(cache, &key, sizeof(key), bytes, size, unit->given, NULL, NULL,
				   TW_HOUR);
	default:
		status = tw_cache_take(cache, &key, sizeof(key),
				       unit->way == ABSENT ? load_absence : load_value, &size,
				       TW_FOREVER, &entry);
		tw_cache_entry_release(entry);
		return status;
	}
}

/* Returns the status of an entry that is kept or not. */
static enum tw_status status_if(const struct unit *unit, bool is_kept)
{
	if (unit->way == ABSENT)
		return TW_NOT_FOUND;
	/* A take returns its loaded value in both cases. */
	return is_kept || unit->way == LOADED ? TW_OK : TW_FULL;
}

static struct cache_recorder *open_unit(const struct variant *variant, const struct unit *unit,
					struct tw_cache_options options)
{
	answer = unit->answer;
	options.weigh = unit->is_weighed ? weigh_answer : NULL;
	options.negative_expire = TW_HOUR;
	return cache_recorder_open_with(variant, TW_HOUR, options);
}

static void assert_kept(const struct unit *unit, const struct tw_cache_stats *stats,
			uint64_t entries)
{
	if (stats->entries != entries || stats->bytes != stats->entries * unit->weight)
		fail_msg("%s: %zu entries of %zu in place of %zu", unit->name,
			 (size_t)stats->entries, (size_t)stats->bytes, (size_t)entries);
}

/* Adds five times the limit. Then each new entry evicts one. */
static void check_limit(const struct variant *variant, const struct unit *unit,
			struct tw_cache_options options, uint64_t kept)
{
	struct cache_recorder *recorder = open_unit(variant, unit, options);

	for (uint64_t key = 0; key < PUTS; key++) {
		uint64_t entries = key < kept ? key + 1 : kept;
		struct tw_cache_stats stats;

		assert_status(put(recorder->cache, unit, key), status_if(unit, true));
		stats = cache_stats(recorder);
		assert_kept(unit, &stats, entries);
		assert_int_equal(stats.removed[TW_CAUSE_SIZE], key + 1 - stats.entries);
		assert_int_equal(stats.refused, 0);
	}
	cache_settle(recorder);
	assert_int_equal(removal_count(recorder), unit->way == ABSENT ? 0 : PUTS - kept);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, limit_of_entries_holds_in_each_unit)
{
	for (int i = 0; i < UNITS; i++)
		for (int policy = 0; policy < 2; policy++)
			for (unsigned shards = 1; shards <= 8; shards *= 8)
				check_limit(*state, &units[i],
					    (struct tw_cache_options){
						    .max_entries = KEPT,
						    .policy = (enum tw_cache_policy)policy,
						    .shards = shards},
					    KEPT);
}

TEST(inline_and_threads, limit_by_weight_holds_in_each_unit)
{
	for (int i = 0; i < UNITS; i++)
		for (int policy = 0; policy < 2; policy++)
			for (unsigned shards = 1; shards <= 8; shards *= 8)
				check_limit(*state, &units[i],
					    (struct tw_cache_options){
						    .max_bytes = KEPT * units[i].weight,
						    .policy = (enum tw_cache_policy)policy,
						    .shards = shards},
					    KEPT);
}

TEST(inline_and_threads, limit_below_one_weight_keeps_nothing)
{
	for (int i = 0; i < UNITS; i++) {
		struct cache_recorder *recorder;
		struct tw_cache_stats stats;

		if (units[i].weight < 2)
			continue;
		recorder = open_unit(*state, &units[i],
				     (struct tw_cache_options){.max_bytes = units[i].weight - 1});
		for (uint64_t key = 0; key < KEPT; key++)
			assert_status(put(recorder->cache, &units[i], key),
				      status_if(&units[i], false));
		stats = cache_stats(recorder);
		assert_int_equal(stats.entries, 0);
		assert_int_equal(stats.refused, KEPT);
		assert_int_equal(stats.removed[TW_CAUSE_SIZE], 0);
		cache_recorder_close(recorder);
	}
}

/* Later limits find the same weights. */
TEST(inline_and_threads, limits_that_are_lowered_hold_in_each_unit)
{
	for (int i = 0; i < UNITS; i++) {
		struct cache_recorder *recorder =
			open_unit(*state, &units[i],
				  (struct tw_cache_options){.max_entries = PUTS, .shards = 4});
		uint64_t weight = units[i].weight;
		struct tw_cache_stats stats;

		for (uint64_t key = 0; key < PUTS; key++)
			(void)put(recorder->cache, &units[i], key);
		assert_int_equal(cache_stats(recorder).bytes, PUTS * weight);
		assert_status(tw_cache_set_limit(recorder->cache, 0, 2 * KEPT * weight), TW_OK);
		stats = cache_stats(recorder);
		assert_kept(&units[i], &stats, 2 * KEPT);
		assert_status(tw_cache_set_limit(recorder->cache, KEPT, 0), TW_OK);
		stats = cache_stats(recorder);
		assert_kept(&units[i], &stats, KEPT);
		cache_recorder_close(recorder);
	}
}
