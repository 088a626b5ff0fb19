/* SPDX-License-Identifier: MIT */
/* The public calls that change one key, and what they share with loads. */
#ifndef CACHE_CHANGE_H
#define CACHE_CHANGE_H

#include "cache.h"

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
 * false if out of memory. Either an entry is made of it, or entry_plan_unmap() is called. */
bool cache_plan(struct tw_cache *cache, struct entry_plan *plan);
/* Makes up for what shard_end() returned, and for entries of that weight that came in, if any did,
 * `spared` the last. */
void cache_end_sets(struct tw_cache *cache, size_t taken, uint64_t weight,
		    const struct tw_cache_entry *spared);

/* A change of a key, which is there or not; between shard_begin and shard_end. */
struct change {
	struct shard *shard;
	uint64_t hash;
	struct tw_cache_entry *entry; /* so far, or NULL */
	_Atomic uint64_t *slot;       /* the entry's */
	tw_duration now;
};

/* Between begin and end, with shard, hash and now filled in: returns whether the key is there. */
bool change_find(struct change *change, const void *key, size_t key_size)
	HOLDS(change->shard->lock);
/* Ends a change that has found a key, which may be there or not: puts an entry, whose life has
 * started, in the place of what was found. `overrides` has loads of the key not be stored. TW_OK:
 * the entry's reference is the table's now; else, by TW_FULL and TW_NO_MEMORY, it is still the
 * caller's. */
enum tw_status change_put(const struct change *change, struct tw_cache *cache,
			  struct tw_cache_entry *entry, bool overrides) HOLDS(change->shard->lock);

#endif
