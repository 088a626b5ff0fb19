/* SPDX-License-Identifier: MIT */
/* Ghosts are the hashes of keys that were evicted lately. The shard's lock guards them. */
#ifndef CACHE_GHOST_H
#define CACHE_GHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ghost_slot {
	uint32_t hash;
	uint32_t time; /* when it was evicted; the lowest bit says that it left the main queue */
};

struct ghost {
	struct ghost_slot *slots; /* NULL if nothing is remembered */
	size_t mask;              /* buckets - 1 */
	uint32_t time;            /* time of the last eviction; goes up by two */
};

/* A ghost memory is what is remembered of a key. */
struct ghost_memory {
	bool was_main; /* it left the main queue */
	uint32_t age;  /* evictions since then */
};

void ghost_init(struct ghost *ghost);
/* Frees the slots. A ghost that remembers nothing has none. */
void ghost_forget(struct ghost *ghost);
size_t ghost_bytes(const struct ghost *ghost);
/* Makes room for `entries` hashes; if memory is short, fewer are remembered. */
void ghost_reserve(struct ghost *ghost, size_t entries);
void ghost_add(struct ghost *ghost, uint32_t hash, bool was_main);
/* Returns whether the hash was among the last `window` ones, sets *memory if so, and forgets it. */
bool ghost_take(struct ghost *ghost, uint32_t hash, size_t window, struct ghost_memory *memory);

#endif
