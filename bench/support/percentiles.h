/* SPDX-License-Identifier: MIT */
/*
 * A histogram gives percentiles of nanoseconds without keeping the samples: log-linear buckets, 128
 * to each power of two, so a percentile is off by 0.4 % at most; the greatest value is
 * exact.
 *
 * One thread records into a histogram, any thread may read it meanwhile. Give each thread its own
 * and merge them.
 */
#ifndef BENCH_SUPPORT_PERCENTILES_H
#define BENCH_SUPPORT_PERCENTILES_H

#include <stdint.h>

struct percentiles;

/* Creates an empty histogram of 58 KiB. Ends the program when memory is out. */
struct percentiles *percentiles_create(void);
void percentiles_destroy(struct percentiles *histogram);

/* Records a value. The percentiles count a negative one as 0. */
void percentiles_record(struct percentiles *histogram, int64_t value);

/* Adds the samples of `other`. */
void percentiles_merge(struct percentiles *histogram, const struct percentiles *other);

uint64_t percentiles_count(const struct percentiles *histogram);

/* Returns the value that `percent` of the samples do not exceed; 0 without samples. */
int64_t percentiles_at(const struct percentiles *histogram, double percent);

/* Returns the greatest value; 0 without samples. */
int64_t percentiles_most(const struct percentiles *histogram);

#endif
