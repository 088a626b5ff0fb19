/* SPDX-License-Identifier: MIT */
/*
 * malloc keeps its memory by thread: what one thread takes and another gives back is of use to
 * neither for long, and a cache that is written by several threads comes to hold twice what it
 * needs. Here it belongs to the shard. Cells of a class are cut from chunks as they are needed, go
 * into a list when they are given back, and a pool all of whose cells are back gives its chunks to
 * the arena. Chunks grow with the pool, so that few cells wait for their first use.
 *
 * Each block begins with its pool (NULL: it came from malloc), so that a reader can give back the
 * last pin of an entry without knowing a cache. Such blocks go onto a stack, which the owner takes
 * whole when a list is empty.
 *
 * The pool outlives its owner as long as cells are out. `balance` goes down by one with each
 * return; the close adds the number of cells that had been taken. What brings it to 0 after that
 * frees all.
 *
 * May run together: pool_return() with everything. Linearization: of a return, the exchange that
 * pushes the cell.
 */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/sanitizer.h"

/* The address sanitizer should see each entry by itself. */
#define POOL_LARGEST (SANITIZER_ADDRESS ? 0 : 1024)

enum {
	CHUNK_CELLS = 16, /* at least, less one for the chunk's head */
	CHUNK_SHARE = 16, /* of what the pool holds */
	CHUNK_MOST = 32768,
	SPARE_MOST = 64
};

/* A block that is not taken. */
struct pool_cell {
	struct pool_block block;
	struct pool_cell *next;
	unsigned class;
};

/* The first cell follows: at a multiple of 64, so that those that fill cache lines begin them. */
struct pool_chunk {
	_Alignas(64) struct pool_chunk *next;
	struct arena_span span;
};

struct pool *pool_create(struct arena *arena)
{
	struct pool *pool = aligned_alloc(_Alignof(struct pool), sizeof(*pool));

	if (!pool)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	pool->arena = arena;
	arena_acquire(arena);
	atomic_init(&pool->returned, NULL);
	atomic_init(&pool->balance, 0);
	return pool;
}

static void pool_free_chunks(struct pool *pool)
{
	struct pool_chunk *chunk;

	while ((chunk = pool->chunks)) {
		struct arena_span span = chunk->span;

		pool->chunks = chunk->next;
		arena_give(pool->arena, &span);
	}
	pool->held = 0;
	memset(pool->free, 0, sizeof(pool->free));
	memset(pool->fresh, 0, sizeof(pool->fresh));
	memset(pool->end, 0, sizeof(pool->end));
}

static void pool_free(struct pool *pool)
{
	pool_free_chunks(pool);
	arena_release(pool->arena);
	free(pool);
}

void pool_close(struct pool *pool)
{
	int64_t taken = pool->taken;

	/* acq_rel: the last one sees what the others did; pairs with itself and cell_return(). */
	if (atomic_fetch_add_explicit(&pool->balance, taken, memory_order_acq_rel) + taken == 0)
		pool_free(pool);
}

/* ---- Classes: by 16 bytes to 256, then by an eighth of a power of two ---- */

static unsigned class_of(size_t cell)
{
	unsigned power;

	if (cell <= POOL_FINE)
		return (unsigned)((cell + POOL_STEP - 1) / POOL_STEP) - 1;
	/* 8: 256 < cell ≤ 512; four classes each. */
	power = 63u - (unsigned)__builtin_clzll(cell - 1);
	return 16 + (power - 8) * 4 + (unsigned)((cell - 1) >> (power - 2) & 3);
}

static size_t class_size(unsigned number)
{
	unsigned power;

	if (number < 16)
		return (size_t)(number + 1) * POOL_STEP;
	power = 8 + (number - 16) / 4;
	return ((size_t)4 + (number - 16) % 4 + 1) << (power - 2);
}

bool pool_has_size(size_t size)
{
	return size <= POOL_LARGEST;
}

/* ---- Cells ---- */

static struct pool *block_pool(const struct pool_block *block)
{
	return (struct pool *)(uintptr_t)((uint64_t)block->pool_high << 32 | block->pool_low);
}

static void block_set_pool(struct pool_block *block, const struct pool *pool)
{
	block->pool_low = (uint32_t)(uintptr_t)pool;
	block->pool_high = (uint16_t)((uint64_t)(uintptr_t)pool >> 32);
}

/* A block of its own from malloc. */
static struct pool_block *block_new(size_t size)
{
	struct pool_block *block = malloc(size);

	if (block)
		block_set_pool(block, NULL);
	return block;
}

static void cell_push(struct pool_cell **cells, struct pool_cell *cell)
{
	cell->next = cells[cell->class];
	cells[cell->class] = cell;
}

/* NULL: there is none. */
static struct pool_cell *cell_pop(struct pool_cell **cells, unsigned class)
{
	struct pool_cell *cell = cells[class];

	if (cell)
		cells[class] = cell->next;
	return cell;
}

/* A chunk's size for cells of this one. */
static size_t pool_chunk_size(const struct pool *pool, size_t cell)
{
	size_t size = ARENA_SPAN_LEAST;

	while (size < cell * CHUNK_CELLS || (size * CHUNK_SHARE < pool->held && size < CHUNK_MOST))
		size *= 2;
	return size;
}

/* False: out of memory. */
static bool pool_add_chunk(struct pool *pool, unsigned class)
{
	size_t cell = class_size(class);
	struct arena_span span = arena_take(pool->arena, pool_chunk_size(pool, cell));
	struct pool_chunk *chunk = span.memory;

	if (!chunk)
		return false;
	chunk->next = pool->chunks;
	chunk->span = span;
	pool->chunks = chunk;
	pool->held += span.size;
	pool->fresh[class] = (unsigned char *)(chunk + 1);
	pool->end[class] = pool->fresh[class] + (span.size - sizeof(*chunk)) / cell * cell;
	return true;
}

/* Sorts what came back from other threads into the lists. */
static void pool_collect(struct pool *pool)
{
	struct pool_cell *cell;
	struct pool_cell *next;

	/* relaxed: a look that spares the exchange. */
	if (!atomic_load_explicit(&pool->returned, memory_order_relaxed))
		return;
	/* acquire: the last reader is done with them; pairs with cell_return(). */
	cell = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
	for (; cell; cell = next) {
		next = cell->next;
		cell_push(pool->free, cell);
	}
}

/* One that was never taken; NULL: out of memory. */
static struct pool_cell *pool_cut(struct pool *pool, unsigned class)
{
	struct pool_cell *cell;

	if (pool->fresh[class] == pool->end[class] && !pool_add_chunk(pool, class))
		return NULL;
	cell = (struct pool_cell *)(void *)pool->fresh[class];
	pool->fresh[class] += class_size(class);
	block_set_pool(&cell->block, pool);
	return cell;
}

struct pool_block *pool_take(struct pool *pool, size_t size)
{
	unsigned class = class_of(size);
	struct pool_cell *cell;

	if (!pool_has_size(size))
		return block_new(size);
	cell = cell_pop(pool->free, class);
	if (!cell) {
		pool_collect(pool);
		cell = cell_pop(pool->free, class);
	}
	if (!cell)
		cell = pool_cut(pool, class);
	if (!cell)
		return NULL;
	pool->taken++;
	return &cell->block;
}

static void cell_return(struct pool_cell *cell)
{
	struct pool *pool = block_pool(&cell->block);

	/* relaxed: the exchange below tells whether it still is so. */
	cell->next = atomic_load_explicit(&pool->returned, memory_order_relaxed);
	/* release: what takes the cell sees that it is free; pairs with pool_collect(). */
	while (!atomic_compare_exchange_weak_explicit(&pool->returned, &cell->next, cell,
						      memory_order_release, memory_order_relaxed))
		continue;
	/* acq_rel: pairs with pool_close(), pool_trim() and itself. */
	if (atomic_fetch_sub_explicit(&pool->balance, 1, memory_order_acq_rel) == 1)
		pool_free(pool);
}

void pool_return(struct pool_block *block, size_t size)
{
	struct pool_cell *cell = (struct pool_cell *)block;

	if (!block_pool(block)) {
		free(block);
		return;
	}
	cell->class = class_of(size);
	cell_return(cell);
}

void pool_give(struct pool *pool, struct pool_block *block, size_t size)
{
	struct pool_cell *cell = (struct pool_cell *)block;

	if (block_pool(block) != pool) {
		pool->gave_away |= block_pool(block) != NULL;
		pool_return(block, size);
		return;
	}
	cell->class = class_of(size);
	cell_push(pool->free, cell);
	pool->taken--;
}

void spare_give(struct pool_spare *spare, struct pool_block *block, size_t size)
{
	struct pool_cell *cell = (struct pool_cell *)block;

	if (spare->count == SPARE_MOST || !block_pool(block)) {
		pool_return(block, size);
		return;
	}
	cell->class = class_of(size);
	cell_push(spare->cells, cell);
	spare->count++;
}

struct pool_block *spare_take(struct pool_spare *spare, size_t size)
{
	struct pool_cell *cell = cell_pop(spare->cells, class_of(size));

	if (!cell)
		return NULL;
	spare->count--;
	return &cell->block;
}

void spare_return(struct pool_spare *spare)
{
	struct pool_cell *cell;

	for (unsigned i = 0; i < POOL_CLASSES && spare->count > 0; i++)
		for (; (cell = cell_pop(spare->cells, i)); spare->count--)
			cell_return(cell);
}

void pool_trim(struct pool *pool)
{
	/* acquire: the threads that returned cells are done with the stack; pairs with
	 * cell_return(). */
	int64_t balance = atomic_load_explicit(&pool->balance, memory_order_acquire);

	if (pool->taken + balance != 0 || !pool->chunks)
		return;
	/* relaxed: nobody returns anything. */
	atomic_store_explicit(&pool->returned, NULL, memory_order_relaxed);
	pool_free_chunks(pool);
}
