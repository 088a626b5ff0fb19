/* SPDX-License-Identifier: MIT */
/*
 * Percentiles of nanoseconds without keeping the samples: log-linear buckets, 128 to each power of
 * two, so a percentile is off by 0.4 % at most; the greatest and the smallest value are exact.
 *
 * One thread records into a histogram, any thread may read it meanwhile. Give each thread its own
 * and merge them.
 */
#ifndef BENCH_SUPPORT_HISTOGRAM_H
#define BENCH_SUPPORT_HISTOGRAM_H

#include <stdint.h>

struct histogram;

/* An empty histogram, 58 KiB. Ends the program when memory is out. */
struct histogram *histogram_create(void);
void histogram_destroy(struct histogram *histogram);

/* A value under 0 is counted as 0 by the percentiles; histogram_least() still tells it. */
void histogram_record(struct histogram *histogram, int64_t value);

/* Adds what `other` holds. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

uint64_t histogram_count(const struct histogram *histogram);

/* The value that `percent` of the samples do not exceed; 0 without samples. */
int64_t histogram_percentile(const struct histogram *histogram, double percent);

/* The smallest and the greatest value; 0 without samples. */
int64_t histogram_least(const struct histogram *histogram);
int64_t histogram_most(const struct histogram *histogram);

#endif
