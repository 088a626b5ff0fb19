/* SPDX-License-Identifier: MIT */
/*
 * The cache's memory for entries: cells that other threads return, while the shard takes, trims or
 * closes its pool. Each cell is with one at a time, what its last reader did is seen by what takes
 * it, and the pool is freed once, when the last cell is back. Bounds:
 *
 *   RETURNS   so many threads return a cell each
 *   OWNER     what the shard does meanwhile: CLOSE; TAKE (a cell, gives it back, closes); TRIM (the
 *             chunks, then closes)
 *
 * Chunks and pool go to free() of the model, and GenMC reports what is done with them after that.
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef RETURNS
#define RETURNS 2
#endif
#ifndef OWNER
#define OWNER CLOSE
#endif

#include "cache/pool.h"

/* One of a pool's lists by classes. */
static void classes_clear(void *list)
{
	for (int i = 0; i < POOL_CLASSES; i++)
		((void **)list)[i] = NULL;
}

static void pool_clear(struct pool *pool)
{
	classes_clear(pool->free);
	classes_clear(pool->fresh);
	classes_clear(pool->end);
	pool->chunks = NULL;
	pool->held = 0;
	pool->gave_away = false;
	pool->taken = 0;
}

#define memset(memory, value, size) \
	(sizeof(*(memory)) == sizeof(struct pool) ? pool_clear(pool) : classes_clear(memory))
#include "cache/pool.c"
#undef memset

enum owner { CLOSE, TAKE, TRIM };

/* What lies in a cell that is taken. */
struct content {
	struct pool_block block;
	uint64_t unused[3]; /* the pool's, while it has the cell */
	uint64_t uses;
};

static struct pool *pool;
static struct content *contents[RETURNS];
static int arena_owners;

void arena_acquire(struct arena *arena)
{
	(void)arena;
	arena_owners++;
}

void arena_release(struct arena *arena)
{
	(void)arena;
	arena_owners--;
}

struct arena_span arena_take(struct arena *arena, size_t size)
{
	struct arena_span span;

	(void)arena;
	span.memory = aligned_alloc(64, size);
	span.region = NULL;
	span.size = size;
	return span;
}

void arena_give(struct arena *arena, const struct arena_span *span)
{
	(void)arena;
	free(span->memory);
}

static struct content *content_take(void)
{
	struct content *content = (struct content *)(void *)pool_take(pool, sizeof(*content));

	assert(content);
	content->uses = 1;
	return content;
}

static void *return_run(void *argument)
{
	struct content *content = argument;

	assert(content->uses == 1);
	content->uses = 2;
	pool_return(&content->block, sizeof(*content));
	return NULL;
}

static void *owner_run(void *argument)
{
	struct content *content;

	if (OWNER == TAKE) {
		content = content_take();
		pool_give(pool, &content->block, sizeof(*content));
	}
	if (OWNER == TRIM)
		pool_trim(pool);
	pool_close(pool);
	return argument;
}

int main(void)
{
	pthread_t threads[RETURNS + 1];

	pool = pool_create(NULL);
	for (int i = 0; i < RETURNS; i++)
		contents[i] = content_take();
	/* So that a cell that is taken is one that was returned, or else one of a new chunk. */
	pool->fresh[class_of(sizeof(struct content))] = pool->end[class_of(sizeof(struct content))];
	pthread_create(&threads[RETURNS], NULL, owner_run, NULL);
	for (int i = 0; i < RETURNS; i++)
		pthread_create(&threads[i], NULL, return_run, contents[i]);
	for (int i = 0; i <= RETURNS; i++)
		pthread_join(threads[i], NULL);
	assert(arena_owners == 0);
	return 0;
}
