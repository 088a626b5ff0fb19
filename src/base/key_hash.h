/* SPDX-License-Identifier: MIT */
/*
 * The hash of a key depends on a secret seed, so that nobody without the seed can choose keys that
 * collide. Any thread may call these functions.
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

/* Fills the seed with random numbers of the system. */
void key_hash_seed_init(struct key_hash_seed *seed);
/* Returns what key_hash_wide() returns, without its fast path for short keys. */
uint64_t key_hash_any(const struct key_hash_seed *seed, const void *key, size_t size);

__extension__ typedef unsigned __int128 key_hash_product;

static inline uint64_t key_hash_fold(uint64_t a, uint64_t b)
{
	key_hash_product product = (key_hash_product)a * b;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Mixes the last bytes of the key, in `first` and `last`, into `state`, and returns the hash. */
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

/* Returns a hash of 64 bits. */
static inline uint64_t key_hash_wide(const struct key_hash_seed *seed, const void *key, size_t size)
{
	return key_is_short(size) ? key_hash_short(seed, key, size) : key_hash_any(seed, key, size);
}

/* Returns a hash of 32 bits. */
static inline uint32_t key_hash(const struct key_hash_seed *seed, const void *key, size_t size)
{
	uint64_t hash = key_hash_wide(seed, key, size);

	return (uint32_t)(hash ^ hash >> 32);
}

#endif
