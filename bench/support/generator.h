/* SPDX-License-Identifier: MIT */
/* A generator makes random numbers that a seed repeats (splitmix64). Each thread has its own. */
#ifndef BENCH_SUPPORT_GENERATOR_H
#define BENCH_SUPPORT_GENERATOR_H

#include <stdint.h>

struct generator {
	uint64_t state;
};

/* Scrambles a number; different numbers stay different. */
static inline uint64_t scramble(uint64_t number)
{
	number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
	return number ^ (number >> 31);
}

static inline uint64_t generator_next(struct generator *generator)
{
	generator->state += UINT64_C(0x9e3779b97f4a7c15);
	return scramble(generator->state);
}

/* Returns a number from `least` to below `end`. It goes through a double: one multiplication
 * instead of a division. */
static inline int64_t generator_range(struct generator *generator, int64_t least, int64_t end)
{
	double fraction = (double)(generator_next(generator) >> 11) * 0x1p-53;

	return least + (int64_t)(fraction * (double)(end - least));
}

#endif
