/* SPDX-License-Identifier: MIT */
/*
 * 2 MiB of blocks of one size, with a bit for each block that is free and one for each page that
 * the system has not given, or has got back. One thread at a time, but for what says otherwise.
 */
#ifndef CHUNK_H
#define CHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

#define CACHE_LINE 64

/* Chunks are so large, and aligned to that; so much of it is the header's. Model-checked with
 * smaller ones. */
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
	/* The user's: the least generation of a block whose page was given back. Any thread reads
	 * it. */
	_Atomic uint64_t floor;
	/* Written with each block. */
	_Alignas(CACHE_LINE) uint32_t free_count;
	uint32_t first_word; /* of `free`: those before it are 0 */
	uint32_t held;       /* pages that are there */
	uint32_t next_page;  /* that chunk_take_pages() looks at */
	/* The slab's. */
	uint32_t visit; /* its trim that has begun to look at the pages */
	bool is_small;  /* not for huge pages */
	uint64_t absent[CHUNK_PAGES_MOST / 64];
	uint64_t free[];
};

/* Some pages, and all blocks that lie on them. */
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

/* In zeroed memory; block_size from 72 to a page. All blocks are free. Whether its pages are there.
 */
void chunk_init(struct chunk *chunk, size_t number, size_t block_size, bool is_there);

/* Takes up to `most` free blocks, those with the lowest addresses; the lowest comes last. */
unsigned chunk_take(struct chunk *chunk, void **blocks, unsigned most);
void chunk_give(struct chunk *chunk, void *block);
static inline bool chunk_is_unused(const struct chunk *chunk)
{
	return chunk->free_count == chunk->block_count;
}

/* The next pages in a row, at most `most`, that are there and have only free blocks: takes these
 * blocks. False: it has looked at all since chunk_begin_look(). */
bool chunk_take_pages(struct chunk *chunk, uint32_t most, struct chunk_pages *pages);
void chunk_begin_look(struct chunk *chunk);
bool chunk_is_looked_at(const struct chunk *chunk);
/* Gives the blocks back; are_gone: without their pages. */
void chunk_give_pages(struct chunk *chunk, const struct chunk_pages *pages, bool are_gone);

#endif
