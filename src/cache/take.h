/* SPDX-License-Identifier: MIT */
/* A key that is taken by a thread which waits for it. */
#ifndef CACHE_TAKE_H
#define CACHE_TAKE_H

#include "cache.h"

struct take {
	struct tw_cache *cache;
	struct shard *shard;
	struct reader *reader;
	uint64_t hash;
	const void *key;
	size_t key_size;
	bool loads; /* this thread runs the load */
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned for the caller, or NULL */
	struct tw_cache_loading *loading;   /* with a reference, or NULL */
};

enum take_step {
	TAKE_ENDS,  /* status and entry are known */
	TAKE_LOADS, /* the caller has to run the load in `load`; then take_join() */
	TAKE_WAITS  /* for the load in `load`, by take_join() */
};

void take_init(struct take *take, struct tw_cache *cache, struct reader *reader, const void *key,
	       size_t key_size);
/* Looks the key up, and counts what it finds. Returns false if it is to be loaded. */
bool take_look(struct take *take);
/* Looks a key up that was not found, under the lock, and joins or begins a load, at the real time
 * `now`. */
enum take_step take_begin(struct take *take, tw_duration now);
/* Waits for the end of the load until the real time `until` (0: not at all), and lets go of it. */
void take_join(struct take *take, tw_duration until);
/* Returns the real time up to which a call waits that came at `now`, or 0 if it does not wait. */
static inline tw_duration take_until(tw_duration now, tw_duration wait)
{
	return wait > 0 ? time_add(now, wait) : 0;
}

#endif
