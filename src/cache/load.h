/* SPDX-License-Identifier: MIT */
/* Loads: begun by takes of all kinds, run on some thread, ended once. With no lock held. */
#ifndef CACHE_LOAD_H
#define CACHE_LOAD_H

#include "cache.h"

/* Calls the loader, at the real time `now`, and ends the load unless the loader keeps it. */
void load_run(struct tw_cache *cache, struct reader *reader, struct tw_cache_loading *loading,
	      tw_duration now, tw_cache_load *load, void *argument);

/* By a thread of the loaders: begins and runs a load that is queued, if no thread has begun it. */
void load_run_queued(struct tw_cache *cache, struct tw_cache_loading *loading);
/* Ends what is queued or kept by its loader. Returns false if there was nothing. The cache is
 * closed, and nothing loads. */
bool loads_cancel(struct tw_cache *cache);

/* Takes, loads by takes, and ends of loads that were kept stand between these two. */
void cache_begin_take(struct tw_cache *cache);
void cache_end_take(struct tw_cache *cache);
/* For tw_cache_destroy: waits for all of them. */
void cache_wait_for_takes(struct tw_cache *cache);

#endif
