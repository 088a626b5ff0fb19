/* SPDX-License-Identifier: MIT */
/*
 * A pace makes calls at a steady rate and times them, in one thread that spins between the calls.
 *
 *     struct pace pace = pace_start(1000);
 *     for (...) {
 *         int64_t start = pace_await(&pace);
 *         call();
 *         percentiles_record(times, pace_took(&pace, start));
 *     }
 *
 * A call that overruns delays those behind it, and their wait counts as theirs: each counts from
 * when it was due. Otherwise one stall would be one slow call, however many it delayed, and a
 * contender that can't keep the pace would look better. Delays of the thread between two calls do
 * not count, and postpone all that follow.
 */
#ifndef BENCH_SUPPORT_PACE_H
#define BENCH_SUPPORT_PACE_H

#include "stopwatch.h"

/* All fields are nanoseconds. */
struct pace {
	int64_t step; /* from one call to the next */
	int64_t due;  /* the last call awaited */
	int64_t overhead;
	int64_t begun;
	int64_t ended;   /* the last call */
	int64_t held_up; /* in all, outside of calls */
};

static inline struct pace pace_start(int64_t step)
{
	int64_t overhead = stopwatch_overhead(), now = stopwatch_now();

	return (struct pace){
		.step = step, .due = now, .overhead = overhead, .begun = now, .ended = now};
}

/* Postpones the calls by a delay outside of them. */
static inline void pace_put_off(struct pace *pace, int64_t by)
{
	pace->held_up += by;
	pace->due += by;
}

/* Waits until the next call is due. Returns the time from which it counts. */
static inline int64_t pace_await(struct pace *pace)
{
	int64_t now = stopwatch_now();

	pace->due += pace->step;
	if (now - pace->ended >= pace->step)
		pace_put_off(pace, now - pace->ended);
	if (now >= pace->due)
		return pace->due;
	while (now < pace->due)
		now = stopwatch_now();
	if (now - pace->due >= pace->step)
		pace_put_off(pace, now - pace->due);
	return now;
}

/* Returns, right after the call, its time since `start`, less the clock's own time. */
static inline int64_t pace_took(struct pace *pace, int64_t start)
{
	pace->ended = stopwatch_now();
	return pace->ended - start - pace->overhead;
}

/* Returns, after the last of `calls`, the calls a second in the time that the calls took. */
static inline double pace_reached(const struct pace *pace, int64_t calls)
{
	return (double)calls / seconds_of(stopwatch_now() - pace->begun - pace->held_up);
}

#endif
