/* SPDX-License-Identifier: MIT */
/*
 * Ghosts are a hash table of small buckets without links or deletions. A slot holds a hash and the
 * time of its eviction, counted in evictions. It counts only while that time lies within the
 * window, and a new one takes the oldest slot of its bucket. So the queue of ghosts needs no queue.
 * A table that is too small, or much too large, is replaced by an empty one: moving all hashes
 * would take too long. Times begin in the middle of their range, so that an empty slot is old.
 */
#include "ghost.h"

#include <stdlib.h>

enum { GHOST_BUCKET = 8 };

/* This is half of the range of times: a ghost that was taken out counts as that old. */
#define GHOST_LONG_AGO (UINT32_C(1) << 31)

void ghost_init(struct ghost *ghost)
{
	*ghost = (struct ghost){.time = GHOST_LONG_AGO};
}

void ghost_forget(struct ghost *ghost)
{
	free(ghost->slots);
	ghost->slots = NULL;
}

size_t ghost_bytes(const struct ghost *ghost)
{
	return ghost->slots ? (ghost->mask + 1) * GHOST_BUCKET * sizeof(*ghost->slots) : 0;
}

static struct ghost_slot *ghost_bucket(const struct ghost *ghost, uint32_t hash)
{
	/* The lowest bits chose the bucket of the table; the mix makes these others. */
	return &ghost->slots[((hash * 0x9e3779b1u) >> 8 & ghost->mask) * GHOST_BUCKET];
}

void ghost_reserve(struct ghost *ghost, size_t entries)
{
	size_t buckets = 1;
	struct ghost_slot *slots;

	entries += entries / 4;
	if (ghost->slots && entries <= (ghost->mask + 1) * GHOST_BUCKET)
		return;
	while (buckets * GHOST_BUCKET < entries)
		buckets *= 2;
	slots = calloc(buckets * GHOST_BUCKET, sizeof(*slots));
	if (!slots)
		return;
	free(ghost->slots);
	ghost->slots = slots;
	ghost->mask = buckets - 1;
}

void ghost_add(struct ghost *ghost, uint32_t hash, bool was_main)
{
	struct ghost_slot *bucket;
	struct ghost_slot *oldest;

	if (!ghost->slots)
		return;
	ghost->time += 2;
	bucket = ghost_bucket(ghost, hash);
	oldest = bucket;
	for (int i = 1; i < GHOST_BUCKET; i++)
		if (ghost->time - bucket[i].time > ghost->time - oldest->time)
			oldest = &bucket[i];
	*oldest = (struct ghost_slot){hash, ghost->time | was_main};
}

bool ghost_take(struct ghost *ghost, uint32_t hash, size_t window, struct ghost_memory *memory)
{
	struct ghost_slot *bucket;

	if (!ghost->slots)
		return false;
	bucket = ghost_bucket(ghost, hash);
	for (int i = 0; i < GHOST_BUCKET; i++)
		if (bucket[i].hash == hash) {
			memory->was_main = bucket[i].time & 1;
			memory->age = (ghost->time - (bucket[i].time & ~1u)) / 2;
			bucket[i].time = ghost->time - GHOST_LONG_AGO;
			/* A slot whose ghost was taken may have the same hash as a later one. */
			if (memory->age < window)
				return true;
		}
	return false;
}
