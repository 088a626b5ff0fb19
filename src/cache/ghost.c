/* SPDX-License-Identifier: MIT */
/*
 * A hash table of small buckets without links or deletions: a slot holds a hash and the number of
 * the eviction that brought it. It counts only while that number lies within the window, and a new
 * hash takes the oldest slot of its bucket. So the queue of ghosts needs no queue. Where it becomes
 * too small, or much too large, it begins anew: to lay all into another would take too long.
 *
 * Invariant: a slot's time is that of an eviction that was, so no later than `time`; 0 is none.
 */
#include "ghost.h"

#include <stdlib.h>

enum { GHOST_BUCKET = 8 };

void ghost_init(struct ghost *ghost)
{
	*ghost = (struct ghost){.time = 1};
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
	/* The lowest bits chose the bucket of the table; mix, so that these are others. */
	return &ghost->slots[((hash * 0x9e3779b1u) >> 8 & ghost->mask) * GHOST_BUCKET];
}

/* In evictions; the difference stays right when the time comes round. */
static uint32_t ghost_age(const struct ghost *ghost, const struct ghost_slot *slot)
{
	return slot->time == 0 ? UINT32_MAX : ghost->time - slot->time;
}

static void ghost_put(struct ghost *ghost, uint32_t hash, uint32_t time)
{
	struct ghost_slot *bucket = ghost_bucket(ghost, hash);
	struct ghost_slot *oldest = bucket;

	for (struct ghost_slot *slot = bucket; slot < bucket + GHOST_BUCKET; slot++) {
		if (slot->time != 0 && slot->hash == hash) {
			oldest = slot;
			break;
		}
		if (ghost_age(ghost, slot) > ghost_age(ghost, oldest))
			oldest = slot;
	}
	*oldest = (struct ghost_slot){hash, time};
}

void ghost_reserve(struct ghost *ghost, size_t entries)
{
	size_t buckets = 1;
	struct ghost_slot *slots;

	while (buckets * GHOST_BUCKET < entries + entries / 4)
		buckets *= 2;
	if (ghost->slots && buckets <= ghost->mask + 1)
		return;
	slots = calloc(buckets * GHOST_BUCKET, sizeof(*slots));
	if (!slots)
		return;
	free(ghost->slots);
	ghost->slots = slots;
	ghost->mask = buckets - 1;
}

void ghost_add(struct ghost *ghost, uint32_t hash)
{
	if (!ghost->slots)
		return;
	if (++ghost->time == 0)
		ghost->time = 1;
	ghost_put(ghost, hash, ghost->time);
}

bool ghost_take(struct ghost *ghost, uint32_t hash, size_t window)
{
	struct ghost_slot *bucket;

	if (!ghost->slots)
		return false;
	bucket = ghost_bucket(ghost, hash);
	for (int i = 0; i < GHOST_BUCKET; i++)
		if (bucket[i].time != 0 && bucket[i].hash == hash) {
			uint32_t age = ghost_age(ghost, &bucket[i]);

			bucket[i].time = 0;
			return age < window;
		}
	return false;
}
