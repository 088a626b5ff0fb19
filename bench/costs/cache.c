/* SPDX-License-Identifier: MIT */
/*
 * What do the cache's calls cost, with keys of 16 bytes and values of 64?
 *
 * The cache is on a wheel of 1 s and 300 slots, as its own would be, which the program drives. Its
 * clock is the default one, whose coarse variant lookups read; it advances only in expire().
 */
#include "costs.h"

#include <timingwheel/cache.h>

enum { VALUE_SIZE = 64, OTHER_SIZE = 160, MANY = 32, LOADS_MOST = 100000 };

static struct tw_cache *cache;
static char value[OTHER_SIZE];
/* These are the first key and the size of values in the operations below. */
static unsigned first;
static size_t value_size = VALUE_SIZE;
/* load_later() stores its load here. */
static struct tw_cache_loading *kept;

static const void *key_of(unsigned i)
{
	return keys[first + shuffled(i)];
}

/* ---- Operations ---- */

static void set_one(unsigned i)
{
	MUST(tw_cache_set(cache, key_of(i), KEY_SIZE, value, value_size));
}

static void get_one(unsigned i)
{
	char buffer[OTHER_SIZE];
	size_t size;

	MUST(tw_cache_get(cache, key_of(i), KEY_SIZE, buffer, sizeof(buffer), &size));
}

static void get_hot(unsigned i)
{
	char buffer[OTHER_SIZE];
	size_t size;

	MUST(tw_cache_get(cache, keys[shuffled(i) & 15], KEY_SIZE, buffer, sizeof(buffer), &size));
}

static void miss_one(unsigned i)
{
	char buffer[OTHER_SIZE];
	size_t size;

	expect(tw_cache_get(cache, key_of(i), KEY_SIZE, buffer, sizeof(buffer), &size) ==
		       TW_NOT_FOUND,
	       "it is not there");
}

static void acquire_one(unsigned i)
{
	const struct tw_cache_entry *entry;

	MUST(tw_cache_acquire(cache, key_of(i), KEY_SIZE, 0, &entry));
	tw_cache_entry_release(entry);
}

static enum tw_cache_verdict touch(void *context, const struct tw_cache_entry *entry,
				   struct tw_cache_value *lifetime)
{
	(void)context;
	(void)entry;
	lifetime->expire = 60 * TW_SECOND;
	return TW_CACHE_TOUCH;
}

static void touch_one(unsigned i)
{
	MUST(tw_cache_compute(cache, key_of(i), KEY_SIZE, touch, NULL));
}

static void delete_one(unsigned i)
{
	MUST(tw_cache_delete(cache, key_of(i), KEY_SIZE));
}

static enum tw_cache_verdict replace(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_value *computed)
{
	(void)context;
	(void)entry;
	computed->data = value;
	computed->size = VALUE_SIZE;
	return TW_CACHE_REPLACE;
}

static void compute_one(unsigned i)
{
	MUST(tw_cache_compute(cache, key_of(i), KEY_SIZE, replace, NULL));
}

/* ---- Loads ---- */

static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	(void)argument;
	(void)key;
	(void)key_size;
	return tw_cache_load_give(loading,
				  &(struct tw_cache_value){.data = value, .size = VALUE_SIZE});
}

static void take_one(unsigned i)
{
	const struct tw_cache_entry *entry;

	MUST(tw_cache_take(cache, key_of(i), KEY_SIZE, load, NULL, TW_SECOND, &entry));
	tw_cache_entry_release(entry);
}

static enum tw_status load_later(void *argument, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	(void)argument;
	(void)key;
	(void)key_size;
	kept = loading;
	return tw_cache_load_keep(loading);
}

/* Takes a key that is being loaded, without waiting for the load. */
static void take_loading(unsigned i)
{
	const struct tw_cache_entry *entry;

	(void)i;
	expect(tw_cache_take(cache, keys[first], KEY_SIZE, load_later, NULL, 0, &entry) ==
		       TW_TIMED_OUT,
	       "it is being loaded");
}

/* ---- Many keys a call ---- */

static void get_many(unsigned i)
{
	static char buffers[MANY][VALUE_SIZE];
	struct tw_cache_lookup items[MANY];
	size_t found;

	for (unsigned k = 0; k < MANY; k++)
		items[k] = (struct tw_cache_lookup){.key = key_of(i * MANY + k),
						    .key_size = KEY_SIZE,
						    .buffer = buffers[k],
						    .capacity = VALUE_SIZE};
	MUST(tw_cache_get_many(cache, items, MANY, &found));
	expect(found == MANY, "all are there");
}

/* Counts calls of `operation`, each for MANY keys, as the cost of one key. */
static void measure_many(const char *name, void (*operation)(unsigned i))
{
	phase_begin();
	for (unsigned i = 0; i < costs_n / MANY; i++)
		operation(i);
	phase_end(name, costs_n);
	tw_poll(wheel, NULL);
}

/* ---- The whole cache ---- */

static int visit(void *context, const struct tw_cache_entry *entry)
{
	(void)entry;
	++*(unsigned *)context;
	return 1;
}

static unsigned count_entries(void)
{
	struct tw_cache_stats stats;

	MUST(tw_cache_get_stats(cache, &stats));
	return (unsigned)stats.entries;
}

static void walk(void)
{
	unsigned seen = 0;

	phase_begin();
	MUST(tw_cache_each(cache, visit, &seen));
	phase_end("cache.each", seen);
	expect(seen == count_entries(), "all were visited");
}

static void go_on(unsigned seconds)
{
	while (seconds-- > 0) {
		costs_time.tv_sec++;
		tw_poll(wheel, NULL);
	}
}

static void expire(void)
{
	unsigned before = count_entries();

	/* Entries reach their greatest age before the maintenance visits them. */
	go_on(2);
	phase_begin();
	go_on(65);
	phase_end("cache.expire", before);
	expect(count_entries() == 0, "all have expired");
}

static void open_cache(enum tw_cache_policy policy, uint64_t max_entries)
{
	const struct tw_cache_options options = {
		.wheel = wheel, .policy = policy, .max_entries = max_entries};

	MUST(tw_cache_create(&cache, 60 * TW_SECOND, &options));
	first = 0;
	for (unsigned i = 0; i < costs_n; i++)
		set_one(i);
	tw_poll(wheel, NULL);
}

static void measure_policy(enum tw_cache_policy policy, const char *hit, const char *eviction)
{
	open_cache(policy, costs_n);
	measure(hit, costs_n, get_one);
	first = costs_n;
	measure(eviction, costs_n, set_one);
	tw_cache_destroy(cache);
}

/* Measures the calls for one key, each in its usual case. */
static void measure_calls(void)
{
	first = costs_n;
	measure("cache.set_new", costs_n, set_one);
	tw_poll(wheel, NULL);
	measure("cache.set_same", costs_n, set_one);
	tw_poll(wheel, NULL);
	first = 0;
	measure("cache.get_hit", costs_n, get_one);
	measure("cache.get_hot16", costs_n, get_hot);
	first = 3 * costs_n;
	measure("cache.get_miss", costs_n, miss_one);
	first = 0;
	measure("cache.acquire_release", costs_n, acquire_one);
	measure("cache.take_hit", costs_n, take_one);
	first = 2 * costs_n;
	measure("cache.take_load", costs_n / 2, take_one);
	tw_poll(wheel, NULL);
	first = costs_n;
	value_size = OTHER_SIZE;
	measure("cache.set_other_size", costs_n, set_one);
	value_size = VALUE_SIZE;
	tw_poll(wheel, NULL);
	measure("cache.delete", costs_n, delete_one);
	tw_poll(wheel, NULL);
}

/* Measures calls for other keys beside `count` running loads. */
static void measure_beside_loads(unsigned count, const char *take, const char *set)
{
	static struct tw_cache_loading *loads[LOADS_MOST];
	const struct tw_cache_entry *entry;

	open_cache(TW_POLICY_LRU, 0);
	for (uint64_t key = 0; key < count; key++) {
		expect(tw_cache_take(cache, &key, sizeof(key), load_later, NULL, 0, &entry) ==
			       TW_TIMED_OUT,
		       "it is being loaded");
		loads[key] = kept;
	}
	first = costs_n;
	measure(take, costs_n / 2, take_one);
	first = 2 * costs_n;
	measure(set, costs_n, set_one);
	for (unsigned i = 0; i < count; i++)
		MUST(tw_cache_load_end(loads[i], TW_LOAD_FAILED));
	tw_cache_destroy(cache);
}

/* Measures calls for many keys and less frequent ones, in a cache of its own. */
static void measure_other_calls(void)
{
	open_cache(TW_POLICY_LRU, 0);
	measure_many("cache.get_many_32", get_many);
	measure("cache.compute_touch", costs_n, touch_one);
	measure("cache.compute", costs_n, compute_one);
	walk();
	first = costs_n;
	first = 2 * costs_n;
	take_loading(0);
	measure("cache.take_loading", costs_n, take_loading);
	MUST(tw_cache_load_end(kept, TW_LOAD_FAILED));
	tw_cache_destroy(cache);
}

int main(void)
{
	const struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	int64_t memory;

	costs_init();
	memset(value, 'v', sizeof(value));
	MUST(tw_create(&wheel, TW_SECOND, 300, count_task, &options));
	memory = memory_begin();
	open_cache(TW_POLICY_LRU, 0);
	memory_end("cache", memory, costs_n);
	measure_calls();
	expire();
	tw_cache_destroy(cache);
	measure_other_calls();
	measure_beside_loads(100, "cache.load_beside_100", "cache.set_beside_100");
	measure_beside_loads(LOADS_MOST, "cache.load_beside_100000", "cache.set_beside_100000");
	measure_policy(TW_POLICY_LRU, "cache.get_hit_lru", "cache.evict_lru");
	measure_policy(TW_POLICY_S3FIFO, "cache.get_hit_s3fifo", "cache.evict_s3fifo");
	tw_destroy(wheel);
	return 0;
}
