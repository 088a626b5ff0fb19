/* SPDX-License-Identifier: MIT */
/* Random 16-byte keys, made before anything is timed. */
#ifndef BENCH_SUPPORT_KEYS_H
#define BENCH_SUPPORT_KEYS_H

#include "generator.h"

#include <stddef.h>
#include <stdint.h>

struct random_key {
	uint64_t words[2];
};

/* The key of a number: different numbers and seeds have different keys. */
static inline struct random_key key_of(uint64_t number, uint64_t seed)
{
	return (struct random_key){{scramble(number + 1), scramble(number ^ scramble(seed))}};
}

/* `count` different keys, resident. free() them. */
struct random_key *keys_create(size_t count, uint64_t seed);

/* A random order, so that whoever goes through them in memory order meets them at random. */
void keys_shuffle(struct random_key *keys, size_t count, struct generator *generator);

#endif
