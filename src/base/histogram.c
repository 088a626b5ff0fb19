/* SPDX-License-Identifier: MIT */
/*
 * The histogram is log-linear: each power of two is divided into 16 buckets of one width. `shift`
 * is chosen so that time >> shift is 16 to 31; the bucket is shift * 16 + (time >> shift). Times
 * under 16 have a bucket each, by the formula with shift 0. A percentile is the middle of its
 * bucket, so its error is at most half a bucket: 1 in 32.
 *
 * Invariant: no percentile exceeds `max`.
 *
 * Counts and `longest` are statistics, read without order. A sum may have a time in its counts and
 * not yet in `longest`, or the reverse. histogram_percentiles() raises `max` where it is missing.
 */
#include "histogram.h"

#include <stddef.h>

#include "counter.h"

/* Returns the shortest time of the bucket. Sets *width to the number of times in it. */
static tw_duration bucket_begin(size_t bucket, tw_duration *width)
{
	size_t shift = bucket < 2 * HISTOGRAM_STEPS ? 0 : bucket / HISTOGRAM_STEPS - 1;

	*width = (tw_duration)1 << shift;
	return (tw_duration)(bucket - shift * HISTOGRAM_STEPS) << shift;
}

void histogram_add(struct histogram_sum *sum, const struct histogram *histogram)
{
	tw_duration longest = (tw_duration)counter_read(&histogram->longest);

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum->counts[i] += counter_read(&histogram->counts[i]);
	if (longest > sum->longest)
		sum->longest = longest;
}

/* Returns the bucket of the time of rank `rank`, the shortest having rank 1. */
static size_t bucket_of_rank(const struct histogram_sum *sum, uint64_t rank)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += sum->counts[i];
		if (seen >= rank)
			return i;
	}
	return HISTOGRAM_BUCKETS - 1;
}

/* Returns the percentile `percent`, 1 to 100, of the sum's `count` times, which must not be 0. */
static tw_duration percentile(const struct histogram_sum *sum, uint64_t count, unsigned percent,
			      tw_duration longest)
{
	/* count * percent / 100, rounded up, in two parts that do not overflow. */
	uint64_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
	size_t bucket = bucket_of_rank(sum, rank);
	tw_duration width;
	tw_duration first = bucket_begin(bucket, &width);
	tw_duration middle = first + (width - 1) / 2;

	/* Any time beyond the limit counts as the longest. */
	return middle < longest && bucket < HISTOGRAM_BUCKETS - 1 ? middle : longest;
}

struct tw_percentiles histogram_percentiles(const struct histogram_sum *sum)
{
	struct tw_percentiles result = {.max = sum->longest};
	tw_duration width;
	tw_duration shortest_last;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		result.count += sum->counts[i];
	if (result.count == 0)
		return (struct tw_percentiles){0};
	/* The longest time may be in the counts and not yet in sum->longest. */
	shortest_last = bucket_begin(bucket_of_rank(sum, result.count), &width);
	if (result.max < shortest_last)
		result.max = shortest_last;
	result.p50 = percentile(sum, result.count, 50, result.max);
	result.p90 = percentile(sum, result.count, 90, result.max);
	result.p99 = percentile(sum, result.count, 99, result.max);
	return result;
}
