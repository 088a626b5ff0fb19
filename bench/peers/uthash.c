/* SPDX-License-Identifier: MIT */
/*
 * This is the cache that a C programmer writes in an afternoon: uthash behind one mutex. A limit
 * makes it the LRU of uthash's manual: a get moves the entry to the end. No entry expires.
 */
#include "peers/caches.h"

#include "support/process.h"

#include <pthread.h>
#include <stdlib.h>

#define uthash_fatal(message) process_fail("%s", message)
#include <uthash.h>

struct entry {
	UT_hash_handle hh;
	struct random_key key;
	struct cached value;
};

struct cache {
	pthread_mutex_t lock; /* guards all below */
	struct entry *entries;
	uint64_t limit;
};

static void *open_cache(uint64_t limit)
{
	struct cache *cache = process_allocate(sizeof(*cache));

	pthread_mutex_init(&cache->lock, NULL);
	cache->limit = limit;
	return cache;
}

static struct entry *find(struct cache *cache, const struct random_key *key)
{
	struct entry *entry;

	HASH_FIND(hh, cache->entries, key, sizeof(*key), entry);
	if (entry && cache->limit) {
		HASH_DEL(cache->entries, entry);
		HASH_ADD(hh, cache->entries, key, sizeof(entry->key), entry);
	}
	return entry;
}

static void add(struct cache *cache, const struct random_key *key, const struct cached *value)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		process_fail("no memory for an entry");
	entry->key = *key;
	entry->value = *value;
	HASH_ADD(hh, cache->entries, key, sizeof(entry->key), entry);
	if (cache->limit && HASH_COUNT(cache->entries) > cache->limit) {
		entry = cache->entries;
		HASH_DEL(cache->entries, entry);
		free(entry);
	}
}

static void set(void *argument, const struct random_key *key, const struct cached *value)
{
	struct cache *cache = argument;
	struct entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = find(cache, key);
	if (entry)
		entry->value = *value;
	else
		add(cache, key, value);
	pthread_mutex_unlock(&cache->lock);
}

static bool get(void *argument, const struct random_key *key, struct cached *value)
{
	struct cache *cache = argument;
	struct entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = find(cache, key);
	if (entry)
		*value = entry->value;
	pthread_mutex_unlock(&cache->lock);
	return entry != NULL;
}

int main(int argc, char **argv)
{
	return caches_ask(
		&(struct caches_peer){
			.name = "uthash and a mutex", .open = open_cache, .set = set, .get = get},
		argv[argc - 1]);
}
