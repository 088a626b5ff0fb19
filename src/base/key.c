/* SPDX-License-Identifier: MIT */
/*
 * The hash is a chain of folded multiplications, as in Wang Yi's wyhash (final version 4, 2022).
 * Two words of the key are each mixed with a secret word and multiplied to 128 bits; the halves of
 * the product are combined by exclusive or. One multiplication takes in 16 bytes, so a usual key
 * costs two or three.
 *
 * Each wheel and cache draws its own secret words at random. wyhash selects words that have half of
 * their bits set; random ones cost a little evenness and nothing else.
 *
 * A product loses its input where one factor is 0. That needs a key word equal to a secret word: a
 * chance of 1 in 2^64 for each word, for somebody who does not know the seed.
 */
#include "key.h"

#include <pthread.h>
#include <sys/random.h>
#include <time.h>

void key_hash_seed_init(struct key_hash_seed *seed)
{
	struct timespec now;
	ssize_t got;
	int state;

	/* It is a cancellation point, though it does not wait. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	got = getrandom(seed->words, sizeof(seed->words), GRND_NONBLOCK);
	pthread_setcancelstate(state, &state);
	if (got == (ssize_t)sizeof(seed->words))
		return;
	/* Early after its start the system has no random numbers: the clock and an address replace
	 * them. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (int i = 0; i < 4; i++)
		seed->words[i] = key_hash_fold((uint64_t)now.tv_nsec +
						       0x9e3779b97f4a7c15u * (uint64_t)(i + 1),
					       (uint64_t)(uintptr_t)seed ^ 0xd6e8feb86659fd93u);
}

/* Returns 1 to 7 bytes as a number. */
static uint64_t few_bytes(const unsigned char *bytes, size_t size)
{
	uint32_t low;
	uint32_t high;

	if (size >= 4) {
		memcpy(&low, bytes, 4);
		memcpy(&high, bytes + size - 4, 4);
		return (uint64_t)high << 32 | low;
	}
	return (uint64_t)bytes[0] | (uint64_t)bytes[size / 2] << 8 |
	       (uint64_t)bytes[size - 1] << 16;
}

uint64_t key_hash_any(const struct key_hash_seed *seed, const void *key, size_t size)
{
	const unsigned char *bytes = key;
	uint64_t state = seed->words[0] + size;
	uint64_t pair[2];
	size_t left = size;

	for (; left > 16; left -= 16, bytes += 16) {
		memcpy(pair, bytes, 16);
		state = key_hash_fold(pair[0] ^ seed->words[1], pair[1] ^ state);
	}
	if (left < 8)
		return key_hash_end(seed, state, few_bytes(bytes, left), 0, size);
	memcpy(&pair[0], bytes, 8);
	memcpy(&pair[1], bytes + left - 8, 8);
	return key_hash_end(seed, state, pair[0], pair[1], size);
}
