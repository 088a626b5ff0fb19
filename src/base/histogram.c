/* SPDX-License-Identifier: MIT */
/*
 * Log-linear buckets: each power of two is divided into 16 steps of one width. With `shift` such
 * that time >> shift has 5 bits, that is 16 … 31, the bucket is shift * 16 + (time >> shift);
 * times under 16 have buckets of their own, which the same formula gives with a shift of 0. A
 * percentile is told as the middle of its bucket, so it is off by half a step at most: 1 in 32.
 *
 * All counts are statistics: written by one thread, with plain additions, and read as they are
 * found. A sum taken meanwhile may have a time's count without its part in `longest`, or the other
 * way round; percentiles never exceed the longest that is told, which is why it is made to fit.
 */
#include "histogram.h"

#include <stddef.h>

#include "counter.h"

static const tw_duration limit = (tw_duration)1 << HISTOGRAM_LIMIT_LOG2;

static size_t bucket_of(tw_duration time)
{
	uint64_t value = (uint64_t)(time < limit ? time : limit);
	/* The bits beyond the first five. */
	int shift = 63 - __builtin_clzll(value | HISTOGRAM_STEPS) - HISTOGRAM_STEPS_LOG2;

	return (size_t)shift * HISTOGRAM_STEPS + (size_t)(value >> shift);
}

/* The shortest time of the bucket, and how many there are in it. */
static tw_duration bucket_first(size_t bucket, tw_duration *width)
{
	size_t shift = bucket < 2 * HISTOGRAM_STEPS ? 0 : bucket / HISTOGRAM_STEPS - 1;

	*width = (tw_duration)1 << shift;
	return (tw_duration)(bucket - shift * HISTOGRAM_STEPS) << shift;
}

void histogram_record(struct histogram *histogram, tw_duration time)
{
	if (time < 0)
		time = 0;
	counter_add(&histogram->counts[bucket_of(time)], 1);
	counter_raise(&histogram->longest, (uint64_t)time);
}

void histogram_add(struct histogram_sum *sum, const struct histogram *histogram)
{
	tw_duration longest = (tw_duration)counter_read(&histogram->longest);

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum->counts[i] += counter_read(&histogram->counts[i]);
	if (longest > sum->longest)
		sum->longest = longest;
}

/* The bucket of the time that `rank` - 1 others don't exceed; 1 ≤ rank ≤ all there are. */
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

/* `percent` of 1 to 100, of `count` > 0 times of which `longest` is the longest. */
static tw_duration percentile(const struct histogram_sum *sum, uint64_t count, unsigned percent,
			      tw_duration longest)
{
	/* Rounded up; in two parts, so that it does not overflow. */
	uint64_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
	size_t bucket = bucket_of_rank(sum, rank);
	tw_duration width;
	tw_duration first = bucket_first(bucket, &width);
	tw_duration middle = first + (width - 1) / 2;

	/* What is beyond the limit is told as the longest. */
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
	/* Where the longest has been counted, and is not yet told. */
	shortest_last = bucket_first(bucket_of_rank(sum, result.count), &width);
	if (result.max < shortest_last)
		result.max = shortest_last;
	result.p50 = percentile(sum, result.count, 50, result.max);
	result.p90 = percentile(sum, result.count, 90, result.max);
	result.p99 = percentile(sum, result.count, 99, result.max);
	return result;
}
