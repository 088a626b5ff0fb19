/* SPDX-License-Identifier: MIT */
/*
 * A slab is chunks of free blocks with stripes in front, from which threads take, and bins, by
 * which they give back.
 *
 * Invariants:
 *   a block is in one place: in use, in a bin, in a stripe, or free in its chunk
 *   a chunk is in the list of what it is good for
 *   a page on its way to the system is present, and neither usable nor empty
 *   present and empty are the sums of the chunks'; held is present and the headers, in bytes
 *   out is the number of blocks that are not free in a chunk
 *   when no thread gives blocks back, empty is at most EMPTY_PAGES_KEPT and an eighth of present
 *
 * Ownership: a stripe belongs to the thread that has its lock, a bin to its thread. The chunks are
 * under the slab's lock, except pages on their way to the system, which are their thread's.
 *
 * The threads that set timers take blocks, the owner and the workers give them back. With glibc,
 * malloc and free in different threads cost 110 to 230 ns a pair; the slab costs about 10.
 *
 * A thread takes a block from the stripe that its identity selects: a stripe has all free blocks of
 * a page, as a mask. If its lock is taken, the thread goes on to the next stripe and does not wait,
 * so a thread that is descheduled inside a stripe delays no other. A thread that gives back
 * collects blocks in its bin and passes them to their chunks together. If the slab's lock is taken,
 * it keeps them, because the owner must not wait.
 *
 * Chunks are 2 MiB, so that the kernel can back each with a huge page: a million timers touched at
 * random miss the TLB otherwise. A small slab touches only the used part of its first chunk. A new
 * huge page costs the kernel about 100 us. It is prepared under the lock: a thread that needs it
 * waits in any case, and one that gives blocks back keeps them.
 *
 * Present pages are used before absent ones, those in chunks that are in use before new chunks.
 * A thread that passes blocks on gives empty pages back to the system while these are too many: 64
 * pages at a time at most, all of a chunk before those of the next. Pages that stay, as the hook or
 * the system refuses, count as empty again when they have been used again. A chunk that gives
 * pages back has small pages from then on, so that the kernel does not fill the gap with a huge
 * page; when all of it is absent and it is used again, it gets one.
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
	slab->unit = pages_size() > CHUNK_PAGE ? pages_size() / CHUNK_PAGE : 1;
	assert(CHUNK_PAGE / block_size >= 1 && CHUNK_PAGE / block_size <= CHUNK_PAGE_BLOCKS);
	for (int i = 0; i < SLAB_LISTS; i++)
		list_init(&slab->chunks[i]);
	pthread_mutex_init(&slab->lock, NULL);
}

void slab_destroy(struct slab *slab)
{
	struct list *link;

	for (int i = 0; i < SLAB_LISTS; i++)
		while ((link = list_take_first(&slab->chunks[i])))
			pages_unmap_aligned(list_entry(link, struct chunk, link), CHUNK_SIZE);
	pthread_mutex_destroy(&slab->lock);
}

/* ---- Chunks and their sets of pages; the caller has the lock ---- */

static bool pages_have(const struct chunk *chunk, enum page_set set, size_t page)
{
	return chunk->sets[page / 64][set] >> page % 64 & 1;
}

/* Adds pages, which are not in the set, and lie in one word of it. */
static void pages_add(struct chunk *chunk, enum page_set set, size_t first, size_t count)
{
	chunk->sets[first / 64][set] |= UINT64_MAX >> (64 - count) << first % 64;
	chunk->counts[set] += (uint32_t)count;
}

/* Removes pages, which are in the set, and lie in one word of it. */
static void pages_remove(struct chunk *chunk, enum page_set set, size_t first, size_t count)
{
	chunk->sets[first / 64][set] &= ~(UINT64_MAX >> (64 - count) << first % 64);
	chunk->counts[set] -= (uint32_t)count;
}

/* Returns the first page of a set that is not empty. */
static size_t pages_first(const struct chunk *chunk, enum page_set set)
{
	size_t word = 0;

	while (chunk->sets[word][set] == 0)
		word++;
	return word * 64 + (size_t)__builtin_ctzll(chunk->sets[word][set]);
}

static char *chunk_page(const struct chunk *chunk, size_t page)
{
	return (char *)chunk + page * CHUNK_PAGE;
}

/* Returns the first chunk of a list, or NULL. */
static struct chunk *slab_first(const struct slab *slab, enum slab_list list)
{
	struct list *first = slab->chunks[list].next;

	return first == &slab->chunks[list] ? NULL : list_entry(first, struct chunk, link);
}

static enum slab_list chunk_list(const struct chunk *chunk)
{
	if (chunk->counts[PAGES_EMPTY] > 0)
		return SLAB_EMPTY;
	if (chunk->counts[PAGES_USABLE] > 0)
		return SLAB_USABLE;
	if (chunk->counts[PAGES_ABSENT] == 0)
		return SLAB_FULL;
	return chunk->present == 0 && chunk->number > 0 ? SLAB_BLANK : SLAB_SPARSE;
}

/* Lists a chunk, which is in no list, as the first of its kind. */
static void slab_list(struct slab *slab, struct chunk *chunk)
{
	chunk->list = chunk_list(chunk);
	list_append(slab->chunks[chunk->list].next, &chunk->link);
}

/* Lists a chunk again whose pages have changed. */
static void slab_list_again(struct slab *slab, struct chunk *chunk)
{
	if (chunk->list == chunk_list(chunk))
		return;
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

/* ---- Growth; the caller has the lock ---- */

/* Returns a new chunk, all of it absent, or NULL if out of memory or the hook refuses it. */
static struct chunk *slab_new_chunk(struct slab *slab)
{
	struct chunk *chunk = pages_map_aligned(CHUNK_SIZE, CHUNK_SIZE);

	if (!chunk)
		return NULL;
	chunk->number = slab->chunk_count;
	/* A small slab touches only what it uses. */
	chunk->is_small = chunk->number == 0;
	pages_use_huge(chunk, CHUNK_SIZE, !chunk->is_small);
	chunk->all = UINT64_MAX >> (64 - CHUNK_PAGE / slab->block_size);
	for (size_t page = 0; page < CHUNK_PAGES; page++) {
		chunk->free[page] = chunk->all;
		if (page >= CHUNK_FIRST && page >= slab->unit)
			pages_add(chunk, PAGES_ABSENT, page, 1);
	}
	if (slab->hooks && !slab->hooks->begin(slab->hooks->argument, chunk)) {
		pages_unmap_aligned(chunk, CHUNK_SIZE);
		return NULL;
	}
	slab->chunk_count++;
	counter_add(&slab->held, CHUNK_FIRST * CHUNK_PAGE);
	slab_list(slab, chunk);
	return chunk;
}

/* Makes all pages of a blank chunk present. */
static void slab_fill(struct slab *slab, struct chunk *chunk)
{
	uint32_t count = chunk->counts[PAGES_ABSENT];

	pages_make_huge(chunk, CHUNK_SIZE);
	chunk->is_small = false;
	for (size_t i = 0; i < CHUNK_WORDS; i++) {
		uint64_t *sets = chunk->sets[i];

		sets[PAGES_EMPTY] = sets[PAGES_USABLE] = sets[PAGES_ABSENT];
		sets[PAGES_ABSENT] = 0;
	}
	chunk->counts[PAGES_EMPTY] = chunk->counts[PAGES_USABLE] = count;
	chunk->counts[PAGES_ABSENT] = 0;
	slab->empty += count;
	slab_count(slab, chunk, (int)count);
	slab_list_again(slab, chunk);
}

/* Returns the first chunk that has free blocks, or NULL. */
static struct chunk *slab_first_free(const struct slab *slab)
{
	struct chunk *chunk = NULL;

	for (int list = SLAB_USABLE; list <= SLAB_SPARSE && !chunk; list++)
		chunk = slab_first(slab, (enum slab_list)list);
	return chunk;
}

/* Returns a chunk that has free blocks, else a blank or a new one, or NULL if out of
 * memory. */
static struct chunk *slab_find_free(struct slab *slab)
{
	struct chunk *chunk = slab_first_free(slab);

	if (!chunk)
		chunk = slab_first(slab, SLAB_BLANK);
	if (!chunk)
		chunk = slab_new_chunk(slab);
	if (chunk && chunk->list == SLAB_BLANK)
		slab_fill(slab, chunk);
	return chunk;
}

/* ---- Taking ---- */

/* Takes the free blocks of the chunk's first usable page, or of its first absent one. Under the
 * lock. */
static void slab_take_page(struct slab *slab, struct chunk *chunk, struct chunk_blocks *blocks)
{
	bool is_absent = chunk->list == SLAB_SPARSE;
	size_t page = pages_first(chunk, is_absent ? PAGES_ABSENT : PAGES_USABLE);
	size_t unit = slab->unit;

	/* The system gives and takes whole pages of its own. */
	if (is_absent) {
		pages_remove(chunk, PAGES_ABSENT, page & -unit, unit);
		pages_add(chunk, PAGES_USABLE, page & -unit, unit);
		slab_count(slab, chunk, (int)unit);
	} else if (pages_have(chunk, PAGES_EMPTY, page)) {
		pages_remove(chunk, PAGES_EMPTY, page & -unit, unit);
		slab->empty -= unit;
	}
	blocks->page = chunk_page(chunk, page);
	blocks->mask = chunk->free[page];
	chunk->free[page] = 0;
	pages_remove(chunk, PAGES_USABLE, page, 1);
	slab_list_again(slab, chunk);
}

/* Refills an empty stripe, if there is memory. */
static void slab_refill(struct slab *slab, struct slab_stripe *stripe)
{
	struct chunk *chunk;
	unsigned blocks = 0;

	pthread_mutex_lock(&slab->lock);
	chunk = slab_find_free(slab);
	/* Pages that have few free blocks come together. */
	for (struct chunk_blocks *to = &stripe->blocks; chunk;
	     to = &stripe->more[stripe->count++]) {
		slab_take_page(slab, chunk, to);
		blocks += (unsigned)__builtin_popcountll(to->mask);
		if (blocks >= STRIPE_BLOCKS || !(chunk = slab_first_free(slab)) ||
		    chunk->list == SLAB_SPARSE)
			break;
	}
	counter_add(&slab->out, blocks);
	pthread_mutex_unlock(&slab->lock);
}

/* Takes the lock of the first stripe behind stripe `first`, which another thread has. */
static __attribute__((noinline)) struct slab_stripe *slab_enter_other_stripe(struct slab *slab,
									     size_t first)
{
	unsigned tries = 0;

	for (size_t i = first + 1;; i++) {
		struct slab_stripe *stripe = &slab->stripes[i % SLAB_STRIPES];

		if (own_lock_try(&stripe->lock))
			return stripe;
		if ((i - first) % SLAB_STRIPES == 0)
			thread_back_off(&tries);
	}
}

/* Takes the lock of this thread's stripe, or of the next one that is free. */
static struct slab_stripe *slab_enter_stripe(struct slab *slab)
{
	uint64_t thread = (uint64_t)(uintptr_t)pthread_self();
	/* The multiplier spreads 16 threads, with stacks of 16 KiB to 16 MiB and a guard page or
	 * none, over 12 stripes or more on average. The golden ratio's spreads those of 8 MiB and a
	 * guard page, the C library's default, over 5. */
	size_t first = (size_t)(thread * 0xb654f3cf1f1854edu >> 60);
	struct slab_stripe *stripe = &slab->stripes[first];

	return own_lock_try(&stripe->lock) ? stripe : slab_enter_other_stripe(slab, first);
}

/* Takes a block of the stripe, which must have one. */
static void *stripe_take(const struct slab *slab, struct slab_stripe *stripe)
{
	uint64_t mask = stripe->blocks.mask;

	stripe->blocks.mask = mask & (mask - 1);
	return stripe->blocks.page + (size_t)__builtin_ctzll(mask) * slab->block_size;
}

/* Takes a block where the page in use has none left, and lets the stripe go. */
static __attribute__((noinline)) void *slab_take_refilled(struct slab *slab,
							  struct slab_stripe *stripe)
{
	void *block = NULL;

	if (!slab->recycles) {
		own_lock_let_go(&stripe->lock);
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
	own_lock_let_go(&stripe->lock);
	return block;
}

void *slab_take(struct slab *slab)
{
	struct slab_stripe *stripe = slab_enter_stripe(slab);
	void *block;

	if (stripe->blocks.mask == 0)
		return slab_take_refilled(slab, stripe);
	block = stripe_take(slab, stripe);
	own_lock_let_go(&stripe->lock);
	return block;
}

/* ---- Giving back ---- */

/* Counts a page of the chunk that has got its first free block, or its last. Under the lock. */
static __attribute__((noinline)) void slab_give_page(struct slab *slab, struct chunk *chunk,
						     size_t page, uint64_t free_before)
{
	size_t first = page & -slab->unit; /* the first page of the system's one */
	size_t end = first;

	if (free_before == 0)
		pages_add(chunk, PAGES_USABLE, page, 1);
	while (end < first + slab->unit && chunk->free[end] == chunk->all)
		end++;
	if (end == first + slab->unit) {
		pages_add(chunk, PAGES_EMPTY, first, slab->unit);
		slab->empty += slab->unit;
	}
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

/* Takes up to 64 empty pages of the chunk, which has some, out of its sets: a row. Returns their
 * number. Under the lock. */
static size_t slab_begin_row(struct slab *slab, struct chunk *chunk, size_t *first)
{
	size_t page = pages_first(chunk, PAGES_EMPTY);
	size_t end = page;

	*first = page;
	do
		end++;
	while (end % 64 != 0 && end < CHUNK_PAGES && pages_have(chunk, PAGES_EMPTY, end));
	pages_remove(chunk, PAGES_EMPTY, page, end - page);
	pages_remove(chunk, PAGES_USABLE, page, end - page);
	slab->empty -= end - page;
	slab_list_again(slab, chunk);
	return end - page;
}

/* Gives a row back to the system. Returns whether it is absent now. Under no lock. */
static bool slab_release(const struct slab *slab, struct chunk *chunk, size_t first, size_t count)
{
	const struct slab_hooks *hooks = slab->hooks;

	for (size_t page = first; hooks && page < first + count; page++)
		if (!hooks->forget(hooks->argument, chunk, chunk_page(chunk, page)))
			return false;
	return pages_release(chunk_page(chunk, first), count * CHUNK_PAGE);
}

/* Gives a row of empty pages back to the system. There must be one. Under the lock, which it gives
 * up meanwhile. */
static void slab_release_row(struct slab *slab)
{
	/* It is the last one until it has none left. */
	struct list *last = slab->chunks[SLAB_EMPTY].previous;
	struct chunk *chunk = list_entry(last, struct chunk, link);
	bool is_small = chunk->is_small;
	size_t first;
	size_t count = slab_begin_row(slab, chunk, &first);
	bool is_gone;

	chunk->is_small = true;
	pthread_mutex_unlock(&slab->lock);
	if (!is_small)
		pages_use_huge(chunk, CHUNK_SIZE, false);
	is_gone = slab_release(slab, chunk, first, count);
	pthread_mutex_lock(&slab->lock);
	pages_add(chunk, is_gone ? PAGES_ABSENT : PAGES_USABLE, first, count);
	slab_count(slab, chunk, is_gone ? -(int)count : 0);
	slab_list_again(slab, chunk);
}

/* Gives the bin's blocks back to their chunks, and the surplus of empty pages to the system. The
 * caller has the lock, which is let go. */
static void slab_empty_bin(struct slab *slab, struct slab_bin *bin)
{
	size_t count = bin->count;

	for (size_t i = 0; i < bin->count; i++)
		slab_give_block(slab, bin->blocks[i]);
	for (void *block = bin->more; block; block = bin->more, count++) {
		bin->more = *(void **)block;
		slab_give_block(slab, block);
	}
	bin->count = 0;
	counter_subtract(&slab->out, count);
	while (slab->empty > EMPTY_PAGES_KEPT + slab->present / 8)
		slab_release_row(slab);
	pthread_mutex_unlock(&slab->lock);
}

void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin, void *block)
{
	*(void **)block = bin->more;
	bin->more = block;
	if (pthread_mutex_trylock(&slab->lock) == 0)
		slab_empty_bin(slab, bin);
}

void slab_flush(struct slab *slab, struct slab_bin *bin)
{
	if (bin->count == 0)
		return;
	pthread_mutex_lock(&slab->lock);
	slab_empty_bin(slab, bin);
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
