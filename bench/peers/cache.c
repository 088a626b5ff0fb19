/* SPDX-License-Identifier: MIT */
/* This is our library's cache, with its default policy. A get copies the value out. */
#include "peers/caches.h"

#include "support/expect.h"

#include <string.h>
#include <timingwheel/cache.h>

static void *open_cache(uint64_t limit)
{
	const struct tw_cache_options options = {.max_entries = limit, .jitter = -1};
	struct tw_cache *cache;

	expect_ok(tw_cache_create(&cache, TW_HOUR, &options), "tw_cache_create");
	return cache;
}

static void set(void *cache, const struct random_key *key, const struct cached *value)
{
	expect_ok(tw_cache_set(cache, key, sizeof(*key), value, sizeof(*value)), "tw_cache_set");
}

static void set_for(void *cache, const struct random_key *key, const struct cached *value,
		    int64_t lifetime)
{
	expect_ok(
		tw_cache_set_with_expire(cache, key, sizeof(*key), value, sizeof(*value), lifetime),
		"tw_cache_set_with_expire");
}

static bool get(void *cache, const struct random_key *key, struct cached *value)
{
	return tw_cache_get(cache, key, sizeof(*key), value, sizeof(*value), NULL) == TW_OK;
}

static enum tw_status load(void *has_loaded, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct cached loaded = caches_load(key);
	struct tw_cache_value value = {.data = &loaded, .size = sizeof(loaded)};

	(void)key_size;
	*(bool *)has_loaded = true;
	return tw_cache_load_give(loading, &value);
}

static bool take(void *cache, const struct random_key *key, struct cached *value)
{
	const struct tw_cache_entry *entry;
	bool has_loaded = false;
	size_t size;

	expect_ok(tw_cache_take(cache, key, sizeof(*key), load, &has_loaded, TW_SECOND, &entry),
		  "tw_cache_take");
	memcpy(value, tw_cache_entry_value(entry, &size), sizeof(*value));
	tw_cache_entry_release(entry);
	return !has_loaded;
}

int main(int argc, char **argv)
{
	return caches_ask(&(struct caches_peer){.name = "timingwheel's cache",
						.open = open_cache,
						.set = set,
						.get = get,
						.take = take,
						.set_for = set_for},
			  argv[argc - 1]);
}
