/* SPDX-License-Identifier: MIT */
/*
 * The policy chooses the entry of a shard that makes room. All functions are called under the
 * shard's lock, except policy_use(), which any thread may call. `weight` is always
 * that of the entry, by entry_weight().
 */
#ifndef CACHE_POLICY_H
#define CACHE_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "entry.h"

/* Ghosts are the hashes of keys that were evicted lately. */
struct ghost_slot {
	uint32_t hash;
	uint32_t time; /* when it was evicted; the lowest bit says that it left the main queue */
};

struct ghost {
	struct ghost_slot *slots; /* NULL if nothing is remembered */
	size_t mask;              /* buckets - 1 */
	uint32_t time;            /* time of the last eviction; goes up by two */
};

/* A ghost memory is what is remembered of a key. */
struct ghost_memory {
	bool was_main; /* it left the main queue */
	uint32_t age;  /* evictions since then */
};

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
	/* These two are on one line. */
	_Alignas(32) struct policy_queue small; /* empty until an eviction */
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
/* Returns the entry that has to leave, so that there are fewer or they weigh less, or NULL if there
 * is none except `spared` (or NULL). It stays in its queue. Looks at no more than *looks entries,
 * and counts that down. */
struct tw_cache_entry *policy_victim(struct policy *policy, bool by_number,
				     const struct tw_cache_entry *spared, unsigned *looks);

/* Counts a use of the entry. One that was used three times is not written again. */
static inline void policy_use(const struct policy *policy, struct tw_cache_entry *entry)
{
	unsigned uses = policy->is_on ? entry_uses(entry) : 3;

	if (uses < 3)
		entry_set_uses(entry, uses + 1);
}

/* ---- Ghosts ---- */

void ghost_init(struct ghost *ghost);
/* Frees the slots. A ghost that remembers nothing has none. */
void ghost_forget(struct ghost *ghost);
size_t ghost_bytes(const struct ghost *ghost);
/* Makes room for `entries` hashes; if memory is short, fewer are remembered. */
void ghost_reserve(struct ghost *ghost, size_t entries);
void ghost_add(struct ghost *ghost, uint32_t hash, bool was_main);
/* Returns whether the hash was among the last `window` ones, sets *memory if so, and forgets it. */
bool ghost_take(struct ghost *ghost, uint32_t hash, size_t window, struct ghost_memory *memory);

#endif
