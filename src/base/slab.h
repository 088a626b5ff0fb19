/* SPDX-License-Identifier: MIT */
/*
 * Memory for blocks of one size that one thread takes and another gives back.
 *
 * slab_take: any thread. slab_give: any thread, through a bin of its own; what lies in a bin is out
 * of reach of others until slab_flush or until the bin has filled a magazine.
 */
#ifndef SLAB_H
#define SLAB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define CACHE_LINE 64

/* Chunks are so large, and aligned to that; their blocks begin CACHE_LINE after it. */
#define SLAB_CHUNK ((size_t)2 << 20)

enum {
	SLAB_STRIPES = 16,
	SLAB_MAGAZINE = 32 /* blocks, at most */
};

struct slab_magazine;
struct slab_chunk;

/* Told of each new chunk, before any of its blocks is used; false: it is not to be. */
typedef bool slab_chunk_hook(void *argument, struct slab_chunk *chunk, size_t number);

/* Some free blocks for the next thread that comes by. */
struct slab_stripe {
	_Alignas(CACHE_LINE) atomic_bool busy;
	/* Of the thread that set busy. */
	unsigned count;
	void *blocks[SLAB_MAGAZINE];
};

struct slab {
	/* Constant. */
	size_t block_size;
	unsigned magazine; /* blocks in a magazine, beside its own */
	bool recycles;
	bool fetches; /* a block is written to at once when it is taken: brings it nearer before */
	slab_chunk_hook *hook;
	void *hook_argument;
	struct slab_stripe stripes[SLAB_STRIPES]; /* any thread */
	/* Any thread, under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	struct slab_magazine *magazines;
	struct slab_chunk *chunks; /* all memory taken from the system */
	struct slab_chunk *spare;  /* the next chunk, ready before it is needed; not in `chunks` */
	bool preparing;            /* a thread is about to have one */
	size_t chunk_count;        /* numbers given to chunks */
	char *fresh;               /* the part of the last chunk never handed out */
	char *fresh_end;
};

/* Blocks that one thread is about to give back. All zero: none. */
struct slab_bin {
	struct slab_magazine *magazines; /* full ones */
	struct slab_magazine *last;      /* of these, the first that was filled */
	unsigned count;
	void *blocks[SLAB_MAGAZINE];
};

/* block_size: a multiple of 8, at least 32. */
void slab_init(struct slab *slab, size_t block_size);
/* The same, with a hook. Its blocks are never anything else, under no sanitizer either, and of a
 * free one only the first `room` bytes are written. */
void slab_init_hooked(struct slab *slab, size_t block_size, size_t room, slab_chunk_hook *hook,
		      void *argument);
size_t slab_chunk_number(const struct slab_chunk *chunk);
/* Frees all memory; every block must have been given back, or be forgotten by now. */
void slab_destroy(struct slab *slab);

/* A block, in lines of its own where its size is a multiple of one; its content is undefined. NULL:
 * out of memory. */
void *slab_take(struct slab *slab);
/* Up to `count` ≤ SLAB_MAGAZINE blocks; fewer: out of memory. */
size_t slab_take_many(struct slab *slab, void **blocks, size_t count);
void slab_give(struct slab *slab, struct slab_bin *bin, void *block);
void slab_flush(struct slab *slab, struct slab_bin *bin);

#endif
