/* SPDX-License-Identifier: MIT */
/*
 * Random numbers come from a seed, or from bytes for fuzzers.
 */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
	uint64_t state;
	const uint8_t *bytes; /* those that are left, NULL if numbers come from the state */
	size_t left;
};

/* Returns the stream-th generator of a seed. */
struct random random_from(uint64_t seed, uint64_t stream);
/* Returns a generator that reads its numbers from bytes, as few as the bound of each needs; after
 * the last it returns 0. */
struct random random_from_bytes(const uint8_t *bytes, size_t size);
/* Returns whether no bytes are left. */
bool random_is_spent(const struct random *random);
uint64_t random_next(struct random *random);
/* Returns 0 … bound - 1; bound > 0. */
uint64_t random_below(struct random *random, uint64_t bound);
/* Returns low … high. */
int64_t random_between(struct random *random, int64_t low, int64_t high);
/* Returns true once in `times`. */
int random_once_in(struct random *random, uint64_t times);

#endif
