/* SPDX-License-Identifier: MIT */
/*
 * This passes unusual results to the cache: a loader's status of any number, a value of some size
 * without memory, weights of 0. Each has a defined answer, and no call promises an entry that is
 * not there.
 */
#include "support/test.h"

#include "support/cache_script.h"
#include "support/cache_source.h"

enum { LIFE = 1000 * INTERVAL };

/* ---- Loaders and the statuses that they return ---- */

#define PASSES_ON(status)                                                           \
	"source - " status "; take k = " status "; async a k; answered a = " status \
	"; source kept;"                                                            \
	"begin b take k; reached; end " status "; ended b = " status ";"
CACHE_SCRIPT(
	threads, status_of_a_loader_without_a_value_promises_no_entry, LIFE,
	"source - {OK|STALE}; take k = LOAD_FAILED; async a k; answered a = LOAD_FAILED;"
	"source kept; begin b take k; reached; end {OK|STALE}; ended b = LOAD_FAILED;" PASSES_ON(
		"EXISTS") PASSES_ON("FULL") PASSES_ON("TRUNCATED") PASSES_ON("RUNNING")
		PASSES_ON("39") "stale = 0; entries = 0; inserts = 0",
	LOADS)

/* ---- Weights ---- */

static uint64_t weigh_one(void *context, const void *key, size_t key_size, const void *value,
			  size_t value_size)
{
	assert_non_null(value);
	return 1;
}

TEST(inline_and_threads, absence_weighs_one_where_the_caller_weighs)
{
	enum { MOST = 20, VALUES = 18 };
	struct cache_recorder *recorder =
		cache_recorder_open_with(*state, LIFE,
					 (struct tw_cache_options){.max_bytes = MOST,
								   .weigh = weigh_one,
								   .negative_expire = LIFE,
								   .shards = 1});
	struct source source;

	source_open(&source, NULL);
	source.status = TW_NOT_FOUND;
	for (char key = 'a'; key < 'a' + VALUES; key++)
		cache_set(recorder, (char[]){key, 0}, "v");
	assert_not_taken(recorder, "none", &source, TW_NOT_FOUND);
	assert_int_equal(cache_stats(recorder).bytes, VALUES + 1);
	assert_int_equal(removal_count(recorder), 0);
	assert_not_taken(recorder, "none", &source, TW_NOT_FOUND);
	assert_int_equal(source.loads, 1);
	cache_recorder_close(recorder);
}

/* ---- Values that can't be kept ---- */

TEST(threads, reload_that_is_too_heavy_ends_the_old_value)
{
	static char heavy[1000];
	struct source source;
	struct cache_recorder *recorder;

	source_open(&source, "new");
	recorder = cache_recorder_open_with(*state, LIFE,
					    (struct tw_cache_options){.max_bytes = 500,
								      .load = source_load,
								      .load_context = &source,
								      .refresh_after = LIFE / 10});
	memset(heavy, 'h', sizeof(heavy) - 1);
	cache_set(recorder, "key", "old");
	cache_pass(recorder, LIFE / 5);
	source.value = heavy;
	assert_holds(recorder, "key", "old");
	WAIT_UNTIL(cache_stats(recorder).loads_ended == 1);
	assert_holds_none(recorder, "key");
	cache_settle(recorder);
	assert_removed(recorder, "old", TW_CAUSE_EXPLICIT);
	assert_int_equal(cache_stats(recorder).refused, 1);
	assert_status(tw_cache_set(recorder->cache, "key", 3, heavy, sizeof(heavy)), TW_FULL);
	assert_int_equal(cache_stats(recorder).refused, 2);
	cache_recorder_close(recorder);
}
