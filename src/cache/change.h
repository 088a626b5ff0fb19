/* SPDX-License-Identifier: MIT */
/* The public calls that change one key, and what they share with loads. */
#ifndef CACHE_CHANGE_H
#define CACHE_CHANGE_H

#include "cache.h"

/* A lifetime with jitter. */
tw_duration cache_lifetime(const struct tw_cache *cache, struct reader *reader, tw_duration expire);
/* Gives a new entry its deadline. */
void cache_start_life(const struct tw_cache *cache, struct tw_cache_entry *entry, tw_duration now,
		      tw_duration lifetime);

enum put_mode {
	PUT_SET,
	PUT_ADD,     /* only a new key */
	PUT_REPLACE, /* only a key that is there */
	PUT_LOADED   /* as PUT_SET, and the loads of the key go on */
};

/* Completes a plan whose key and hash are fine, by its weight. Calls the user's function. */
void cache_plan(struct tw_cache *cache, struct entry_plan *plan);
/* Between shard_begin and shard_end. TW_OK: the entry's reference is the table's now; else it is
 * still the caller's: TW_EXISTS, TW_NOT_FOUND, TW_FULL, TW_NO_MEMORY, TW_CLOSED. */
enum tw_status cache_put(struct tw_cache *cache, struct shard *shard, uint64_t hash,
			 struct tw_cache_entry *entry, enum put_mode mode, tw_duration now);

#endif
