/* SPDX-License-Identifier: MIT */
/*
 * A heartbeat is a timer that runs once a period and records its lateness: the effect of a crowd on
 * other timers.
 *
 * While it beats, only the wheel's thread that runs the beat may call, one at a time; everything
 * else may be called before it has begun or after it was stopped. Times are on the stopwatch, in
 * nanoseconds.
 */
#ifndef BENCH_SUPPORT_HEARTBEAT_H
#define BENCH_SUPPORT_HEARTBEAT_H

#include "stopwatch.h"

#include <stddef.h>
#include <stdint.h>

struct percentiles;

struct beat {
	int64_t deadline;
	int64_t lateness;
};

struct heartbeat {
	int64_t period;
	int64_t deadline; /* when the next beat is due, or 0 before the first */
	size_t count;
	struct beat *beats;
};

/* Lateness sums up some beats. */
struct lateness {
	double beats; /* their number */
	double p50;
	double p90;
	double p99;
	double most;
};

void heartbeat_create(struct heartbeat *heartbeat, int64_t period);
void heartbeat_destroy(struct heartbeat *heartbeat);

/* Plans the next beat for `first`, or for the beat after it that can still be met after `soon`. */
void heartbeat_plan(struct heartbeat *heartbeat, int64_t first, int64_t soon);

/* Records a beat now. The caller then plans the next one with heartbeat_advance(). */
void heartbeat_beat(struct heartbeat *heartbeat);
void heartbeat_advance(struct heartbeat *heartbeat);

/*
 * Counts, once it was stopped at `now`, due beats that did not come, with the lateness that they
 * have reached. Otherwise a stall beyond the end of the measurement would not be seen.
 */
void heartbeat_note_missed(struct heartbeat *heartbeat, int64_t now);

/* Returns when the timer of this beat was set, which is when the beat before it came. */
int64_t heartbeat_set_at(const struct heartbeat *heartbeat, size_t beat);

/* Sums up the beats whose lateness was recorded there. */
struct lateness lateness_of(const struct percentiles *histogram);

#endif
