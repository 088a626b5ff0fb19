/* SPDX-License-Identifier: MIT */
/*
 * Which entry of a shard is to make room. Under the shard's lock, but for policy_use(), which any
 * thread inside an era may call.
 */
#ifndef CACHE_POLICY_H
#define CACHE_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "entry.h"
#include "ghost.h"
#include "table.h"

enum { POLICY_TOUCHES = 32 };

/* From first in, or least recently used, to last. */
struct policy_queue {
	size_t count;
	struct list entries;
};

struct policy {
	enum tw_cache_policy kind; /* constant */
	atomic_bool is_on;         /* else nothing is kept; written under the lock */
	bool knows_all;            /* also what came before it was on */
	uint32_t settled;          /* LRU: as many touches as the order has seen */
	struct policy_queue main;  /* LRU: the only one */
	struct policy_queue small; /* S3-FIFO */
	struct policy_queue past;  /* expired entries, not used since */
	struct ghost ghost;
	struct policy_queue light; /* what weighs nothing, and was to make room by its weight */
	struct policy_queue absences;
	uint64_t absence_bytes; /* their weights */
	/* LRU: what was used since the order was last brought up to date. Any thread. */
	_Alignas(64) _Atomic uint32_t touched;
	_Atomic uint64_t touches[POLICY_TOUCHES]; /* hashes; 0: none */
};

void policy_init(struct policy *policy, enum tw_cache_policy kind);
/* What is remembered of keys that are not there: for the end, and where few entries are left. */
void policy_forget(struct policy *policy);
/* What it takes of memory beside `policy`. */
size_t policy_bytes(const struct policy *policy);
/* From now on entries that come are known and uses count. */
void policy_turn_on(struct policy *policy);
/* One that was there before, if it is not known yet. */
void policy_add_early(struct policy *policy, struct tw_cache_entry *entry);
/* `table`: of all that are known. */
void policy_add(struct policy *policy, struct table *table, struct tw_cache_entry *entry);
/* `entry` takes the place of `old`. */
void policy_replace(struct policy *policy, struct tw_cache_entry *old,
		    struct tw_cache_entry *entry);
void policy_remove(struct policy *policy, struct tw_cache_entry *entry);
/* Makes an expired entry the next to go, unless it is used from now on. */
void policy_demote(struct policy *policy, struct table *table, struct tw_cache_entry *entry);
/* Which has to go: by their number, or by their weight. NULL: none but `spared` (or NULL) is there.
 * It stays until policy_remove(). Looks at no more than *looks entries, and counts that down. */
struct tw_cache_entry *policy_victim(struct policy *policy, struct table *table, bool by_number,
				     const struct tw_cache_entry *spared, unsigned *looks);
/* Returns the absence that has to go, likewise. */
struct tw_cache_entry *policy_absence(struct policy *policy, struct table *table,
				      const struct tw_cache_entry *spared, unsigned *looks);
/* Puts a victim that weighs nothing out of the way: it is no victim by weight from then on. */
void policy_pass(struct policy *policy, struct tw_cache_entry *entry);
/* LRU: brings the order up to date. */
void policy_settle(struct policy *policy, struct table *table);

/* Asserts the invariants by examining all queues. Returns the number of entries in them. */
size_t policy_check(const struct policy *policy);

static inline bool policy_is_on(const struct policy *policy)
{
	/* relaxed: uses that come before it is seen are lost, and it orders nothing else. */
	return atomic_load_explicit(&policy->is_on, memory_order_relaxed);
}

/* LRU: true where the order should be brought up to date soon. */
bool policy_touch(struct policy *policy, uint64_t hash);

/* The entry with that hash was used. True: the caller should call policy_settle() if the lock is
 * free. */
static inline bool policy_use(struct policy *policy, struct tw_cache_entry *entry, uint64_t hash)
{
	uint8_t uses;

	if (!policy_is_on(policy))
		return false;
	if (policy->kind == TW_POLICY_LRU)
		return policy_touch(policy, hash);
	/* relaxed: a hint; of two uses at once one may be lost. */
	uses = atomic_load_explicit(&entry->uses, memory_order_relaxed);
	if (uses < 3)
		/* relaxed: as above. */
		atomic_store_explicit(&entry->uses, (uint8_t)(uses + 1), memory_order_relaxed);
	return false;
}

#endif
