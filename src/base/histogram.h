/* SPDX-License-Identifier: MIT */
/*
 * A histogram counts lengths of time. Percentiles read from it are exact up to 31 ns, and within 1
 * in 32 up to 39 hours.
 *
 * One thread at a time may record in a histogram. Any thread may add histograms to a sum of its own
 * at any time, and read percentiles from the sum.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "counter.h"

enum {
	HISTOGRAM_STEPS_LOG2 = 4, /* steps a power of two */
	HISTOGRAM_STEPS = 1 << HISTOGRAM_STEPS_LOG2,
	HISTOGRAM_LIMIT_LOG2 = 47, /* all times ≥ 2^47 ns share the last bucket */
	HISTOGRAM_BUCKETS = (HISTOGRAM_LIMIT_LOG2 - HISTOGRAM_STEPS_LOG2 + 1) * HISTOGRAM_STEPS + 1
};

/* Its size is 5.5 KiB. A zeroed histogram is empty. */
struct histogram {
	/* Written by the recording thread, read by any. */
	_Atomic uint64_t counts[HISTOGRAM_BUCKETS];
	_Atomic uint64_t longest; /* nanoseconds */
};

/* The sum of several histograms. A zeroed sum is empty. It belongs to one thread. */
struct histogram_sum {
	uint64_t counts[HISTOGRAM_BUCKETS];
	tw_duration longest;
};

/* Returns the bucket of a time ≥ 0. */
static inline size_t histogram_bucket(tw_duration time)
{
	const tw_duration limit = (tw_duration)1 << HISTOGRAM_LIMIT_LOG2;
	uint64_t value = (uint64_t)(time < limit ? time : limit);
	/* The number of bits beyond the first five. */
	int shift = 63 - __builtin_clzll(value | HISTOGRAM_STEPS) - HISTOGRAM_STEPS_LOG2;

	return (size_t)shift * HISTOGRAM_STEPS + (size_t)(value >> shift);
}

/* Counts `time`, in nanoseconds. A negative time counts as 0. */
static inline void histogram_record(struct histogram *histogram, tw_duration time)
{
	if (time < 0)
		time = 0;
	counter_add(&histogram->counts[histogram_bucket(time)], 1);
	if ((uint64_t)time > counter_read(&histogram->longest))
		counter_set(&histogram->longest, (uint64_t)time);
}

/* Adds the counts of `histogram` to `sum`. */
void histogram_add(struct histogram_sum *sum, const struct histogram *histogram);
/* Returns percentiles by nearest rank, within the error above. All are 0 if the sum is empty. */
struct tw_percentiles histogram_percentiles(const struct histogram_sum *sum);

#endif
