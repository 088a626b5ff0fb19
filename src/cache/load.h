/* SPDX-License-Identifier: MIT */
/*
 * Loads are joined or begun by takes, or by lookups of values that are old; run on some thread; and
 * ended once. Those of the cache's own loader wait for the wheel's pool in a queue: misses before
 * reloads of values that may still be read.
 */
#ifndef CACHE_LOAD_H
#define CACHE_LOAD_H

#include "cache.h"

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

/* Lists a new load of the key at the real time `now`: run by the loader's thread or, if that is
 * NULL, to be queued. Returns NULL if out of memory. */
struct tw_cache_loading *load_list(struct tw_cache *cache, struct shard *shard,
				   struct caller *loader, uint64_t hash, const void *key,
				   size_t key_size, tw_duration now) HOLDS(shard->lock);
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
 * and a destroy waits until all have left. Ends such a call: it is done with the cache. Counts the
 * time of a load that this call has ended, or NULL.
 */
static inline void load_leave(struct tw_cache *cache, const struct tw_cache_loading *ended)
{
	own_lock_take(&cache->left_lock);
	if (ended && ended->began > 0) {
		histogram_record(&cache->load_times, ended->took);
		counter_add(&cache->load_time, (uint64_t)ended->took);
	}
	cache->left++;
	own_lock_let_go(&cache->left_lock);
}

/* Returns whether that many calls have left. */
static inline bool loads_have_left(struct tw_cache *cache, uint64_t entered)
{
	bool have_left;

	own_lock_take(&cache->left_lock);
	have_left = cache->left == entered;
	own_lock_let_go(&cache->left_lock);
	return have_left;
}

#endif
