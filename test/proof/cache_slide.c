/* SPDX-License-Identifier: MIT */
/*
 * In this harness lifetimes slide: hits move an entry's deadline while a touch gives it another
 * end, while it expires, and while it moves to another cell. At the end the deadline is not beyond
 * the entry's end, an expired entry stays expired, and no hit is lost. Bounds:
 *
 *   HITS       threads that hit
 *   LIFETIME   of the touch, at the time 4; 8 gives the very deadline that was there before
 *   EXPIRES    1: another thread expires it, if it is past its deadline
 *   LOOKS      1: another thread looks it up, when its first deadline has passed; if that finds
 *              it expired, the touch does not find it
 *   MOVES      1: before the touch, the same thread moves it to another cell, under one lock each;
 *              2 only moves it
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef HITS
#define HITS 2
#endif
#ifndef LIFETIME
#define LIFETIME 8
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef EXPIRES
#define EXPIRES 0
#endif
#ifndef LOOKS
#define LOOKS 0
#endif

#undef __SSE2__

typedef int pthread_key_t;
typedef int pthread_once_t;
/* GenMC does not support a thread-local struct, and none is needed here. */
#define _Thread_local
#define __attribute__(which)
#include "cache/epoch.h"
#include "cache/pins.h"
#undef __attribute__
#undef _Thread_local

/* A sum of products is two operations: GenMC has no fused one. */
#pragma STDC FP_CONTRACT OFF
#include "cache/change.c"
#include "cache/entry.c"
#include "cache/lookup.c"

enum { NOW = 4, FIRST_DEADLINE = 12, FIRST_END = 100, IDLE = 10, LATE = 13 };

struct reader_memo reader_memo;
struct hazards *own_hazards; /* no entry is pinned here */

static struct tw_cache cache;
static struct shard shard;
static struct tw_cache_entry *entry;
static struct tw_cache_entry *copy; /* NULL before the move */
static bool has_expired;
static enum tw_status touch_status;
static struct table table;
static _Atomic uint64_t slot; /* in the encoding of the slots */

bool shard_file(struct shard *unused, uint64_t hash, struct tw_cache_entry *watched, unsigned place)
{
	(void)unused;
	(void)hash;
	(void)watched;
	(void)place;
	return true;
}

/* Does what cache_find_at() does, for a key that stays in its slot. */
static struct tw_cache_entry *look(tw_duration now)
{
	struct find find;

	find.guard.epochs = &cache.shared.epochs;
	find.guard.era = 1;
	find.shard = &shard;
	find.table = &table;
	find.slot = &slot;
	return cache_judge(&cache, &find, entry, now, true);
}

static void *hit_run(void *argument)
{
	assert(look(NOW + (int)(intptr_t)argument) || EXPIRES || LOOKS);
	return NULL;
}

static void move(void)
{
	tw_duration deadline;

	copy = malloc(sizeof(*copy) + sizeof(struct entry_extension));
	copy->kind = ENTRY_EXTENDED;
	copy->key_size = entry->key_size;
	entry_set_state(copy, 0);
	atomic_init(&copy->deadline, 0);
	entry_set_end(copy, entry_end(entry));
	deadline = entry_deadline(entry);
	do
		atomic_store_explicit(&copy->deadline, deadline, memory_order_relaxed);
	while (!entry_try_to_forward(entry, &deadline, copy));
}

static void *touch_run(void *argument)
{
	struct change change = {.shard = &shard, .entry = entry, .now = NOW};

	if (MOVES) {
		move();
		change.entry = copy;
	}
	if (MOVES < 2)
		touch_status = cache_touch_entry(&cache, &change, LIFETIME);
	return argument;
}

static void *expire_run(void *argument)
{
	tw_duration deadline;

	has_expired = entry_try_to_expire(entry, LATE, &deadline);
	return argument;
}

static void *look_run(void *argument)
{
	has_expired = !look(LATE);
	return argument;
}

int main(void)
{
	pthread_t threads[HITS + 2];

	entry = malloc(sizeof(*entry) + sizeof(struct entry_extension));
	entry->kind = ENTRY_EXTENDED;
	entry_set_state(entry, 0);
	atomic_init(&entry->deadline, FIRST_DEADLINE);
	entry->key_size = 8;
	entry_set_end(entry, FIRST_END);
	cache.idle = IDLE;
	atomic_init(&cache.shared.epochs.era, 1);
	atomic_init(&shard.table, &table);
	cache.shared.granule = 1;
	shard.shared = &cache.shared;
	atomic_init(&slot, (uint64_t)(uintptr_t)entry);
	for (intptr_t i = 0; i < HITS; i++)
		pthread_create(&threads[i], NULL, hit_run, (void *)i);
	pthread_create(&threads[HITS], NULL, EXPIRES ? expire_run : touch_run, NULL);
	if (LOOKS)
		pthread_create(&threads[HITS + 1], NULL, look_run, NULL);
	for (int i = 0; i < HITS + 1 + LOOKS; i++)
		pthread_join(threads[i], NULL);
	if (copy) {
		assert(deadline_forward(entry_deadline(entry)) == copy);
		free(entry);
		entry = copy;
	}
	assert(entry_deadline(entry) <= entry_end(entry));
	assert(!LOOKS || has_expired == (touch_status == TW_NOT_FOUND));
	/* No hit is lost. */
	assert(MOVES < 2 || entry_deadline(entry) == NOW + HITS - 1 + IDLE);
	assert(!EXPIRES || has_expired == (entry_deadline(entry) < 0));
	free(entry);
	return 0;
}
