/* SPDX-License-Identifier: MIT */
/*
 * Lifetimes that slide: hits move an entry's deadline, beside a touch that gives it another end,
 * and beside its expiry. At the end the deadline is not beyond the entry's end, and what has
 * expired stays so. What a lookup finds expired, the touch does not find there. Bounds:
 *
 *   HITS       so many threads
 *   LIFETIME   of the touch, at the time 4; 8 comes to the very deadline that was there before
 *   EXPIRES    1: another thread expires it, if it is past its deadline
 *   LOOKS      1: another thread looks it up, when its first deadline has passed
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
#ifndef EXPIRES
#define EXPIRES 0
#endif
#ifndef LOOKS
#define LOOKS 0
#endif

#undef __SSE2__

typedef int pthread_key_t;
typedef int pthread_once_t;
/* A struct that each thread has its own of is not known here, and not needed. */
#define _Thread_local
#define __attribute__(which)
#include "cache/epoch.h"
#undef __attribute__
#undef _Thread_local

/* A sum of products is two operations: GenMC knows no other. */
#pragma STDC FP_CONTRACT OFF
#include "cache/change.c"
#include "cache/entry.c"
#include "cache/lookup.c"

enum { NOW = 4, FIRST_DEADLINE = 12, FIRST_END = 100, IDLE = 10, LATE = 13 };

struct reader_memo reader_memo;

static struct tw_cache cache;
static struct shard shard;
static struct tw_cache_entry *entry;
static bool has_expired;
static enum tw_status touch_status;

bool shard_watch(struct shard *unused, uint64_t hash, struct tw_cache_entry *watched,
		 unsigned filed, tw_duration deadline)
{
	(void)unused;
	(void)hash;
	(void)watched;
	(void)filed;
	(void)deadline;
	return true;
}

static void *hit_run(void *argument)
{
	tw_duration deadline = entry_deadline(entry);

	(void)cache_slide(&cache, entry, deadline, NOW + (int)(intptr_t)argument);
	return NULL;
}

static void *touch_run(void *argument)
{
	struct change change = {.shard = &shard, .entry = entry, .now = NOW};

	touch_status = cache_touch_entry(&cache, &change, LIFETIME);
	return argument;
}

static void *expire_run(void *argument)
{
	has_expired = entry_try_to_expire(entry, LATE);
	return argument;
}

static void *look_run(void *argument)
{
	has_expired = cache_finds_past(&cache, entry, LATE);
	return argument;
}

int main(void)
{
	pthread_t threads[HITS + 2];

	entry = malloc(sizeof(*entry) + sizeof(struct entry_extension));
	entry->kind = ENTRY_EXTENDED;
	entry->block.free_for_taker = 0;
	atomic_init(&entry->deadline, FIRST_DEADLINE);
	entry_set_end(entry, FIRST_END);
	cache.idle = IDLE;
	for (intptr_t i = 0; i < HITS; i++)
		pthread_create(&threads[i], NULL, hit_run, (void *)i);
	pthread_create(&threads[HITS], NULL, EXPIRES ? expire_run : touch_run, NULL);
	if (LOOKS)
		pthread_create(&threads[HITS + 1], NULL, look_run, NULL);
	for (int i = 0; i < HITS + 1 + LOOKS; i++)
		pthread_join(threads[i], NULL);
	assert(entry_deadline(entry) <= entry_end(entry));
	assert(!LOOKS || has_expired == (touch_status == TW_NOT_FOUND));
	assert(!EXPIRES || has_expired == (entry_deadline(entry) < 0));
	free(entry);
	return 0;
}
