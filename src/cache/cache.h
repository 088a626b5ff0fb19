/* SPDX-License-Identifier: MIT */
/* A cache is its shards and what they share. These are the calls that its public ones share. */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <timingwheel/cache.h>

#include "base/counter.h"
#include "shard.h"
#include "shared.h"

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
	/* Any thread: calls that have done with loads. */
	_Atomic uint64_t left;
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

/* ---- Changes of one key (change.c) ---- */

/* Returns the life of a plan (entry.h) with jitter. */
tw_duration cache_lifetime(const struct tw_cache *cache, struct caller *caller, tw_duration life);
/* Gives a new entry its deadline, of such a life from `now` on. */
void cache_start_life(const struct tw_cache *cache, struct tw_cache_entry *entry, tw_duration now,
		      tw_duration life);

/* Returns whether a program may give that value. It may be NULL. */
bool value_is_valid(const struct tw_cache_value *value);
/* Has a plan that is zeroed, except for the key, make an entry of a valid value; cache_plan()
 * completes it. The value must stay until the entry is made. */
void cache_plan_value(const struct tw_cache *cache, struct entry_plan *plan,
		      const struct tw_cache_value *value);
/* Completes a plan whose key and hash are fine, by its weight. Calls the user's function. Returns
 * false if out of memory. change_make() comes next. */
bool cache_plan(struct tw_cache *cache, struct entry_plan *plan);
/* A change of a key: what begins, finds, makes, puts and ends is filled in step by step. */
struct change {
	struct tw_cache *cache;
	struct caller *caller;
	struct shard *shard;
	uint64_t hash;
	tw_duration now;
	struct tw_cache_entry *entry; /* the key's so far, or NULL */
	_Atomic uint64_t *slot;       /* that entry's */
	struct tw_cache_entry *made;  /* the new one, or NULL: the table's once it was put */
	uint64_t weight;              /* the new one's */
	bool is_put;
};

/* Makes an entry of a complete plan. Returns false if out of memory. */
bool change_make(struct change *change, const struct entry_plan *plan) HOLDS(change->shard->lock);
/* Finds the key. Returns whether it has a value. */
bool change_find(struct change *change, const void *key, size_t key_size)
	HOLDS(change->shard->lock);
/* Puts what was made, whose life has started, in the place of what was found, or of nothing.
 * `overrides` has loads of the key not be stored. Returns TW_OK, TW_FULL or TW_NO_MEMORY. */
enum tw_status change_put(struct change *change, bool overrides) HOLDS(change->shard->lock);
/* Ends a change: lets the lock go, and what was made but not put, and makes room. The value of that
 * is freed, or left with the caller. */
void change_end(struct change *change, bool frees_value) LETS_GO(change->shard->lock);
/* Returns the key's value past its deadline, pinned, or NULL if it is not kept that long
 * (stale_if_error) or the cache is closed. A use, between begin and end of the shard. */
const struct tw_cache_entry *cache_pin_stale(struct tw_cache *cache, struct shard *shard,
					     uint64_t hash, const void *key, size_t key_size,
					     tw_duration now) HOLDS(shard->lock);

/* ---- Lookups (lookup.c) ---- */

/* Sets *value to the key's value, pinned, or NULL. Returns false if there is nothing to be read, an
 * absence neither. What is found is used, counted, and loaded again if it is old. */
bool cache_find(struct tw_cache *cache, struct caller *caller, uint64_t hash, const void *key,
		size_t key_size, const struct tw_cache_entry **value);

/*
 * ---- Loads (load.c) ----
 *
 * A load is joined or begun by takes, or by lookups of a value that is old; run on some thread; and
 * ended once. Those of the cache's own loader wait for the wheel's pool in a queue: misses before
 * reloads of values that may still be read.
 */

/* Opens the queue of a cache with a loader. Returns TW_OK, TW_NO_MEMORY or TW_CLOSED. On failure
 * there is still something to close. */
enum tw_status loads_open(struct tw_cache *cache);
/* Waits for what runs: nothing else will. Also without a loader, as loads_close(). */
void loads_stop(struct tw_cache *cache);
/* For tw_cache_destroy, when the cache is closed and the queue stopped: waits for all takes, and
 * ends what is queued or kept by its loader. */
void loads_end(struct tw_cache *cache);
/* Frees a queue that is empty. */
void loads_close(struct tw_cache *cache);

/* Lists a new load of the key: run by the loader's thread or, if that is NULL, to be queued.
 * Returns NULL if out of memory. */
struct tw_cache_loading *load_list(struct tw_cache *cache, struct shard *shard,
				   struct caller *loader, uint64_t hash, const void *key,
				   size_t key_size) HOLDS(shard->lock);
/* Queues the load. Returns false if the wheel is stopped: then load_queue_refuse() comes next,
 * with no lock held. */
bool load_queue_add(struct tw_cache *cache, struct tw_cache_loading *loading);
/* Takes the load out of the queue, for a take that needs it: it is no reload any more. Returns
 * false if it is not there: a runner has it. Under the shard's lock. */
bool load_queue_take(struct tw_cache *cache, struct tw_cache_loading *loading);
/* Ends all that is queued with TW_CLOSED. */
void load_queue_refuse(struct tw_cache *cache);
/* Calls the loader in this thread, at the real time `now`, and ends the load unless the loader
 * keeps it. No lock is held. */
void load_run(struct tw_cache *cache, struct caller *caller, struct tw_cache_loading *loading,
	      tw_duration now, tw_cache_load *load, void *argument);
/* Returns whether a load that ended so has failed: an absence is an answer. */
static inline bool load_has_failed(enum tw_status status)
{
	return status != TW_OK && status != TW_NOT_FOUND;
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

/* Calls the function with a take's result. No lock is held. */
void load_answer(struct tw_cache *cache, tw_cache_value_fn *on_value, void *context,
		 enum tw_status status, const struct tw_cache_entry *entry);
/* Calls the functions of the list of askers, which are freed. */
void load_answer_all(struct tw_cache *cache, struct list *askers, enum tw_status status,
		     const struct tw_cache_entry *entry);

/*
 * A take that loads or waits, the run of a queued load and the end of a kept one go on with the
 * cache when they have let the shard's lock go. They count themselves in flights.entered under it,
 * and a destroy waits until all have left. Ends such a call: it is done with the cache.
 */
static inline void load_leave(struct tw_cache *cache)
{
	/* release: the call's use of the cache comes before its end; pairs with
	 * loads_have_left(). */
	atomic_fetch_add_explicit(&cache->left, 1, memory_order_release);
}

/* Returns whether that many calls have left. */
static inline bool loads_have_left(struct tw_cache *cache, uint64_t entered)
{
	/* acquire: sees all that they have done; pairs with load_leave(). */
	return atomic_load_explicit(&cache->left, memory_order_acquire) == entered;
}

#endif
