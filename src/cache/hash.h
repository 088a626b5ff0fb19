/* SPDX-License-Identifier: MIT */
/*
 * A seeded hash of a key to 64 bits. Its upper 16 bits are the tag in a table's slot, those below
 * choose the shard, the lower 32 the bucket. Any thread.
 */
#ifndef CACHE_HASH_H
#define CACHE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct cache_seed {
	uint64_t words[4];
};

void cache_seed_init(struct cache_seed *seed);
uint64_t cache_hash(const struct cache_seed *seed, const void *key, size_t size);

#endif
