/* SPDX-License-Identifier: MIT */
/*
 * A slab is chunks of free blocks with stripes in front, from which threads take, and bins, by
 * which they give back.
 *
 * Invariants:
 *   a block is in one place: in use, in a bin, in a stripe, or free in its chunk
 *   a chunk is in the list of what it is good for, but while a thread prepares it
 *   present and empty are the sums of the chunks'; held is present and the headers, in bytes
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
 * empty: all of a chunk's, with absent pages between them, so that rows are long. The chunks take
 * turns. A chunk that gives back a part has small pages from then on, so that the kernel does not
 * fill the gap with a huge page; when all of it is absent and it is used again, it gets one.
 *
 * Under AddressSanitizer every block comes from malloc and goes to free, so that it detects uses
 * after free, and leaks.
 */
#include "slab.h"

#include <stdint.h>

#include "counter.h"
#include "pages.h"
#include "thread.h"

/* Empty pages that a slab keeps, beside an eighth of its present pages. The model checker sets
 * fewer. */
#ifndef EMPTY_PAGES_KEPT
#define EMPTY_PAGES_KEPT 64
#endif

enum {
	STRIPE_BLOCKS = SLAB_STRIPE_PAGES, /* a refill ends when a stripe has that many blocks */
	ROWS_AT_ONCE = 32                  /* from one chunk, at most */
};

void slab_init_hooked(struct slab *slab, size_t block_size, const struct slab_hooks *hooks)
{
	*slab = (struct slab){
		.block_size = block_size, .recycles = !SANITIZER_ADDRESS || hooks, .hooks = hooks};
	slab->reciprocal = (uint32_t)(65535 / block_size) + 1;
	for (int i = 0; i < SLAB_LISTS; i++)
		list_init(&slab->chunks[i]);
	pthread_mutex_init(&slab->lock, NULL);
	pthread_mutex_init(&slab->growth, NULL);
}

void slab_init(struct slab *slab, size_t block_size)
{
	slab_init_hooked(slab, block_size, NULL);
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

/* ---- Chunks; the caller has the lock ---- */

/* Returns the first chunk of a list, or NULL. */
static struct chunk *slab_first(const struct slab *slab, enum slab_list list)
{
	struct list *first = slab->chunks[list].next;

	return first == &slab->chunks[list] ? NULL : list_entry(first, struct chunk, link);
}

static enum slab_list chunk_list(const struct chunk *chunk)
{
	if (chunk->is_leaving)
		return SLAB_LEAVING;
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

/* Counts `present` more present pages, and `empty` more empty ones. */
static void slab_count(struct slab *slab, uint32_t present, uint32_t empty)
{
	slab->present += (size_t)(int32_t)present;
	slab->empty += (size_t)(int32_t)empty;
	counter_add(&slab->held, (uint64_t)(int32_t)present * CHUNK_PAGE);
}

/* ---- Growth ---- */

/* Returns a new chunk, all of it absent, or NULL if out of memory or the hook refuses it. */
static struct chunk *slab_new_chunk(struct slab *slab, size_t number)
{
	struct chunk *chunk = pages_map_aligned(CHUNK_SIZE);

	if (!chunk)
		return NULL;
	/* A small slab touches only what it uses. */
	pages_use_huge(chunk, CHUNK_SIZE, number > 0);
	chunk->is_small = number == 0;
	chunk_init(chunk, number, slab->block_size);
	if (!slab->hooks || slab->hooks->begin(slab->hooks->argument, chunk))
		return chunk;
	pages_unmap_aligned(chunk, CHUNK_SIZE);
	return NULL;
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
		chunk_fill(chunk);
	}
	pthread_mutex_lock(&slab->lock);
	if (!chunk)
		return false;
	if (number == slab->chunk_count) {
		slab->chunk_count++;
		counter_add(&slab->held, CHUNK_FIRST * CHUNK_PAGE);
	}
	slab_count(slab, chunk->present, chunk->empty);
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

/* Takes the free blocks of a page. Returns false if there is no chunk to take from. */
static bool slab_take_page(struct slab *slab, struct chunk_blocks *blocks)
{
	struct chunk *chunk = slab_first(slab, SLAB_USABLE);
	bool is_absent = !chunk;
	uint32_t empty;

	if (!chunk && !(chunk = slab_first(slab, SLAB_SPARSE)))
		return false;
	empty = chunk->empty;
	if (is_absent)
		chunk_take_absent(chunk, blocks);
	else
		chunk_take(chunk, blocks);
	slab_count(slab, is_absent, chunk->empty - empty);
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

/* Rows of a chunk on their way to the system. */
struct slab_release {
	struct chunk *chunk;
	unsigned count;
	struct chunk_row rows[ROWS_AT_ONCE];
};

/* Returns whether empty pages are to go back. Under the lock. */
static bool slab_has_surplus(const struct slab *slab)
{
	return slab->empty > EMPTY_PAGES_KEPT + slab->present / 8 && slab_first(slab, SLAB_USABLE);
}

/* Finds rows of the usable chunk that has waited longest. Under the lock. */
static void slab_begin_release(struct slab *slab, struct slab_release *release)
{
	struct chunk *chunk = list_entry(slab->chunks[SLAB_USABLE].previous, struct chunk, link);

	release->chunk = chunk;
	release->count = chunk_find_rows(chunk, release->rows, ROWS_AT_ONCE);
	chunk->is_leaving = true;
	slab->empty -= chunk->empty;
	slab_list_again(slab, chunk);
}

/* Returns whether the hook allows all of a row's present pages to go. */
static bool slab_may_forget(struct slab *slab, struct chunk *chunk, const struct chunk_row *row)
{
	if (!slab->hooks)
		return true;
	for (size_t page = row->first; page < row->end; page++)
		if (chunk_is_present(chunk, page) &&
		    !slab->hooks->forget(slab->hooks->argument, chunk, chunk_page(chunk, page)))
			return false;
	return true;
}

/* Gives rows back to the system. Returns a bit for each that is absent now. Under no lock. */
static uint32_t slab_release_rows(struct slab *slab, const struct slab_release *release)
{
	struct chunk *chunk = release->chunk;
	uint32_t gone = 0;

	/* Keeps the kernel from filling the gaps with a huge page again. */
	if (!chunk->is_small)
		pages_use_huge(chunk, CHUNK_SIZE, false);
	chunk->is_small = true;
	for (unsigned i = 0; i < release->count; i++) {
		const struct chunk_row *row = &release->rows[i];
		size_t size = (size_t)(row->end - row->first) * CHUNK_PAGE;

		if (slab_may_forget(slab, chunk, row) &&
		    pages_release(chunk_page(chunk, row->first), size))
			gone |= (uint32_t)1 << i;
	}
	return gone;
}

/* Makes the rows that are gone absent. Under the lock. */
static void slab_end_release(struct slab *slab, const struct slab_release *release, uint32_t gone)
{
	struct chunk *chunk = release->chunk;
	uint32_t present = chunk->present;

	for (unsigned i = 0; i < release->count; i++)
		if (gone >> i & 1)
			chunk_forget_row(chunk, &release->rows[i]);
	chunk->is_leaving = false;
	slab_count(slab, chunk->present - present, chunk->empty);
	slab_list_again(slab, chunk);
}

/* ---- Giving blocks back ---- */

/* Counts a page of the chunk that has got its first free block, or its last. Under the lock. */
static __attribute__((noinline)) void slab_give_page(struct slab *slab, struct chunk *chunk,
						     size_t page)
{
	uint32_t usable = chunk->usable_count;
	uint32_t empty = chunk->empty;

	chunk_give_page(chunk, page);
	if (!chunk->is_leaving)
		slab->empty += chunk->empty - empty;
	if (usable == 0)
		slab_list_again(slab, chunk);
}

/* Gives a block back to its chunk. Under the lock. */
static inline void slab_give_block(struct slab *slab, void *block)
{
	struct chunk *chunk = chunk_of(block);
	size_t offset = (uintptr_t)block & (CHUNK_SIZE - 1);
	size_t slot = offset % CHUNK_PAGE * slab->reciprocal >> 16;

	if (chunk_give(chunk, offset / CHUNK_PAGE, (uint64_t)1 << slot))
		slab_give_page(slab, chunk, offset / CHUNK_PAGE);
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

/* Gives about `most` rows of pages back while too many are empty, unless no chunk has one that may
 * go. Under the lock, which it gives up. */
static __attribute__((noinline)) void slab_release_surplus(struct slab *slab, struct slab_bin *bin,
							   size_t most)
{
	struct slab_release release;
	size_t in_vain = 0;

	for (size_t rows = 0; rows < most && in_vain <= slab->chunk_count && slab_has_surplus(slab);
	     rows += release.count + 1) {
		uint32_t gone;

		slab_begin_release(slab, &release);
		pthread_mutex_unlock(&slab->lock);
		gone = slab_release_rows(slab, &release);
		pthread_mutex_lock(&slab->lock);
		slab_end_release(slab, &release, gone);
		in_vain = gone ? 0 : in_vain + 1;
	}
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
	struct chunk_used used;

	if (pthread_mutex_trylock(&slab->lock) != 0)
		return chunk_find_any(chunk, number);
	used = chunk_find_used(chunk, number);
	pthread_mutex_unlock(&slab->lock);
	return used;
}

struct slab_use slab_use(const struct slab *slab)
{
	return (struct slab_use){.held = counter_read(&slab->held),
				 .in_use = counter_read(&slab->out) * slab->block_size};
}
