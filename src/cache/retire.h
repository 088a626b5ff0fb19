/* SPDX-License-Identifier: MIT */
/*
 * A retiring reader is a thread's reader of one cache with the entries and tables that the thread
 * unlinked. It keeps them until no reader sees them, and then keeps their memory for the thread's
 * next sets. All readers of a cache are retiring readers. Each has a lock of its own, which is
 * taken before those of shards.
 */
#ifndef CACHE_RETIRE_H
#define CACHE_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "shared.h"
#include "entry.h"
#include "epoch.h"
#include "table.h"

/* A retired list has unlinked entries in order, linked by retired_next. */
struct retired_list {
	struct tw_cache_entry *first;
	struct tw_cache_entry *last;
	uint32_t count;
	uint32_t adopted; /* entries with a value adopted from the user */
	uint64_t bytes;
};

static inline void retired_empty(struct retired_list *list)
{
	list->first = NULL;
	list->last = NULL;
	list->count = 0;
	list->adopted = 0;
	list->bytes = 0;
}

/* Readers are looked at once RETIRED_FEW entries or RETIRED_BYTES bytes are fresh, or later. */
enum { RETIRED_BATCHES = 8, RETIRED_FEW = 16, RETIRED_BYTES = 32768 };

/* A retired batch has entries that a reader in one era might have seen. */
struct retired_batch {
	struct retired_list list;
	uint64_t era;   /* 0 if not known */
	uint64_t stamp; /* not before the stamp of any entry in it */
};

struct retiring_reader {
	struct reader reader;
	/* Under the reader's lock: statistics wait for it; maintenance tries. */
	struct retired_list fresh;                     /* entries without a stamp */
	struct retired_list stamped;                   /* entries that share `stamp` */
	struct retired_batch batches[RETIRED_BATCHES]; /* entries that a reader might see */
	uint64_t batched_count;                        /* entries in all batches */
	uint64_t stamp; /* an era: the stamp of all entries in `stamped` */
	uint64_t era;   /* the era at the end of the last look */
	struct table *tables;
	struct pool_spare spare;
};

/* Takes over a table, to free it once no reader sees it. */
void retire_add_table(struct retiring_reader *thread, struct table *table);
/* Does what retire_end() does for a thread that may have something to free or to give back. */
void retire_end_due(struct retiring_reader *thread, struct shared_state *shared);
/* Frees what can be freed, and keeps no memory. Returns false if something is left. */
bool retire_clear(struct retiring_reader *thread, struct shared_state *shared);
/* Returns whether nothing is left in the reader of a thread that has ended. */
bool retire_is_empty(struct reader *reader);
/* Adds the bytes retired to *retired, and the bytes of spare cells to *spare. */
void retire_sum(struct retiring_reader *thread, uint64_t *retired, uint64_t *spare);
/* Frees all that the thread keeps. No thread may be inside the cache, or enter it again. */
void retire_close(struct retiring_reader *thread, struct shared_state *shared);

/* Appends an entry, with the table's reference. */
static inline void retired_add(struct retired_list *list, struct tw_cache_entry *entry)
{
	entry->retired_next = NULL;
	if (list->last)
		list->last->retired_next = entry;
	else
		list->first = entry;
	list->last = entry;
	list->count++;
	list->bytes += pool_cell_size(entry_size(entry));
	list->adopted += (entry->kind & ENTRY_ADOPTED) != 0;
}

/* Returns the retiring reader that begins with `reader`. */
static inline struct retiring_reader *retiring_reader(struct reader *reader)
{
	return (struct retiring_reader *)reader;
}

/* Locks and returns the calling thread's retiring reader, or the one shared by threads without
 * memory. */
static inline struct retiring_reader *retire_begin(struct shared_state *shared)
{
	struct reader *reader = epochs_reader(&shared->epochs);
	struct retiring_reader *thread = retiring_reader(reader ? reader : shared->nobody);

	own_lock_take(&thread->reader.lock);
	return thread;
}

static inline bool retire_has_some(const struct retiring_reader *thread)
{
	return thread->fresh.first || thread->stamped.first || thread->batched_count > 0 ||
	       thread->tables;
}

/* Unlocks the retiring reader, and schedules maintenance if it keeps something. */
static inline void retire_unlock(struct retiring_reader *thread, struct shared_state *shared)
{
	bool asks = thread->spare.bytes > 0 || retire_has_some(thread);

	own_lock_let_go(&thread->reader.lock);
	if (asks)
		shared_ask_maintenance(shared);
}

/* Unlocks the retiring reader. Before that, frees what no reader sees, if a look is worth its cost
 * or a value was adopted from the user. It may call free functions of the user, so the caller must
 * have no other lock. */
static inline void retire_end(struct retiring_reader *thread, struct shared_state *shared)
{
	if (__builtin_expect(thread->fresh.count >= RETIRED_FEW ||
				     thread->fresh.bytes >= RETIRED_BYTES ||
				     thread->fresh.adopted > 0 || thread->spare.has_grown,
			     0))
		retire_end_due(thread, shared);
	else
		retire_unlock(thread, shared);
}

static inline __attribute__((always_inline)) struct tw_cache_entry *entry_from(
	struct retiring_reader *thread, struct shared_state *shared, struct entry_plan *plan)
{
	plan->birth = epochs_era(&shared->epochs);
	return entry_make(spare_take(&thread->spare, shared->pool, plan->size), plan);
}

#endif
