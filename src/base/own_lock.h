/* SPDX-License-Identifier: MIT */
/*
 * An own lock is for data that one thread uses nearly always, and others rarely. Taking it costs an
 * exchange, letting it go a store. Nothing wakes threads that wait: they yield, then nap, so that a
 * holder of any priority can run. A zeroed lock is free.
 *
 * Which calls may run together (x), and which may not (-):
 *
 *            take   try   let_go
 *   take     x      x     x
 *   try      x      x     x
 *   let_go   x      x     -
 *
 * Only the holder may call let_go. The lock is not fair and not recursive.
 */
#ifndef OWN_LOCK_H
#define OWN_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "thread.h"

struct own_lock {
	atomic_bool is_taken;
};

static inline bool own_lock_try(struct own_lock *lock)
{
	/* acquire: sees what the last holder did; pairs with own_lock_let_go(). */
	return !atomic_exchange_explicit(&lock->is_taken, true, memory_order_acquire);
}

static inline void own_lock_take(struct own_lock *lock)
{
	unsigned tries = 0;

	while (__builtin_expect(!own_lock_try(lock), 0))
		thread_back_off(&tries);
}

static inline void own_lock_let_go(struct own_lock *lock)
{
	/* release: publishes what the holder did; pairs with own_lock_try(). */
	atomic_store_explicit(&lock->is_taken, false, memory_order_release);
}

#endif
