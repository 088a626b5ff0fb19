/* SPDX-License-Identifier: MIT */
/*
 * Threads wait here for what another thread does. One that does it when nobody waits makes no
 * system call.
 *
 * A waiter calls waiting_begin(), and waiting_pause() while what it waits for is not there, and
 * waiting_end(). The other thread does it, by a sequentially consistent store, and calls
 * waiting_tell(). Either the waiter's look sees it, or the other thread sees the waiter.
 */
#ifndef WAITING_H
#define WAITING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <timingwheel/timingwheel.h>

#include "clock.h"
#include "slab.h"

struct waiting {
	_Alignas(CACHE_LINE) atomic_int waiters;
	pthread_mutex_t lock;
	pthread_cond_t done;
};

void waiting_init(struct waiting *waiting);
void waiting_destroy(struct waiting *waiting);

/* The waiter looks for what it waits for after this, by a sequentially consistent load. */
void waiting_begin(struct waiting *waiting);
/* Sleeps until it is woken, or for a while. Returns false, without sleeping, if the clock has
 * reached the deadline; `clock` may be NULL if that is TW_FOREVER. */
bool waiting_pause(struct waiting *waiting, const struct clock *clock, tw_duration deadline);
void waiting_end(struct waiting *waiting);

/* Wakes all waiters: the slow part of waiting_tell(). */
void waiting_wake(struct waiting *waiting);

/* Something that threads may wait for is done. */
static inline void waiting_tell(struct waiting *waiting)
{
	/* seq_cst: after it was done; pairs with the addition in waiting_begin(). */
	if (atomic_load_explicit(&waiting->waiters, memory_order_seq_cst) > 0)
		waiting_wake(waiting);
}

#endif
