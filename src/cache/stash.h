/* SPDX-License-Identifier: MIT */
/*
 * What a thread keeps for its next sets in one cache: the entries that its sets put out of the
 * table, until no reader sees them, and then their memory. It belongs to what has begun it: its
 * thread during a set, or the cache's upkeep.
 */
#ifndef CACHE_STASH_H
#define CACHE_STASH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cache.h"

/* A reader, and what its thread keeps. Zeroed: nothing. */
struct stash {
	struct reader reader;
	atomic_bool is_begun;
	/* Of what has begun it. */
	struct limbo limbo;
	struct pool_spare spare;
};

/* All readers of a cache are made with a stash. */
static inline struct stash *reader_stash(struct reader *reader)
{
	return (struct stash *)reader;
}

/* False: another has it, or what is unlinked in this cache must go to the shards. */
bool stash_begin(struct stash *stash, const struct tw_cache *cache);
/* Frees what it can if that is worth the look. Under no shard's lock. */
void stash_end(struct stash *stash, struct tw_cache *cache);
/* Frees what can be freed, and keeps no memory. False: something is left to be freed. */
bool stash_clear(struct stash *stash, struct tw_cache *cache);
/* Likewise all; nobody is inside an epoch or comes again. */
void stash_close(struct stash *stash);

#endif
