/* SPDX-License-Identifier: MIT */
/*
 * A chunk is 2 MiB of blocks of one size. It has a bit for each block, set while the block is free,
 * and a bit for each page, set while the page is absent: never touched, or given back to the
 * system.
 *
 * Invariants:
 *   free_count is the number of bits set in `free`
 *   the words of `free` before first_word are 0
 *   held is the number of pages that are not absent
 *   no block in use lies on an absent page
 *
 * One thread at a time may call these functions. Any thread may call chunk_of() and chunk_block(),
 * and may read `floor`.
 */
#ifndef CHUNK_H
#define CHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

#define CACHE_LINE 64

/* The size and alignment of a chunk, and the size of its header. The model checker sets smaller
 * ones. */
#ifndef CHUNK_SIZE
#define CHUNK_SIZE ((size_t)2 << 20)
#define CHUNK_HEADER ((size_t)4096)
#endif

enum { CHUNK_PAGES_MOST = 512 };

struct chunk {
	_Alignas(CACHE_LINE) struct list link; /* the slab's */
	/* Constant. */
	size_t number;
	uint32_t block_size;
	uint32_t block_count;
	uint32_t page_size;
	/* The slab's user writes it: the least generation of a block whose page was given back. Any
	 * thread reads it. */
	_Atomic uint64_t floor;
	/* Written with each block. */
	_Alignas(CACHE_LINE) uint32_t free_count;
	uint32_t first_word; /* all words of `free` before it are 0 */
	uint32_t held;       /* pages that are not absent */
	uint32_t next_page;  /* where chunk_take_pages() goes on */
	/* Written by the slab. */
	uint32_t visit; /* number of the trim that last began to search the pages */
	bool is_small;  /* the kernel is to use small pages */
	uint64_t absent[CHUNK_PAGES_MOST / 64];
	uint64_t free[];
};

/* A run of blocks that are in use. */
struct chunk_used {
	size_t number; /* the first block of the run */
	uint64_t mask; /* bit i is set if block number + i is in use; 0 if there is no run */
};

/* A row of pages, first to end - 1, and all blocks that lie on them, in whole or in part. */
struct chunk_pages {
	uint32_t first;
	uint32_t end;
	uint32_t first_block;
	uint32_t end_block;
};

static inline struct chunk *chunk_of(const void *block)
{
	return (struct chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK_SIZE - 1));
}

static inline void *chunk_block(const struct chunk *chunk, size_t block_size, size_t number)
{
	return (char *)chunk + CHUNK_HEADER + number * block_size;
}

/*
 * Initializes a chunk in zeroed memory; all its blocks are free. `block_size` is 72 bytes to a
 * page. `is_there` says whether all pages are touched already; else all but the first are absent.
 */
void chunk_init(struct chunk *chunk, size_t number, size_t block_size, bool is_there);

/* Takes up to `most` free blocks, those with the lowest addresses. The lowest one is written last.
 * Returns their number. */
unsigned chunk_take(struct chunk *chunk, void **blocks, unsigned most);
void chunk_give(struct chunk *chunk, void *block);
static inline bool chunk_is_unused(const struct chunk *chunk)
{
	return chunk->free_count == chunk->block_count;
}

/* Returns the blocks in use of the first 64 from `number` on that have one. If there is none,
 * `number` in it is block_count. */
struct chunk_used chunk_find_used(const struct chunk *chunk, size_t number);

/*
 * Takes all blocks of the next row of pages, at most `most`, that are not absent and have only free
 * blocks. Returns false where all pages have been searched since chunk_begin_look().
 */
bool chunk_take_pages(struct chunk *chunk, uint32_t most, struct chunk_pages *pages);
void chunk_begin_look(struct chunk *chunk);
bool chunk_is_looked_at(const struct chunk *chunk);
/* Gives back the blocks on `pages`. `are_gone` says that the pages are absent now. */
void chunk_give_pages(struct chunk *chunk, const struct chunk_pages *pages, bool are_gone);

#endif
