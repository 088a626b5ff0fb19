/* SPDX-License-Identifier: MIT */
/*
 * These are the baseline's timers: in lists, one for each slot, and in a map from keys to them. The
 * lists have no lock; the map has one, as go-zero's has. Calls end the program when memory is out.
 */
#ifndef BENCH_SUPPORT_SIMPLE_TIMERS_H
#define BENCH_SUPPORT_SIMPLE_TIMERS_H

#include "keys.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

/* An entry is a timer in its slot: go-zero's timingEntry with its list element. */
struct entry {
	struct entry *next;
	struct entry *previous;
	struct random_key key;
	void *value;    /* NULL; it counts for the memory */
	int64_t circle; /* rounds to wait */
	int64_t diff;   /* slots to advance when its slot comes up */
	bool removed;
};

/* A position is where a key's timer is: go-zero's positionEntry with its place in the map. */
struct position {
	struct random_key key;
	struct entry *entry;
	size_t slot;
	UT_hash_handle hh;
};

struct slot {
	struct entry *first;
	struct entry *last;
};

struct map {
	pthread_mutex_t lock;
	struct position *positions;
};

struct entry *entry_create(const struct random_key *key, int64_t circle);

static inline void slot_append(struct slot *slot, struct entry *entry)
{
	entry->next = NULL;
	entry->previous = slot->last;
	if (slot->last)
		slot->last->next = entry;
	else
		slot->first = entry;
	slot->last = entry;
}

static inline void slot_remove(struct slot *slot, struct entry *entry)
{
	if (entry->previous)
		entry->previous->next = entry->next;
	else
		slot->first = entry->next;
	if (entry->next)
		entry->next->previous = entry->previous;
	else
		slot->last = entry->previous;
}

/* Appends all of `more`, which has at least one. */
void slot_append_all(struct slot *slot, const struct slot *more);
/* Frees its entries. */
void slot_free(struct slot *slot);

void map_prepare(struct map *map);
/* Returns NULL if the key has no timer. */
struct position *map_find(struct map *map, const struct random_key *key);
void map_add(struct map *map, struct entry *entry, size_t slot);
void map_delete(struct map *map, struct position *position);
int64_t map_count(struct map *map);
/* Frees the map, which has no users left. */
void map_free(struct map *map);

#endif
