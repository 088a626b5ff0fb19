/* SPDX-License-Identifier: MIT */
/*
 * A seeded hash of a key to 64 bits. Its upper 16 bits are the tag in a table's slot, those below
 * choose the shard, the lower 32 the bucket. Any thread.
 */
#ifndef CACHE_HASH_H
#define CACHE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cache_seed {
	uint64_t words[4];
};

void cache_seed_init(struct cache_seed *seed);
/* Of a key of any size, as cache_hash(). */
uint64_t cache_hash_any(const struct cache_seed *seed, const void *key, size_t size);

__extension__ typedef unsigned __int128 hash_double_word;

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	hash_double_word product = (hash_double_word)a * b;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* The last 16 bytes of the key, after `state` of those before. */
static inline uint64_t hash_end(const struct cache_seed *seed, uint64_t state, uint64_t first,
				uint64_t last, size_t size)
{
	const uint64_t *secret = seed->words;

	state = hash_fold(first ^ secret[2], last ^ state);
	return hash_fold(state ^ secret[3], secret[1] ^ size);
}

/* Most keys are: two words of 8 bytes, which overlap. */
static inline bool key_is_short(size_t size)
{
	return size - 8 <= 8;
}

static inline uint64_t cache_hash_short(const struct cache_seed *seed, const void *key, size_t size)
{
	uint64_t first;
	uint64_t last;

	memcpy(&first, key, 8);
	memcpy(&last, (const unsigned char *)key + size - 8, 8);
	return hash_end(seed, seed->words[0] + size, first, last, size);
}

static inline uint64_t cache_hash(const struct cache_seed *seed, const void *key, size_t size)
{
	return key_is_short(size) ? cache_hash_short(seed, key, size)
				  : cache_hash_any(seed, key, size);
}

#endif
