/* SPDX-License-Identifier: MIT */
/*
 * A key is 1 to TW_KEY_SIZE_MAX bytes. Its hash depends on a secret seed, so that nobody without
 * the seed can choose keys that collide. Any thread may call these functions.
 */
#ifndef KEY_H
#define KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <timingwheel/timingwheel.h>

static inline bool key_is_valid(const void *key, size_t size)
{
	return key && size > 0 && size <= TW_KEY_SIZE_MAX;
}

/* A short key has 8 to 16 bytes, as most keys do: two words of 8 bytes, which may overlap, hold all
 * of it. */
static inline bool key_is_short(size_t size)
{
	return size - 8 <= 8;
}

/*
 * Compares two keys of the same size. For a short key memcmp may load bytes behind the key and mask
 * them off, which can cost a cache miss on a line that is not needed.
 */
static inline bool keys_are_equal(const void *left, const void *right, size_t size)
{
	uint64_t words[4];

	if (!key_is_short(size))
		return memcmp(left, right, size) == 0;
	memcpy(&words[0], left, 8);
	memcpy(&words[1], right, 8);
	memcpy(&words[2], (const unsigned char *)left + size - 8, 8);
	memcpy(&words[3], (const unsigned char *)right + size - 8, 8);
	return ((words[0] ^ words[1]) | (words[2] ^ words[3])) == 0;
}

/* Copies `size` bytes to `to`. */
static inline void key_copy(void *to, const void *from, size_t size)
{
	uint64_t words[2];

	if (!key_is_short(size)) {
		memcpy(to, from, size);
		return;
	}
	memcpy(&words[0], from, 8);
	memcpy(&words[1], (const unsigned char *)from + size - 8, 8);
	memcpy(to, &words[0], 8);
	memcpy((unsigned char *)to + size - 8, &words[1], 8);
}

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
