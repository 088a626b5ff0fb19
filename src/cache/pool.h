/* SPDX-License-Identifier: MIT */
/*
 * A shard's memory for entries: cells by size, used again and again. Taking and giving back are
 * under the shard's lock; pool_return() is for any thread, also when the pool's owner has closed
 * it. Threads keep spare cells (stash.h): so one may come to hold an entry of another shard.
 */
#ifndef CACHE_POOL_H
#define CACHE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

enum { POOL_STEP = 16, POOL_FINE = 256, POOL_CLASSES = 32 };

struct pool_cell;
struct pool_chunk;

/* What is taken begins with this, which is the pool's, but for what an address leaves free. */
struct pool_block {
	uint32_t pool_low; /* 48 bits of the pool's address; 0: it came from malloc */
	uint16_t pool_high;
	uint16_t free_for_taker;
};

struct pool {
	struct arena *arena; /* constant */
	/* Under the shard's lock. */
	struct pool_cell *free[POOL_CLASSES];
	unsigned char *fresh[POOL_CLASSES]; /* where the class's newest chunk goes on */
	unsigned char *end[POOL_CLASSES];
	struct pool_chunk *chunks;
	size_t held;    /* bytes in them */
	bool gave_away; /* cells of other pools: for shard_end() */
	int64_t taken;  /* cells taken, without those given back under the lock */
	/* Any thread. */
	_Alignas(64) _Atomic(struct pool_cell *) returned;
	_Atomic int64_t balance; /* less one for each cell returned; with `taken` after the close */
};

/* Cells of any pools that one thread keeps, to take them without a lock. Zeroed: none. */
struct pool_spare {
	struct pool_cell *cells[POOL_CLASSES];
	unsigned count;
};

/* Becomes one of the arena's owners. NULL: out of memory. */
struct pool *pool_create(struct arena *arena);
/* The pool goes when the last cell has come back. */
void pool_close(struct pool *pool);
/* Whether a block of that size comes from the pool; if not, `pool` may be NULL, and the lock
 * free. */
bool pool_has_size(size_t size);
/* A block at a multiple of 16, of that size with its beginning, which is at least 24; NULL: out of
 * memory. */
struct pool_block *pool_take(struct pool *pool, size_t size);
/* With the size it was taken with, from whatever pool: under the lock of this one; anywhere. */
void pool_give(struct pool *pool, struct pool_block *block, size_t size);
void pool_return(struct pool_block *block, size_t size);
/* As pool_return(), but keeps what it can use. */
void spare_give(struct pool_spare *spare, struct pool_block *block, size_t size);
/* As pool_take(), of a size that comes from pools; NULL: there is none. */
struct pool_block *spare_take(struct pool_spare *spare, size_t size);
/* Returns all of them. */
void spare_return(struct pool_spare *spare);
/* Under the lock: frees the chunks if nothing is taken. */
void pool_trim(struct pool *pool);

#endif
