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
/* Returns the status for those that get that entry, or NULL, from a load that is over. */
enum tw_status load_result(const struct tw_cache_loading *loading,
			   const struct tw_cache_entry *entry);
/* For tw_cache_destroy, when the cache is closed and the queue stopped: waits for all takes, and
 * ends what is queued or kept by its loader. */
void loads_end(struct tw_cache *cache);

/*
 * A thread calls the first two around a take that may load, and the last two around the end of a
 * kept load. The cache is there until the end.
 */
static inline void reader_begin_take(struct reader *reader)
{
	unsigned takes = atomic_load_explicit(&reader->takes, memory_order_relaxed);

	/* relaxed, as the load: only this thread writes it; and what the take finds in a shard is
	 * under a lock that tw_cache_stop() takes before the look in loads_end(). */
	atomic_store_explicit(&reader->takes, takes + 1, memory_order_relaxed);
}

static inline void reader_end_take(struct reader *reader)
{
	unsigned takes = atomic_load_explicit(&reader->takes, memory_order_relaxed);

	/* release: the take is done with the cache; pairs with cache_has_takes(). */
	atomic_store_explicit(&reader->takes, takes - 1, memory_order_release);
}

static inline struct reader *cache_begin_end(struct tw_cache *cache)
{
	struct reader *reader = epochs_reader(&cache->shared.epochs);

	if (!reader)
		reader = cache->shared.nobody;
	/* relaxed: before the load leaves its list, under a lock that loads_end() takes. Threads
	 * without memory share a reader. */
	atomic_fetch_add_explicit(&reader->takes, 1, memory_order_relaxed);
	return reader;
}

static inline void reader_end_end(struct reader *reader)
{
	/* release: the end is done with the cache; pairs with cache_has_takes(). */
	atomic_fetch_sub_explicit(&reader->takes, 1, memory_order_release);
}

#endif
