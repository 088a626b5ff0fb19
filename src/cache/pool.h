/* SPDX-License-Identifier: MIT */
/*
 * A pool is one cache's memory for entries: cells by size, in pages of one size each, used again
 * and again. Any thread may use it, with or without the cache: the pool is freed when it is closed
 * and the last cell is back. Threads keep spare cells, to take most without a lock.
 */
#ifndef CACHE_POOL_H
#define CACHE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "base/list.h"
#include "base/sanitizer.h"

/* The classes of entries, by size, come first; the last one is for expiry blocks (expiry.c). */
enum { POOL_SIZES = 40, POOL_EXPIRY = POOL_SIZES, POOL_CLASSES };
enum { POOL_EXPIRY_BLOCK = 256 };
/* Cells of up to POOL_FINE bytes are multiples of POOL_STEP. */
enum { POOL_STEP = 16, POOL_FINE = 256 };

enum page_state {
	PAGE_STAYS,
	PAGE_IS_EMPTIED, /* by a thread that has it */
	PAGE_WAITS       /* until the last cells come back */
};

/* An entry begins with a pool block of its taker's. The pool leaves it as it was given back. */
struct pool_block {
	uint32_t birth_low; /* 48 bits: the era in which it was made (epoch.h) */
	uint16_t birth_high;
	_Atomic uint16_t state; /* 0 in a cell that was never taken; see entry_state() */
};

/* A pool cell is one that is not taken. */
struct pool_cell {
	struct pool_block block; /* as it was given back */
	struct pool_cell *next;
};

/* A pool page begins with this head; its cells follow. */
struct pool_page {
	/* Constant. */
	_Alignas(64) unsigned class;
	unsigned cells;
	size_t cell_size;
	/* Under the lock. */
	struct list link;       /* in the class's `pages`, or in `leaving` */
	struct pool_cell *free; /* cells that came back */
	unsigned cut;           /* cells that were ever taken */
	unsigned used;          /* cells taken, and threads that empty the page */
	atomic_uint state;      /* enum page_state; read by any thread */
	unsigned age;           /* how often maintenance has met it waiting to be empty */
};

struct pool_class {
	struct list pages; /* with something free */
	uint64_t free;     /* cells in them */
};

struct pool {
	struct arena arena; /* its own lock */
	/* The two locks lie on different cache lines. */
	_Alignas(64) pthread_mutex_t lock;
	/* Under it. */
	struct pool_class classes[POOL_CLASSES];
	struct list leaving; /* pages that wait to be empty */
	uint64_t limit;      /* in bytes, for all that the cache has; 0 for none */
	uint64_t taken;      /* cells and spans */
	uint64_t used;       /* bytes in them */
	uint64_t free;       /* bytes of free cells, without pages that are leaving */
	bool is_closed;
	atomic_uint left_pages;  /* pages that are emptied or wait; read by any thread */
	_Atomic uint64_t pinned; /* bytes kept only by pins */
};

/* A pool spare has the cells of one pool that one thread keeps. Zeroed, it has none. */
struct pool_spare {
	struct pool_cell *cells[POOL_SIZES];
	size_t bytes;
	size_t taken;   /* bytes of pages and spans for it, since its thread has set this to 0 */
	bool has_grown; /* some cells were taken at once, since its thread has cleared this */
};

/* Makes a pool. Returns NULL if out of memory. */
struct pool *pool_create(void);
void pool_close(struct pool *pool);
/* Sets *memory to the bytes from the system, and *used to those of them in taken blocks. */
void pool_sum(struct pool *pool, uint64_t *memory, uint64_t *used);
/* Returns pool_cell_size() of more than POOL_FINE bytes. */
size_t pool_coarse_cell_size(size_t size);
/* Returns the class of a block of 1 to POOL_FINE bytes. */
static inline unsigned pool_fine_class(size_t size)
{
	return (unsigned)((size - 1) / POOL_STEP);
}

/* Returns how many bytes a block of `size` bytes takes. */
static inline size_t pool_cell_size(size_t size)
{
	if (size > POOL_FINE)
		return pool_coarse_cell_size(size);
	return (size + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
}

/* Gives back a block, say of spare_take(), with the size it was taken with. Any thread. */
void pool_give(void *block, size_t size);
struct pool *pool_of(const void *block);
/* Counts a block as kept only by pins, or no longer. */
void pool_count_pinned(struct pool *pool, size_t size, bool is_pinned);
/* Returns a block of that class, or NULL if out of memory. */
void *pool_take_of(struct pool *pool, unsigned class);
void pool_give_of(void *block, unsigned class);

/* Does what spare_take() does, for all sizes. */
void *spare_take_any(struct pool_spare *spare, struct pool *pool, size_t size);

/* Returns a block of at least `size` and 16 bytes at a multiple of 16, or NULL if out of memory. */
static inline void *spare_take(struct pool_spare *spare, struct pool *pool, size_t size)
{
	unsigned class = pool_fine_class(size);
	struct pool_cell *cell;

	if (__builtin_expect(size > POOL_FINE || !spare->cells[class], 0))
		return spare_take_any(spare, pool, size);
	cell = spare->cells[class];
	spare->cells[class] = cell->next;
	spare->bytes -= (class + 1) * POOL_STEP;
	sanitizer_show(cell, (class + 1) * POOL_STEP);
	return cell;
}

/* Keeps a block as a spare cell, or does what pool_give() does. */
void spare_give(struct pool_spare *spare, void *block, size_t size);
/* Gives back up to `cells` cells, each maybe its page's last. Returns false if none is left. */
bool spare_return_some(struct pool_spare *spare, struct pool *pool, unsigned cells);
/* Gives back all spare cells, in steps. */
void spare_return(struct pool_spare *spare, struct pool *pool);

/* ---- Emptying pages (compact.c) ---- */

/* Returns whether more is free than should be; if `at_rest`, than the present use allows. */
bool pool_is_sparse(struct pool *pool, bool at_rest);
/* Returns a page to be emptied, or NULL if none would help. It stays, and none of its cells is
 * taken meanwhile. Sets *count to the number of its cells that were ever taken. */
struct pool_page *pool_begin_leaving(struct pool *pool, unsigned *count);
void pool_end_leaving(struct pool *pool, struct pool_page *page);
/* Lets pages be used again that were not emptied in the time between two calls. */
void pool_readmit(struct pool *pool);

static inline void *page_cell(struct pool_page *page, unsigned number)
{
	return (char *)(page + 1) + number * page->cell_size;
}

#endif
