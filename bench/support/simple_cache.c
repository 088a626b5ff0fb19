/* SPDX-License-Identifier: MIT */
#include "simple_cache.h"

#include "process.h"

#include <pthread.h>
#include <stdlib.h>

#define uthash_fatal(message) process_fail("%s", message)
#include <uthash.h>

struct simple_entry {
	UT_hash_handle hh;
	struct random_key key;
	struct simple_value value;
};

struct simple_cache {
	pthread_mutex_t lock; /* guards all below */
	struct simple_entry *entries;
};

struct simple_cache *simple_cache_create(void)
{
	struct simple_cache *cache = process_allocate(sizeof(*cache));

	pthread_mutex_init(&cache->lock, NULL);
	return cache;
}

void simple_cache_destroy(struct simple_cache *cache)
{
	struct simple_entry *entry, *next;

	HASH_ITER (hh, cache->entries, entry, next) {
		HASH_DEL(cache->entries, entry);
		free(entry);
	}
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static struct simple_entry *find(struct simple_cache *cache, const struct random_key *key)
{
	struct simple_entry *entry;

	HASH_FIND(hh, cache->entries, key, sizeof(*key), entry);
	return entry;
}

static void add(struct simple_cache *cache, const struct random_key *key,
		const struct simple_value *value)
{
	struct simple_entry *entry = malloc(sizeof(*entry));

	if (!entry)
		process_fail("no memory for an entry");
	entry->key = *key;
	entry->value = *value;
	HASH_ADD(hh, cache->entries, key, sizeof(entry->key), entry);
}

void simple_cache_set(struct simple_cache *cache, const struct random_key *key,
		      const struct simple_value *value)
{
	struct simple_entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = find(cache, key);
	if (entry)
		entry->value = *value;
	else
		add(cache, key, value);
	pthread_mutex_unlock(&cache->lock);
}

bool simple_cache_get(struct simple_cache *cache, const struct random_key *key,
		      struct simple_value *value)
{
	struct simple_entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = find(cache, key);
	if (entry)
		*value = entry->value;
	pthread_mutex_unlock(&cache->lock);
	return entry != NULL;
}
