/* SPDX-License-Identifier: MIT */
/*
 * A counter is a number that one thread at a time writes, with plain additions, and any thread
 * reads. Counters are statistics: they order nothing, so their operations are relaxed. Only the
 * functions named _ordered order: they are for counters that are compared with each other.
 *
 * Which calls may run together: read and read_ordered with all; the others with these two only.
 */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* Returns the counter. Any thread. */
static inline uint64_t counter_read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
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

/* Sets the counter to `value` if that is more. One thread at a time. */
static inline void counter_raise(_Atomic uint64_t *counter, uint64_t value)
{
	if (value > counter_read(counter))
		atomic_store_explicit(counter, value, memory_order_relaxed);
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

#endif
