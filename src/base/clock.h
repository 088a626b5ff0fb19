/* SPDX-License-Identifier: MIT */
/* The wheel's clock. Reading it: any thread; setting a manual clock: the owner. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <timingwheel/timingwheel.h>

#include "ticks.h"

struct clock {
	/* Constant after clock_init. */
	enum tw_clock kind;
	clockid_t id; /* of a real clock */
	struct ticks ticks;
	/* Written by the owner, read by any thread. */
	_Atomic tw_duration manual_now;
};

/* False: the system has no such clock; errno tells. */
bool clock_init(struct clock *clock, enum tw_clock kind, tw_duration interval);

static inline tw_duration clock_read_real(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (tw_duration)now.tv_sec * TW_SECOND + now.tv_nsec;
}

static inline tw_duration clock_now(const struct clock *clock)
{
	if (clock->kind != TW_CLOCK_MANUAL)
		return clock_read_real(clock->id);
	/* acquire: what the owner did up to this time is seen; pairs with clock_set_manual(). */
	return atomic_load_explicit(&clock->manual_now, memory_order_acquire);
}

static inline void clock_set_manual(struct clock *clock, tw_duration now)
{
	/* release: pairs with the acquire in clock_now(). */
	atomic_store_explicit(&clock->manual_now, now, memory_order_release);
}

/* from + length, or TW_FOREVER where the sum is too large. length ≥ 0. */
static inline tw_duration time_add(tw_duration from, tw_duration length)
{
	return from > TW_FOREVER - length ? TW_FOREVER : from + length;
}

/* From now to the deadline, at least 0. */
static inline tw_duration time_left(tw_duration deadline, tw_duration now)
{
	if (deadline == TW_FOREVER)
		return TW_FOREVER;
	return deadline > now ? deadline - now : 0;
}

#endif
