/* SPDX-License-Identifier: MIT */
#include "random.h"

/* Mixes the bits of a number, as splitmix64 does. */
static uint64_t mix(uint64_t number)
{
	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
	number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
	return number ^ (number >> 31);
}

struct random random_from(uint64_t seed, uint64_t stream)
{
	/* Without mixing, a seed's numbers would be the previous seed's, shifted by one. */
	return (struct random){.state = mix(mix(seed) + stream)};
}

struct random random_from_bytes(const uint8_t *bytes, size_t size)
{
	/* The pointer is not NULL, even without bytes. */
	return (struct random){.bytes = bytes ? bytes : (const uint8_t *)"", .left = size};
}

bool random_is_spent(const struct random *random)
{
	return random->bytes && !random->left;
}

/* Returns a number from 0 to `most`, or above if `most` does not fill its bytes. */
static uint64_t number_from_bytes(struct random *random, uint64_t most)
{
	uint64_t number = 0;

	for (; most && random->left; most >>= 8) {
		number = number << 8 | *random->bytes++;
		random->left--;
	}
	return number;
}

uint64_t random_next(struct random *random)
{
	if (random->bytes)
		return number_from_bytes(random, UINT64_MAX);
	return mix(random->state += 0x9e3779b97f4a7c15);
}

uint64_t random_below(struct random *random, uint64_t bound)
{
	if (random->bytes)
		return number_from_bytes(random, bound - 1) % bound;
	return random_next(random) % bound;
}

int64_t random_between(struct random *random, int64_t low, int64_t high)
{
	return low + (int64_t)random_below(random, (uint64_t)(high - low) + 1);
}

int random_once_in(struct random *random, uint64_t times)
{
	return random_below(random, times) == 0;
}
