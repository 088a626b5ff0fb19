/* SPDX-License-Identifier: MIT */
/*
 * Ticks: multiples of an interval, counted from an origin. Tick n stands at origin + n * interval.
 */
#ifndef TICKS_H
#define TICKS_H

#include <stdint.h>

#include <timingwheel/timingwheel.h>

/* Later than every tick that a clock can reach. */
#define TICK_NEVER ((uint64_t)1 << 63)

struct ticks {
	tw_duration interval; /* nanoseconds, > 0 */
	tw_duration origin;
};

/* The last tick that is not after `time`. */
static inline uint64_t tick_before(const struct ticks *ticks, tw_duration time)
{
	return time <= ticks->origin ? 0
				     : (uint64_t)(time - ticks->origin) / (uint64_t)ticks->interval;
}

/* The first tick that is not before `time`: a timer may fire late, never early. */
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

/* When the tick is; TW_FOREVER where the clock never gets there. */
static inline tw_duration tick_time(const struct ticks *ticks, uint64_t tick)
{
	uint64_t most = (uint64_t)(TW_FOREVER - ticks->origin) / (uint64_t)ticks->interval;

	return tick > most ? TW_FOREVER : ticks->origin + (tw_duration)tick * ticks->interval;
}

#endif
