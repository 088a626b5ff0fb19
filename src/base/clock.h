/* SPDX-License-Identifier: MIT */
/*
 * The wheel's clock and its ticks. A tick is a multiple of the interval, counted from the clock's
 * origin: tick n stands at origin + n * interval. Reading and converting: any thread; setting a
 * manual clock: the owner.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <timingwheel/timingwheel.h>

/* Later than every tick that a clock can reach. */
#define TICK_NEVER ((uint64_t)1 << 63)

struct clock {
	/* Constant after clock_init. */
	enum tw_clock kind;
	clockid_t id;         /* of a real clock */
	tw_duration interval; /* nanoseconds, > 0 */
	tw_duration origin;
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

/* The last tick that is not after `time`. */
static inline uint64_t clock_tick_before(const struct clock *clock, tw_duration time)
{
	return time <= clock->origin ? 0
				     : (uint64_t)(time - clock->origin) / (uint64_t)clock->interval;
}

/* The first tick that is not before `time`: a timer may fire late, never early. */
static inline uint64_t clock_tick_after(const struct clock *clock, tw_duration time)
{
	uint64_t since;

	if (time <= clock->origin)
		return 0;
	if (time == TW_FOREVER)
		return TICK_NEVER;
	since = (uint64_t)(time - clock->origin) - 1;
	return since / (uint64_t)clock->interval + 1;
}

/* When the tick is; TW_FOREVER where the clock never gets there. */
static inline tw_duration clock_tick_time(const struct clock *clock, uint64_t tick)
{
	uint64_t most = (uint64_t)(TW_FOREVER - clock->origin) / (uint64_t)clock->interval;

	return tick > most ? TW_FOREVER : clock->origin + (tw_duration)tick * clock->interval;
}

#endif
