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
 * between two calls is not the calls' fault, and starts the pace anew.
 */
#ifndef BENCH_SUPPORT_PACE_H
#define BENCH_SUPPORT_PACE_H

#include "stopwatch.h"

/* Nanoseconds all. */
struct pace {
	int64_t step; /* from one call to the next */
	int64_t due;  /* the last call awaited */
	int64_t overhead;
};

static inline struct pace pace_start(int64_t step)
{
	int64_t overhead = stopwatch_overhead();

	return (struct pace){step, stopwatch_now(), overhead};
}

/* Waits until the next call is due; answers what it is to be counted from. */
static inline int64_t pace_await(struct pace *pace)
{
	int64_t now = stopwatch_now();

	pace->due += pace->step;
	if (now >= pace->due)
		return pace->due;
	while (now < pace->due)
		now = stopwatch_now();
	if (now - pace->due >= pace->step)
		pace->due = now;
	return now;
}

/* What the call that has just ended took since `start`, the clock's own time subtracted. */
static inline int64_t pace_took(const struct pace *pace, int64_t start)
{
	return stopwatch_now() - start - pace->overhead;
}

#endif
