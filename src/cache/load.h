/* SPDX-License-Identifier: MIT */
/* Loads: joined or begun by takes and reloads, run on some thread, ended once. */
#ifndef CACHE_LOAD_H
#define CACHE_LOAD_H

#include "cache.h"

/* Calls the loader in this thread, at the real time `now`, and ends the load unless the loader
 * keeps it. No lock is held. */
void load_run(struct tw_cache *cache, struct reader *reader, struct tw_cache_loading *loading,
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
/* For tw_cache_destroy, when the cache is closed and the queue stopped: waits for all takes, and
 * ends what is queued or kept by its loader. */
void loads_end(struct tw_cache *cache);

#endif
