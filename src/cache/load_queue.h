/* SPDX-License-Identifier: MIT */
/*
 * The queue of a cache has loads of the cache's own loader that wait for the wheel's pool: misses,
 * and reloads of values that may still be read. Any thread may make these calls between open and
 * close.
 */
#ifndef CACHE_LOAD_QUEUE_H
#define CACHE_LOAD_QUEUE_H

#include "cache.h"

/* Opens a queue of `count` runners, which pass each load to run(cache, loading, false), or to
 * run(cache, loading, true) if the wheel is stopped. Returns TW_OK, TW_NO_MEMORY or TW_CLOSED. On
 * failure there is still something to close. */
enum tw_status load_queue_open(struct tw_cache *cache, unsigned count,
			       void (*run)(struct tw_cache *cache, struct tw_cache_loading *loading,
					   bool is_refused));
/* Queues the load. Returns false if the wheel is stopped: then load_queue_refuse() comes next, with
 * no lock held. */
bool load_queue_add(struct load_queue *queue, struct tw_cache_loading *loading);
/* Passes all that is queued to run(cache, loading, true). */
void load_queue_refuse(struct tw_cache *cache);
/* Takes the load out of the queue, for a take that needs it: it is no reload any more. Returns
 * false if it is not there: a runner has it. Under the shard's lock. */
bool load_queue_take(struct tw_cache *cache, struct tw_cache_loading *loading);
/* Waits for what runs: nothing else will. Also of a queue that was never opened, zeroed. */
void load_queue_stop(struct load_queue *queue);
/* Frees a queue that is empty. */
void load_queue_close(struct load_queue *queue);

/* Lists a new load of the key at the real time `now`: run by the loader's thread or, if that is
 * NULL, to be queued. Returns NULL if out of memory. */
static inline struct tw_cache_loading *cache_list_load(struct tw_cache *cache, struct shard *shard,
						       struct caller *loader, uint64_t hash,
						       const void *key, size_t key_size,
						       tw_duration now) HOLDS(shard->lock)
{
	struct tw_cache_loading *loading =
		flights_add(&shard->flights, hash, key, key_size, loader);

	if (!loading)
		return NULL;
	loading->cache = cache;
	loading->shard = shard;
	loading->listed = now;
	shard->has_flights = true;
	return loading;
}

/* Returns whether a lookup that found this should call cache_refresh() after it. */
static inline bool entry_wants_refresh(const struct tw_cache_entry *entry, tw_duration coarse)
{
	return __builtin_expect(entry->kind & ENTRY_AGING, 0) &&
	       time_load(&entry_age(entry)->refresh_at) <= coarse;
}

/* Queues a load of the key if its entry is old, unless there is one, or there are too many. Waits
 * for nothing: also under the shard's lock, where it does nothing. */
void cache_refresh(struct tw_cache *cache, uint64_t hash, const void *key, size_t key_size);

#endif
