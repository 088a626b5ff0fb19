/* SPDX-License-Identifier: MIT */
#include "keys.h"

#include "process.h"

struct random_key *keys_create(size_t count, uint64_t seed)
{
	struct random_key *keys = process_allocate(count * sizeof(*keys));

	for (size_t i = 0; i < count; i++)
		keys[i] = key_of(i, seed);
	return keys;
}

void keys_shuffle(struct random_key *keys, size_t count, struct generator *generator)
{
	for (size_t left = count; left > 1; left--) {
		size_t chosen = (size_t)generator_range(generator, 0, (int64_t)left);
		struct random_key key = keys[chosen];

		keys[chosen] = keys[left - 1];
		keys[left - 1] = key;
	}
}
