/* SPDX-License-Identifier: MIT */
/* The hashes of keys that were evicted lately, for S3-FIFO. Under the shard's lock. */
#ifndef CACHE_GHOST_H
#define CACHE_GHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ghost_slot {
	uint32_t hash;
	uint32_t time; /* 0: empty */
};

struct ghost {
	struct ghost_slot *slots; /* NULL: nothing is remembered */
	size_t mask;              /* buckets - 1 */
	uint32_t time;            /* evictions so far, from 1 */
};

void ghost_init(struct ghost *ghost);
/* Of one that remembers nothing there is nothing to be freed. */
void ghost_forget(struct ghost *ghost);
size_t ghost_bytes(const struct ghost *ghost);
/* Makes room for so many; if memory is short, fewer are remembered. */
void ghost_reserve(struct ghost *ghost, size_t entries);
void ghost_add(struct ghost *ghost, uint32_t hash);
/* Whether it was among the `window` last ones; forgets it. */
bool ghost_take(struct ghost *ghost, uint32_t hash, size_t window);

#endif
