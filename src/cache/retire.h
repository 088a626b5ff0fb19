/* SPDX-License-Identifier: MIT */
/*
 * What a thread keeps of one cache: the entries and tables that its calls put out of the table,
 * until no reader sees them, and then their memory, for its next sets. Under a lock of its own,
 * which is taken outside those of shards.
 */
#ifndef CACHE_RETIRE_H
#define CACHE_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/own_lock.h"
#include "domain.h"
#include "entry.h"
#include "epoch.h"
#include "table.h"

/* Entries that no table knows, linked by retired_next, in order. */
struct retired_list {
	struct tw_cache_entry *first;
	struct tw_cache_entry *last;
	uint64_t count;
	uint64_t bytes;
	uint64_t adopted; /* of these: with a value of a user's */
};

enum { RETIRED_BATCHES = 8 };

/* A retired batch has entries that a reader in one era might have seen. */
struct retired_batch {
	struct retired_list list;
	uint64_t era;   /* 0 if not known */
	uint64_t stamp; /* not before the stamp of any entry in it */
};

struct thread_cache {
	struct reader reader;
	struct own_lock lock; /* statistics wait for it; maintenance tries */
	/* Under it. */
	struct retired_list fresh;   /* not stamped yet */
	struct retired_list stamped; /* those that were fresh together */
	struct retired_batch
		batches[RETIRED_BATCHES]; /* when their turn came a reader might have seen them */
	uint64_t batched_count;           /* of entries, in all of these */
	uint64_t stamp;                   /* an era; of all that are stamped */
	uint64_t era;                     /* at the end of the last look */
	bool is_urgent;                   /* there is something of a user's */
	struct table *tables;
	struct pool_spare spare;
};

/* Begins with the calling thread's, or what is there for those without memory. */
struct thread_cache *thread_begin(struct domain *domain);
/* Takes over what no table knows any more, and leaves the list and the tables empty: with each
 * entry the table's reference. */
void thread_retire(struct thread_cache *thread, struct retired_list *list, struct table **tables);
/* Ends it. Frees what no reader sees, if that is worth the look: may call free functions of users.
 * With no other lock held. */
void thread_end(struct thread_cache *thread, struct domain *domain);
/* Frees what can be freed, and keeps no memory. False: something is left to be freed. */
bool thread_clear(struct thread_cache *thread, struct domain *domain);
/* Bytes of what is retired, and of spare cells. */
void thread_sum(struct thread_cache *thread, uint64_t *retired, uint64_t *spare);
/* Frees all; no thread is inside or comes again. */
void thread_close(struct thread_cache *thread, struct domain *domain);

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

/* All readers of a cache are made as such. */
static inline struct thread_cache *reader_thread(struct reader *reader)
{
	return (struct thread_cache *)reader;
}

static inline struct tw_cache_entry *entry_from(struct thread_cache *thread, struct domain *domain,
						struct entry_plan *plan)
{
	plan->birth = epochs_era(&domain->epochs);
	return entry_make(spare_take(&thread->spare, domain->pool, plan->size), plan);
}

#endif
