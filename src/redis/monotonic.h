/* SPDX-License-Identifier: MIT */
/* This machine's monotonic clock: for lengths of time alone. The time of day is the server's. */
#ifndef TIMINGWHEEL_REDIS_MONOTONIC_H
#define TIMINGWHEEL_REDIS_MONOTONIC_H

#include <timingwheel/redis.h>

tw_duration monotonic_now(void);
/* So much (≥ 0) after now; TW_FOREVER where that is too large. */
tw_duration monotonic_after(tw_duration time);
/* Sleeps. */
void monotonic_wait(tw_duration time);

#endif
