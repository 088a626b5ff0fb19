/* SPDX-License-Identifier: MIT */
/*
 * A limit counts places that are taken and given back, at most `most` at a time. Any thread may
 * call these functions, all together. The count orders nothing, so its operations are relaxed.
 */
#ifndef LIMIT_H
#define LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct limit {
	size_t most; /* constant; 0 means no limit, and nothing is counted */
	atomic_size_t taken;
};

static inline size_t limit_taken(const struct limit *limit)
{
	return atomic_load_explicit(&limit->taken, memory_order_relaxed);
}

/* Gives back `count` places. */
static inline void limit_give(struct limit *limit, size_t count)
{
	if (limit->most > 0)
		atomic_fetch_sub_explicit(&limit->taken, count, memory_order_relaxed);
}

/* Takes a place, also above the limit. Returns false if all places were taken. */
static inline bool limit_take_over(struct limit *limit)
{
	return limit->most == 0 ||
	       atomic_fetch_add_explicit(&limit->taken, 1, memory_order_relaxed) < limit->most;
}

/* Takes a place. Returns false, and takes none, if all were taken. */
static inline bool limit_take(struct limit *limit)
{
	if (limit_take_over(limit))
		return true;
	limit_give(limit, 1);
	return false;
}

#endif
