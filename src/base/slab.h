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
#include <stdint.h>

#include "chunk.h"
#include "list.h"

enum {
	SLAB_STRIPES = 16,
	SLAB_MAGAZINE = 32 /* blocks, at most */
};

struct slab_magazine;

/* What the user of a slab wants to know of its memory. */
struct slab_hooks {
	/* A new chunk, before any of its blocks is used; false: it is not to be. Under the lock. */
	bool (*begin)(void *argument, struct chunk *chunk);
	/* What free blocks on these pages have kept may become zero; false: it is to stay. Under no
	 * lock. */
	bool (*forget)(void *argument, struct chunk *chunk, const struct chunk_pages *pages);
	void *argument;
};

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
	const struct slab_hooks *hooks;           /* or NULL: chunks come and go */
	struct slab_stripe stripes[SLAB_STRIPES]; /* any thread */
	/* Any thread, under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	struct slab_magazine *magazines;
	struct list with_free; /* chunks that have free blocks */
	struct list used_up;   /* the others */
	size_t chunk_count;
	size_t free_count;   /* blocks free in chunks */
	size_t depot_count;  /* and in magazines */
	struct chunk *spare; /* the next chunk, ready before it is needed; in no list */
	bool preparing;      /* a thread is about to have one */
	/* The same, read by any thread as statistics. */
	_Atomic uint64_t held;  /* bytes the system has given */
	_Atomic uint64_t given; /* blocks that came back, since ever */
	_Atomic uint64_t out;   /* blocks that are in no chunk and no magazine of the depot */
	_Atomic uint64_t most;  /* of these at a time, since slab_begin_minute() */
	/* Of the one thread that trims. */
	uint64_t most_before; /* in the minute before */
	uint64_t begun_given; /* `given` and `out` when this trim began */
	uint64_t begun_out;
	uint64_t trimmed_given; /* the same of the last one that looked at all chunks */
	uint64_t trimmed_out;
	size_t to_collect; /* blocks of the depot, in this trim */
	uint32_t visit;    /* number of this trim */
	bool is_trimming;
};

/* Blocks that one thread is about to give back. All zero: none. */
struct slab_bin {
	struct slab_magazine *magazines; /* full ones */
	struct slab_magazine *last;      /* of these, the first that was filled */
	size_t full;                     /* blocks in these, their own with them */
	unsigned count;
	void *blocks[SLAB_MAGAZINE];
};

/* block_size: a multiple of 8, from 72 to a page. */
void slab_init(struct slab *slab, size_t block_size);
/* The same, with hooks. Its blocks are never anything else, under no sanitizer either. Of a free
 * one only the first `room` bytes are written, unless `forget` has been told. */
void slab_init_hooked(struct slab *slab, size_t block_size, size_t room,
		      const struct slab_hooks *hooks);
/* Frees all memory; every block must have been given back, or be forgotten by now. */
void slab_destroy(struct slab *slab);

/* A block, in lines of its own where its size is a multiple of one; its content is undefined. NULL:
 * out of memory. */
void *slab_take(struct slab *slab);
/* Up to `count` ≤ SLAB_MAGAZINE blocks; fewer: out of memory. */
size_t slab_take_many(struct slab *slab, void **blocks, size_t count);
/* slab_give() calls this where the bin has as many blocks as a magazine: it becomes one. */
void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin, void *block);

static inline void slab_give(struct slab *slab, struct slab_bin *bin, void *block)
{
	if (bin->count < slab->magazine)
		bin->blocks[bin->count++] = block;
	else
		slab_give_to_full_bin(slab, bin, block);
}

void slab_flush(struct slab *slab, struct slab_bin *bin);

/* Any thread, as statistics: bytes that the slab has from the system, and that are taken. */
struct slab_use {
	uint64_t held;
	uint64_t in_use;
};
struct slab_use slab_use(const struct slab *slab);

/* ---- One thread at a time, from here on ---- */

/* Bytes taken and given back since ever. */
uint64_t slab_traffic(const struct slab *slab);
/* Bytes that a trim may find. */
uint64_t slab_surplus(const struct slab *slab);
/* Bytes that were in use at most in this minute and the one before it; which begins when told. */
uint64_t slab_need(const struct slab *slab);
void slab_begin_minute(struct slab *slab);
/*
 * Gives memory back to the system until no more than `keep` bytes are held, as far as the blocks
 * in use let it. A step, of some 100 us; true: there is more to do.
 */
bool slab_trim(struct slab *slab, uint64_t keep);

#endif
