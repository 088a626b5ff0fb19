/* SPDX-License-Identifier: MIT */
/*
 * The hash of a key: seeded, so that keys which collide cannot be chosen without the seed.
 * Any thread.
 */
#ifndef KEY_HASH_H
#define KEY_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "key.h"

struct key_hash_seed {
	uint64_t words[4];
};

/* Fills the seed from the system's random numbers. */
void key_hash_seed_init(struct key_hash_seed *seed);
/* Of a key of any size, as key_hash_wide(). */
uint64_t key_hash_any(const struct key_hash_seed *seed, const void *key, size_t size);

__extension__ typedef unsigned __int128 key_hash_product;

static inline uint64_t key_hash_fold(uint64_t a, uint64_t b)
{
	key_hash_product product = (key_hash_product)a * b;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* The last 16 bytes of the key, after `state` of those before. */
static inline uint64_t key_hash_end(const struct key_hash_seed *seed, uint64_t state,
				    uint64_t first, uint64_t last, size_t size)
{
	const uint64_t *secret = seed->words;

	state = key_hash_fold(first ^ secret[2], last ^ state);
	return key_hash_fold(state ^ secret[3], secret[1] ^ size);
}

static inline uint64_t key_hash_short(const struct key_hash_seed *seed, const void *key,
				      size_t size)
{
	uint64_t first;
	uint64_t last;

	memcpy(&first, key, 8);
	memcpy(&last, (const unsigned char *)key + size - 8, 8);
	return key_hash_end(seed, seed->words[0] + size, first, last, size);
}

static inline uint64_t key_hash_wide(const struct key_hash_seed *seed, const void *key, size_t size)
{
	return key_is_short(size) ? key_hash_short(seed, key, size) : key_hash_any(seed, key, size);
}

static inline uint32_t key_hash(const struct key_hash_seed *seed, const void *key, size_t size)
{
	uint64_t hash = key_hash_wide(seed, key, size);

	return (uint32_t)(hash ^ hash >> 32);
}

#endif
