/* SPDX-License-Identifier: MIT */
/*
 * A pool cuts the cells of a class from pages, which the arena has. A page has its own list of free
 * cells, and goes back to the arena when all of them are free. compact.c moves entries out of pages
 * that stay for a few cells. malloc keeps its memory by thread and by size: what one thread takes
 * and another gives back is of use to neither for long, and what was small once is never large.
 *
 * Invariants, under the lock:
 *   a cell is taken, or in its page's list, or was never cut
 *   a page with nothing taken is the arena's
 *   a page with something free is in its class's list, unless it leaves
 *
 * Cells of up to 256 bytes are multiples of 16 bytes; of larger ones 4 to 7 times a power of two
 * fill a page. So less than a fifth of a cell is wasted, and a fiftieth of a page. A block larger
 * than a fourth of the largest page is a span of the arena. The page, and the pool, are found from
 * a cell's address, so its taker keeps nothing.
 *
 * All calls may run together.
 */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/sanitizer.h"

enum {
	FINE_CLASSES = POOL_FINE / POOL_STEP,
	SMALL_PAGE = 16384,
	SMALL_MOST = 1008,
	LARGE_PAGE = 65536,
	LARGE_FIRST = FINE_CLASSES + 8, /* class of the larger pages */
	CELL_MOST = 16368,
	HEAD = sizeof(struct pool_page),
	BATCH_BYTES = 4096, /* bytes of cells that a thread takes at once */
	BATCH_MOST = 16
};

/* A part of what is used, and some more bytes, may be free. */
enum { FREE_SHARE_OF_32 = 3, FREE_LEAST = 1 << 19 };

/* ---- Classes ---- */

static size_t page_size_of(unsigned class)
{
	return class >= LARGE_FIRST && class < POOL_SIZES ? LARGE_PAGE : SMALL_PAGE;
}

/* Returns the class of a cell of more than POOL_FINE bytes, at most CELL_MOST. */
static __attribute__((noinline)) unsigned coarse_class_of(size_t size)
{
	bool is_large = size > SMALL_MOST;
	unsigned cells;
	unsigned shift;

	size = (size + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
	cells = (unsigned)((size_t)((is_large ? LARGE_PAGE : SMALL_PAGE) - HEAD) / size);
	/* 3 bits of it: 56 cells are the first of four in each power of two. */
	shift = 29 - (unsigned)__builtin_clz(cells);
	if (shift > 3)
		return is_large ? LARGE_FIRST : FINE_CLASSES;
	return (is_large ? LARGE_FIRST : FINE_CLASSES) + (3 - shift) * 4 + 7 - (cells >> shift);
}

/* Returns the class of a cell, at most CELL_MOST. */
static inline unsigned class_of(size_t size)
{
	return size <= POOL_FINE ? pool_fine_class(size) : coarse_class_of(size);
}

static unsigned class_cells(unsigned class)
{
	unsigned coarse = class - (class >= LARGE_FIRST ? LARGE_FIRST : FINE_CLASSES);

	if (class == POOL_EXPIRY)
		return (SMALL_PAGE - HEAD) / POOL_EXPIRY_BLOCK;
	if (class < FINE_CLASSES)
		return (SMALL_PAGE - HEAD) / ((class + 1) * POOL_STEP);
	return (7 - coarse % 4) << (3 - coarse / 4);
}

static size_t class_size(unsigned class)
{
	if (class < FINE_CLASSES)
		return (size_t)(class + 1) * POOL_STEP;
	if (class == POOL_EXPIRY)
		return POOL_EXPIRY_BLOCK;
	return (page_size_of(class) - HEAD) / class_cells(class) / POOL_STEP * POOL_STEP;
}

size_t pool_coarse_cell_size(size_t size)
{
	return size > CELL_MOST ? arena_span_size(size) : class_size(class_of(size));
}

/* ---- Opening and closing ---- */

struct pool *pool_create(void)
{
	struct pool *pool = aligned_alloc(_Alignof(struct pool), sizeof(*pool));

	if (!pool)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	arena_init(&pool->arena);
	pthread_mutex_init(&pool->lock, NULL);
	for (unsigned class = 0; class < POOL_CLASSES; class ++)
		list_init(&pool->classes[class].pages);
	list_init(&pool->leaving);
	return pool;
}

/* Lets the lock go, and frees a pool that is closed and has nothing taken. */
static void pool_end(struct pool *pool)
{
	bool is_last = pool->is_closed && pool->taken == 0;

	pthread_mutex_unlock(&pool->lock);
	if (!is_last)
		return;
	arena_destroy(&pool->arena);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

void pool_close(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->is_closed = true;
	pool_end(pool);
}

void pool_sum(struct pool *pool, uint64_t *memory, uint64_t *used)
{
	pthread_mutex_lock(&pool->lock);
	*used = pool->used;
	pthread_mutex_unlock(&pool->lock);
	turn_lock_take(&pool->arena.lock);
	*memory = pool->arena.used + pool->arena.idle;
	turn_lock_let_go(&pool->arena.lock);
}

struct pool *pool_of(const void *block)
{
	return (struct pool *)(void *)arena_of(block);
}

void pool_count_pinned(struct pool *pool, size_t size, bool is_pinned)
{
	int64_t bytes = (int64_t)pool_cell_size(size);

	counter_add_shared(&pool->pinned, is_pinned ? bytes : -bytes);
}

/* ---- Pages; under the lock ---- */

static struct pool_page *page_of(const void *cell, unsigned class)
{
	return (struct pool_page *)((uintptr_t)cell & ~(uintptr_t)(page_size_of(class) - 1));
}

static enum page_state page_state(const struct pool_page *page)
{
	/* relaxed: a hint where the lock is not held. */
	return (enum page_state)atomic_load_explicit(&((struct pool_page *)page)->state,
						     memory_order_relaxed);
}

static void pool_set_page_state(struct pool *pool, struct pool_page *page, enum page_state state)
{
	bool was_left = page_state(page) != PAGE_STAYS;
	bool is_left = state != PAGE_STAYS;

	/* relaxed: hints where the lock is not held. */
	atomic_store_explicit(&page->state, (unsigned)state, memory_order_relaxed);
	/* relaxed: as above. */
	atomic_fetch_add_explicit(&pool->left_pages, (unsigned)is_left - (unsigned)was_left,
				  memory_order_relaxed);
}

static unsigned page_free_cells(const struct pool_page *page)
{
	unsigned reserved = page_state(page) == PAGE_IS_EMPTIED;

	return page->cells - (page->used - reserved);
}

/* Counts free cells of a page; a negative number subtracts. */
static void pool_count_free(struct pool *pool, const struct pool_page *page, int64_t cells)
{
	pool->classes[page->class].free += (uint64_t)cells;
	pool->free += (uint64_t)(cells * (int64_t)page->cell_size);
}

/* Adds a page in front of the others. Returns NULL if out of memory. */
static struct pool_page *pool_add_page(struct pool *pool, unsigned class)
{
	size_t size = page_size_of(class);
	struct pool_page *page = arena_take(&pool->arena, size);

	if (!page)
		return NULL;
	memset(page, 0, sizeof(*page));
	page->class = class;
	page->cells = class_cells(class);
	page->cell_size = class_size(class);
	list_append(pool->classes[class].pages.next, &page->link);
	pool_count_free(pool, page, page->cells);
	sanitizer_hide(page + 1, size - HEAD);
	return page;
}

/* Gives a page that is in no list back to the arena. */
static void pool_remove_page(struct pool *pool, struct pool_page *page)
{
	size_t size = page_size_of(page->class);

	pool_set_page_state(pool, page, PAGE_STAYS);
	sanitizer_show(page, size);
	arena_give(&pool->arena, page, size);
}

/* ---- Cells; under the lock ---- */

/* Returns a cell of a page that has one. */
static struct pool_cell *page_take_cell(struct pool_page *page)
{
	struct pool_cell *cell = page->free;

	if (cell) {
		page->free = cell->next;
		return cell;
	}
	cell = page_cell(page, page->cut++);
	sanitizer_show(cell, sizeof(*cell));
	/* relaxed: what looks at it takes the lock first. */
	atomic_store_explicit(&cell->block.state, 0, memory_order_relaxed);
	return cell;
}

static bool page_is_used_up(const struct pool_page *page)
{
	return !page->free && page->cut == page->cells;
}

/* Moves up to `most` cells of one page to the front of `cells`, which are linked by next. Returns
 * how many, or 0 if out of memory. A page that is added is counted in *taken. */
static unsigned pool_take_cells(struct pool *pool, unsigned class, unsigned most,
				struct pool_cell **cells, size_t *taken)
{
	struct list *pages = &pool->classes[class].pages;
	struct pool_page *page;
	unsigned count = 0;

	if (list_is_empty(pages)) {
		if (!pool_add_page(pool, class))
			return 0;
		*taken += page_size_of(class);
	}
	page = list_entry(pages->next, struct pool_page, link);
	for (; count < most && !page_is_used_up(page); count++) {
		struct pool_cell *cell = page_take_cell(page);

		cell->next = *cells;
		*cells = cell;
	}
	if (page_is_used_up(page))
		list_remove(&page->link);
	page->used += count;
	pool_count_free(pool, page, -(int64_t)count);
	pool->taken += count;
	pool->used += count * page->cell_size;
	return count;
}

static void pool_give_cell(struct pool *pool, struct pool_cell *cell, unsigned class)
{
	struct pool_page *page = page_of(cell, class);

	if (page_state(page) == PAGE_STAYS) {
		if (page_is_used_up(page))
			list_append(&pool->classes[class].pages, &page->link);
		pool_count_free(pool, page, 1);
	}
	cell->next = page->free;
	page->free = cell;
	pool->taken--;
	pool->used -= page->cell_size;
	if (--page->used > 0)
		return;
	list_remove(&page->link);
	if (page_state(page) == PAGE_STAYS)
		pool_count_free(pool, page, -(int64_t)page->cells);
	pool_remove_page(pool, page);
}

static void cell_hide(struct pool_cell *cell, size_t size)
{
	(void)cell;
	(void)size;
	sanitizer_hide(cell + 1, size - sizeof(*cell));
}

/* ---- One block ---- */

/* Takes a block that is larger than any cell. */
static struct pool_block *pool_take_span(struct pool *pool, size_t size)
{
	struct pool_block *block = arena_take(&pool->arena, size);

	if (!block)
		return NULL;
	atomic_init(&block->state, 0);
	pthread_mutex_lock(&pool->lock);
	pool->taken++;
	pool->used += arena_span_size(size);
	pthread_mutex_unlock(&pool->lock);
	return block;
}

void pool_give_of(void *block, unsigned class)
{
	struct pool *pool = pool_of(block);

	cell_hide(block, class_size(class));
	pthread_mutex_lock(&pool->lock);
	pool_give_cell(pool, block, class);
	pool_end(pool);
}

void pool_give(void *block, size_t size)
{
	struct pool *pool = pool_of(block);

	if (size <= CELL_MOST) {
		pool_give_of(block, class_of(size));
		return;
	}
	arena_give(&pool->arena, block, size);
	pthread_mutex_lock(&pool->lock);
	pool->taken--;
	pool->used -= arena_span_size(size);
	pool_end(pool);
}

void *pool_take_of(struct pool *pool, unsigned class)
{
	struct pool_cell *cell = NULL;
	size_t taken = 0;

	pthread_mutex_lock(&pool->lock);
	(void)pool_take_cells(pool, class, 1, &cell, &taken);
	pthread_mutex_unlock(&pool->lock);
	if (cell)
		sanitizer_show(cell, class_size(class));
	return cell;
}

/* ---- Spare cells ---- */

static struct pool_cell *spare_pop(struct pool_spare *spare, unsigned class)
{
	struct pool_cell *cell = spare->cells[class];

	spare->cells[class] = cell->next;
	spare->bytes -= class_size(class);
	return cell;
}

/* Takes some cells at once. Returns false if out of memory. Inlining it would cost its caller 15
 * instructions. */
static __attribute__((noinline)) bool spare_fill(struct pool_spare *spare, struct pool *pool,
						 unsigned class)
{
	size_t size = class_size(class);
	unsigned left = size > BATCH_BYTES ? 1 : (unsigned)(BATCH_BYTES / size);
	unsigned count;

	if (left > BATCH_MOST)
		left = BATCH_MOST;
	pthread_mutex_lock(&pool->lock);
	do {
		count = pool_take_cells(pool, class, left, &spare->cells[class], &spare->taken);
		spare->bytes += count * size;
		left -= count;
	} while (left > 0 && count > 0);
	pthread_mutex_unlock(&pool->lock);
	spare->has_grown = true;
	return spare->cells[class];
}

void *spare_take_any(struct pool_spare *spare, struct pool *pool, size_t size)
{
	struct pool_cell *cell;
	unsigned class;

	if (size > CELL_MOST) {
		spare->taken += arena_span_size(size);
		return pool_take_span(pool, size);
	}
	class = class_of(size);
	if (!spare->cells[class] && !spare_fill(spare, pool, class))
		return NULL;
	cell = spare_pop(spare, class);
	sanitizer_show(cell, class_size(class));
	return cell;
}

void spare_give(struct pool_spare *spare, void *block, size_t size)
{
	struct pool_cell *cell = block;
	unsigned class;

	if (size > CELL_MOST) {
		pool_give(block, size);
		return;
	}
	class = class_of(size);
	/* A page to be emptied gets no new entries. relaxed: a hint. */
	if (atomic_load_explicit(&pool_of(block)->left_pages, memory_order_relaxed) > 0 &&
	    page_state(page_of(block, class)) != PAGE_STAYS) {
		pool_give_of(block, class);
		return;
	}
	cell_hide(block, class_size(class));
	cell->next = spare->cells[class];
	spare->cells[class] = cell;
	spare->bytes += class_size(class);
}

bool spare_return_some(struct pool_spare *spare, struct pool *pool, unsigned cells)
{
	if (spare->bytes == 0)
		return false;
	/* The cache still has the pool: none of these is the last. */
	pthread_mutex_lock(&pool->lock);
	for (unsigned class = 0; class < POOL_SIZES && cells > 0; class ++)
		for (; spare->cells[class] && cells > 0; cells--)
			pool_give_cell(pool, spare_pop(spare, class), class);
	pthread_mutex_unlock(&pool->lock);
	return spare->bytes > 0;
}

void spare_return(struct pool_spare *spare, struct pool *pool)
{
	enum { CELLS = 8 };

	while (spare_return_some(spare, pool, CELLS))
		continue;
}

/* ---- Emptying pages ---- */

bool pool_is_sparse(struct pool *pool, bool at_rest)
{
	uint64_t most;
	bool is_sparse;

	pthread_mutex_lock(&pool->lock);
	most = pool->used > pool->limit || at_rest ? pool->used : pool->limit;
	is_sparse = pool->free > most / 32 * FREE_SHARE_OF_32 + FREE_LEAST;
	pthread_mutex_unlock(&pool->lock);
	return is_sparse;
}

/* Returns the class with most free bytes, of a page at least, or NULL if there is none. */
static struct pool_class *pool_choose_class(struct pool *pool)
{
	struct pool_class *chosen = NULL;
	uint64_t most = 0;

	for (unsigned class = 0; class < POOL_SIZES; class ++) {
		uint64_t bytes = pool->classes[class].free * class_size(class);

		if (pool->classes[class].free <= class_cells(class) || bytes <= most)
			continue;
		most = bytes;
		chosen = &pool->classes[class];
	}
	return chosen;
}

struct pool_page *pool_begin_leaving(struct pool *pool, unsigned *count)
{
	enum { LOOKS = 16 };
	struct pool_page *chosen = NULL;
	struct pool_class *class;
	struct list *link;

	pthread_mutex_lock(&pool->lock);
	class = pool_choose_class(pool);
	/* The first page is being filled. */
	link = class ? class->pages.previous : NULL;
	for (unsigned i = 0; class && i < LOOKS && link != &class->pages; i++) {
		struct pool_page *page = list_entry(link, struct pool_page, link);

		link = link->previous;
		if (!chosen || page->used < chosen->used)
			chosen = page;
	}
	if (chosen) {
		list_remove(&chosen->link);
		list_init(&chosen->link);
		pool_count_free(pool, chosen, -(int64_t)page_free_cells(chosen));
		pool_set_page_state(pool, chosen, PAGE_IS_EMPTIED);
		chosen->used++;
		chosen->age = 0;
		*count = chosen->cut;
	}
	pthread_mutex_unlock(&pool->lock);
	return chosen;
}

void pool_end_leaving(struct pool *pool, struct pool_page *page)
{
	pthread_mutex_lock(&pool->lock);
	pool_set_page_state(pool, page, PAGE_WAITS);
	if (--page->used > 0)
		list_append(&pool->leaving, &page->link);
	else
		pool_remove_page(pool, page);
	pthread_mutex_unlock(&pool->lock);
}

void pool_readmit(struct pool *pool)
{
	struct list *link;
	struct list *next;

	pthread_mutex_lock(&pool->lock);
	for (link = pool->leaving.next; link != &pool->leaving; link = next) {
		struct pool_page *page = list_entry(link, struct pool_page, link);

		next = link->next;
		if (page->age++ == 0)
			continue;
		list_remove(link);
		pool_set_page_state(pool, page, PAGE_STAYS);
		pool_count_free(pool, page, page_free_cells(page));
		/* It comes before the others, so it is not the next to be emptied. */
		if (page_free_cells(page) > 0)
			list_append(pool->classes[page->class].pages.next, link);
	}
	pthread_mutex_unlock(&pool->lock);
}
