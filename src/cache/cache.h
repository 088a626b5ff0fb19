/* SPDX-License-Identifier: MIT */
/* The cache itself, its clock, and what the public calls share. */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <timingwheel/cache.h>

#include "arena.h"
#include "entry.h"
#include "epoch.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/key_hash.h"
#include "base/xorshift.h"
#include "notice.h"
#include "shard.h"

struct tw_cache {
	/* Constant after tw_cache_create. */
	struct tw_wheel *wheel;
	struct tw_wheel *own_wheel; /* the same, or NULL */
	struct key_hash_seed seed;
	struct arena *arena;
	struct shard *shards;
	unsigned shard_mask;
	bool has_coarse_clock;
	bool lookups_are_plain; /* hits don't move deadlines: for tw_cache_get() */
	bool is_lru;
	tw_duration coarse_step;   /* the coarse clock's resolution; 0 without one */
	tw_duration coarse_margin; /* so much before a deadline the precise clock is asked */
	tw_duration granule;       /* ticks by which keys are filed (expiry.c) */
	tw_duration expire;
	tw_duration idle; /* 0: lifetimes don't slide */
	tw_duration negative_expire;
	double jitter; /* 0: none */
	tw_cache_weigh_fn *weigh;
	void *context;
	void (*on_stats)(void *context, const struct tw_cache_stats *stats);
	tw_duration stats_interval;

	/* Read by all, seldom written. */
	_Alignas(64) _Atomic uint64_t max_entries;
	_Atomic uint64_t max_bytes;
	atomic_bool counts_uses; /* for a limit: once there is one, for ever */
	atomic_bool upkeep_is_set;
	struct tw_alarm *upkeep;
	struct tw_alarm *stats;
	tw_duration stats_due; /* when on_stats is told next; of the run alone */
	struct epochs epochs;

	/* Any thread that sets. */
	_Alignas(64) _Atomic uint64_t entries;
	_Atomic uint64_t bytes;
	_Atomic unsigned
		evict_next; /* the shard to begin with where one must make room for others */

	/* Their own locks. */
	_Alignas(64) struct notices notices;
	pthread_mutex_t waits_lock; /* struct reader.waits_for, struct flight.is_over */
	pthread_mutex_t takes_lock;
	pthread_cond_t takes_are_over;
	unsigned takes; /* in a load or waiting for one */
	atomic_bool is_closed;
};

static inline struct shard *cache_shard(const struct tw_cache *cache, uint64_t hash)
{
	return &cache->shards[(unsigned)(hash >> 32) & cache->shard_mask];
}

static inline bool cache_is_closed(const struct tw_cache *cache)
{
	/* acquire: pairs with the store in cache_end_takes(). */
	return atomic_load_explicit(&((struct tw_cache *)cache)->is_closed, memory_order_acquire);
}

/* ---- Time ---- */

/* Not later than the wheel's clock, and seldom more than a few milliseconds earlier. */
static inline tw_duration cache_coarse_now(const struct tw_cache *cache)
{
	if (__builtin_expect(!cache->has_coarse_clock, 0))
		return tw_now(cache->wheel);
	return clock_read_real(CLOCK_MONOTONIC_COARSE);
}

/* Whether the deadline has passed at this moment, given a coarse time. */
static inline bool cache_is_past(const struct tw_cache *cache, tw_duration deadline,
				 tw_duration coarse)
{
	if (__builtin_expect(deadline - coarse > cache->coarse_margin, 1))
		return false;
	return deadline <= coarse || (cache->has_coarse_clock && deadline <= tw_now(cache->wheel));
}

/* A lifetime with jitter. */
tw_duration cache_lifetime(const struct tw_cache *cache, struct reader *reader, tw_duration expire);
/* Gives a new entry its deadline. */
void cache_start_life(const struct tw_cache *cache, struct tw_cache_entry *entry, tw_duration now,
		      tw_duration lifetime);

/* ---- Lookups ---- */

static inline bool cache_counts_uses(const struct tw_cache *cache)
{
	/* relaxed: uses that come before it is seen are lost. A reader that notes one has seen it,
	 * and then leaves its epoch: what finds that it did sees it, too (stash_free()). */
	return atomic_load_explicit(&((struct tw_cache *)cache)->counts_uses, memory_order_relaxed);
}

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
bool cache_is_over_limit(struct tw_cache *cache);
/* A limit with which sums don't overflow. */
uint64_t cache_usable_limit(uint64_t limit);
/* Evicts in all shards by turns, in short steps, until the limits are kept; not `spared` (or NULL,
 * or gone): it was set just now. */
void cache_evict(struct tw_cache *cache, const struct tw_cache_entry *spared);
/* Something is left to be freed: looks again in a tick. */
void cache_ask_upkeep(struct tw_cache *cache);
void cache_sum_stats(struct tw_cache *cache, struct tw_cache_stats *stats);

#endif
