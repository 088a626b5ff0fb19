/* SPDX-License-Identifier: MIT */
/*
 * Where what was unlinked is kept while readers may still be looking at it: by a shard, under its
 * lock, or by a thread (stash.h).
 */
#ifndef CACHE_LIMBO_H
#define CACHE_LIMBO_H

#include <stdbool.h>
#include <stdint.h>

#include "epoch.h"
#include "policy.h"
#include "table.h"

struct limbo {
	struct tw_cache_entry *fresh; /* not stamped yet */
	unsigned fresh_count;
	bool is_urgent; /* there is something large in it, or somebody asked */
	/* Those that were fresh together. */
	struct tw_cache_entry *stamped;
	uint64_t stamp;
	struct table *tables;
};

/* The table knows it no more; takes over the table's reference. */
void limbo_add(struct limbo *limbo, struct tw_cache_entry *entry);
/* Another table has taken its place. */
void limbo_add_table(struct limbo *limbo, struct epochs *epochs, struct table *table);
/* If it is worth the look: what no reader sees any more goes back to the pool, or into `garbage`
 * what may not be freed under a lock. */
void limbo_take(struct limbo *limbo, struct epochs *epochs, struct pool *pool,
		struct policy *policy, struct limbo *garbage);
/*
 * Goes on by an epoch if no reader is behind: *goes_on. Returns, linked by limbo_next, the entries
 * that no reader sees any more; NULL: none. Their references are the caller's.
 */
struct tw_cache_entry *limbo_go_on(struct limbo *limbo, struct epochs *epochs, bool *goes_on);
/* Frees all, which no reader sees any more. With no lock held: calls free functions of users. */
void limbo_close(struct limbo *limbo);

static inline bool limbo_is_empty(const struct limbo *limbo)
{
	return !limbo->fresh && !limbo->stamped && !limbo->tables;
}

#endif
