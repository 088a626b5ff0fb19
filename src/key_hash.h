/* SPDX-License-Identifier: MIT */
/*
 * The hash of a key: seeded, so that nobody who doesn't know the seed can choose keys that collide.
 * Any thread.
 */
#ifndef KEY_HASH_H
#define KEY_HASH_H

#include <stddef.h>
#include <stdint.h>

struct key_hash_seed {
	uint64_t words[4];
};

/* Fills the seed from the system's random numbers. */
void key_hash_seed_init(struct key_hash_seed *seed);

uint32_t key_hash(const struct key_hash_seed *seed, const void *key, size_t size);

#endif
