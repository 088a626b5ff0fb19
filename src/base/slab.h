/* SPDX-License-Identifier: MIT */
/*
 * Memory for blocks of one size that one thread takes and another gives back.
 *
 * slab_take: any thread. slab_give: any thread, through a bin of its own; what lies in a bin is out
 * of reach of others until slab_flush or until the bin has filled a chain.
 */
#ifndef SLAB_H
#define SLAB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define CACHE_LINE 64

enum { SLAB_STRIPES = 16 };

#define SLAB_CHUNK_LARGEST ((size_t)2 << 20)

struct slab_block;
struct slab_chunk;

/* Told of each new chunk, before any of its blocks is used; false: it is not to be. */
typedef bool slab_chunk_hook(void *argument, struct slab_chunk *chunk, size_t number);

/* Some free blocks for the next thread that comes by. */
struct slab_stripe {
	_Alignas(CACHE_LINE) atomic_bool busy;
	struct slab_block *first; /* of the thread that set busy */
};

struct slab {
	/* Constant. */
	size_t block_size;
	bool recycles;
	slab_chunk_hook *hook;
	void *hook_argument;
	struct slab_stripe stripes[SLAB_STRIPES]; /* any thread */
	/* Any thread, under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	struct slab_block *chains; /* chains of free blocks, linked by their first blocks */
	struct slab_chunk *chunks; /* all memory taken from the system */
	size_t next_chunk_size;
	size_t chunk_count;
	char *fresh; /* the part of the last chunk never handed out */
	char *fresh_end;
};

/* Blocks that one thread is about to give back. */
struct slab_bin {
	struct slab_block *first;
	unsigned count;
};

void slab_init(struct slab *slab, size_t block_size);
/*
 * One whose chunks are all of SLAB_CHUNK_LARGEST bytes and aligned to that, their blocks beginning
 * CACHE_LINE after it, and whose blocks are never anything else; block_size: a multiple of 8.
 */
void slab_init_chunks(struct slab *slab, size_t block_size, slab_chunk_hook *hook, void *argument);
size_t slab_chunk_number(const struct slab_chunk *chunk);
/* Frees all memory; every block must have been given back, or be forgotten by now. */
void slab_destroy(struct slab *slab);

/* A block aligned as its size is, its content undefined; NULL: out of memory. */
void *slab_take(struct slab *slab);
void slab_give(struct slab *slab, struct slab_bin *bin, void *block);
void slab_flush(struct slab *slab, struct slab_bin *bin);

#endif
