/* SPDX-License-Identifier: MIT */
/*
 * Cells of up to 256 bytes are multiples of 16 bytes; larger ones are 5 to 8 times a power of two.
 * So less than a fifth of a cell is wasted. A page has 256, 64, 16 or 4 cells of one class, or one
 * of more than 16 KiB, and is a multiple of 4 KiB: no page has a rest.
 *
 * A region belongs to one class for ever. The place of its first page has the region's head, with
 * what the pool knows of its pages; so an address leads to its class, its page and its pool. A page
 * whose last cell comes back stays resident if few are empty; else it goes back to the system, and
 * rests with those that were never used.
 *
 * Readers may look at any cell at any time (lookup.c). So a page that goes back must not begin its
 * lives again: `floor` remembers the latest that it had, and a fence stands before the zeros. A
 * region's last bytes are not used, so that a copy with a wrong size stays in the region.
 *
 * Invariants:
 *   a page is in one list of its class, or in that of a thread that empties it; or its cells are
 *   all taken
 *   `free` of a class counts the free cells of its pages that are neither empty nor emptied
 *
 * All calls may run together.
 */
#include "pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/pages.h"

enum {
	FINE_CLASSES = POOL_FINE / POOL_STEP,
	LEAF = 4096,
	REGION_END = 2048,  /* bytes at its end that are not used */
	BATCH_BYTES = 4096, /* bytes of cells that a shard takes at once */
	BATCH_MOST = 15 /* odd: what shards fill first lies in many sets of a processor's cache */
};

/* A part of what is used, and some more bytes, may be free, or in empty pages. */
enum { FREE_SHARE_OF_32 = 3, FREE_LEAST = 1 << 19 };
enum { EMPTY_SHARE = 64, EMPTY_LEAST = 1 << 19, RESTED_AT_ONCE = 4 };

_Static_assert(POOL_WORDS * 64 == 256, "a bit for each cell");
_Static_assert(sizeof(struct pool_region) + 128 * sizeof(struct pool_page) <= 4 * LEAF,
	       "the head fills a page at most, and none is smaller than this");

/* ---- Classes ---- */

/* Returns the class of a cell of more than POOL_FINE bytes, at most POOL_MOST. */
static __attribute__((noinline)) unsigned coarse_class_of(size_t size)
{
	/* It leaves 3 bits. */
	unsigned shift = 61 - (unsigned)__builtin_clzll(size - 1);

	return FINE_CLASSES + (shift - 6) * 4 + (unsigned)((size - 1) >> shift) - 4;
}

/* Returns the class of a cell, at most POOL_MOST. */
static inline unsigned class_of(size_t size)
{
	return size <= POOL_FINE ? pool_fine_class(size) : coarse_class_of(size);
}

static size_t class_size_of(unsigned class)
{
	unsigned coarse = class - FINE_CLASSES;

	if (class == POOL_EXPIRY)
		return POOL_EXPIRY_BLOCK;
	return class < FINE_CLASSES ? (size_t)(class + 1) * POOL_STEP
				    : (size_t)(coarse % 4 + 5) << (coarse / 4 + 6);
}

/* Returns the binary logarithm of the number of cells in a page of the class. */
static unsigned class_shift_of(unsigned class)
{
	if (class == POOL_EXPIRY)
		return 6;
	if (class >= POOL_SPARE)
		return 0;
	return class < FINE_CLASSES ? 8 : 6 - (class - FINE_CLASSES) / 8 * 2;
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
		own->number = class;
		own->shift = class_shift_of(class);
		own->cells = 1u << own->shift;
		own->size = class_size_of(class);
	}
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

/* ---- Pages; under the lock ---- */

static size_t class_page_bytes(const struct pool_class *class)
{
	return class->cells * class->size;
}

/* Returns the number of a cell in its region. */
static uint32_t cell_number(const void *cell)
{
	return (uint32_t)((uintptr_t)cell & (POOL_REGION - 1)) /
	       (uint32_t)pool_class_of(cell)->size;
}

static char *page_start(const struct pool_page *page)
{
	struct pool_region *region = region_of(page);

	return (char *)region + (size_t)(page - region->pages) * class_page_bytes(region->class);
}

size_t page_bytes(const struct pool_page *page)
{
	return class_page_bytes(pool_class_of(page));
}

void *page_cell(const struct pool_page *page, unsigned number)
{
	return page_start(page) + number * pool_class_of(page)->size;
}

/* Counts free cells of a class; a negative number subtracts. */
static void pool_count_free(struct pool *pool, struct pool_class *class, int64_t cells)
{
	class->free += (uint64_t)cells;
	pool->free += (uint64_t)(cells * (int64_t) class->size);
}

/* Maps a region, whose pages rest. Returns false if out of memory. */
static bool pool_add_region(struct pool *pool, struct pool_class *class)
{
	struct pool_region *region = pages_map_aligned(POOL_REGION, POOL_REGION);
	size_t pages = (POOL_REGION - REGION_END) / class_page_bytes(class);

	if (!region)
		return false;
	/* The system would fill a large page for one byte. */
	pages_use_huge(region, POOL_REGION, false);
	region->pool = pool;
	region->class = class;
	region->next = pool->regions;
	pool->regions = region;
	/* The first one's place has the head. */
	for (size_t i = 1; i < pages; i++) {
		struct pool_page *page = &region->pages[i];

		for (unsigned k = 0; k < (class->cells + 63) / 64; k++)
			page->free[k] = UINT64_MAX >> (class->cells < 64 ? 64 - class->cells : 0);
		list_append(&class->resting, &page->link);
	}
	pool->memory +=
		(sizeof(*region) + pages * sizeof(struct pool_page) + LEAF - 1) / LEAF * LEAF;
	return true;
}

/* Puts a page without taken cells in front of those of its class. Returns false if out of
 * memory. */
static bool pool_add_page(struct pool *pool, struct pool_class *class)
{
	struct list *link = list_take_first(&class->empty);

	if (link) {
		pool->empty -= class_page_bytes(class);
	} else {
		if (list_is_empty(&class->resting) && !pool_add_region(pool, class))
			return false;
		link = list_take_first(&class->resting);
		pool->memory += class_page_bytes(class);
	}
	pool_count_free(pool, class, class->cells);
	list_append(class->pages.next, link);
	return true;
}

/* Gives the memory of a page in no list, all of it free, back to the system. Notes the lives of its
 * cells, which become zero. Of the largest it takes some 30 us. */
static void pool_rest_page(struct pool *pool, struct pool_page *page)
{
	struct pool_class *class = pool_class_of(page);
	uint64_t last = counter_read(&pool->floor);
	const char *start = page_start(page);

	for (size_t i = 0; i < class_page_bytes(class); i += class->size) {
		uint64_t life =
			counter_read(&((const struct pool_cell *)(const void *)(start + i))->life);

		last = life > last ? life : last;
	}
	counter_set(&pool->floor, last);
	/* release: a reader that sees a zero sees that the cells are in no slot; pairs with
	 * look_fence(). The thread sanitizer knows no fences, and no zeros either. */
	if (!SANITIZER_THREAD)
		atomic_thread_fence(memory_order_release);
	(void)pages_release((void *)start, class_page_bytes(class));
	pool->memory -= class_page_bytes(class);
	list_append(&class->resting, &page->link);
}

/* Lists a page whose last cell came back, and which is in no list. Gives a few pages back to the
 * system while the empty ones are more than their share, which shrinks with the used ones. Inlining
 * it would cost each cell that comes back 8 instructions. */
static __attribute__((noinline)) void pool_empty_page(struct pool *pool, struct pool_page *page)
{
	struct pool_class *class = pool_class_of(page);

	list_append(class->empty.next, &page->link);
	pool->empty += page_bytes(page);
	for (int left = RESTED_AT_ONCE;
	     left > 0 && pool->empty > EMPTY_LEAST + pool->used / EMPTY_SHARE;) {
		struct list *link = list_take_first(&class->empty);

		if (!link) {
			class = &pool->classes[(class->number + 1) % POOL_CLASSES];
			continue;
		}
		page = list_entry(link, struct pool_page, link);
		pool->empty -= page_bytes(page);
		pool_rest_page(pool, page);
		left--;
	}
}

/* ---- Cells ---- */

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

/* Moves up to `most` cells of one page to the front of `cells`. Returns how many, or 0 if out of
 * memory. Under the lock. */
static unsigned pool_take_cells(struct pool *pool, struct pool_class *class, unsigned most,
				struct pool_cell **cells)
{
	struct pool_page *page;
	unsigned count = 0;
	char *start;

	if (list_is_empty(&class->pages) && !pool_add_page(pool, class))
		return 0;
	page = list_entry(class->pages.next, struct pool_page, link);
	start = page_start(page);
	for (; count < most && page->used < class->cells; count++) {
		struct pool_cell *cell = page_take_cell(page, start, class->size);

		cell->next = *cells;
		*cells = cell;
	}
	if (page->used == class->cells)
		list_remove(&page->link);
	pool_count_free(pool, class, -(int64_t)count);
	pool->taken += count;
	pool->used += count * class->size;
	return count;
}

unsigned pool_take(struct pool *pool, unsigned class, unsigned most, struct pool_cell **cells,
		   size_t *taken)
{
	unsigned left = most;
	uint64_t before;
	unsigned count;

	pthread_mutex_lock(&pool->lock);
	before = pool->memory;
	do {
		count = pool_take_cells(pool, &pool->classes[class], left, cells);
		left -= count;
	} while (left > 0 && count > 0);
	*taken += pool->memory - before;
	pthread_mutex_unlock(&pool->lock);
	return most - left;
}

/* Gives back a cell under the lock. */
static void pool_give_cell(struct pool *pool, struct pool_cell *cell)
{
	struct pool_region *region = region_of(cell);
	struct pool_class *class = region->class;
	uint32_t number = cell_number(cell);
	struct pool_page *page = &region->pages[number >> class->shift];

	number &= class->cells - 1;
	if (!page->is_emptied) {
		if (page->used == class->cells)
			list_append(&class->pages, &page->link);
		pool_count_free(pool, class, 1);
	}
	page->free[number / 64] |= (uint64_t)1 << number % 64;
	pool->taken--;
	pool->used -= class->size;
	if (--page->used > 0)
		return;
	list_remove(&page->link);
	if (!page->is_emptied)
		pool_count_free(pool, class, -(int64_t) class->cells);
	page->is_emptied = false;
	pool_empty_page(pool, page);
}

void pool_give(void *cell)
{
	struct pool *pool = pool_of(cell);

	pthread_mutex_lock(&pool->lock);
	pool_give_cell(pool, cell);
	pool_end(pool);
}

/* ---- Spare cells ---- */

static struct pool_cell *spare_pop(struct pool_spare *spare, unsigned class)
{
	struct pool_cell *cell = spare->cells[class];

	spare->cells[class] = cell->next;
	spare->bytes -= class_size_of(class);
	return cell;
}

/* Takes some cells at once. Returns false if out of memory. Inlining it would cost its caller 15
 * instructions. */
static __attribute__((noinline)) bool spare_fill(struct pool_spare *spare, struct pool *pool,
						 unsigned class)
{
	size_t size = class_size_of(class);
	unsigned most = size > BATCH_BYTES ? 1 : (unsigned)(BATCH_BYTES / size);
	unsigned count = pool_take(pool, class, most < BATCH_MOST ? most : BATCH_MOST,
				   &spare->cells[class], &spare->taken);

	spare->bytes += count * size;
	return count > 0;
}

void *spare_take_any(struct pool_spare *spare, struct pool *pool, size_t size)
{
	unsigned class = class_of(size);
	struct pool_cell *cell = NULL;

	if (class >= POOL_SPARE)
		(void)pool_take(pool, class, 1, &cell, &spare->taken);
	else if (spare->cells[class] || spare_fill(spare, pool, class))
		cell = spare_pop(spare, class);
	return cell;
}

bool spare_return_some(struct pool_spare *spare, struct pool *pool, unsigned cells)
{
	if (spare->bytes == 0)
		return false;
	/* The cache still has the pool: none of these is the last. */
	pthread_mutex_lock(&pool->lock);
	for (unsigned class = 0; class < POOL_SPARE && cells > 0; class ++)
		for (; spare->cells[class] && cells > 0; cells--)
			pool_give_cell(pool, spare_pop(spare, class));
	pthread_mutex_unlock(&pool->lock);
	return spare->bytes > 0;
}

/* ---- Emptying pages ---- */

/* Returns whether more is free than should be; if `at_rest`, than the present use allows. */
static bool pool_is_sparse(const struct pool *pool, bool at_rest)
{
	uint64_t most = pool->used > pool->limit || at_rest ? pool->used : pool->limit;

	return pool->free > most / 32 * FREE_SHARE_OF_32 + FREE_LEAST;
}

/* Returns the class with most free bytes, of a page at least, or NULL if there is none. */
static struct pool_class *pool_choose_class(struct pool *pool)
{
	struct pool_class *chosen = NULL;
	uint64_t most = 0;

	for (unsigned i = 0; i < POOL_SIZES; i++) {
		struct pool_class *class = &pool->classes[i];

		if (class->free <= class->cells || class->free * class->size <= most)
			continue;
		most = class->free * class->size;
		chosen = class;
	}
	return chosen;
}

/* Returns the page with the fewest taken cells of the last ones of the class. */
static struct pool_page *class_choose_page(const struct pool_class *class)
{
	enum { LOOKS = 16 };
	/* The first page is being filled. */
	const struct list *link = class->pages.previous;
	struct pool_page *chosen = NULL;

	for (unsigned i = 0; i < LOOKS && link != &class->pages; i++) {
		struct pool_page *page = list_entry(link, struct pool_page, link);

		link = link->previous;
		if (!chosen || page->used < chosen->used)
			chosen = page;
	}
	return chosen;
}

struct pool_page *pool_begin_emptying(struct pool *pool, bool at_rest, struct list *emptied,
				      uint64_t cells[POOL_WORDS])
{
	struct pool_page *page = NULL;
	struct pool_class *class = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool_is_sparse(pool, at_rest))
		class = pool_choose_class(pool);
	if (class && (page = class_choose_page(class))) {
		list_remove(&page->link);
		list_append(emptied, &page->link);
		pool_count_free(pool, class, (int64_t)page->used - class->cells);
		page->is_emptied = true;
		for (unsigned i = 0; i < POOL_WORDS; i++)
			cells[i] = i * 64 >= class->cells ? 0 : ~page->free[i];
		if (class->cells < 64)
			cells[0] &= ((uint64_t)1 << class->cells) - 1;
	}
	pthread_mutex_unlock(&pool->lock);
	return page;
}

void pool_end_emptying(struct pool *pool, struct list *emptied)
{
	struct list *link;

	pthread_mutex_lock(&pool->lock);
	while ((link = list_take_first(emptied))) {
		struct pool_page *page = list_entry(link, struct pool_page, link);
		struct pool_class *class = pool_class_of(page);

		page->is_emptied = false;
		pool_count_free(pool, class, (int64_t) class->cells - page->used);
		/* It comes before the others, so it is not the next to be emptied. */
		if (page->used < class->cells)
			list_append(class->pages.next, link);
	}
	pthread_mutex_unlock(&pool->lock);
}
