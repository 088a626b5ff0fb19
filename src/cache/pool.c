/* SPDX-License-Identifier: MIT */
/*
 * Cells of up to 256 bytes are multiples of 16 bytes; of larger ones 4 to 7 times a power of two
 * fill a page. So less than a fifth of a cell is wasted, and a fiftieth of a page.
 *
 * A page belongs to one class for ever. A region's first page has the region's head, with what the
 * pool knows of its pages; so an address leads to its page and its pool. A page whose last cell
 * comes back stays resident if few are empty; else it goes back to the system, and is used again,
 * for its class, before a new page is. A cell of a huge page goes back by itself.
 *
 * Readers may look at any cell at any time (lookup.c). So a page that goes back must not begin its
 * lives again: `floor` remembers the latest that it had, and a fence stands before the zeros. A
 * region's last page is not used, so that a copy with a wrong size stays in the region.
 *
 * Invariants:
 *   a page is in one list of its class, in `leaving`, or with a thread that empties it; or its
 *   cells are all taken
 *   `free` of a class counts the free cells of its pages that are neither empty nor leaving
 *
 * All calls may run together.
 */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "base/sanitizer.h"

enum {
	FINE_CLASSES = POOL_FINE / POOL_STEP,
	SMALL_MOST = 1024,
	LARGE_FIRST = FINE_CLASSES + 8, /* class of the larger pages */
	LARGE_MOST = 16384,
	HUGE_FIRST = LARGE_FIRST + 16,
	LEAF = 4096,
	BATCH_BYTES = 4096, /* bytes of cells that a shard takes at once */
	BATCH_MOST = 15 /* odd: what shards fill first lies in many sets of a processor's cache */
};

/* A part of what is used, and some more bytes, may be free, or in empty pages. */
enum { FREE_SHARE_OF_32 = 3, FREE_LEAST = 1 << 19 };
enum { EMPTY_SHARE = 32, EMPTY_SHARE_TIGHT = 64 };
enum { EMPTY_LEAST = 1 << 20, EMPTY_LEAST_TIGHT = 1 << 18, EMPTY_LEAST_AT_REST = 1 << 16 };

struct pool_region {
	struct pool *pool;        /* constant */
	struct pool_region *next; /* constant */
	struct pool_page pages[];
};

_Static_assert((int)POOL_SPARE == (int)HUGE_FIRST, "large cells go back at once");
_Static_assert(sizeof(struct pool_region) + 128 * sizeof(struct pool_page) <= 16384,
	       "the head fills a page at most");

static const unsigned page_shifts[POOL_KINDS] = {14, 16, 21};

/* ---- Classes ---- */

static enum pool_kind class_kind(unsigned class)
{
	if (class < LARGE_FIRST || class == POOL_EXPIRY)
		return POOL_SMALL;
	return class < HUGE_FIRST ? POOL_LARGE : POOL_HUGE;
}

/* Returns the bytes of a page that are for cells. */
static size_t page_room(enum pool_kind kind)
{
	return ((size_t)1 << page_shifts[kind]) - (kind == POOL_HUGE ? LEAF : 0);
}

static unsigned kind_first_class(enum pool_kind kind)
{
	return kind == POOL_SMALL ? FINE_CLASSES : kind == POOL_LARGE ? LARGE_FIRST : HUGE_FIRST;
}

static unsigned kind_unit(enum pool_kind kind)
{
	return kind == POOL_HUGE ? LEAF : POOL_STEP;
}

/* Returns the class of a cell of more than POOL_FINE bytes, at most POOL_MOST. */
static __attribute__((noinline)) unsigned coarse_class_of(size_t size)
{
	enum pool_kind kind = size <= SMALL_MOST   ? POOL_SMALL
			      : size <= LARGE_MOST ? POOL_LARGE
						   : POOL_HUGE;
	/* The first group of four has 32 to 56 or 64 to 112 cells in a page. */
	int most = kind == POOL_HUGE ? 4 : 3;
	unsigned cells;
	int shift;

	size = (size + kind_unit(kind) - 1) / kind_unit(kind) * kind_unit(kind);
	cells = (unsigned)(page_room(kind) / size);
	/* 3 bits of it. */
	shift = 29 - __builtin_clz(cells);
	if (shift > most)
		return kind_first_class(kind);
	return kind_first_class(kind) + (unsigned)(most - shift) * 4 + 7 - (cells >> shift);
}

/* Returns the class of a cell, at most POOL_MOST. */
static inline unsigned class_of(size_t size)
{
	return size <= POOL_FINE ? pool_fine_class(size) : coarse_class_of(size);
}

/* Returns how many cells a page of the class has. */
static unsigned class_cells_of(unsigned class)
{
	enum pool_kind kind = class_kind(class);
	unsigned coarse = class - kind_first_class(kind);

	if (class == POOL_EXPIRY)
		return (unsigned)(page_room(POOL_SMALL) / POOL_EXPIRY_BLOCK);
	if (class < FINE_CLASSES) {
		size_t size = class < 3 ? 64 : (class + 1) * POOL_STEP;

		return (unsigned)(page_room(POOL_SMALL) / size);
	}
	return (7 - coarse % 4) << ((kind == POOL_HUGE ? 4 : 3) - coarse / 4);
}

static size_t class_size_of(unsigned class)
{
	enum pool_kind kind = class_kind(class);

	if (class < FINE_CLASSES)
		return (size_t)(class + 1) * POOL_STEP;
	if (class == POOL_EXPIRY)
		return POOL_EXPIRY_BLOCK;
	return page_room(kind) / class_cells_of(class) / kind_unit(kind) * kind_unit(kind);
}

size_t pool_coarse_cell_size(size_t size)
{
	return class_size_of(coarse_class_of(size));
}

/* ---- Opening and closing ---- */

struct pool *pool_create(void)
{
	struct pool *pool = aligned_alloc(_Alignof(struct pool), sizeof(*pool));

	if (!pool)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	pthread_mutex_init(&pool->lock, NULL);
	for (unsigned class = 0; class < POOL_CLASSES; class ++) {
		struct pool_class *own = &pool->classes[class];

		list_init(&own->pages);
		list_init(&own->empty);
		list_init(&own->resting);
		own->cells = class_cells_of(class);
		own->size = class_size_of(class);
	}
	list_init(&pool->leaving);
	return pool;
}

/* Lets the lock go, and frees a pool that is closed and has nothing taken. */
static void pool_end(struct pool *pool)
{
	bool is_last = pool->is_closed && pool->taken == 0;
	struct pool_region *region = pool->regions;

	pthread_mutex_unlock(&pool->lock);
	if (!is_last)
		return;
	while (region) {
		struct pool_region *next = region->next;

		pages_unmap_aligned(region, POOL_REGION);
		region = next;
	}
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
	uint64_t mapped = counter_read(&pool->mapped);

	pthread_mutex_lock(&pool->lock);
	*used = pool->used + mapped;
	*memory = pool->memory + mapped;
	pthread_mutex_unlock(&pool->lock);
}

static struct pool_region *region_of(const void *address)
{
	return (struct pool_region *)((uintptr_t)address & ~(uintptr_t)(POOL_REGION - 1));
}

struct pool *pool_of(const void *cell)
{
	return region_of(cell)->pool;
}

void pool_count_pinned(struct pool *pool, size_t size, bool is_pinned)
{
	int64_t bytes = (int64_t)pool_cell_size(size);

	counter_add_shared(&pool->pinned, is_pinned ? bytes : -bytes);
}

/* ---- Pages; under the lock ---- */

/* Returns the page of a cell, or of another address in it. */
static struct pool_page *page_of(const void *cell, unsigned class)
{
	size_t offset = (uintptr_t)cell & (POOL_REGION - 1);

	return &region_of(cell)->pages[offset >> page_shifts[class_kind(class)]];
}

static char *page_start(const struct pool_page *page)
{
	struct pool_region *region = region_of(page);
	enum pool_kind kind = class_kind(page->class);

	return (char *)region + ((size_t)(page - region->pages) << page_shifts[kind]) +
	       (kind == POOL_HUGE ? LEAF : 0);
}

void *page_cell(const struct pool_page *page, unsigned number)
{
	const struct pool *pool = pool_of(page);

	return page_start(page) + number * pool->classes[page->class].size;
}

size_t page_bytes(const struct pool_page *page)
{
	return page_room(class_kind(page->class));
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

static unsigned page_free_cells(const struct pool *pool, const struct pool_page *page)
{
	unsigned reserved = page_state(page) == PAGE_IS_EMPTIED;

	return pool->classes[page->class].cells - (page->used - reserved);
}

/* Counts free cells of a class; a negative number subtracts. */
static void pool_count_free(struct pool *pool, unsigned class, int64_t cells)
{
	pool->classes[class].free += (uint64_t)cells;
	if (class_kind(class) != POOL_HUGE)
		pool->free += (uint64_t)(cells * (int64_t)pool->classes[class].size);
}

/* Returns whether one more region was mapped. */
static bool pool_add_region(struct pool *pool, enum pool_kind kind)
{
	struct pool_region *region = pages_map_aligned(POOL_REGION, POOL_REGION);

	if (!region)
		return false;
	/* The system would fill a large page for one byte. */
	pages_use_huge(region, POOL_REGION, false);
	region->pool = pool;
	region->next = pool->regions;
	pool->regions = region;
	pool->fresh[kind] = region;
	pool->fresh_count[kind] =
		kind == POOL_HUGE ? 1 : ((unsigned)POOL_REGION >> page_shifts[kind]) - 2;
	pool->memory += kind == POOL_SMALL ? 2 * LEAF : LEAF;
	return true;
}

/* Returns a page that was never used, or NULL if out of memory. */
static struct pool_page *pool_fresh_page(struct pool *pool, unsigned class)
{
	enum pool_kind kind = class_kind(class);
	struct pool_page *page;

	if (pool->fresh_count[kind] == 0 && !pool_add_region(pool, kind))
		return NULL;
	page = &pool->fresh[kind]->pages[kind == POOL_HUGE ? 0 : pool->fresh_count[kind]];
	pool->fresh_count[kind]--;
	page->class = (uint8_t) class;
	for (unsigned i = 0, left = pool->classes[class].cells; left > 0; i++) {
		unsigned bits = left < 64 ? left : 64;

		page->free[i] = UINT64_MAX >> (64 - bits);
		left -= bits;
	}
	return page;
}

/* Puts a page without taken cells in front of those of its class. Returns NULL if out of memory. */
static struct pool_page *pool_add_page(struct pool *pool, unsigned class, size_t *taken)
{
	struct pool_class *own = &pool->classes[class];
	struct list *link = list_take_first(&own->empty);
	struct pool_page *page;

	if (link) {
		page = list_entry(link, struct pool_page, link);
		pool->empty -= page_bytes(page);
	} else {
		link = list_take_first(&own->resting);
		page = link ? list_entry(link, struct pool_page, link)
			    : pool_fresh_page(pool, class);
		if (!page)
			return NULL;
		if (class_kind(class) != POOL_HUGE) {
			pool->memory += page_bytes(page);
			*taken += page_bytes(page);
		}
	}
	pool_count_free(pool, class, pool->classes[class].cells);
	list_append(own->pages.next, &page->link);
	return page;
}

/* Notes the lives of cells that are to become zero. */
static void pool_forget(struct pool *pool, const char *cells, unsigned count, size_t size)
{
	uint64_t last = counter_read(&pool->floor);

	for (unsigned i = 0; i < count; i++) {
		const struct pool_cell *cell = (const void *)(cells + i * size);
		uint64_t life = counter_read(&cell->life);

		last = life > last ? life : last;
	}
	counter_set(&pool->floor, last);
	/* release: a reader that sees a zero sees that the cells are in no slot; pairs with
	 * look_fence(). The thread sanitizer knows no fences, and no zeros either. */
	if (!SANITIZER_THREAD)
		atomic_thread_fence(memory_order_release);
}

/* Gives the memory of a page in no list, all of it free, back to the system. */
static void pool_rest_page(struct pool *pool, struct pool_page *page)
{
	struct pool_class *own = &pool->classes[page->class];

	if (class_kind(page->class) != POOL_HUGE) {
		pool_forget(pool, page_start(page), pool->classes[page->class].cells,
			    pool->classes[page->class].size);
		(void)pages_release(page_start(page), page_bytes(page));
		pool->memory -= page_bytes(page);
	}
	list_append(&own->resting, &page->link);
}

/* Returns whether empty pages are more than their share, and some should go back. */
static bool pool_is_slack(const struct pool *pool, bool at_rest)
{
	bool is_tight = pool->limit > 0;
	uint64_t share = pool->used / (is_tight ? EMPTY_SHARE_TIGHT : EMPTY_SHARE);
	uint64_t least = at_rest ? EMPTY_LEAST_AT_REST : is_tight ? EMPTY_LEAST_TIGHT : EMPTY_LEAST;

	return pool->empty > least + share;
}

/* Lists a page whose last cell came back, and which is in no list. */
static void pool_empty_page(struct pool *pool, struct pool_page *page)
{
	pool->empty += page_bytes(page);
	if (class_kind(page->class) == POOL_HUGE || pool_is_slack(pool, false)) {
		pool->empty -= page_bytes(page);
		pool_rest_page(pool, page);
		return;
	}
	list_append(pool->classes[page->class].empty.next, &page->link);
}

bool pool_trim(struct pool *pool, size_t most)
{
	bool is_slack = true;
	size_t done = 0;

	for (unsigned class = 0; class < POOL_CLASSES && done < most && is_slack; class ++) {
		struct list *link;

		pthread_mutex_lock(&pool->lock);
		while ((is_slack = pool_is_slack(pool, true)) && done < most &&
		       (link = list_take_first(&pool->classes[class].empty))) {
			struct pool_page *page = list_entry(link, struct pool_page, link);

			pool->empty -= page_bytes(page);
			done += page_bytes(page);
			pool_rest_page(pool, page);
		}
		pthread_mutex_unlock(&pool->lock);
	}
	return done >= most;
}

/* ---- Cells; under the lock ---- */

/* Returns a cell of a page that has one. */
static struct pool_cell *page_take_cell(struct pool_page *page, char *start, size_t size)
{
	unsigned word = 0;
	unsigned bit;

	while (page->free[word] == 0)
		word++;
	bit = (unsigned)__builtin_ctzll(page->free[word]);
	page->free[word] &= page->free[word] - 1;
	page->used++;
	return (struct pool_cell *)(void *)(start + (word * 64 + bit) * size);
}

/* Moves up to `most` cells of one page to the front of `cells`, which are linked by next. Returns
 * how many, or 0 if out of memory. A page from the system is counted in *taken. */
static unsigned pool_take_cells(struct pool *pool, unsigned class, unsigned most,
				struct pool_cell **cells, size_t *taken)
{
	struct list *pages = &pool->classes[class].pages;
	size_t size = pool->classes[class].size;
	struct pool_page *page;
	unsigned count = 0;
	char *start;

	if (list_is_empty(pages) && !pool_add_page(pool, class, taken))
		return 0;
	page = list_entry(pages->next, struct pool_page, link);
	start = page_start(page);
	for (; count < most && page->used < pool->classes[class].cells; count++) {
		struct pool_cell *cell = page_take_cell(page, start, size);

		cell->next = *cells;
		*cells = cell;
	}
	if (page->used == pool->classes[class].cells)
		list_remove(&page->link);
	pool_count_free(pool, class, -(int64_t)count);
	pool->taken += count;
	pool->used += count * size;
	if (class_kind(class) == POOL_HUGE) {
		pool->memory += count * size;
		*taken += count * size;
	}
	return count;
}

static void pool_give_cell(struct pool *pool, struct pool_cell *cell, unsigned class)
{
	struct pool_page *page = page_of(cell, class);
	size_t size = pool->classes[class].size;
	unsigned number = (unsigned)((uint32_t)((char *)cell - page_start(page)) / (uint32_t)size);

	if (page_state(page) == PAGE_STAYS) {
		if (page->used == pool->classes[class].cells)
			list_append(&pool->classes[class].pages, &page->link);
		pool_count_free(pool, class, 1);
	}
	page->free[number / 64] |= (uint64_t)1 << number % 64;
	pool->taken--;
	pool->used -= size;
	if (class_kind(class) == POOL_HUGE)
		pool->memory -= size;
	if (--page->used > 0)
		return;
	list_remove(&page->link);
	if (page_state(page) == PAGE_STAYS)
		pool_count_free(pool, class, -(int64_t)pool->classes[class].cells);
	pool_set_page_state(pool, page, PAGE_STAYS);
	pool_empty_page(pool, page);
}

/* ---- One cell ---- */

void pool_give_of(void *cell, unsigned class)
{
	struct pool *pool = pool_of(cell);

	pthread_mutex_lock(&pool->lock);
	if (class_kind(class) == POOL_HUGE) {
		pool_forget(pool, cell, 1, pool->classes[class].size);
		pthread_mutex_unlock(&pool->lock);
		/* This takes some 30 us. */
		(void)pages_release(cell, pool->classes[class].size);
		pthread_mutex_lock(&pool->lock);
	}
	pool_give_cell(pool, cell, class);
	pool_end(pool);
}

void pool_give(void *cell, size_t size)
{
	pool_give_of(cell, class_of(size));
}

void *pool_take_of(struct pool *pool, unsigned class)
{
	struct pool_cell *cell = NULL;
	size_t taken = 0;

	pthread_mutex_lock(&pool->lock);
	(void)pool_take_cells(pool, class, 1, &cell, &taken);
	pthread_mutex_unlock(&pool->lock);
	return cell;
}

/* ---- Spare cells ---- */

static struct pool_cell *spare_pop(struct pool_spare *spare, const struct pool *pool,
				   unsigned class)
{
	struct pool_cell *cell = spare->cells[class];

	spare->cells[class] = cell->next;
	spare->bytes -= pool->classes[class].size;
	return cell;
}

/* Takes some cells at once. Returns false if out of memory. Inlining it would cost its caller 15
 * instructions. */
static __attribute__((noinline)) bool spare_fill(struct pool_spare *spare, struct pool *pool,
						 unsigned class)
{
	size_t size = pool->classes[class].size;
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
	return spare->cells[class];
}

void *spare_take_any(struct pool_spare *spare, struct pool *pool, size_t size)
{
	unsigned class = class_of(size);
	struct pool_cell *cell = NULL;

	if (class < POOL_SPARE) {
		if (spare->cells[class] || spare_fill(spare, pool, class))
			cell = spare_pop(spare, pool, class);
		return cell;
	}
	pthread_mutex_lock(&pool->lock);
	(void)pool_take_cells(pool, class, 1, &cell, &spare->taken);
	pthread_mutex_unlock(&pool->lock);
	return cell;
}

void spare_give_any(struct pool_spare *spare, struct pool *pool, void *block, size_t size)
{
	struct pool_cell *cell = block;
	unsigned class = class_of(size);

	if (class >= POOL_SPARE ||
	    (pool_has_left_pages(pool) && page_state(page_of(block, class)) != PAGE_STAYS)) {
		pool_give_of(block, class);
		return;
	}
	cell->next = spare->cells[class];
	spare->cells[class] = cell;
	spare->bytes += pool->classes[class].size;
}

bool spare_return_some(struct pool_spare *spare, struct pool *pool, unsigned cells)
{
	if (spare->bytes == 0)
		return false;
	/* The cache still has the pool: none of these is the last. */
	pthread_mutex_lock(&pool->lock);
	for (unsigned class = 0; class < POOL_SPARE && cells > 0; class ++)
		for (; spare->cells[class] && cells > 0; cells--)
			pool_give_cell(pool, spare_pop(spare, pool, class), class);
	pthread_mutex_unlock(&pool->lock);
	return spare->bytes > 0;
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

	for (unsigned class = 0; class < HUGE_FIRST; class ++) {
		uint64_t bytes = pool->classes[class].free * pool->classes[class].size;

		if (pool->classes[class].free <= pool->classes[class].cells || bytes <= most)
			continue;
		most = bytes;
		chosen = &pool->classes[class];
	}
	return chosen;
}

struct pool_page *pool_begin_leaving(struct pool *pool, uint64_t cells[POOL_WORDS])
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
		pool_count_free(pool, chosen->class, -(int64_t)page_free_cells(pool, chosen));
		pool_set_page_state(pool, chosen, PAGE_IS_EMPTIED);
		chosen->used++;
		chosen->age = 0;
		for (unsigned i = 0; i < POOL_WORDS; i++)
			cells[i] = ~chosen->free[i];
		for (unsigned i = pool->classes[chosen->class].cells; i < POOL_WORDS * 64; i++)
			cells[i / 64] &= ~((uint64_t)1 << i % 64);
	}
	pthread_mutex_unlock(&pool->lock);
	return chosen;
}

void pool_end_leaving(struct pool *pool, struct pool_page *page)
{
	pthread_mutex_lock(&pool->lock);
	pool_set_page_state(pool, page, PAGE_WAITS);
	if (--page->used > 0) {
		list_append(&pool->leaving, &page->link);
	} else {
		pool_set_page_state(pool, page, PAGE_STAYS);
		pool_empty_page(pool, page);
	}
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
		pool_count_free(pool, page->class, page_free_cells(pool, page));
		/* It comes before the others, so it is not the next to be emptied. */
		if (page_free_cells(pool, page) > 0)
			list_append(pool->classes[page->class].pages.next, link);
	}
	pthread_mutex_unlock(&pool->lock);
}
