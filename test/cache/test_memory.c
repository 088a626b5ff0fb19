/* SPDX-License-Identifier: MIT */
/*
 * Resident memory stays within the bound of max_bytes, whatever sizes are set, and is released with
 * the entries.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/memory.h"

#include "cache/cache.h" /* for running maintenance without a clock */

#include <limits.h>

enum { SIZES = 24, LARGEST = 40000, MIB = 1 << 20 };

static const unsigned char bytes[LARGEST];

/* Returns the header's bound. */
static long allowed(uint64_t max_bytes)
{
	return (long)(max_bytes + max_bytes / 4) + 4L * MIB;
}

static struct tw_cache *open_limited(uint64_t max_bytes, enum tw_cache_policy policy,
				     tw_duration idle)
{
	struct tw_cache_options options = {.max_bytes = max_bytes, .policy = policy, .idle = idle};
	struct tw_cache *cache;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	return cache;
}

static void set_number(struct tw_cache *cache, uint64_t number, size_t size)
{
	uint64_t key[2] = {number, 0};

	assert_status(tw_cache_set(cache, key, sizeof(key), bytes, size), TW_OK);
}

static size_t random_size(struct random *random)
{
	return random_below(random, (uint64_t)64 << random_below(random, 9));
}

/* Fills the cache twice with values of one size, or of random ones (0), and checks throughout. */
static void fill_twice(struct tw_cache *cache, struct random *random, uint64_t max_bytes,
		       size_t size, long most)
{
	enum { LOOKS = 50 };
	uint64_t sets = 2 * max_bytes / ((size > 0 ? size : 1200) + 100);

	for (uint64_t i = 0; i < sets; i++) {
		set_number(cache, random_next(random), size > 0 ? size : random_size(random));
		if (i % (sets / LOOKS + 1) == 0 && !TEST_HAS_SANITIZER)
			assert_in_range(resident_memory(), 0, most);
	}
}

/* The order has small sizes follow large ones and large ones follow small. */
static void check_sizes(uint64_t max_bytes, enum tw_cache_policy policy, tw_duration idle)
{
	struct random random = random_from(seed_choose(), 0);
	long most = resident_memory() + allowed(max_bytes);
	struct tw_cache *cache = open_limited(max_bytes, policy, idle);
	struct tw_cache_stats stats;

	for (int i = 0; i < SIZES; i++) {
		double size = 40;

		for (int k = 0; k < i * 7 % SIZES; k++)
			size *= 1.33;
		fill_twice(cache, &random, max_bytes, (size_t)size, most);
	}
	for (int i = 0; i < SIZES; i++)
		fill_twice(cache, &random, max_bytes, 200 + 23 * (size_t)i, most);
	fill_twice(cache, &random, max_bytes, 0, most);
	assert_status(tw_cache_get_stats(cache, &stats), TW_OK);
	assert_true(stats.bytes <= max_bytes && stats.bytes > max_bytes / 2);
	assert_true(stats.removed[TW_CAUSE_SIZE] > stats.entries);
	tw_cache_destroy(cache);
}

TEST(once, memory_is_bounded_whatever_sizes_come_and_go)
{
	check_sizes(TEST_SHARE_OF(8 * MIB), TW_POLICY_LRU, 0);
	check_sizes(TEST_SHARE_OF(8 * MIB), TW_POLICY_S3FIFO, 0);
	check_sizes(MIB, TW_POLICY_LRU, TW_MINUTE);
}

/* Under a sanitizer the limit may never be reached: only other threads' work is awaited. */
static void wait_until_resident(long most)
{
	const struct timespec while_looking = {0, 20000000};

	for (int i = 0; i < (TEST_HAS_SANITIZER ? 100 : 1500) && resident_memory() > most; i++)
		nanosleep(&while_looking, NULL);
	if (!TEST_HAS_SANITIZER)
		assert_in_range(resident_memory(), 0, most);
}

/* The cache's own wheel does it, without a call. One entry in twenty stays, some on each page. */
TEST(once, memory_comes_back_after_most_has_expired)
{
	enum { KEYS = TEST_SHARE_OF(200000), KEPT_EVERY = 20, VALUE = 200 };
	const long entry = 48 + 16 + VALUE + 40;
	long before = resident_memory();
	struct tw_cache_options options = {.jitter = -1};
	struct tw_cache *cache;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	for (uint64_t i = 0; i < KEYS; i++) {
		uint64_t key[2] = {i, 0};
		tw_duration expire = i % KEPT_EVERY == 0 ? TW_HOUR : TW_SECOND;

		assert_status(
			tw_cache_set_with_expire(cache, key, sizeof(key), bytes, VALUE, expire),
			TW_OK);
	}
	wait_until_resident(before + entry * (KEYS / KEPT_EVERY) * 5 / 4 + 8L * MIB);
	for (uint64_t i = 0; i < KEYS; i += KEPT_EVERY) {
		uint64_t key[2] = {i, 0};
		tw_duration now = tw_now(cache->shared.wheel);
		const struct tw_cache_entry *kept;

		assert_status(tw_cache_acquire(cache, key, sizeof(key), 0, &kept), TW_OK);
		assert_true(tw_cache_entry_deadline(kept) > now);
		assert_true(tw_cache_entry_deadline(kept) <= now + TW_HOUR);
		tw_cache_entry_release(kept);
	}
	tw_cache_destroy(cache);
}

static struct tw_cache_stats stats_of(struct tw_cache *cache)
{
	struct tw_cache_stats stats;

	assert_status(tw_cache_get_stats(cache, &stats), TW_OK);
	return stats;
}

static void ignore(void *context, const struct tw_task *task)
{
}

enum { DRAINED = TEST_SHARE_OF(100000), DRAIN_TICKS = 40, DRAIN_VALUE = 200 };

/* A tenth of the entries is removed in each tick. */
static struct tw_cache *open_drained(struct tw_wheel *wheel)
{
	struct random random = random_from(seed_choose(), 0);
	struct tw_cache_options options = {.wheel = wheel, .jitter = -1};
	struct tw_cache *cache;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	for (uint64_t i = 0; i < DRAINED; i++) {
		uint64_t key[2] = {i, 0};
		tw_duration expire = TW_SECOND;

		while (!random_once_in(&random, 10))
			expire += TW_SECOND;
		assert_status(tw_cache_set_with_expire(cache, key, sizeof(key), bytes, DRAIN_VALUE,
						       expire),
			      TW_OK);
	}
	return cache;
}

static const struct tw_cache_entry *address_of(struct tw_cache *cache, uint64_t number)
{
	uint64_t key[2] = {number, 0};
	const struct tw_cache_entry *entry;

	if (tw_cache_acquire(cache, key, sizeof(key), TW_CACHE_NO_USE, &entry) != TW_OK)
		return NULL;
	tw_cache_entry_release(entry);
	return entry;
}

static unsigned count_moved(struct tw_cache *cache, const struct tw_cache_entry **addresses)
{
	unsigned moved = 0;

	for (uint64_t i = 0; i < DRAINED; i++) {
		const struct tw_cache_entry *entry = address_of(cache, i);

		moved += entry && entry != addresses[i];
	}
	return moved;
}

TEST(once, entries_that_leave_one_after_the_other_are_moved_in_time)
{
	enum { STAYS = 4, DRAINS = 8 };
	static const struct tw_cache_entry *addresses[DRAINED];
	static uint64_t used[DRAIN_TICKS];
	struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct tw_wheel *wheel;
	struct tw_cache *cache;

	assert_status(tw_create(&wheel, TW_SECOND, 60, ignore, &options), TW_OK);
	cache = open_drained(wheel);
	for (uint64_t i = 0; i < DRAINED; i++)
		addresses[i] = address_of(cache, i);
	for (int tick = 0; tick < DRAIN_TICKS; tick++) {
		used[tick] = stats_of(cache).memory_in_use;
		if (tick == STAYS)
			assert_int_equal(count_moved(cache, addresses), 0);
		/* In one run of nine all necessary moves are done a tick after the removal. */
		if (tick > DRAINS + 2)
			assert_in_range(stats_of(cache).memory, 0,
					used[tick - DRAINS - 2] * 5 / 4 + 2 * MIB);
		assert_status(tw_advance(wheel, TW_SECOND), TW_OK);
	}
	assert_true(count_moved(cache, addresses) > 0);
	tw_cache_destroy(cache);
	tw_destroy(wheel);
}

/* Checks values of that size, or of any (0). */
static void check_return(enum tw_cache_policy policy, size_t size)
{
	const uint64_t most = TEST_SHARE_OF(64) * (uint64_t)MIB;
	struct random random = random_from(seed_choose(), 0);
	long before = resident_memory();
	struct tw_cache *cache = open_limited(most, policy, 0);

	fill_twice(cache, &random, most, size, before + allowed(most));
	assert_status(tw_cache_set_limit(cache, 0, most / 16), TW_OK);
	wait_until_resident(before + allowed(most / 16));
	assert_status(tw_cache_clear(cache), TW_OK);
	wait_until_resident(before + allowed(0));
	WAIT_UNTIL(stats_of(cache).memory_in_use < MIB / 4);
	tw_cache_destroy(cache);
}

TEST(once, memory_comes_back_after_a_lower_limit_and_a_clear)
{
	check_return(TW_POLICY_LRU, 0);
	/* The cache remembers all these keys. */
	check_return(TW_POLICY_S3FIFO, 40);
}

static void count_freed(void *value, size_t value_size, void *context)
{
	atomic_int *freed = context;

	/* relaxed: a count */
	atomic_fetch_add_explicit(freed, 1, memory_order_relaxed);
}

/* An adopted value has one entry that frees it, so the entry is not copied: it stays even on a
 * nearly empty page, while its neighbours are moved. */
TEST(once, adopted_values_stay_where_pages_are_emptied)
{
	enum { KEYS = 40000, KEPT_EVERY = 20, ADOPTED_EVERY = 2000, VALUE = 200 };
	/* This makes it as large as its neighbours. */
	const size_t key_size = 16 + VALUE - sizeof(struct entry_adopted);
	atomic_int freed = 0;
	struct tw_cache_options options = {.jitter = -1};
	struct tw_cache *cache;
	uint64_t full;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	for (uint64_t i = 0; i < KEYS; i++) {
		uint64_t key[(16 + VALUE) / sizeof(uint64_t)] = {i, 0};

		if (i % ADOPTED_EVERY == 0)
			assert_status(put_adopted(cache, key, key_size, &freed, i, 1, count_freed,
						  &freed, TW_HOUR),
				      TW_OK);
		else
			set_number(cache, i, VALUE);
	}
	full = stats_of(cache).memory;
	for (uint64_t i = 0; i < KEYS; i++) {
		uint64_t key[2] = {i, 0};

		if (i % KEPT_EVERY != 0)
			tw_cache_delete(cache, key, sizeof(key));
	}
	assert_status(tw_cache_flush(cache), TW_OK);
	while (cache_compact(cache, MIB, true))
		;
	assert_status(tw_cache_flush(cache), TW_OK);
	assert_true(stats_of(cache).memory < full / 2);
	for (uint64_t i = 0; i < KEYS; i += ADOPTED_EVERY) {
		uint64_t key[(16 + VALUE) / sizeof(uint64_t)] = {i, 0};
		const struct tw_cache_entry *kept;
		size_t size;

		assert_status(tw_cache_acquire(cache, key, key_size, 0, &kept), TW_OK);
		assert_ptr_equal(tw_cache_entry_value(kept, &size), &freed);
		assert_int_equal(size, i);
		tw_cache_entry_release(kept);
	}
	/* relaxed: a count, of this thread's own calls */
	assert_int_equal(atomic_load_explicit(&freed, memory_order_relaxed), 0);
	tw_cache_destroy(cache);
	assert_int_equal(atomic_load_explicit(&freed, memory_order_relaxed), KEYS / ADOPTED_EVERY);
}

TEST(once, statistics_show_where_memory_is)
{
	enum { KEYS = 10000, VALUE = 192 };
	struct tw_cache *cache = open_limited(0, TW_POLICY_LRU, 0);
	const struct tw_cache_entry *entry;
	struct tw_cache_stats stats;
	uint64_t key[2] = {1, 0};

	for (uint64_t i = 0; i < KEYS; i++)
		set_number(cache, i, VALUE);
	assert_status(tw_cache_flush(cache), TW_OK);
	stats = stats_of(cache);
	assert_int_equal(stats.bytes, KEYS * cache_weight(sizeof(key), VALUE));
	assert_true(stats.memory >= stats.memory_in_use);
	assert_true(stats.memory <= stats.memory_in_use + 2 * MIB);
	assert_in_range(stats.memory_in_use, KEYS * (uint64_t)256, stats.bytes);

	assert_status(tw_cache_acquire(cache, key, sizeof(key), 0, &entry), TW_OK);
	assert_status(tw_cache_clear(cache), TW_OK);
	stats = stats_of(cache);
	assert_true(stats.memory_in_use < KEYS * (uint64_t)40);
	tw_cache_entry_release(entry);
	assert_int_equal(stats_of(cache).memory_in_use, stats.memory_in_use - 256);
	tw_cache_destroy(cache);
}

/* There are many more empty pages than before, for nearly nothing is used any more. */
TEST(once, one_cell_that_comes_back_gives_few_pages_back)
{
	enum { CLASS = 15, CELLS = 1 << 18, A_PAGE = 256, MANY = 4 * 65536 };
	struct pool_cell **cells = calloc(CELLS, sizeof(*cells));
	struct pool *pool = pool_create();
	size_t taken = 0;

	(void)state;
	assert_non_null(cells);
	assert_non_null(pool);
	for (size_t i = 0; i < CELLS; i++)
		assert_int_equal(pool_take(pool, CLASS, 1, &cells[i], &taken), 1);
	for (size_t i = 0; i < CELLS; i++)
		if (i < CELLS / 60 || i % A_PAGE != 0)
			pool_give(cells[i]);
	for (size_t i = 0; i < CELLS; i += A_PAGE) {
		uint64_t before = pool->memory;

		if (i < CELLS / 60)
			continue;
		pool_give(cells[i]);
		assert_in_range(before - pool->memory, 0, MANY);
	}
	assert_in_range(pool->empty, 0, 1 << 19);
	pool_close(pool);
	free(cells);
}
