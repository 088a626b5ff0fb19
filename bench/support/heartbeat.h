/* SPDX-License-Identifier: MIT */
/*
 * A timer that is to run once a period, and how late it was: what a crowd does to a bystander.
 *
 * Who may call: the wheel's thread that runs the beat, one at a time, while it beats; everything
 * else when it has not begun or has been stopped. Times are on the stopwatch, nanoseconds.
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
	int64_t deadline; /* of the next beat; 0: it never began */
	size_t count;
	struct beat *beats;
};

/* Of some beats. */
struct lateness {
	double beats; /* how many */
	double p50;
	double p90;
	double p99;
	double most;
};

void heartbeat_create(struct heartbeat *heartbeat, int64_t period);
void heartbeat_destroy(struct heartbeat *heartbeat);

/* Plans the next beat for `first`, or for the beat after it that can still be met `soon`. */
void heartbeat_plan(struct heartbeat *heartbeat, int64_t first, int64_t soon);

/* It beats now. Who calls it plans the next one: heartbeat_advance(), once. */
void heartbeat_beat(struct heartbeat *heartbeat);
void heartbeat_advance(struct heartbeat *heartbeat);

/*
 * Once it was stopped at `now`: beats that were due and did not come are counted with the lateness
 * that they have reached, or else a stall that outlasts the watching would not be seen.
 */
void heartbeat_note_missed(struct heartbeat *heartbeat, int64_t now);

/* When the timer of this beat was set: when the beat before it came. */
int64_t heartbeat_set_at(const struct heartbeat *heartbeat, size_t beat);

/* Of the beats whose lateness was recorded there. */
struct lateness lateness_of(const struct percentiles *histogram);

#endif
