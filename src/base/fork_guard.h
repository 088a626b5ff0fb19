/* SPDX-License-Identifier: MIT */
/*
 * A word that a fork's child finds cleared. It tells with one load whether the wheel is open: it
 * was neither stopped nor left behind in a child, whose copy has no threads. Any thread.
 */
#ifndef FORK_GUARD_H
#define FORK_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>

enum fork_guard_state {
	FORK_GUARD_CHILD, /* what the kernel clears it to */
	FORK_GUARD_OPEN,
	FORK_GUARD_CLOSED
};

struct fork_guard {
	atomic_int state; /* alone on a page of its own */
};

/* Open; NULL: out of memory. */
struct fork_guard *fork_guard_create(void);
void fork_guard_destroy(struct fork_guard *guard);
/* True for the one call that closed it. */
bool fork_guard_close(struct fork_guard *guard);

static inline enum fork_guard_state fork_guard_state(const struct fork_guard *guard)
{
	/* relaxed: nothing is published by closing. A thread that was told of it sees it closed;
	 * what one that was not gives meets the request to stop. */
	return (enum fork_guard_state)atomic_load_explicit(&guard->state, memory_order_relaxed);
}

#endif
