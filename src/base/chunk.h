/* SPDX-License-Identifier: MIT */
/*
 * A chunk is 2 MiB of blocks of one size, on pages of 4 KiB. It has a word for each page, with a
 * bit for each of the page's blocks, set while the block is free; and sets of pages.
 *
 * A page is absent, empty, or has blocks in use. An absent page was never touched, or went back to
 * the system and reads as zero. An empty page is present.
 *
 * Invariants:
 *   no block lies on two pages
 *   all blocks of absent and empty pages are free, and `unused` has these pages
 *   absent has the absent pages; present is the number of the others, the header's not counted
 *   empty is the number of empty pages
 *   usable has the present pages with a free block, usable_count is their number
 *
 * One thread at a time may call these functions. Any thread may call chunk_of(), chunk_block() and
 * chunk_number(), and may read `floor`.
 */
#ifndef CHUNK_H
#define CHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

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

struct chunk {
	_Alignas(CACHE_LINE) struct list link; /* the slab's */
	/* Constant. */
	size_t number;
	uint64_t all; /* a bit for each block of a page */
	/* The slab's user writes it: the least generation of a block whose page was given back. Any
	 * thread reads it. */
	_Atomic uint64_t floor;
	/* The slab's. */
	bool is_small;   /* the kernel uses small pages */
	bool is_leaving; /* pages of it are on their way to the system */
	/* Written with each page's first and last block. */
	_Alignas(CACHE_LINE) uint32_t present;
	uint32_t empty;
	uint32_t usable_count;
	uint64_t usable[CHUNK_WORDS];
	uint64_t unused[CHUNK_WORDS];
	uint64_t absent[CHUNK_WORDS];
	/* Written with each block. */
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

/* A row of pages, first to end - 1. */
struct chunk_row {
	uint32_t first;
	uint32_t end;
};

static inline struct chunk *chunk_of(const void *block)
{
	return (struct chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK_SIZE - 1));
}

static inline char *chunk_page(const struct chunk *chunk, size_t page)
{
	return (char *)chunk + page * CHUNK_PAGE;
}

/* Blocks have numbers below CHUNK_NUMBERS, in the order of addresses; not every number has one. */
static inline void *chunk_block(const struct chunk *chunk, size_t block_size, size_t number)
{
	return chunk_page(chunk, number / CHUNK_PAGE_BLOCKS) +
	       number % CHUNK_PAGE_BLOCKS * block_size;
}

static inline size_t chunk_number(const void *block, size_t block_size)
{
	size_t offset = (uintptr_t)block & (CHUNK_SIZE - 1);

	return offset / CHUNK_PAGE * CHUNK_PAGE_BLOCKS + offset % CHUNK_PAGE / block_size;
}

/* Initializes a chunk in zeroed memory; its pages are absent. A page has room for at most
 * CHUNK_PAGE_BLOCKS blocks. */
void chunk_init(struct chunk *chunk, size_t number, size_t block_size);
/* Makes all pages present. They must be absent. */
void chunk_fill(struct chunk *chunk);

/* Takes all free blocks of the usable page with the lowest address. There must be one. */
void chunk_take(struct chunk *chunk, struct chunk_blocks *blocks);
/* Takes all blocks of the absent page with the lowest address, which becomes present. */
void chunk_take_absent(struct chunk *chunk, struct chunk_blocks *blocks);
static inline bool chunk_has_absent(const struct chunk *chunk)
{
	return chunk->present < CHUNK_PAGES - CHUNK_FIRST;
}

static inline bool chunk_is_present(const struct chunk *chunk, size_t page)
{
	return !(chunk->absent[page / 64] >> page % 64 & 1);
}

/* Gives back a block: the one with bit `bit` of a page. Returns whether the page's sets change:
 * chunk_give_page() must be called then. */
static inline bool chunk_give(struct chunk *chunk, size_t page, uint64_t bit)
{
	uint64_t before = chunk->free[page];

	chunk->free[page] = before | bit;
	return before == 0 || (before | bit) == chunk->all;
}

/* Puts a page into the sets where it belongs after chunk_give(). */
void chunk_give_page(struct chunk *chunk, size_t page);

/* Returns the blocks of the first page from block `number` on that has one of them. If there is
 * none, `number` in it is CHUNK_NUMBERS. */
struct chunk_used chunk_find_any(const struct chunk *chunk, size_t number);
/* Returns the blocks in use of the first page from block `number` on that has one. If there is
 * none, `number` in it is CHUNK_NUMBERS. */
struct chunk_used chunk_find_used(const struct chunk *chunk, size_t number);

/*
 * Finds up to `most` rows of pages that are empty or absent; each has an empty one. Returns their
 * number. Rows begin and end at pages of the system's. No page may be taken until they have gone.
 */
unsigned chunk_find_rows(const struct chunk *chunk, struct chunk_row *rows, unsigned most);
/* Makes the pages of a row absent. */
void chunk_forget_row(struct chunk *chunk, const struct chunk_row *row);

#endif
