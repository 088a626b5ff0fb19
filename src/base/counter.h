/* SPDX-License-Identifier: MIT */
/*
 * A counter is a number that any thread reads. One thread at a time writes it, with plain
 * additions, or any thread adds to it, with atomic ones.
 *
 * Counters are statistics and limits: they order nothing, so their operations are relaxed, and no
 * other file has to say so. Only the functions named _ordered order: they are for counters that are
 * compared with each other.
 *
 * Which calls may run together (x), and which may not (-):
 *
 *                            read,          add_shared   set, add, subtract,
 *                            read_ordered                add_ordered
 *   read, read_ordered       x              x            x
 *   add_shared               x              x            -
 *   set, add, subtract,      x              -            -
 *   add_ordered
 */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the counter. Any thread. */
static inline uint64_t counter_read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Sets the counter. One thread at a time. */
static inline void counter_set(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Adds `more` to the counter; a negative number subtracts. Any thread. */
static inline void counter_add_shared(_Atomic uint64_t *counter, int64_t more)
{
	atomic_fetch_add_explicit(counter, (uint64_t)more, memory_order_relaxed);
}

/* Adds `more` to the counter. One thread at a time. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t more)
{
	uint64_t before = counter_read(counter);

	atomic_store_explicit(counter, before + more, memory_order_relaxed);
}

/* Subtracts `less` from the counter. One thread at a time. */
static inline void counter_subtract(_Atomic uint64_t *counter, uint64_t less)
{
	counter_add(counter, 0 - less);
}

/* Returns the counter. A thread that sees a change of this counter sees all changes of counters
 * that were made before it. */
static inline uint64_t counter_read_ordered(const _Atomic uint64_t *counter)
{
	/* acquire: later reads see what was counted before; pairs with the release in
	 * counter_add_ordered(). */
	return atomic_load_explicit(counter, memory_order_acquire);
}

/* Adds `more` to the counter after all earlier changes of counters. One thread at a time. */
static inline void counter_add_ordered(_Atomic uint64_t *counter, uint64_t more)
{
	uint64_t before = counter_read(counter);

	/* release: pairs with the acquire in counter_read_ordered(). */
	atomic_store_explicit(counter, before + more, memory_order_release);
}

/*
 * A limit counts places that are taken and given back, at most `most` at a time. Any thread may
 * call these functions, all together. The count orders nothing, so its operations are relaxed.
 */
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
