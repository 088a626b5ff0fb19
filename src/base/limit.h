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

/* Gives back a place. */
static inline void limit_give(struct limit *limit)
{
	if (limit->most > 0)
		atomic_fetch_sub_explicit(&limit->taken, 1, memory_order_relaxed);
}

/* Takes a place. Returns false if all are taken. */
static inline bool limit_take(struct limit *limit)
{
	size_t taken = limit_taken(limit);

	if (limit->most == 0)
		return true;
	do
		if (taken >= limit->most)
			return false;
	while (!atomic_compare_exchange_weak_explicit(&limit->taken, &taken, taken + 1,
						      memory_order_relaxed, memory_order_relaxed));
	return true;
}

#endif
