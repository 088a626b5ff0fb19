/* SPDX-License-Identifier: MIT */
/* Ticks count intervals from an origin: tick n is at origin + n * interval. */
#ifndef TICKS_H
#define TICKS_H

#include <stdint.h>

#include <timingwheel/timingwheel.h>

/* This tick is later than every tick that a clock can reach. */
#define TICK_NEVER ((uint64_t)1 << 63)

struct ticks {
	tw_duration interval; /* nanoseconds, > 0 */
	tw_duration origin;
};

/* Returns the last tick that is not after `time`. */
static inline uint64_t tick_before(const struct ticks *ticks, tw_duration time)
{
	return time <= ticks->origin ? 0
				     : (uint64_t)(time - ticks->origin) / (uint64_t)ticks->interval;
}

/* Returns the first tick that is not before `time`: a timer may fire late, never early. */
static inline uint64_t tick_after(const struct ticks *ticks, tw_duration time)
{
	uint64_t since;

	if (time <= ticks->origin)
		return 0;
	if (time == TW_FOREVER)
		return TICK_NEVER;
	since = (uint64_t)(time - ticks->origin) - 1;
	return since / (uint64_t)ticks->interval + 1;
}

/* Returns the time of the tick, or TW_FOREVER if the clock never reaches it. */
static inline tw_duration tick_time(const struct ticks *ticks, uint64_t tick)
{
	uint64_t most = (uint64_t)(TW_FOREVER - ticks->origin) / (uint64_t)ticks->interval;

	return tick > most ? TW_FOREVER : ticks->origin + (tw_duration)tick * ticks->interval;
}

#endif
