/* SPDX-License-Identifier: MIT */
/*
 * A fork guard is a word that shows whether a wheel is open: not stopped, and not a copy in a
 * fork's child, where its threads are missing and locks may be held for ever. It is compared with
 * the process's generation, which a handler of fork() raises in the child. Any thread may call
 * these functions.
 */
#ifndef FORK_GUARD_H
#define FORK_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>

/* The process's generation, an even number. It is written in a fork's child alone, which has one
 * thread then. */
extern unsigned fork_generation __attribute__((visibility("hidden")));

struct fork_guard {
	atomic_uint word; /* the generation in which it was opened; plus 1 when it is closed */
};

/* Opens the guard. Returns false if out of memory. */
bool fork_guard_open(struct fork_guard *guard);

/* relaxed: closing publishes nothing. A thread that synchronizes with the closer sees the guard
 * closed. A command that another thread gives meanwhile takes its place before or after the request
 * to stop. */
static inline unsigned fork_guard_word(const struct fork_guard *guard)
{
	return atomic_load_explicit(&guard->word, memory_order_relaxed);
}

static inline bool fork_guard_is_open(const struct fork_guard *guard)
{
	return fork_guard_word(guard) == fork_generation;
}

/* Returns whether this process is a child of the one that opened the guard. */
static inline bool fork_guard_is_left_behind(const struct fork_guard *guard)
{
	return (fork_guard_word(guard) & ~1u) != fork_generation;
}

/* Closes the guard. Returns true to the one call that closed it. */
static inline bool fork_guard_close(struct fork_guard *guard)
{
	unsigned word = fork_generation;

	/* relaxed: as in fork_guard_word(). */
	return atomic_compare_exchange_strong_explicit(&guard->word, &word, word + 1,
						       memory_order_relaxed, memory_order_relaxed);
}

#endif
