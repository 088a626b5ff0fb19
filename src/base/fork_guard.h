/* SPDX-License-Identifier: MIT */
/*
 * A fork guard is a word that the kernel clears in a fork's child. One load of it shows whether the
 * wheel is open: not stopped, and not a copy in a child, which has no threads. A child that goes on
 * with its copy sets the word again. Any thread may call these functions.
 */
#ifndef FORK_GUARD_H
#define FORK_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>

enum fork_guard_state {
	FORK_GUARD_CHILD, /* must be 0: the kernel clears the word */
	FORK_GUARD_OPEN,
	FORK_GUARD_OPEN_TO_ONE, /* one thread alone makes calls; a fork changes nothing */
	FORK_GUARD_CLOSED
};

struct fork_guard {
	atomic_int state; /* alone on a page of its own */
};

/* Returns a guard that is open, or open to one, or NULL if out of memory. */
struct fork_guard *fork_guard_create(enum fork_guard_state state);
void fork_guard_destroy(struct fork_guard *guard);
/* Closes the guard. Returns true to the one call that closed it. */
bool fork_guard_close(struct fork_guard *guard);
/* Sets the guard in a fork's child that goes on with its copy. No other call may run. */
void fork_guard_set(struct fork_guard *guard, enum fork_guard_state state);

static inline enum fork_guard_state fork_guard_state(const struct fork_guard *guard)
{
	/* relaxed: closing publishes nothing. A thread that synchronizes with the closer sees the
	 * guard closed. A command that another thread gives meanwhile takes its place before or
	 * after the request to stop. */
	return (enum fork_guard_state)atomic_load_explicit(&guard->state, memory_order_relaxed);
}

#endif
