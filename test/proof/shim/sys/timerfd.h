/* SPDX-License-Identifier: MIT */
/*
 * A timer's descriptor is modelled as the time at which it can be read, or 0 for never. Setting it
 * is one relaxed store, though the kernel's is under a lock: the harnesses need no more.
 */
#ifndef PROOF_TIMERFD_H
#define PROOF_TIMERFD_H

#include <assert.h>
#include <stdatomic.h>
#include <time.h>

#include "proof.h"

enum { TFD_CLOEXEC = 1, TFD_NONBLOCK = 2, TFD_TIMER_ABSTIME = 4, PROOF_TIMER = 3 };

/* A harness has this one timer. */
static atomic_long proof_timer_end;

static inline int timerfd_create(clockid_t clock, int flags)
{
	(void)clock;
	(void)flags;
	return PROOF_TIMER;
}

static inline int timerfd_settime(int timer, int flags, const struct itimerspec *end,
				  struct itimerspec *before)
{
	assert(timer == PROOF_TIMER && flags == TFD_TIMER_ABSTIME && !before);
	/* relaxed: see the top. */
	atomic_store_explicit(&proof_timer_end, proof_time(&end->it_value), memory_order_relaxed);
	return 0;
}

static inline bool proof_timer_is_readable(void)
{
	/* relaxed: see the top. */
	return proof_is_time(atomic_load_explicit(&proof_timer_end, memory_order_relaxed));
}

#endif
