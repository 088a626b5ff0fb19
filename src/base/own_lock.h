/* SPDX-License-Identifier: MIT */
/*
 * A lock that one thread takes as good as always, and others seldom: an exchange to take it, and a
 * store to let it go. So nothing wakes those that wait: they back off by yields, and then by naps,
 * in which a holder of any priority goes on. Zeroed: nobody has it.
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
	/* acquire: what the last holder did; pairs with own_lock_let_go(). */
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
	/* release: what the holder did; pairs with own_lock_try(). */
	atomic_store_explicit(&lock->is_taken, false, memory_order_release);
}

#endif
