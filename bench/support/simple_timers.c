/* SPDX-License-Identifier: MIT */
#include "simple_timers.h"

#include "process.h"

#include <stdlib.h>

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		process_fail("out of memory in the baseline");
	return memory;
}

struct entry *entry_create(const struct random_key *key, int64_t circle)
{
	struct entry *entry = allocate(sizeof(*entry));

	*entry = (struct entry){.key = *key, .circle = circle};
	return entry;
}

void slot_free(struct slot *slot)
{
	while (slot->first) {
		struct entry *entry = slot->first;

		slot_remove(slot, entry);
		free(entry);
	}
}

void slot_append_all(struct slot *slot, const struct slot *more)
{
	if (slot->last) {
		slot->last->next = more->first;
		more->first->previous = slot->last;
		slot->last = more->last;
	} else {
		*slot = *more;
	}
}

void map_prepare(struct map *map)
{
	map->positions = NULL;
	pthread_mutex_init(&map->lock, NULL);
}

struct position *map_find(struct map *map, const struct random_key *key)
{
	struct position *position;

	pthread_mutex_lock(&map->lock);
	HASH_FIND(hh, map->positions, key, sizeof(*key), position);
	pthread_mutex_unlock(&map->lock);
	return position;
}

void map_add(struct map *map, struct entry *entry, size_t slot)
{
	struct position *position = allocate(sizeof(*position));

	position->key = entry->key;
	position->entry = entry;
	position->slot = slot;
	pthread_mutex_lock(&map->lock);
	HASH_ADD(hh, map->positions, key, sizeof(position->key), position);
	pthread_mutex_unlock(&map->lock);
}

void map_delete(struct map *map, struct position *position)
{
	pthread_mutex_lock(&map->lock);
	HASH_DEL(map->positions, position);
	pthread_mutex_unlock(&map->lock);
	free(position);
}

void map_free(struct map *map)
{
	struct position *position, *next;

	HASH_ITER (hh, map->positions, position, next) {
		HASH_DEL(map->positions, position);
		free(position);
	}
}

int64_t map_count(struct map *map)
{
	int64_t count;

	pthread_mutex_lock(&map->lock);
	count = HASH_COUNT(map->positions);
	pthread_mutex_unlock(&map->lock);
	return count;
}
