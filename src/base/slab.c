/* SPDX-License-Identifier: MIT */
/*
 * A slab is chunks of free blocks with stripes in front, from which threads take, and bins, by
 * which they give back.
 *
 * Invariants:
 *   a block is in one place: in use, in a bin, in a stripe, or free in its chunk
 *   a chunk is in the list of what it is good for, but while a thread prepares it
 *   present is the sum of the chunks'; held is present and the headers, in bytes
 *   empty is the number of empty pages; pages on their way to the system are not empty
 *   out is the number of blocks that are not free in a chunk, less those whose pages are going
 *     back to the system
 *
 * Ownership: a stripe belongs to the thread that set its flag, a bin to its thread. The chunks
 * are under the lock. While a thread gives pages back, their blocks are in use by it.
 *
 * The threads that set timers take blocks, the owner and the workers give them back. With glibc,
 * malloc and free in different threads cost 110 to 230 ns a pair; the slab costs about 10.
 *
 * A thread takes a block from the stripe that its identity selects, under a flag: a stripe has all
 * free blocks of a page, as a mask. If the flag is set, the thread goes on to the next stripe and
 * does not wait, so a thread that is descheduled inside a stripe delays no other. A thread that
 * gives back collects blocks in its bin and passes them to their chunks together. If the lock is
 * taken, it keeps them, because the owner must not wait.
 *
 * Chunks are 2 MiB, so that the kernel can back each with a huge page: a million timers touched at
 * random miss the TLB otherwise. A small slab touches only the used part of its first chunk. A new
 * huge page costs the kernel about 100 us: one thread prepares it, under no lock that others need
 * to take or give blocks of other chunks.
 *
 * Present pages are used before absent ones, those in chunks that are in use before new chunks. A
 * thread that empties pages gives some back to the system if more than an eighth of the slab's are
 * empty, unless another one does so: row after row, with absent pages between the empty ones, so
 * that rows are long. Meanwhile the row is in use by the thread. A chunk gives all its rows back,
 * and then the next one does. A chunk that gives back a part has small pages from then on, so that
 * the kernel does not fill the gap with a huge page; when all of it is absent and it is used again,
 * it gets one.
 *
 * Under AddressSanitizer every block comes from malloc and goes to free, so that it detects uses
 * after free, and leaks.
 */
#include "slab.h"

#include <assert.h>
#include <stdint.h>

#include "counter.h"
#include "pages.h"
#include "thread.h"

/* Empty pages that a slab keeps, beside an eighth of its present pages. The model checker sets
 * fewer. */
#ifndef EMPTY_PAGES_KEPT
#define EMPTY_PAGES_KEPT 64
#endif

enum { STRIPE_BLOCKS = SLAB_STRIPE_PAGES }; /* a refill ends when a stripe has that many blocks */

_Static_assert(sizeof(struct chunk) <= CHUNK_FIRST * CHUNK_PAGE, "the header has its pages");

void slab_init(struct slab *slab, size_t block_size, const struct slab_hooks *hooks)
{
	*slab = (struct slab){
		.block_size = block_size, .recycles = !SANITIZER_ADDRESS || hooks, .hooks = hooks};
	slab->reciprocal = (uint32_t)(65535 / block_size) + 1;
	slab->step = pages_size() > CHUNK_PAGE ? pages_size() / CHUNK_PAGE : 1;
	assert(CHUNK_PAGE / block_size >= 1 && CHUNK_PAGE / block_size <= CHUNK_PAGE_BLOCKS);
	for (int i = 0; i < SLAB_LISTS; i++)
		list_init(&slab->chunks[i]);
	pthread_mutex_init(&slab->lock, NULL);
	pthread_mutex_init(&slab->growth, NULL);
}

void slab_destroy(struct slab *slab)
{
	struct list *link;

	for (int i = 0; i < SLAB_LISTS; i++)
		while ((link = list_take_first(&slab->chunks[i])))
			pages_unmap_aligned(list_entry(link, struct chunk, link), CHUNK_SIZE);
	pthread_mutex_destroy(&slab->growth);
	pthread_mutex_destroy(&slab->lock);
}

/* ---- Sets of pages ---- */

static bool pages_have(const uint64_t *set, size_t page)
{
	return set[page / 64] >> page % 64 & 1;
}

/* Adds a page that is not in the set, or removes one that is. */
static void pages_flip(uint64_t *set, size_t page)
{
	set[page / 64] ^= (uint64_t)1 << page % 64;
}

/* Returns the first page of a set that is not empty. */
static size_t pages_first(const uint64_t *set)
{
	size_t word = 0;

	while (set[word] == 0)
		word++;
	return word * 64 + (size_t)__builtin_ctzll(set[word]);
}

/* ---- Chunks; the caller has the lock ---- */

static char *chunk_page(const struct chunk *chunk, size_t page)
{
	return (char *)chunk + page * CHUNK_PAGE;
}

static bool chunk_has_absent(const struct chunk *chunk)
{
	return chunk->present < CHUNK_PAGES - CHUNK_FIRST;
}

/* Returns the first chunk of a list, or NULL. */
static struct chunk *slab_first(const struct slab *slab, enum slab_list list)
{
	struct list *first = slab->chunks[list].next;

	return first == &slab->chunks[list] ? NULL : list_entry(first, struct chunk, link);
}

static enum slab_list chunk_list(const struct chunk *chunk)
{
	if (chunk->usable_count > 0)
		return SLAB_USABLE;
	if (!chunk_has_absent(chunk))
		return SLAB_FULL;
	return chunk->present == 0 && chunk->number > 0 ? SLAB_BLANK : SLAB_SPARSE;
}

/* Lists a chunk, which is in no list, as the first of its kind. */
static void slab_list(struct slab *slab, struct chunk *chunk)
{
	list_append(slab->chunks[chunk_list(chunk)].next, &chunk->link);
}

static void slab_list_again(struct slab *slab, struct chunk *chunk)
{
	list_remove(&chunk->link);
	slab_list(slab, chunk);
}

/* Counts `more` present pages of the chunk; a negative number subtracts. */
static void slab_count(struct slab *slab, struct chunk *chunk, int more)
{
	chunk->present += (uint32_t)more;
	slab->present += (size_t)more;
	counter_add(&slab->held, (uint64_t)more * CHUNK_PAGE);
}

/* ---- Growth ---- */

/* Returns a new chunk, all of it absent, or NULL if out of memory or the hook refuses it. */
static struct chunk *slab_new_chunk(struct slab *slab, size_t number)
{
	struct chunk *chunk = pages_map_aligned(CHUNK_SIZE, CHUNK_SIZE);

	if (!chunk)
		return NULL;
	/* A small slab touches only what it uses. */
	pages_use_huge(chunk, CHUNK_SIZE, number > 0);
	chunk->is_small = number == 0;
	chunk->number = number;
	chunk->rows_from = CHUNK_FIRST;
	chunk->all = UINT64_MAX >> (64 - CHUNK_PAGE / slab->block_size);
	for (size_t page = CHUNK_FIRST; page < CHUNK_PAGES; page++) {
		chunk->free[page] = chunk->all;
		pages_flip(chunk->absent, page);
	}
	if (!slab->hooks || slab->hooks->begin(slab->hooks->argument, chunk))
		return chunk;
	pages_unmap_aligned(chunk, CHUNK_SIZE);
	return NULL;
}

/* Makes all pages of a chunk present; they are absent. Under the lock. */
static void slab_fill(struct slab *slab, struct chunk *chunk)
{
	for (size_t i = 0; i < CHUNK_WORDS; i++) {
		chunk->usable[i] = chunk->absent[i];
		chunk->absent[i] = 0;
	}
	chunk->usable_count = CHUNK_PAGES - CHUNK_FIRST;
	slab->empty += chunk->usable_count;
	slab_count(slab, chunk, CHUNK_PAGES - CHUNK_FIRST);
}

/* Makes a blank chunk, or a new one, present. The caller has `growth` and the lock, which it has
 * given up meanwhile. Returns false if out of memory. */
static bool slab_prepare(struct slab *slab)
{
	struct chunk *chunk = slab_first(slab, SLAB_BLANK);
	size_t number = slab->chunk_count;

	if (chunk)
		list_remove(&chunk->link);
	pthread_mutex_unlock(&slab->lock);
	if (chunk)
		number = chunk->number;
	else
		chunk = slab_new_chunk(slab, number);
	if (chunk && number > 0) {
		pages_make_huge(chunk, CHUNK_SIZE);
		chunk->is_small = false;
	}
	pthread_mutex_lock(&slab->lock);
	if (!chunk)
		return false;
	if (number == slab->chunk_count) {
		slab->chunk_count++;
		counter_add(&slab->held, CHUNK_FIRST * CHUNK_PAGE);
	}
	if (number > 0)
		slab_fill(slab, chunk);
	slab_list(slab, chunk);
	return true;
}

/* Gets blocks for the caller, which has the lock and gets it back. Returns false if out of
 * memory. */
static bool slab_grow(struct slab *slab)
{
	bool has_grown;

	pthread_mutex_unlock(&slab->lock);
	pthread_mutex_lock(&slab->growth);
	pthread_mutex_lock(&slab->lock);
	has_grown = slab_first(slab, SLAB_USABLE) || slab_first(slab, SLAB_SPARSE) ||
		    slab_prepare(slab);
	pthread_mutex_unlock(&slab->growth);
	return has_grown;
}

/* ---- Taking ---- */

/* Takes the free blocks of the page with the lowest address, a usable one if there is one, else an
 * absent one. Returns false if there is no chunk to take from. */
static bool slab_take_page(struct slab *slab, struct chunk_blocks *blocks)
{
	struct chunk *chunk = slab_first(slab, SLAB_USABLE);
	bool is_absent = !chunk;
	size_t page;

	if (!chunk && !(chunk = slab_first(slab, SLAB_SPARSE)))
		return false;
	page = pages_first(is_absent ? chunk->absent : chunk->usable);
	blocks->page = chunk_page(chunk, page);
	blocks->mask = chunk->free[page];
	chunk->free[page] = 0;
	pages_flip(is_absent ? chunk->absent : chunk->usable, page);
	if (is_absent) {
		slab_count(slab, chunk, 1);
	} else {
		slab->empty -= blocks->mask == chunk->all;
		chunk->usable_count--;
	}
	if (is_absent ? !chunk_has_absent(chunk) : chunk->usable_count == 0)
		slab_list_again(slab, chunk);
	return true;
}

/* Refills an empty stripe, if there is memory. */
static void slab_refill(struct slab *slab, struct slab_stripe *stripe)
{
	unsigned blocks = 0;

	pthread_mutex_lock(&slab->lock);
	while (!slab_take_page(slab, &stripe->blocks))
		if (!slab_grow(slab))
			break;
	blocks = (unsigned)__builtin_popcountll(stripe->blocks.mask);
	/* Pages that have few free blocks come together. */
	while (blocks > 0 && blocks < STRIPE_BLOCKS && slab_first(slab, SLAB_USABLE) &&
	       slab_take_page(slab, &stripe->more[stripe->count]))
		blocks += (unsigned)__builtin_popcountll(stripe->more[stripe->count++].mask);
	counter_add(&slab->out, blocks);
	pthread_mutex_unlock(&slab->lock);
}

static inline bool slab_try_stripe(struct slab_stripe *stripe)
{
	/* acquire: sees the last user's blocks; pairs with the release in slab_leave_stripe(). */
	return !atomic_exchange_explicit(&stripe->busy, true, memory_order_acquire);
}

/* Enters the first free stripe behind stripe `first`, which another thread has. */
static __attribute__((noinline)) struct slab_stripe *slab_enter_other_stripe(struct slab *slab,
									     size_t first)
{
	unsigned tries = 0;

	for (size_t i = first + 1;; i++) {
		struct slab_stripe *stripe = &slab->stripes[i % SLAB_STRIPES];

		if (slab_try_stripe(stripe))
			return stripe;
		if ((i - first) % SLAB_STRIPES == 0)
			thread_back_off(&tries);
	}
}

/* Enters this thread's stripe, or the next one that is free. */
static struct slab_stripe *slab_enter_stripe(struct slab *slab)
{
	uint64_t thread = (uint64_t)(uintptr_t)pthread_self();
	/* The multiplier spreads 16 threads, with stacks of 16 KiB to 16 MiB and a guard page or
	 * none, over 12 stripes or more on average. The golden ratio's spreads those of 8 MiB and a
	 * guard page, the C library's default, over 5. */
	size_t first = (size_t)(thread * 0xb654f3cf1f1854edu >> 60);
	struct slab_stripe *stripe = &slab->stripes[first];

	return slab_try_stripe(stripe) ? stripe : slab_enter_other_stripe(slab, first);
}

static void slab_leave_stripe(struct slab_stripe *stripe)
{
	/* release: hands the blocks on; pairs with the acquire in slab_try_stripe(). */
	atomic_store_explicit(&stripe->busy, false, memory_order_release);
}

/* Takes a block of the stripe, which must have one. */
static void *stripe_take(const struct slab *slab, struct slab_stripe *stripe)
{
	uint64_t mask = stripe->blocks.mask;

	stripe->blocks.mask = mask & (mask - 1);
	return stripe->blocks.page + (size_t)__builtin_ctzll(mask) * slab->block_size;
}

/* Takes a block where the page in use has none left, and leaves the stripe. */
static __attribute__((noinline)) void *slab_take_refilled(struct slab *slab,
							  struct slab_stripe *stripe)
{
	void *block = NULL;

	if (!slab->recycles) {
		slab_leave_stripe(stripe);
		return aligned_alloc(slab->block_size & -slab->block_size, slab->block_size);
	}
	if (stripe->count > 0) {
		stripe->count--;
		stripe->blocks.page = stripe->more[stripe->count].page;
		stripe->blocks.mask = stripe->more[stripe->count].mask;
	} else {
		slab_refill(slab, stripe);
	}
	if (stripe->blocks.mask != 0)
		block = stripe_take(slab, stripe);
	slab_leave_stripe(stripe);
	return block;
}

void *slab_take(struct slab *slab)
{
	struct slab_stripe *stripe = slab_enter_stripe(slab);
	void *block;

	if (stripe->blocks.mask == 0)
		return slab_take_refilled(slab, stripe);
	block = stripe_take(slab, stripe);
	slab_leave_stripe(stripe);
	return block;
}

/* ---- Giving pages back to the system ---- */

/* A row of empty and absent pages, first to end - 1, on its way to the system. */
struct slab_row {
	struct chunk *chunk;
	size_t first;
	size_t end;
	size_t empty; /* the number of these */
	uint64_t absent[CHUNK_WORDS];
	bool makes_small; /* the kernel is to use small pages from now on */
};

/* Returns whether empty pages are to go back. Under the lock. */
static bool slab_has_surplus(const struct slab *slab)
{
	return slab->empty > EMPTY_PAGES_KEPT + slab->present / 8 && slab_first(slab, SLAB_USABLE);
}

/* Finds the chunk's next row. It has an empty page, and begins and ends at multiples of `step`, a
 * power of two. Returns false if there is none. Under the lock. */
static bool slab_find_row(struct chunk *chunk, size_t step, struct slab_row *row)
{
	size_t first = chunk->rows_from;
	bool has_empty = false;

	row->chunk = chunk;
	for (size_t page = first; page < CHUNK_PAGES || has_empty; page++) {
		if (page < CHUNK_PAGES && chunk->free[page] == chunk->all) {
			has_empty |= !pages_have(chunk->absent, page);
			continue;
		}
		if (has_empty) {
			row->first = (first + step - 1) & -step;
			row->end = page & -step;
			chunk->rows_from = (uint32_t)page;
			if (row->first < row->end)
				return true;
		}
		first = page + 1;
		has_empty = false;
	}
	chunk->rows_from = CHUNK_FIRST;
	return false;
}

/* Takes the pages of a row: nobody takes or gives their blocks until slab_end_row(). Under the
 * lock. */
static void slab_begin_row(struct slab *slab, struct slab_row *row)
{
	struct chunk *chunk = row->chunk;

	row->empty = 0;
	row->makes_small = !chunk->is_small;
	chunk->is_small = true;
	for (size_t i = 0; i < CHUNK_WORDS; i++)
		row->absent[i] = chunk->absent[i];
	for (size_t page = row->first; page < row->end; page++) {
		bool is_absent = pages_have(row->absent, page);

		chunk->free[page] = 0;
		pages_flip(is_absent ? chunk->absent : chunk->usable, page);
		row->empty += !is_absent;
	}
	slab->empty -= row->empty;
	slab_count(slab, chunk, (int)(row->end - row->first - row->empty));
	chunk->usable_count -= (uint32_t)row->empty;
	if (chunk->usable_count == 0)
		slab_list_again(slab, chunk);
}

/* Gives a row back to the system. Returns whether it is absent now. Under no lock. */
static bool slab_release_row(const struct slab *slab, const struct slab_row *row)
{
	/* Keeps the kernel from filling the gap with a huge page again. */
	if (row->makes_small)
		pages_use_huge(row->chunk, CHUNK_SIZE, false);
	for (size_t page = row->first; slab->hooks && page < row->end; page++)
		if (!pages_have(row->absent, page) &&
		    !slab->hooks->forget(slab->hooks->argument, row->chunk,
					 chunk_page(row->chunk, page)))
			return false;
	return pages_release(chunk_page(row->chunk, row->first),
			     (row->end - row->first) * CHUNK_PAGE);
}

/* Makes all of a row absent if it is gone, else leaves it as it was. Under the lock. */
static void slab_end_row(struct slab *slab, const struct slab_row *row, bool is_gone)
{
	struct chunk *chunk = row->chunk;
	size_t empty = is_gone ? 0 : row->empty;
	bool was_usable = chunk->usable_count > 0;

	for (size_t page = row->first; page < row->end; page++) {
		chunk->free[page] = chunk->all;
		pages_flip(is_gone || pages_have(row->absent, page) ? chunk->absent : chunk->usable,
			   page);
	}
	slab->empty += empty;
	slab_count(slab, chunk, -(int)(row->end - row->first - empty));
	chunk->usable_count += (uint32_t)empty;
	if (!was_usable)
		slab_list_again(slab, chunk);
}

/* ---- Giving blocks back ---- */

/* Counts a page of the chunk that has got its first free block, or its last. Under the lock. */
static __attribute__((noinline)) void slab_give_page(struct slab *slab, struct chunk *chunk,
						     size_t page, uint64_t free_before)
{
	slab->empty += chunk->free[page] == chunk->all;
	if (free_before != 0)
		return;
	pages_flip(chunk->usable, page);
	if (chunk->usable_count++ == 0)
		slab_list_again(slab, chunk);
}

/* Gives a block back to its chunk. Under the lock. */
static inline void slab_give_block(struct slab *slab, void *block)
{
	struct chunk *chunk = chunk_of(block);
	size_t offset = (uintptr_t)block & (CHUNK_SIZE - 1);
	size_t slot = offset % CHUNK_PAGE * slab->reciprocal >> 16;
	uint64_t *free = &chunk->free[offset / CHUNK_PAGE];
	uint64_t before = *free;

	*free = before | (uint64_t)1 << slot;
	if (before == 0 || *free == chunk->all)
		slab_give_page(slab, chunk, offset / CHUNK_PAGE, before);
}

/* Gives the bin's blocks back to their chunks. Returns their number. Under the lock. */
static unsigned slab_empty_bin(struct slab *slab, struct slab_bin *bin)
{
	unsigned count = bin->count;

	for (unsigned i = 0; i < count; i++)
		slab_give_block(slab, bin->blocks[i]);
	for (void *block = bin->more; block; block = bin->more, count++) {
		bin->more = *(void **)block;
		slab_give_block(slab, block);
	}
	bin->count = 0;
	counter_subtract(&slab->out, count);
	return count;
}

/* Gives up to `most` rows of pages back while too many are empty, unless no chunk has one that may
 * go, or another thread does so. Under the lock, which it gives up. */
static __attribute__((noinline)) void slab_release_surplus(struct slab *slab, struct slab_bin *bin,
							   size_t most)
{
	bool releases = !slab->releases;
	size_t in_vain = 0;

	slab->releases = true;
	while (releases && most-- > 0 && in_vain <= slab->chunk_count && slab_has_surplus(slab)) {
		/* It is the last one until it has no row left. */
		struct list *last = slab->chunks[SLAB_USABLE].previous;
		struct slab_row row;
		bool is_gone = false;

		if (slab_find_row(list_entry(last, struct chunk, link), slab->step, &row)) {
			slab_begin_row(slab, &row);
			pthread_mutex_unlock(&slab->lock);
			is_gone = slab_release_row(slab, &row) && row.empty > 0;
			pthread_mutex_lock(&slab->lock);
			slab_end_row(slab, &row, is_gone);
		}
		in_vain = is_gone ? 0 : in_vain + 1;
		if (!is_gone)
			slab_list_again(slab, row.chunk);
	}
	if (releases)
		slab->releases = false;
	bin->has_left = slab_has_surplus(slab);
	pthread_mutex_unlock(&slab->lock);
}

void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin, void *block)
{
	*(void **)block = bin->more;
	bin->more = block;
	/* About as many pages may have become empty as it gives back. */
	if (pthread_mutex_trylock(&slab->lock) == 0)
		slab_release_surplus(slab, bin, slab_empty_bin(slab, bin));
}

void slab_flush(struct slab *slab, struct slab_bin *bin)
{
	if (bin->count == 0 && !bin->has_left)
		return;
	pthread_mutex_lock(&slab->lock);
	(void)slab_empty_bin(slab, bin);
	/* Pages of a chunk that one thread gives back are left to it by the others. */
	slab_release_surplus(slab, bin, SIZE_MAX);
}

/* ---- Asking ---- */

struct chunk_used slab_find_used(struct slab *slab, const struct chunk *chunk, size_t number)
{
	bool is_locked = pthread_mutex_trylock(&slab->lock) == 0;
	struct chunk_used used = {number, 0};

	if (number < CHUNK_FIRST * CHUNK_PAGE_BLOCKS)
		used.number = CHUNK_FIRST * CHUNK_PAGE_BLOCKS;
	while (used.number < CHUNK_NUMBERS) {
		size_t page = used.number / CHUNK_PAGE_BLOCKS;
		uint64_t mask = is_locked ? chunk->all & ~chunk->free[page] : chunk->all;

		used.mask = mask >> used.number % CHUNK_PAGE_BLOCKS;
		if (used.mask != 0)
			break;
		used.number = (page + 1) * CHUNK_PAGE_BLOCKS;
	}
	if (is_locked)
		pthread_mutex_unlock(&slab->lock);
	return used;
}

struct slab_use slab_use(const struct slab *slab)
{
	return (struct slab_use){.held = counter_read(&slab->held),
				 .in_use = counter_read(&slab->out) * slab->block_size};
}
