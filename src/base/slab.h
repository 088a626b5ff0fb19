/* SPDX-License-Identifier: MIT */
/*
 * A slab is memory for blocks of one size that one thread takes and another gives back. The memory
 * keeps its type: until slab_destroy() it is mapped, and has blocks and chunk headers in it, or
 * zeros.
 *
 * Which calls may run together (x), and which may not (-):
 *
 *                     take   give   flush   use, find_used
 *   take              x      x      x       x
 *   give              x      b      b       x
 *   flush             x      b      b       x
 *   use, find_used    x      x      x       x
 *
 *   b   if each call has another bin
 *
 * Other threads cannot take a block that lies in a bin. slab_give() passes the bin's blocks on when
 * they are SLAB_BATCH, unless the lock is taken; slab_flush() passes all of them on. Either then
 * gives empty pages back to the system while they are more than an eighth of the slab's.
 *
 * The slab may write the first word of a free block, and the whole of a page that has free blocks
 * only becomes zero when it goes back to the system.
 */
#ifndef SLAB_H
#define SLAB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "compiler.h"
#include "list.h"
#include "own_lock.h"

#define CACHE_LINE 64

/* The size and alignment of a chunk, the size of its pages, and the pages of its header. The model
 * checker sets smaller ones. */
#ifndef CHUNK_SIZE
#define CHUNK_SIZE ((size_t)2 << 20)
#define CHUNK_PAGE ((size_t)4096)
#define CHUNK_FIRST ((size_t)2)
#endif

#define CHUNK_PAGES (CHUNK_SIZE / CHUNK_PAGE)

enum {
	CHUNK_PAGE_BLOCKS = 64, /* a page has no more */
	CHUNK_NUMBERS = CHUNK_PAGES * CHUNK_PAGE_BLOCKS,
	CHUNK_WORDS = (CHUNK_PAGES + 63) / 64
};

/* The sets of a chunk's pages. */
enum page_set {
	PAGES_USABLE, /* present pages with a free block */
	PAGES_EMPTY,  /* those of them that may go back to the system */
	PAGES_ABSENT,
	PAGE_SETS
};

/* A slab lists its chunks by what they are good for; blocks are taken from the first three. */
enum slab_list {
	SLAB_USABLE, /* they have present pages with free blocks, and no empty ones */
	SLAB_EMPTY,  /* they have empty pages */
	SLAB_SPARSE, /* they have neither, but absent pages */
	SLAB_BLANK,  /* all of their pages are absent; the first chunk is sparse then */
	SLAB_FULL,   /* they have no free blocks */
	SLAB_LISTS
};

/*
 * A chunk is blocks of one size on pages; no block lies on two. A page is absent, empty, or has
 * blocks in use. An absent page was never touched, or went back to the system and reads as zero. An
 * empty page is present, and all of its blocks are free, as those of an absent one are.
 */
struct chunk {
	_Alignas(CACHE_LINE) struct list link; /* the slab's */
	/* Constant. */
	size_t number;
	uint64_t all; /* a bit for each block of a page */
	/* The slab's user writes it: the least generation of a block whose page was given back. Any
	 * thread reads it. */
	_Atomic uint64_t floor;
	bool is_small; /* the kernel uses small pages */
	/* Written with each page's first and last block. */
	_Alignas(CACHE_LINE) enum slab_list list;
	uint32_t present; /* pages that are not absent, without the header's */
	uint32_t counts[PAGE_SETS];
	uint64_t sets[CHUNK_WORDS][PAGE_SETS];
	/* Written with each block: a bit for each free block of a page. */
	uint64_t free[CHUNK_PAGES];
};

/* Blocks of one page: bit i of `mask` stands for the block at page + i * block_size. */
struct chunk_blocks {
	char *page;
	uint64_t mask;
};

/* A run of blocks that are in use. */
struct chunk_used {
	size_t number; /* the first block of the run */
	uint64_t mask; /* bit i is set if block number + i is in use; 0 if there is no run */
};

static inline struct chunk *chunk_of(const void *block)
{
	return (struct chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK_SIZE - 1));
}

/* Blocks have numbers below CHUNK_NUMBERS, in the order of addresses; not every number has one. */
static inline void *chunk_block(const struct chunk *chunk, size_t block_size, size_t number)
{
	return (char *)chunk + number / CHUNK_PAGE_BLOCKS * CHUNK_PAGE +
	       number % CHUNK_PAGE_BLOCKS * block_size;
}

static inline size_t chunk_number(const void *block, size_t block_size)
{
	size_t offset = (uintptr_t)block & (CHUNK_SIZE - 1);

	return offset / CHUNK_PAGE * CHUNK_PAGE_BLOCKS + offset % CHUNK_PAGE / block_size;
}

enum { SLAB_STRIPES = 16, SLAB_STRIPE_PAGES = 16 };

/* Blocks in a bin, which has 512 bytes. The model checker sets fewer. */
#ifndef SLAB_BATCH
#define SLAB_BATCH 62
#endif

/* Functions that a slab calls when its memory comes and goes. */
struct slab_hooks {
	/* Called under the slab's lock for a new chunk. Returns false to refuse the chunk. */
	bool (*begin)(void *argument, struct chunk *chunk);
	/* Called before the page whose first block is `block` may go back to the system and become
	 * zero, under no lock; its blocks are free. Returns false to keep it. */
	bool (*forget)(void *argument, struct chunk *chunk, const void *block);
	void *argument;
};

/* A stripe holds free blocks that threads take without the lock. */
struct slab_stripe {
	_Alignas(CACHE_LINE) struct own_lock lock; /* for all of the stripe */
	unsigned count;                            /* pages in `more` */
	struct chunk_blocks blocks;                /* blocks of one page, taken first */
	struct chunk_blocks more[SLAB_STRIPE_PAGES];
};

struct slab {
	/* Constant. */
	size_t block_size;
	uint32_t reciprocal;                      /* 65,536 / block_size, rounded up */
	size_t unit;                              /* chunk pages in one of the system's */
	bool recycles;                            /* false where every block comes from malloc */
	const struct slab_hooks *hooks;           /* or NULL */
	struct slab_stripe stripes[SLAB_STRIPES]; /* any thread */
	/* Any thread touches these under the lock, and reads the statistics without. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	size_t present;        /* pages, without headers */
	size_t empty;          /* present pages that may go back to the system */
	_Atomic uint64_t out;  /* statistic: blocks in use, in bins and in stripes */
	_Atomic uint64_t held; /* statistic: bytes from the system */
	struct list chunks[SLAB_LISTS];
	size_t chunk_count;
};

/* A bin holds blocks that one thread is giving back. A zeroed bin is empty. */
struct slab_bin {
	size_t count; /* in `blocks` */
	void *blocks[SLAB_BATCH];
	/* Blocks that come while that is full and the lock is taken. Each one's first word is the
	 * next one's address. */
	void *more;
};

/* Initializes a slab. `block_size` is a multiple of 8, from 64 bytes to a page. With hooks, which
 * may be NULL, it recycles its blocks under the address sanitizer, too. */
void slab_init(struct slab *slab, size_t block_size, const struct slab_hooks *hooks);
/* Frees all memory. No block may be used after that. */
void slab_destroy(struct slab *slab);

/* Returns a block with undefined content, or NULL if out of memory. Blocks share no cache line if
 * their size is a multiple of one. */
void *slab_take(struct slab *slab);
/* Passes the blocks of a full bin on if the lock is free. slab_give() calls it. */
__attribute__((noinline)) void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin,
						     void *block);

/* Gives back a block through the caller's bin. */
static inline void slab_give(struct slab *slab, struct slab_bin *bin, void *block)
{
	if (SANITIZER_ADDRESS && !slab->recycles)
		free(block);
	else if (bin->count < SLAB_BATCH)
		bin->blocks[bin->count++] = block;
	else
		slab_give_to_full_bin(slab, bin, block);
}

/* Empties the bin: any thread can take its blocks after that. */
void slab_flush(struct slab *slab, struct slab_bin *bin);

/* Bytes that the slab has from the system, and bytes in use. */
struct slab_use {
	uint64_t held;
	uint64_t in_use;
};
struct slab_use slab_use(const struct slab *slab);

/* Returns the blocks in use of the first page from block `number` on that has one. If there is
 * none, `number` in it is CHUNK_NUMBERS. Free blocks in bins and stripes count as used, and all
 * blocks do if the lock is taken: the call does not wait. */
struct chunk_used slab_find_used(struct slab *slab, const struct chunk *chunk, size_t number);

#endif
