/* SPDX-License-Identifier: MIT */
/*
 * Values under 128 have a bucket each. Above, the seven bits after the leading one choose among 128
 * buckets of their power of two, so that a bucket is at most 1/128 of its values wide; a percentile
 * is the bucket's middle.
 *
 * All fields are atomic with one writer, so that a progress line can read while a worker records:
 * load, add, store, all relaxed. They are statistics and order nothing.
 */
#include "percentiles.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define FINE_BITS 7
#define FINE_COUNT (1 << FINE_BITS)
#define BUCKET_COUNT ((64 - FINE_BITS) * FINE_COUNT)

struct percentiles {
	_Atomic uint64_t count;
	_Atomic int64_t most;
	_Atomic uint64_t buckets[BUCKET_COUNT];
};

static size_t bucket_of(int64_t value)
{
	int shift;

	if (value < 0)
		return 0;
	if (value < FINE_COUNT)
		return (size_t)value;
	shift = 63 - FINE_BITS - __builtin_clzll((unsigned long long)value);
	return (size_t)shift * FINE_COUNT + (size_t)(value >> shift);
}

static int64_t bucket_middle(size_t bucket)
{
	size_t shift;
	int64_t first;

	if (bucket < 2 * FINE_COUNT)
		return (int64_t)bucket;
	shift = bucket / FINE_COUNT - 1;
	first = (int64_t)(bucket - shift * FINE_COUNT) << shift;
	return first + ((INT64_C(1) << shift) - 1) / 2;
}

static uint64_t read_count(const _Atomic uint64_t *counter)
{
	/* relaxed: a statistic, orders nothing */
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add(_Atomic uint64_t *counter, uint64_t amount)
{
	/* relaxed: a statistic with one writer, orders nothing */
	atomic_store_explicit(counter, read_count(counter) + amount, memory_order_relaxed);
}

struct percentiles *percentiles_create(void)
{
	struct percentiles *histogram = calloc(1, sizeof(*histogram));

	if (!histogram) {
		fprintf(stderr, "out of memory for a histogram\n");
		exit(1);
	}
	atomic_init(&histogram->most, INT64_MIN);
	return histogram;
}

void percentiles_destroy(struct percentiles *histogram)
{
	free(histogram);
}

static int64_t read_bound(const _Atomic int64_t *bound)
{
	/* relaxed: a statistic, orders nothing */
	return atomic_load_explicit(bound, memory_order_relaxed);
}

static void move_bound(_Atomic int64_t *bound, int64_t value)
{
	/* relaxed: a statistic with one writer, orders nothing */
	atomic_store_explicit(bound, value, memory_order_relaxed);
}

static void widen(struct percentiles *histogram, int64_t most)
{
	if (most > read_bound(&histogram->most))
		move_bound(&histogram->most, most);
}

void percentiles_record(struct percentiles *histogram, int64_t value)
{
	widen(histogram, value);
	add(&histogram->buckets[bucket_of(value)], 1);
	add(&histogram->count, 1);
}

void percentiles_merge(struct percentiles *histogram, const struct percentiles *other)
{
	/* The count is summed from the buckets: `other` may be recorded into meanwhile. */
	uint64_t count = 0;

	for (size_t i = 0; i < BUCKET_COUNT; i++) {
		uint64_t samples = read_count(&other->buckets[i]);

		if (samples)
			add(&histogram->buckets[i], samples);
		count += samples;
	}
	add(&histogram->count, count);
	widen(histogram, read_bound(&other->most));
}

uint64_t percentiles_count(const struct percentiles *histogram)
{
	return read_count(&histogram->count);
}

int64_t percentiles_at(const struct percentiles *histogram, double percent)
{
	uint64_t count = percentiles_count(histogram);
	uint64_t rank = (uint64_t)((double)count * percent / 100.0);
	uint64_t seen = 0;

	if (!count)
		return 0;
	if (rank >= count)
		return percentiles_most(histogram);
	for (size_t i = 0; i < BUCKET_COUNT; i++) {
		seen += read_count(&histogram->buckets[i]);
		if (seen > rank)
			return bucket_middle(i);
	}
	return percentiles_most(histogram);
}

int64_t percentiles_most(const struct percentiles *histogram)
{
	if (!percentiles_count(histogram))
		return 0;
	return read_bound(&histogram->most);
}
