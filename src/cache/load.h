/* SPDX-License-Identifier: MIT */
/* Loads: joined or begun by takes and reloads, run on some thread, ended once. */
#ifndef CACHE_LOAD_H
#define CACHE_LOAD_H

#include "cache.h"

/* Calls the loader in this thread, at the real time `now`, and ends the load unless the loader
 * keeps it. No lock is held. */
void load_run(struct tw_cache *cache, struct caller *caller, struct tw_cache_loading *loading,
	      tw_duration now, tw_cache_load *load, void *argument);
/* Begins and runs a load that was queued, or ends it with TW_CLOSED if it is refused, and lets go
 * of it. No lock is held. */
void load_run_queued(struct tw_cache *cache, struct tw_cache_loading *loading, bool is_refused);
/* Returns whether a load that ended so has failed: an absence is an answer. */
static inline bool load_has_failed(enum tw_status status)
{
	return status != TW_OK && status != TW_NOT_FOUND;
}

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

/* For tw_cache_destroy, when the cache is closed and the queue stopped: waits for all takes, and
 * ends what is queued or kept by its loader. */
void loads_end(struct tw_cache *cache);

#endif
