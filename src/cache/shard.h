/* SPDX-License-Identifier: MIT */
/*
 * A shard is a part of the cache: a table, what is kept of its entries' ages and uses, and the lock
 * for all changes of them, which stand between a begin and an end.
 */
#ifndef CACHE_SHARD_H
#define CACHE_SHARD_H

#include "base/turn_lock.h"
#include "shared.h"
#include "expiry.h"
#include "flight.h"
#include "policy.h"
#include "table.h"

enum { SHARD_STEP = 64 /* entries at most in one hold of the lock */ };

/* A walk goes through all entries, from {0} on, and the lock is let go in between. */
struct shard_walk {
	uint64_t tables; /* the shard's at the last step; if that changed, the walk begins again */
	size_t position;
	bool is_over;
};

/* A shard has an odd number of cache lines: gcc multiplies an index by 56 in three instructions
 * more than by 55. */
struct shard {
	/* Written under the lock, read by any thread. */
	_Alignas(64) _Atomic uint64_t tables; /* tables that took the place of another */
	_Atomic uintptr_t place;              /* where the table's buckets lie */
	struct table *table;                  /* under the lock */
	struct shared_state *shared;          /* constant */
	struct removals *removals;            /* constant */
	struct policy policy;                 /* under the lock */
	/* Under the lock: first what each change looks at, in as few lines as can be. */
	_Alignas(64) struct turn_lock lock;
	bool has_flights;   /* a key may have one in its chain */
	bool must_tend;     /* something is done in steps, or should be: see shard_tend() */
	struct table *next; /* the table being filled to take its place, or NULL */
	/* Since the lock was taken. */
	int32_t entries_more; /* entries that the shared state has not counted yet */
	int64_t bytes_more;
	uint64_t bytes;               /* the weights of its entries */
	struct tw_cache_entry *freed; /* to be freed after the lock, with adopted values */
	struct pool_spare spare;
	uint64_t armed;      /* the first tick with something filed, or earlier, or EXPIRY_NEVER */
	tw_duration past_at; /* the end of that tick; no filed deadline is earlier */
	tw_duration late_at; /* the time before which the alarm should have run */
	struct expiry expiry;
	uint64_t removed[TW_CACHE_CAUSES];
	uint64_t refused;             /* values too heavy alone */
	struct turn_lock_sleep sleep; /* for the lock */
	_Alignas(64) struct flights flights;
	size_t next_copied; /* buckets of the table whose entries `next` has */
	struct table *old;  /* the table that was in use before, until it is empty again, or NULL */
	struct table sizes[TABLE_SIZES];
	struct bucket least[TABLE_LEAST];   /* the buckets of `sizes[0]` */
	_Alignas(64) struct tw_alarm alarm; /* the wheel writes to it, too */
};

/* Takes the lock for changes. */
static inline void shard_begin(struct shard *shard) TAKES(shard->lock)
{
	turn_lock_take(&shard->lock);
}

/* Takes the lock again after shard_end(), for work that is done in steps. */
void shard_begin_again(struct shard *shard) TAKES(shard->lock);
/* Lets the lock go, after it has counted what came and went, and frees what has left. It may call
 * free functions of the program, so the caller must have no other lock. Returns the bytes of memory
 * that the pool has got for the shard's cells. */
size_t shard_end(struct shard *shard) LETS_GO(shard->lock);
/* Makes an entry of a complete plan, with one reference, the caller's. Returns NULL if out of
 * memory. */
static inline __attribute__((always_inline)) struct tw_cache_entry *shard_make(
	struct shard *shard, const struct entry_plan *plan) HOLDS(shard->lock)
{
	struct pool *pool = shard->shared->pool;

	return entry_make(spare_take(&shard->spare, pool, plan->size), pool, plan);
}

/* Leaves an entry that has no slot to its pins. The last reference frees it. */
static inline void shard_let_go(struct shard *shard, struct tw_cache_entry *entry)
	HOLDS(shard->lock)
{
	if (__builtin_expect(!entry_give_up(entry), 0))
		return;
	if (__builtin_expect(entry->kind & ENTRY_ADOPTED, 0)) {
		entry->next_freed = shard->freed;
		shard->freed = entry;
	} else {
		spare_give(&shard->spare, entry);
	}
}

/* Returns how many tables there were, before shard_place(). */
static inline uint64_t shard_tables(const struct shard *shard)
{
	/* acquire: the place is that of this table or of a later one; pairs with
	 * shard_end_resizing(). */
	return atomic_load_explicit(&((struct shard *)shard)->tables, memory_order_acquire);
}

/* Returns where the table's buckets lie. */
static inline uintptr_t shard_place(const struct shard *shard)
{
	/* seq_cst: with slot_load() one order of all changes and lookups; pairs with
	 * shard_end_resizing(). */
	return atomic_load_explicit(&((struct shard *)shard)->place, memory_order_seq_cst);
}

/* Fetches the key's bucket. */
static inline void shard_prefetch_bucket(const struct shard *shard, uint64_t hash)
{
	/* relaxed: no thread looks at what is there. */
	__builtin_prefetch(place_bucket(
		atomic_load_explicit(&((struct shard *)shard)->place, memory_order_relaxed), hash));
}

/* Fetches the entry that is most likely the key's, as far as that is known without a lock. */
static inline void shard_prefetch_guess(const struct shard *shard, uint64_t hash)
{
	const struct bucket *bucket = place_bucket(shard_place(shard), hash);
	unsigned matches = bucket_matches(bucket, hash);

	if (__builtin_expect(matches != 0, 1))
		entry_prefetch(bucket_first(bucket, matches));
}

/* Returns the bytes of all tables. Under the lock. */
static inline uint64_t shard_table_bytes(const struct shard *shard)
{
	return table_bytes(shard->table) + (shard->next ? table_bytes(shard->next) : 0) +
	       (shard->old ? table_bytes(shard->old) : 0);
}

/* ---- When entries are examined ---- */

/* Ticks of the expiry are granules. The first has this number, so that the granules of one tick of
 * the wheel share a slot of the second level, and come up together when the alarm runs. */
enum { SHARD_FIRST_TICK = EXPIRY_SLOTS - 1 };

/* Returns the tick at whose end the deadline has passed. */
static inline uint64_t shard_tick_of(const struct shard *shard, tw_duration deadline)
{
	return (uint64_t)((deadline - 1) / shard->shared->granule) + 1 + SHARD_FIRST_TICK;
}

/* Files the hash at a place that is not 0. Returns false if out of memory. */
bool shard_file(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, unsigned place)
	HOLDS(shard->lock);
/* Schedules an examination of the key at the deadline of its entry. `filed` is the place where the
 * key's entry was filed before, or 0. Returns false if out of memory. */
static inline bool shard_watch(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry,
			       unsigned filed, tw_duration deadline) HOLDS(shard->lock)
{
	unsigned place = 0;

	if (deadline != TW_FOREVER)
		place = expiry_place(&shard->expiry, shard_tick_of(shard, deadline));
	if (place != 0 && (filed == 0 || filed > place))
		return shard_file(shard, hash, entry, place);
	entry_set_filed(entry, filed);
	return true;
}

/* Sets the alarm for that tick, unless it is set to an earlier time. */
void shard_arm(struct shard *shard, uint64_t tick) HOLDS(shard->lock);
/* Examines a block of hashes that came up by now, before the alarm runs: up to 30 entries. */
void shard_expire_early(struct shard *shard, tw_duration now) HOLDS(shard->lock);
/* Expires some before each change of a key if the alarm is late, because all workers are busy. */
static inline void shard_expire_late(struct shard *shard, tw_duration now) HOLDS(shard->lock)
{
	if (__builtin_expect(shard->late_at <= now, 0))
		shard_expire_early(shard, now);
}

/* ---- What comes and goes; under the lock ---- */

/* Makes room for one entry more. Returns false if out of memory. */
bool shard_reserve(struct shard *shard) HOLDS(shard->lock);
/* Puts in the entry of a new key, which is watched, and makes room for it. What that leaves over
 * the limits is for cache_evict(), which lets the lock go in between. */
void shard_link(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, tw_duration now)
	HOLDS(shard->lock);
/* Puts the entry, which is watched, in the place of `old` of the same key, and then evicts others
 * to make room, as shard_link() does. */
void shard_replace(struct shard *shard, _Atomic uint64_t *slot, struct tw_cache_entry *old,
		   struct tw_cache_entry *entry, tw_duration now) HOLDS(shard->lock);
/* Puts an equal entry in the place of a pinned one that is linked, not adopted, and pinned only
 * once. on_remove is not called for it. Returns false if out of memory. */
bool shard_move(struct shard *shard, struct tw_cache_entry *entry) HOLDS(shard->lock);
/* Takes out the entry in that slot. */
void shard_unlink(struct shard *shard, _Atomic uint64_t *slot, enum tw_cache_cause cause,
		  tw_duration now) HOLDS(shard->lock);
/* Lists up to `most` ≥ 8 entries more. May return 0 before the walk is over. */
size_t shard_walk_on(struct shard *shard, struct shard_walk *walk, struct tw_cache_entry **entries,
		     size_t most) HOLDS(shard->lock);

struct evicted {
	uint64_t entries;
	uint64_t weight;
};

/* Evicts up to `most` entries while the limits are exceeded, but not `spared` (or NULL). Expired
 * entries leave first, up to two blocks of the expiry, which come on top of `most`. For a limit by
 * weight it evicts no live entry if the shard has less than its share, unless `below_share`. */
struct evicted shard_evict(struct shard *shard, unsigned most, bool below_share,
			   const struct tw_cache_entry *spared, tw_duration now) HOLDS(shard->lock);

/* ---- As a whole: in short steps, with the lock let go in between ---- */

/* Opens the shard. Returns a status of tw_alarm_init. On failure, too, it is to be closed. */
enum tw_status shard_open(struct shard *shard, struct shared_state *shared,
			  struct removals *removals);
/* Frees the shard, which is empty. No thread may look anything up. */
void shard_close(struct shard *shard);
/* Removes the entries past their deadlines. The alarm runs this, too. */
void shard_expire(void *shard);
/* Removes all entries. */
void shard_clear(struct shard *shard, enum tw_cache_cause cause);
/* Does up to `steps` steps of what changes do a part of: examining hashes of no use, filling the
 * next table, and returning spare cells. Returns how many steps are left, or 0 if there is more to
 * do. */
size_t shard_tidy(struct shard *shard, size_t steps);

#endif
