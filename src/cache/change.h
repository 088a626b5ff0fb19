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

#endif
