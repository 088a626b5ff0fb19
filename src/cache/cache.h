/* SPDX-License-Identifier: MIT */
/* The cache itself, and what the public calls share. */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <timingwheel/cache.h>

#include "domain.h"
#include "notice.h"
#include "shard.h"

struct tw_cache {
	/* Constant after tw_cache_create. */
	struct shard *shards;
	unsigned shard_mask;
	bool lookups_are_plain; /* hits don't move deadlines: for tw_cache_get() */
	bool is_lru;
	struct tw_wheel *own_wheel; /* the domain's, or NULL */
	tw_duration expire;
	tw_duration idle; /* 0: lifetimes don't slide */
	tw_duration negative_expire;
	double jitter; /* 0: none */
	tw_cache_weigh_fn *weigh;
	void *context;
	void (*on_stats)(void *context, const struct tw_cache_stats *stats);
	tw_duration stats_interval;
	struct tw_alarm *stats;
	tw_duration stats_due; /* when on_stats is told next; of the run alone */

	struct domain domain;

	/* Any thread that evicts. */
	_Atomic unsigned
		evict_next; /* the shard to begin with where one must make room for others */

	/* Their own locks. */
	_Alignas(64) struct notices notices;
	pthread_mutex_t takes_lock;
	pthread_cond_t takes_are_over;
	unsigned takes; /* in a load or waiting for one */
};

static inline struct shard *cache_shard(const struct tw_cache *cache, uint64_t hash)
{
	return &cache->shards[(unsigned)(hash >> 32) & cache->shard_mask];
}

/* ---- Time ---- */

/* A lifetime with jitter. */
tw_duration cache_lifetime(const struct tw_cache *cache, struct reader *reader, tw_duration expire);
/* Gives a new entry its deadline. */
void cache_start_life(const struct tw_cache *cache, struct tw_cache_entry *entry, tw_duration now,
		      tw_duration lifetime);

/* ---- Lookups ---- */

/* Inside an epoch: the key's entry if it may be read, absences too; NULL: none. Counts as a use. */
struct tw_cache_entry *cache_find(struct tw_cache *cache, uint64_t hash, const void *key,
				  size_t key_size);

/* As tw_cache_get, of arguments that are fine. Not inside an epoch. */
enum tw_status cache_get_hashed(struct tw_cache *cache, struct reader *reader, uint64_t hash,
				const void *key, size_t key_size, void *buffer, size_t capacity,
				size_t *value_size);

/* ---- Changes ---- */

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
/* Evicts in all shards by turns, in short steps, until the limits are kept; not `spared` (or NULL,
 * or gone): it was set just now. */
void cache_evict(struct tw_cache *cache, const struct tw_cache_entry *spared);
void cache_sum_stats(struct tw_cache *cache, struct tw_cache_stats *stats);

#endif
