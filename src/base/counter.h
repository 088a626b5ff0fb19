/* SPDX-License-Identifier: MIT */
/* Counts that one thread at a time writes, with plain additions, and any thread reads. */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* Of a statistic. */
static inline uint64_t counter_read(const _Atomic uint64_t *counter)
{
	/* relaxed: a statistic, orders nothing. */
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void counter_add(_Atomic uint64_t *counter, uint64_t more)
{
	uint64_t before = counter_read(counter);

	/* relaxed: one writer; a statistic, orders nothing. */
	atomic_store_explicit(counter, before + more, memory_order_relaxed);
}

static inline void counter_subtract(_Atomic uint64_t *counter, uint64_t less)
{
	counter_add(counter, 0 - less);
}

/* Makes it `value` unless it is more. */
static inline void counter_raise(_Atomic uint64_t *counter, uint64_t value)
{
	/* relaxed: one writer; a statistic, orders nothing. */
	if (value > counter_read(counter))
		atomic_store_explicit(counter, value, memory_order_relaxed);
}

/*
 * For counts that are compared: a thread that reads a new count reads those that were written
 * before it, too.
 */
static inline uint64_t counter_read_ordered(const _Atomic uint64_t *counter)
{
	/* acquire: what is read next was counted no earlier; pairs with the release in
	 * counter_add_ordered(). */
	return atomic_load_explicit(counter, memory_order_acquire);
}

static inline void counter_add_ordered(_Atomic uint64_t *counter, uint64_t more)
{
	uint64_t before = counter_read(counter);

	/* release: one writer; pairs with the acquire in counter_read_ordered(). */
	atomic_store_explicit(counter, before + more, memory_order_release);
}

#endif
