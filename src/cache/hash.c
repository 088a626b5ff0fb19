/* SPDX-License-Identifier: MIT */
/*
 * Multiply and fold: each 16 bytes of the key, mixed with secret words, become one product of 128
 * bits, whose halves are combined. A key of up to 16 bytes costs two multiplications. The secret is
 * drawn for each cache, so that nobody who sends keys can choose ones that collide.
 */
#include "hash.h"

#include <sys/random.h>
#include <time.h>

void cache_seed_init(struct cache_seed *seed)
{
	struct timespec now;
	uint64_t mix;

	if (getrandom(seed->words, sizeof(seed->words), GRND_NONBLOCK) == sizeof(seed->words))
		return;
	/* The system has no random numbers yet: the time and an address must do. */
	clock_gettime(CLOCK_REALTIME, &now);
	mix = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)seed;
	for (int i = 0; i < 4; i++) {
		mix = hash_fold(mix + 0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u);
		seed->words[i] = mix;
	}
}

/* Up to 8 bytes as a number. */
static uint64_t few_bytes(const unsigned char *bytes, size_t size)
{
	uint32_t low;
	uint32_t high;

	if (size >= 4) {
		memcpy(&low, bytes, 4);
		memcpy(&high, bytes + size - 4, 4);
		return (uint64_t)high << 32 | low;
	}
	if (size == 0)
		return 0;
	return (uint64_t)bytes[0] | (uint64_t)bytes[size / 2] << 8 |
	       (uint64_t)bytes[size - 1] << 16;
}

uint64_t cache_hash_any(const struct cache_seed *seed, const void *key, size_t size)
{
	const unsigned char *bytes = key;
	uint64_t state = seed->words[0] + size;
	uint64_t pair[2];
	size_t left = size;

	for (; left > 16; left -= 16, bytes += 16) {
		memcpy(pair, bytes, 16);
		state = hash_fold(pair[0] ^ seed->words[1], pair[1] ^ state);
	}
	if (left < 8)
		return hash_end(seed, state, few_bytes(bytes, left), 0, size);
	memcpy(&pair[0], bytes, 8);
	memcpy(&pair[1], bytes + left - 8, 8);
	return hash_end(seed, state, pair[0], pair[1], size);
}
