/* SPDX-License-Identifier: MIT */
/* A number of places that are taken and given back, at most so many at a time. Any thread. */
#ifndef LIMIT_H
#define LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct limit {
	size_t most; /* constant; 0: there is no limit, and nothing is counted */
	atomic_size_t taken;
};

static inline size_t limit_taken(const struct limit *limit)
{
	/* relaxed: a count, orders nothing. */
	return atomic_load_explicit(&limit->taken, memory_order_relaxed);
}

static inline void limit_give(struct limit *limit, size_t count)
{
	/* relaxed: a count, orders nothing. */
	if (limit->most > 0)
		atomic_fetch_sub_explicit(&limit->taken, count, memory_order_relaxed);
}

/* Takes a place over the limit if need be; false: it was. */
static inline bool limit_take_over(struct limit *limit)
{
	/* relaxed: a count, orders nothing. */
	return limit->most == 0 ||
	       atomic_fetch_add_explicit(&limit->taken, 1, memory_order_relaxed) < limit->most;
}

/* False: there is none. */
static inline bool limit_take(struct limit *limit)
{
	if (limit_take_over(limit))
		return true;
	limit_give(limit, 1);
	return false;
}

#endif
