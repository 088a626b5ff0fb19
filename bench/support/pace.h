/* SPDX-License-Identifier: MIT */
/*
 * Calls at a steady pace, and what they take their caller: one thread, busy between the calls.
 *
 *     struct pace pace = pace_start(1000);
 *     for (...) {
 *         int64_t start = pace_await(&pace);
 *         call();
 *         percentiles_record(times, pace_took(&pace, start));
 *     }
 *
 * A call that overruns holds up those behind it, and what they wait counts as theirs: each counts
 * from when it was due. Otherwise one stall would be one slow call, however many it was in the way
 * of, and who can't keep the pace at all would look the better for it. What holds up the thread
 * between two calls is not the calls' fault, and puts off all that follow.
 */
#ifndef BENCH_SUPPORT_PACE_H
#define BENCH_SUPPORT_PACE_H

#include "stopwatch.h"

/* Nanoseconds all. */
struct pace {
	int64_t step; /* from one call to the next */
	int64_t due;  /* the last call awaited */
	int64_t overhead;
	int64_t begun;
	int64_t ended;   /* the last call */
	int64_t held_up; /* in all, by other things than calls */
};

static inline struct pace pace_start(int64_t step)
{
	int64_t overhead = stopwatch_overhead(), now = stopwatch_now();

	return (struct pace){
		.step = step, .due = now, .overhead = overhead, .begun = now, .ended = now};
}

/* So much time was not the calls'. */
static inline void pace_put_off(struct pace *pace, int64_t by)
{
	pace->held_up += by;
	pace->due += by;
}

/* Waits until the next call is due; answers what it is to be counted from. */
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

/* When the call has just ended: what it took since `start`, the clock's own time subtracted. */
static inline int64_t pace_took(struct pace *pace, int64_t start)
{
	pace->ended = stopwatch_now();
	return pace->ended - start - pace->overhead;
}

/* After the last of `calls`: how many a second there were while nothing but calls took time. */
static inline double pace_reached(const struct pace *pace, int64_t calls)
{
	return (double)calls / seconds_of(stopwatch_now() - pace->begun - pace->held_up);
}

#endif
