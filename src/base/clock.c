/* SPDX-License-Identifier: MIT */
#include "clock.h"

#ifdef CLOCK_BOOTTIME
static const clockid_t clock_boottime = CLOCK_BOOTTIME;
#else
static const clockid_t clock_boottime = -1;
#endif

bool clock_init(struct clock *clock, enum tw_clock kind, tw_duration interval)
{
	struct timespec resolution;

	clock->kind = kind;
	clock->id = kind == TW_CLOCK_BOOTTIME ? clock_boottime : CLOCK_MONOTONIC;
	if (clock_getres(clock->id, &resolution) != 0)
		return false;
	clock->ticks.interval = interval;
	atomic_init(&clock->manual_now, 0);
	clock->ticks.origin = kind == TW_CLOCK_MANUAL ? 0 : clock_read_real(clock->id);
	return true;
}
