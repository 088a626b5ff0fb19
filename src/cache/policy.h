/* SPDX-License-Identifier: MIT */
/*
 * The policy chooses the entry of a shard that makes room. All functions are called under the
 * shard's lock, except policy_use(), which any thread inside an era may call. `weight` is always
 * that of the entry, by entry_weight().
 */
#ifndef CACHE_POLICY_H
#define CACHE_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "entry.h"
#include "ghost.h"

/* A queue has its entries from the first that came to the last. */
struct policy_queue {
	size_t count;
	uint64_t weight;
	struct list entries;
};

struct policy {
	/* Written seldom: on the cache line of the shard that each lookup reads. */
	bool is_on;     /* constant; without a limit at the start nothing is kept */
	bool is_lru;    /* constant */
	bool remembers; /* an entry was evicted; never with LRU */
	bool has_stale; /* the small queue may begin with expired entries */
	/* These two are on one line. */
	_Alignas(32) struct policy_queue small; /* without expired ones empty until an eviction */
	struct policy_queue main;
	double share; /* the part of all entries that the small queue is to have */
	double flow;  /* the part of the last evictions that left the small queue */
	struct ghost ghost;
};

/* Initializes the policy of a shard without entries. */
void policy_init(struct policy *policy, enum tw_cache_policy kind, bool is_on);
/* Frees what is remembered of evicted keys: at the end, and where few entries are left. */
void policy_forget(struct policy *policy);
/* Puts in an entry that is in no queue. The policy is on. */
void policy_add(struct policy *policy, struct tw_cache_entry *entry, uint64_t weight);
/* Puts `entry` in the place of `old`, which weighs `old_weight`. */
void policy_replace(struct policy *policy, struct tw_cache_entry *old, uint64_t old_weight,
		    struct tw_cache_entry *entry, uint64_t weight);
/* Takes out an entry, if it is in a queue. */
void policy_remove(struct policy *policy, struct tw_cache_entry *entry, uint64_t weight);
/* Makes an entry with ENTRY_STALE the next to leave, unless it is used from now on. */
void policy_demote(struct policy *policy, struct tw_cache_entry *entry, uint64_t weight);
/* Returns the entry that has to leave, so that there are fewer or they weigh less, or NULL if there
 * is none except `spared` (or NULL). It stays in its queue. Looks at no more than *looks entries,
 * and counts that down. */
struct tw_cache_entry *policy_victim(struct policy *policy, bool by_number,
				     const struct tw_cache_entry *spared, unsigned *looks);

/* Counts a use of the entry. One that was used three times is not written again. */
static inline void policy_use(const struct policy *policy, struct tw_cache_entry *entry)
{
	uint8_t uses;

	if (!policy->is_on)
		return;
	/* relaxed: a hint; of two uses at once one may be lost. */
	uses = atomic_load_explicit(&entry->uses, memory_order_relaxed);
	if (uses < 3)
		/* relaxed: a hint, as the load is. */
		atomic_store_explicit(&entry->uses, (uint8_t)(uses + 1), memory_order_relaxed);
}

#endif
