/* SPDX-License-Identifier: MIT */
/* A cache is its shards and what they share. These are the calls that its public ones share. */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <timingwheel/cache.h>

#include "base/histogram.h"
#include "base/limit.h"
#include "shared.h"
#include "removal.h"
#include "shard.h"

/* The loads of the cache's own loader that wait for the wheel's pool (load.c). */
struct load_queue {
	/* Constant. */
	struct load_runner *runners; /* NULL without a loader of the cache's own */
	unsigned count;
	unsigned reloading_most;
	/* Under the lock, which is taken inside those of shards. */
	pthread_mutex_t lock;
	struct list misses;
	struct list reloads;
	struct load_runner *idle; /* runners whose alarms are not set */
	unsigned reloading;       /* runners with a load from `reloads` */
};

struct tw_cache {
	/* Constant after tw_cache_create. */
	struct shard *shards;
	unsigned shard_mask;
	/* Hits don't move deadlines, and it is not stopped; for tw_cache_get(). Any thread. */
	atomic_bool lookups_are_plain;
	struct tw_wheel
		*own_wheel; /* the wheel of the shared state if the cache owns it, or NULL */
	tw_duration expire;
	struct tw_cache_options options; /* with the defaults, and a jitter of 0 for none */
	bool has_plain_entries;          /* copied values have nothing before their keys */

	/* Only the maintenance's run by its alarm uses these. */
	uint64_t entries_before; /* at the last run */
	unsigned drains;         /* runs in a row in which entries were not moved */

	struct shared_state shared;

	struct limit refreshing; /* loads of values that may still be read */

	/* Any thread that evicts: the shard to begin with where one must make room for others. */
	_Atomic unsigned evict_next;

	/* Their own locks. */
	_Alignas(64) struct removals removals;
	struct load_queue loads; /* zeroed without `load` */
	/* Written under left_lock (load.h). */
	struct own_lock left_lock;
	uint64_t left; /* calls that have done with loads */
	struct histogram load_times;
	_Atomic uint64_t load_time; /* their sum */
};

static inline struct shard *cache_shard(const struct tw_cache *cache, uint64_t hash)
{
	return &cache->shards[(unsigned)(hash >> 32) & cache->shard_mask];
}

/* Sets *caller to the thread's: most calls begin so. Returns TW_OK, TW_CLOSED, TW_NO_MEMORY, or
 * TW_INVALID in a compute function of the cache. */
static inline enum tw_status cache_admit(struct tw_cache *cache, struct caller **caller)
{
	if (shared_is_closed(&cache->shared))
		return TW_CLOSED;
	*caller = callers_find(&cache->shared.callers);
	if (*caller)
		return TW_OK;
	return caller_computes == cache->shared.callers.id ? TW_INVALID : TW_NO_MEMORY;
}

/* Sets the limits, also the pool's; 0 means no limit. */
void cache_set_limits(struct tw_cache *cache, uint64_t max_entries, uint64_t max_bytes);
/* Evicts in all shards by turns, in short steps, until the limits are kept, or entries of that
 * weight, and a few more, have gone: a set makes room for what it sets, and those that follow catch
 * up with a limit that has become much lower. `spared` (or NULL, or gone), which was set just now,
 * stays. */
void cache_evict(struct tw_cache *cache, uint64_t weight, const struct tw_cache_entry *spared);

/* compact.c moves entries out of sparse pages, of `bytes` in all, while more is free than should
 * be (`at_rest`: should be for what is there now). Returns whether there may be more to do. */
bool cache_compact(struct tw_cache *cache, size_t bytes, bool at_rest);

/* change.c returns the key's value past its deadline, pinned, or NULL if it is not kept that long
 * (stale_if_error) or the cache is closed. A use, between begin and end of the shard. */
const struct tw_cache_entry *cache_pin_stale(struct tw_cache *cache, struct shard *shard,
					     uint64_t hash, const void *key, size_t key_size,
					     tw_duration now) HOLDS(shard->lock);

/* lookup.c returns the key's entry, pinned, if it may be read, absences too, or NULL. A use. */
struct tw_cache_entry *cache_find(struct tw_cache *cache, uint64_t hash, const void *key,
				  size_t key_size);

#endif
