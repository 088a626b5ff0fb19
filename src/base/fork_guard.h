/* SPDX-License-Identifier: MIT */
/*
 * A fork guard is a word that shows by one load whether the wheel is open: not stopped, and not a
 * copy in a fork's child, which has no threads. The handlers of fork() set it in the child. Any
 * thread may call the other functions.
 */
#ifndef FORK_GUARD_H
#define FORK_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>

enum fork_guard_state { FORK_GUARD_CHILD, FORK_GUARD_OPEN, FORK_GUARD_CLOSED };

struct fork_guard {
	atomic_int state;
};

static inline enum fork_guard_state fork_guard_state(const struct fork_guard *guard)
{
	/* relaxed: closing publishes nothing. A thread that synchronizes with the closer sees the
	 * guard closed. A command that another thread gives meanwhile takes its place before or
	 * after the request to stop. */
	return (enum fork_guard_state)atomic_load_explicit(&guard->state, memory_order_relaxed);
}

/* Sets the guard of a wheel that is being made, or in a fork's child. No other call may run. */
static inline void fork_guard_set(struct fork_guard *guard, enum fork_guard_state state)
{
	/* relaxed: one thread knows of the guard. */
	atomic_store_explicit(&guard->state, (int)state, memory_order_relaxed);
}

/* Closes the guard. Returns true to the one call that closed it. */
static inline bool fork_guard_close(struct fork_guard *guard)
{
	int state = (int)fork_guard_state(guard);

	/* relaxed: as in fork_guard_state(). */
	return state == FORK_GUARD_OPEN &&
	       atomic_compare_exchange_strong_explicit(&guard->state, &state, FORK_GUARD_CLOSED,
						       memory_order_relaxed, memory_order_relaxed);
}

#endif
