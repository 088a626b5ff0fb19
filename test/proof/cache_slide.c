/* SPDX-License-Identifier: MIT */
/*
 * In this harness lifetimes slide: hits move an entry's deadline while a touch gives it another
 * end, while it expires, and while it moves to another cell. At the end the deadline is not beyond
 * the entry's end, an expired entry stays expired, and no hit is lost. Bounds:
 *
 *   HITS       threads that hit
 *   LIFETIME   of the touch, at the time 4; 8 gives the very deadline that was there before
 *   EXPIRES    1: another thread expires it, if it is past its deadline
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

#undef __SSE2__

/* GenMC does not support a thread-local struct, and none is needed here. */
#define _Thread_local
#define __attribute__(which)
#include "cache/shared.h"
#undef __attribute__
#undef _Thread_local

/* A sum of products is two operations: GenMC has no fused one. */
#pragma STDC FP_CONTRACT OFF
#include "cache/change.c"
#include "cache/entry.c"
#include "cache/lookup.c"

enum { NOW = 4, FIRST_DEADLINE = 12, FIRST_END = 100, IDLE = 10, LATE = 13 };

struct caller_memo caller_memo;
uint64_t caller_computes;

static struct tw_cache cache;
static struct shard shard;
static struct tw_cache_entry *entry;
static struct tw_cache_entry *copy; /* NULL before the move */
static bool has_expired;
static _Atomic(struct tw_cache_entry *) slot;

bool shard_file(struct shard *unused, uint64_t hash, struct tw_cache_entry *watched, unsigned place)
{
	(void)unused;
	(void)hash;
	(void)watched;
	(void)place;
	return true;
}

/* Does what cache_find_at() does, for a key that stays in its slot; no cell is used again. */
static void *hit_run(void *argument)
{
	struct tw_cache_entry *found;
	bool is_readable;

	do {
		found = atomic_load_explicit(&slot, memory_order_seq_cst);
		is_readable = cache_judge(&cache, found, NOW + (int)(intptr_t)argument, true);
		/* acquire: as slot_load_again(). */
	} while (atomic_load_explicit(&slot, memory_order_acquire) != found);
	assert(is_readable || EXPIRES);
	return NULL;
}

/* Does what shard_move() does. */
static void move(void)
{
	copy = malloc(sizeof(*copy) + sizeof(struct entry_extension));
	atomic_init(&copy->life, 0);
	copy->kind = ENTRY_EXTENDED;
	copy->key_size = entry->key_size;
	entry_set_state(copy, ENTRY_LINKED);
	atomic_init(&copy->deadline, entry_deadline(entry));
	time_store(&entry_extension(copy)->end, time_load(&entry_extension(entry)->end));
	atomic_store_explicit(&slot, copy, memory_order_seq_cst);
	entry_set_state(entry, 0);
	entry_carry_deadline(copy, entry);
}

static void *touch_run(void *argument)
{
	struct tw_cache_value value = {.expire = LIFETIME};
	struct change change = {.cache = &cache, .shard = &shard, .entry = entry, .now = NOW};

	if (MOVES) {
		move();
		change.entry = copy;
	}
	if (MOVES < 2)
		(void)change_touch(&change, &value);
	return argument;
}

static void *expire_run(void *argument)
{
	tw_duration deadline;

	has_expired = entry_try_to_expire(entry, LATE, &deadline);
	return argument;
}

int main(void)
{
	pthread_t threads[HITS + 1];

	entry = malloc(sizeof(*entry) + sizeof(struct entry_extension));
	atomic_init(&entry->life, 0);
	entry->kind = ENTRY_EXTENDED;
	entry_set_state(entry, ENTRY_LINKED);
	atomic_init(&entry->deadline, FIRST_DEADLINE);
	entry->key_size = 8;
	time_store(&entry_extension(entry)->end, FIRST_END);
	cache.options.idle = IDLE;
	cache.shared.granule = 1;
	shard.shared = &cache.shared;
	atomic_init(&slot, entry);
	for (intptr_t i = 0; i < HITS; i++)
		pthread_create(&threads[i], NULL, hit_run, (void *)i);
	pthread_create(&threads[HITS], NULL, EXPIRES ? expire_run : touch_run, NULL);
	for (int i = 0; i < HITS + 1; i++)
		pthread_join(threads[i], NULL);
	if (copy) {
		free(entry);
		entry = copy;
	}
	assert(entry_deadline(entry) <= time_load(&entry_extension(entry)->end));
	/* No hit is lost. */
	assert(MOVES < 2 || entry_deadline(entry) == NOW + HITS - 1 + IDLE);
	assert(!EXPIRES || has_expired == (entry_deadline(entry) < 0));
	free(entry);
	return 0;
}
