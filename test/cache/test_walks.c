/* SPDX-License-Identifier: MIT */
/*
 * A walk through all entries goes in steps, while another thread sets, replaces and deletes keys,
 * so that tables change their size between two steps.
 */
#include "support/test.h"

#include "support/cache_recorder.h"

enum { STAYING = 500, COMING = 4000, ROUNDS = TEST_SHARE_OF(80) };

struct walks {
	struct tw_cache *cache;
	atomic_int rounds; /* in each of these the table grows and shrinks */
	atomic_bool is_over;
	uint64_t seed;
	int visits[STAYING];
};

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
		atomic_fetch_add(&walks->rounds, 1);
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

CACHED_QUIET(inline, each_meets_what_stays_once, TW_HOUR, .shards = 1)
{
	struct walks walks;
	pthread_t thread = walks_begin(&walks, recorder->cache);

	while (atomic_load(&walks.rounds) < ROUNDS) {
		memset(walks.visits, 0, sizeof(walks.visits));
		assert_status(tw_cache_each(recorder->cache, visit, &walks), TW_OK);
		for (int key = 0; key < STAYING; key++)
			assert_int_equal(walks.visits[key], 1);
	}
	walks_end(&walks, thread);
}
