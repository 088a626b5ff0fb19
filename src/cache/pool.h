/* SPDX-License-Identifier: MIT */
/*
 * A pool is one cache's memory for entries: cells by size, in pages of one size each, used again
 * and again. Its memory keeps its type: until the pool ends it is mapped, a cell is in the place of
 * a cell of its size or reads as zero, and what was written into a cell stays until it is taken
 * again, except the second word.
 *
 * Any thread may use a pool, with or without the cache: the pool is freed when it is closed and the
 * last cell is back. Shards keep spare cells, to take most without the pool's lock.
 */
#ifndef CACHE_POOL_H
#define CACHE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/list.h"

/* The classes of entries, by size, come first; shards keep spare cells of the first POOL_SPARE. The
 * last one is for expiry blocks (expiry.c). */
enum { POOL_SPARE = 40, POOL_SIZES = 60, POOL_EXPIRY = POOL_SIZES, POOL_CLASSES };
enum { POOL_EXPIRY_BLOCK = 256 };
/* Cells of up to POOL_FINE bytes are multiples of POOL_STEP; none is larger than POOL_MOST. */
enum { POOL_STEP = 16, POOL_FINE = 256, POOL_MOST = 524288 };
/* Pages lie in regions of that size, at multiples of it. */
enum { POOL_REGION = 1 << 21 };
/* A page has at most that many cells, in words of bits. */
enum { POOL_WORDS = 4 };

/* A cell begins with a word of its taker's, which is 0 in one that was never taken. */
struct pool_cell {
	_Atomic uint64_t life;  /* see entry.h; the pool keeps it */
	struct pool_cell *next; /* while it is a spare one */
};

/* What the pool knows of a page stands in the page's region. */
struct pool_page {
	struct list link; /* in a list of its class, or of a thread that empties it */
	uint64_t free[POOL_WORDS];
	uint16_t used; /* cells taken */
	bool is_emptied;
};

struct pool_class {
	struct list pages;   /* with something taken and something free */
	struct list empty;   /* with nothing taken */
	struct list resting; /* never used, or with nothing taken and given back to the system */
	uint64_t free;       /* cells in `pages` */
	/* Constant. */
	unsigned number;
	unsigned shift;
	unsigned cells; /* in a page: 1 << shift */
	size_t size;    /* a cell's */
};

struct pool_region {
	struct pool *pool;        /* constant */
	struct pool_class *class; /* constant */
	struct pool_region *next; /* constant */
	struct pool_page pages[];
};

struct pool {
	pthread_mutex_t lock;
	/* Under it. */
	struct pool_class classes[POOL_CLASSES];
	struct pool_region *regions; /* all */
	uint64_t limit;              /* in bytes, for all that the cache has; 0 for none */
	uint64_t memory;             /* resident bytes */
	uint64_t taken;              /* cells */
	uint64_t used;               /* bytes in them */
	uint64_t free;               /* bytes of free cells in pages of classes */
	uint64_t empty;              /* bytes of empty pages */
	bool is_closed;
	/* Any thread: bytes of values that are too large for a cell. */
	_Alignas(64) _Atomic uint64_t mapped;
	/* No cell that reads as zero had a later life. Written under the lock. */
	_Atomic uint64_t floor;
};

/* A pool spare has the cells of one pool that one shard keeps. Zeroed, it has none. */
struct pool_spare {
	size_t bytes;
	size_t taken; /* bytes of pages for it, since its shard has set this to 0 */
	struct pool_cell *cells[POOL_SPARE];
};

/* Makes a pool. Returns NULL if out of memory. */
struct pool *pool_create(void);
void pool_close(struct pool *pool);
/* Returns pool_cell_size() of more than POOL_FINE bytes. */
size_t pool_coarse_cell_size(size_t size);
/* Returns the class of a cell of 1 to POOL_FINE bytes. */
static inline unsigned pool_fine_class(size_t size)
{
	return (unsigned)((size - 1) / POOL_STEP);
}

/* Returns how many bytes a cell of at least `size` ≤ POOL_MOST bytes takes. */
static inline size_t pool_cell_size(size_t size)
{
	if (size > POOL_FINE)
		return pool_coarse_cell_size(size);
	return (size + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
}

/* Returns the bytes from an address on to the end of its region. */
static inline size_t pool_bytes_behind(const void *address)
{
	return POOL_REGION - ((uintptr_t)address & (POOL_REGION - 1));
}

static inline struct pool_region *region_of(const void *address)
{
	return (struct pool_region *)((uintptr_t)address & ~(uintptr_t)(POOL_REGION - 1));
}

static inline struct pool *pool_of(const void *cell)
{
	return region_of(cell)->pool;
}

static inline struct pool_class *pool_class_of(const void *cell)
{
	return region_of(cell)->class;
}

/* Moves up to `most` cells of the class to the front of `cells`, fewer if out of memory, and adds
 * what the pool gets from the system for them to *taken. Returns how many. */
unsigned pool_take(struct pool *pool, unsigned class, unsigned most, struct pool_cell **cells,
		   size_t *taken);
/* Gives back a cell. Any thread. */
void pool_give(void *cell);

/* Does what spare_take() does, for all sizes. */
void *spare_take_any(struct pool_spare *spare, struct pool *pool, size_t size);

/* Returns a cell of at least `size` ≤ POOL_MOST bytes at a multiple of 16, or NULL if out of
 * memory. */
static inline void *spare_take(struct pool_spare *spare, struct pool *pool, size_t size)
{
	unsigned class = pool_fine_class(size);
	struct pool_cell *cell;

	if (__builtin_expect(size > POOL_FINE || !spare->cells[class], 0))
		return spare_take_any(spare, pool, size);
	cell = spare->cells[class];
	spare->cells[class] = cell->next;
	spare->bytes -= (class + 1) * POOL_STEP;
	return cell;
}

/* Keeps a cell as a spare one, or does what pool_give() does. */
static inline void spare_give(struct pool_spare *spare, void *block)
{
	const struct pool_class *class = pool_class_of(block);
	struct pool_cell *cell = block;

	if (__builtin_expect(class->number >= POOL_SPARE, 0)) {
		pool_give(block);
		return;
	}
	cell->next = spare->cells[class->number];
	spare->cells[class->number] = cell;
	spare->bytes += class->size;
}

/* Gives back up to `cells` spare cells. Returns false if none is left. */
bool spare_return_some(struct pool_spare *spare, struct pool *pool, unsigned cells);

/* ---- Emptying pages (compact.c) ---- */

/* Returns a page to be emptied, or NULL if none would help, or no more is free than should be; if
 * `at_rest`, than the present use allows. None of its cells is taken until
 * pool_end_emptying(), unless all have come back before. Adds it to the caller's list, and copies
 * the bits of the cells that are taken to `cells`. */
struct pool_page *pool_begin_emptying(struct pool *pool, bool at_rest, struct list *emptied,
				      uint64_t cells[POOL_WORDS]);
/* Lets the pages of the list be used again: those whose cells have not all come back. */
void pool_end_emptying(struct pool *pool, struct list *emptied);
size_t page_bytes(const struct pool_page *page);
void *page_cell(const struct pool_page *page, unsigned number);

#endif
