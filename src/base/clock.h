/* SPDX-License-Identifier: MIT */
/*
 * The wheel's clock: a clock of the system, or a manual one. Any thread may read it; only the owner
 * may set a manual clock.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <timingwheel/timingwheel.h>

#include "ticks.h"

/* A system without this clock refuses its number. */
#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME (-1)
#endif

struct clock {
	/* Constant after clock_init. */
	enum tw_clock kind;
	clockid_t id; /* the system's clock, unless kind is TW_CLOCK_MANUAL */
	struct ticks ticks;
	/* Written by the owner, read by any thread. */
	_Atomic tw_duration manual_now;
};

/* Starts the clock at tick 0. Returns false with errno set if the system has no such clock. */
bool clock_init(struct clock *clock, enum tw_clock kind, tw_duration interval);

/* Always inlined: a task's job is too large a function for the compiler to do so by itself. */
static inline __attribute__((always_inline)) tw_duration clock_read_real(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (tw_duration)now.tv_sec * TW_SECOND + now.tv_nsec;
}

static inline tw_duration clock_now(const struct clock *clock)
{
	if (clock->kind != TW_CLOCK_MANUAL)
		return clock_read_real(clock->id);
	/* acquire: sees what the owner did up to this time; pairs with clock_set_manual(). */
	return atomic_load_explicit(&clock->manual_now, memory_order_acquire);
}

static inline void clock_set_manual(struct clock *clock, tw_duration now)
{
	/* release: pairs with the acquire in clock_now(). */
	atomic_store_explicit(&clock->manual_now, now, memory_order_release);
}

/* Returns whether the clock has reached `deadline`; TW_FOREVER never comes. */
static inline bool clock_has_reached(const struct clock *clock, tw_duration deadline)
{
	return deadline != TW_FOREVER && clock_now(clock) >= deadline;
}

/*
 * Waits until signalled, or for a while. Returns false, without waiting, if the clock has reached
 * `deadline`. The condition is one of condition_init(). `clock` may be NULL if the deadline is
 * TW_FOREVER. A manual clock wakes nobody, so the wait takes at most 1 ms of it.
 */
bool clock_wait(const struct clock *clock, pthread_cond_t *condition, pthread_mutex_t *lock,
		tw_duration deadline);

/* Returns from + length, or TW_FOREVER where the sum is too large. `length` is ≥ 0. */
static inline tw_duration time_add(tw_duration from, tw_duration length)
{
	return from > TW_FOREVER - length ? TW_FOREVER : from + length;
}

/* Returns the time from `begin` to `end`, at least 0: a virtual machine's clock may go back. */
static inline tw_duration time_since(tw_duration end, tw_duration begin)
{
	return end > begin ? end - begin : 0;
}

/* Returns the time from `now` to `deadline`, at least 0, or TW_FOREVER. */
static inline tw_duration time_left(tw_duration deadline, tw_duration now)
{
	if (deadline == TW_FOREVER)
		return TW_FOREVER;
	return deadline > now ? deadline - now : 0;
}

#endif
