/* SPDX-License-Identifier: MIT */
/*
 * A shard is a part of the cache: a table, what is kept of its entries' ages and uses, and the lock
 * for all changes of them (shard.h).
 */
#ifndef CACHE_SHARD_STATE_H
#define CACHE_SHARD_STATE_H

#include "base/turn_lock.h"
#include "shared.h"
#include "expiry.h"
#include "flight.h"
#include "removal.h"
#include "policy.h"
#include "retire.h"
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
	/* Written under the lock, read by any thread inside an era. */
	_Alignas(64) _Atomic(struct table *) table;
	_Atomic uintptr_t place;     /* where its buckets lie; any thread, outside an era, too */
	struct shared_state *shared; /* constant */
	struct removals *removals;   /* constant */
	struct policy policy;        /* under the lock */
	/* Under the lock: first what each change looks at, in as few lines as can be. */
	_Alignas(64) struct turn_lock lock;
	bool has_flights;   /* a key may have one in its chain */
	bool must_tend;     /* something is done in steps, or should be: see shard_tend() */
	struct table *next; /* the table being made to take its place, or NULL */
	/* Since shard_begin. */
	int32_t entries_more; /* entries that the shared state has not counted yet */
	int64_t bytes_more;
	uint64_t bytes;                   /* the weights of its entries */
	struct retiring_reader *retiring; /* the one of the thread that makes the change */
	struct removal_list to_tell;
	uint64_t armed;      /* the first tick with something filed, or earlier, or EXPIRY_NEVER */
	tw_duration past_at; /* the end of that tick; no filed deadline is earlier */
	tw_duration late_at; /* the time before which the alarm should have run */
	struct expiry expiry;
	uint64_t removed[TW_CACHE_CAUSES];
	uint64_t refused;             /* values too heavy alone */
	size_t next_cleared;          /* buckets of `next` that are cleared */
	size_t next_copied;           /* buckets of the table whose entries `next` has */
	uint64_t tables;              /* number of tables that took the place of another */
	struct turn_lock_sleep sleep; /* for the lock */
	_Alignas(64) struct flights flights;
	struct tw_alarm alarm;
};

/* Takes the lock for work that changes no entry. */
static inline void shard_begin(struct shard *shard) TAKES(shard->lock)
{
	turn_lock_take(&shard->lock);
}

/* Takes the lock if it is free. Returns whether it was. */
static inline bool shard_try_begin(struct shard *shard) TRIES(shard->lock)
{
	return turn_lock_try(&shard->lock);
}

/* Ends what shard_begin() or shard_try_begin() began. */
static inline void shard_end_unchanged(struct shard *shard) LETS_GO(shard->lock)
{
	turn_lock_let_go(&shard->lock);
}

/* Takes the lock for changes between retire_begin and retire_end. What they unlink is retired by
 * that thread. */
static inline void shard_begin_in(struct shard *shard, struct retiring_reader *thread)
	TAKES(shard->lock)
{
	shard_begin(shard);
	shard->retiring = thread;
}

/* Fetches the key's bucket; outside an era, too. Returns what shard_place() returns inside,
 * unless there is another table by then. */
static inline uintptr_t shard_prefetch_bucket(const struct shard *shard, uint64_t hash)
{
	/* relaxed: no thread looks at what is there. */
	uintptr_t place =
		atomic_load_explicit(&((struct shard *)shard)->place, memory_order_relaxed);

	__builtin_prefetch(place_bucket(place, hash));
	return place;
}

/* Returns where the table's buckets lie. Inside an era. */
static inline uintptr_t shard_place(const struct shard *shard)
{
	/* seq_cst: as in shard_table(); pairs with shard_end_resizing(). */
	return atomic_load_explicit(&((struct shard *)shard)->place, memory_order_seq_cst);
}

static inline struct table *shard_table(const struct shard *shard)
{
	/* seq_cst: after reader_enter(); also acquires the table that
	 * shard_end_resizing() published. */
	return atomic_load_explicit(&((struct shard *)shard)->table, memory_order_seq_cst);
}

/* Fetches the entry that is most likely the key's. */
static inline void shard_prefetch_guess(const struct shard *shard, struct reader *reader,
					uint64_t hash)
{
	struct epochs *epochs = &shard->shared->epochs;
	uint64_t era = reader_enter(reader, epochs);
	const struct table *table = shard_table(shard);

	if (epochs_is_in(epochs, era))
		__builtin_prefetch(table_guess(table, hash), 1);
	reader_leave(reader);
}

#endif
