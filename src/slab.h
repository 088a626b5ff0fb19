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

struct slab_block;

/* Some free blocks for the next thread that comes by. */
struct slab_stripe {
	_Alignas(CACHE_LINE) atomic_bool busy;
	struct slab_block *first; /* by who set busy */
};

struct slab {
	size_t block_size;                        /* constant; a multiple of CACHE_LINE */
	struct slab_stripe stripes[SLAB_STRIPES]; /* any thread */
	/* Any thread, under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	struct slab_block *chains; /* chains of free blocks, linked by their first blocks */
	struct slab_chunk *chunks; /* all memory taken from the system */
	size_t next_chunk_size;
	char *fresh; /* the part of the last chunk never handed out */
	char *fresh_end;
};

/* Blocks that one thread is about to give back. */
struct slab_bin {
	struct slab_block *first;
	unsigned count;
};

void slab_init(struct slab *slab, size_t block_size);
/* Frees all memory; every block must have been given back, or be forgotten by now. */
void slab_destroy(struct slab *slab);

/* A block aligned to CACHE_LINE, its content undefined; NULL: out of memory. */
void *slab_take(struct slab *slab);
void slab_give(struct slab *slab, struct slab_bin *bin, void *block);
void slab_flush(struct slab *slab, struct slab_bin *bin);

#endif
