/* SPDX-License-Identifier: MIT */
/*
 * Folded multiplication: two words are each mixed with a secret one, multiplied to 128 bits, and
 * the halves are combined with exclusive or. One multiplication takes in 16 bytes, so a usual key
 * costs two or three of them. The construction is that of Wang Yi's wyhash (final version 4, 2022);
 * the secret words are drawn anew for each wheel, and hold one bit in two set at random rather than
 * by selection, which costs a little evenness and nothing else.
 *
 * A product loses its input where one factor is 0: that needs a key word equal to a secret word,
 * one chance in 2^64 a word for who doesn't know the seed.
 */
#include "key_hash.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t read_word(const unsigned char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static uint64_t read_half(const unsigned char *bytes)
{
	uint32_t half;

	memcpy(&half, bytes, sizeof(half));
	return half;
}

__extension__ typedef unsigned __int128 double_word;

static uint64_t fold(uint64_t a, uint64_t b)
{
	double_word product = (double_word)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

void key_hash_seed_init(struct key_hash_seed *seed)
{
	struct timespec now;

	/* Before the system has random numbers, at its start, the clock and an address must do. */
	if (getrandom(seed->words, sizeof(seed->words), GRND_NONBLOCK) ==
	    (ssize_t)sizeof(seed->words))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (int i = 0; i < 4; i++)
		seed->words[i] =
			fold((uint64_t)now.tv_nsec + 0x9e3779b97f4a7c15u * (uint64_t)(i + 1),
			     (uint64_t)(uintptr_t)seed ^ 0xd6e8feb86659fd93u);
}

uint32_t key_hash(const struct key_hash_seed *seed, const void *key, size_t size)
{
	const uint64_t *secret = seed->words;
	const unsigned char *bytes = key;
	uint64_t state = secret[0] ^ size;
	uint64_t first = 0;
	uint64_t second = 0;
	size_t left = size;

	for (; left > 16; left -= 16, bytes += 16)
		state = fold(read_word(bytes) ^ secret[1], read_word(bytes + 8) ^ state);

	/* The last 1 to 16 bytes; the two reads overlap where there are fewer. */
	if (left >= 8) {
		first = read_word(bytes);
		second = read_word(bytes + left - 8);
	} else if (left >= 4) {
		first = read_half(bytes);
		second = read_half(bytes + left - 4);
	} else if (left > 0) {
		first = (uint64_t)bytes[0] << 16 | (uint64_t)bytes[left / 2] << 8 | bytes[left - 1];
	}
	state = fold(first ^ secret[2], second ^ state);
	state = fold(state ^ secret[3], secret[1] ^ size);
	return (uint32_t)(state ^ state >> 32);
}
