/* SPDX-License-Identifier: MIT */
/*
 * How long things took: counts by length of time, exact up to 31 ns, and to within 1 in 32 up to
 * 39 hours. One thread records (or several, one after the other, where something else orders them);
 * any thread sums up what several of them have recorded, at any time, and is told percentiles.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

enum {
	HISTOGRAM_STEPS_LOG2 = 4, /* steps a power of two */
	HISTOGRAM_STEPS = 1 << HISTOGRAM_STEPS_LOG2,
	HISTOGRAM_LIMIT_LOG2 =
		47, /* of nanoseconds: from there on all times share the last bucket */
	HISTOGRAM_BUCKETS = (HISTOGRAM_LIMIT_LOG2 - HISTOGRAM_STEPS_LOG2 + 1) * HISTOGRAM_STEPS + 1
};

/* 5.5 KiB. All zero: empty. */
struct histogram {
	/* Written by the recording thread, read by any. */
	_Atomic uint64_t counts[HISTOGRAM_BUCKETS];
	_Atomic uint64_t longest; /* nanoseconds */
};

/* Several of them. All zero: none. One thread's. */
struct histogram_sum {
	uint64_t counts[HISTOGRAM_BUCKETS];
	tw_duration longest;
};

/* A negative time counts as 0. */
void histogram_record(struct histogram *histogram, tw_duration time);

void histogram_add(struct histogram_sum *sum, const struct histogram *histogram);
/* By nearest rank: at least that share of the times is no longer, but for the error. */
struct tw_percentiles histogram_percentiles(const struct histogram_sum *sum);

#endif
