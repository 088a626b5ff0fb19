/* SPDX-License-Identifier: MIT */
/* Keys are random, of 16 bytes, and made before the timed part. */
#ifndef BENCH_SUPPORT_KEYS_H
#define BENCH_SUPPORT_KEYS_H

#include "generator.h"

#include <stddef.h>
#include <stdint.h>

struct random_key {
	uint64_t words[2];
};

/* Returns the key of a number: different numbers and seeds have different keys. */
static inline struct random_key key_of(uint64_t number, uint64_t seed)
{
	return (struct random_key){{scramble(number + 1), scramble(number ^ scramble(seed))}};
}

/* Returns `count` different keys, resident. The caller frees them. */
struct random_key *keys_create(size_t count, uint64_t seed);

/* Shuffles the keys, so that a pass in memory order meets them at random. */
void keys_shuffle(struct random_key *keys, size_t count, struct generator *generator);

#endif
