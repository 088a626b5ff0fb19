/* SPDX-License-Identifier: MIT */
/*
 * A slab is a depot of free blocks with stripes in front, from which threads take, and bins, by
 * which they give back.
 *
 * Invariants:
 *   a block is in one place: in use, in a bin, in a stripe, in a magazine of the depot, or free in
 *     its chunk
 *   the slab writes to no free block, except to those that are magazines
 *   a chunk with a free block is in `with_free`; a chunk without is in `used_up`; the spare chunk
 *     is in no list
 *   free_count is the sum of the chunks' free_count; depot_count is the number of the depot's
 *     blocks
 *   out + depot_count + free_count is the number of blocks in the chunks of both lists, less those
 *     whose pages a trim is giving back
 *
 * Who owns what: a stripe belongs to the thread that set its flag, a bin to its thread. The depot
 * and the chunks are under the lock. While a trim gives pages back, their blocks are in use by it.
 *
 * The threads that set timers take blocks, the owner and the workers give them back. With glibc,
 * malloc and free in different threads cost 110 to 230 ns a pair; the slab costs about 10.
 *
 * Blocks travel in magazines (Bonwick, 2001). A magazine is a free block with the addresses of
 * other free blocks in it: 15 blocks of 128 bytes. Threads pass free blocks on without touching
 * them, so the thread that takes one does not wait for lines that another core wrote last.
 *
 * A thread takes a block from the stripe that its identity selects: an unpacked magazine under a
 * flag. If the flag is set, it goes on to the next stripe and does not wait, so a thread that is
 * descheduled inside a stripe delays no other. It refills an empty stripe from the depot, or from a
 * chunk. A thread that gives back fills magazines in its bin and passes them to the depot. If the
 * lock is taken, it keeps them, because the owner must not wait.
 *
 * Chunks are 2 MiB, so that the kernel can back each with a huge page: a million timers touched at
 * random miss the TLB otherwise. A small slab touches only the used part of its first chunk. A new
 * huge page costs the kernel about 100 us: the thread that finds a chunk nearly used up prepares
 * the next one, and no other thread waits for it.
 *
 * A trim gives memory back to the system. The depot's blocks lie scattered over all chunks, so the
 * trim first returns them to their chunks. Then it gives back pages with free blocks only, and
 * chunks with free blocks only. Once the depot is empty, threads take blocks from chunks again,
 * on present and on absent pages.
 *
 * Under AddressSanitizer every block comes from malloc and goes to free, so that it detects uses
 * after free, and leaks.
 */
#include "slab.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"
#include "pages.h"
#include "prefetch.h"
#include "sanitizer.h"
#include "thread.h"

static const bool slab_recycles = !SANITIZER_ADDRESS;

/* The work of one step of a trim: it takes about 50 us. */
enum {
	BLOCKS_A_LOCK = 64,
	LOCKS_A_STEP = 32,
	PAGES_A_STEP = 256,
	PAGES_A_CALL = 64,
	CALL_IN_PAGES = 8 /* fixed cost of a system call or of searching a chunk, in pages */
};

struct slab_magazine {
	struct slab_magazine *next;
	size_t count;
	void *blocks[];
};

static void slab_init_any(struct slab *slab, size_t block_size, size_t room)
{
	size_t others = (room - sizeof(struct slab_magazine)) / sizeof(void *);

	*slab = (struct slab){.block_size = block_size};
	slab->magazine = (unsigned)(others < SLAB_MAGAZINE ? others : SLAB_MAGAZINE - 1);
	list_init(&slab->with_free);
	list_init(&slab->used_up);
	pthread_mutex_init(&slab->lock, NULL);
}

void slab_init(struct slab *slab, size_t block_size)
{
	slab_init_any(slab, block_size, block_size);
	slab->recycles = slab_recycles;
	/* With 0, slab_give() finds every bin full and calls free(). */
	if (!slab->recycles)
		slab->magazine = 0;
}

void slab_init_hooked(struct slab *slab, size_t block_size, size_t room,
		      const struct slab_hooks *hooks)
{
	slab_init_any(slab, block_size, room);
	slab->recycles = true;
	slab->hooks = hooks;
}

static void slab_unmap_all(struct list *chunks)
{
	struct list *link;

	while ((link = list_take_first(chunks)))
		pages_unmap_aligned(list_entry(link, struct chunk, link), CHUNK_SIZE);
}

void slab_destroy(struct slab *slab)
{
	if (slab->spare)
		pages_unmap_aligned(slab->spare, CHUNK_SIZE);
	slab_unmap_all(&slab->with_free);
	slab_unmap_all(&slab->used_up);
	pthread_mutex_destroy(&slab->lock);
}

/* ---- Chunks; the caller has the lock ---- */

/* Updates the slab's counts and lists for a chunk that had `free_before` free blocks and
 * `held_before` present pages. */
static void slab_count(struct slab *slab, struct chunk *chunk, uint32_t free_before,
		       uint32_t held_before)
{
	slab->free_count += (size_t)chunk->free_count - free_before;
	counter_add(&slab->held, ((uint64_t)chunk->held - held_before) * chunk->page_size);
	if ((free_before > 0) == (chunk->free_count > 0))
		return;
	list_remove(&chunk->link);
	list_append(chunk->free_count > 0 ? slab->with_free.next : &slab->used_up, &chunk->link);
}

/* Adds a chunk with all blocks free, the spare one or a new one. Returns NULL if out of memory. */
static struct chunk *slab_begin_chunk(struct slab *slab)
{
	struct chunk *chunk = slab->spare;
	bool is_small = !chunk && slab->chunk_count == 0;

	if (chunk)
		counter_subtract(&slab->held, CHUNK_SIZE);
	else
		chunk = pages_map_aligned(CHUNK_SIZE);
	slab->spare = NULL;
	if (!chunk)
		return NULL;
	/* A small slab touches only what it uses. */
	pages_use_huge(chunk, CHUNK_SIZE, !is_small);
	chunk_init(chunk, slab->chunk_count, slab->block_size, !is_small);
	if (slab->hooks && !slab->hooks->begin(slab->hooks->argument, chunk)) {
		pages_unmap_aligned(chunk, CHUNK_SIZE);
		return NULL;
	}
	chunk->visit = slab->visit;
	chunk->is_small = is_small;
	slab->chunk_count++;
	list_append(&slab->used_up, &chunk->link);
	slab_count(slab, chunk, 0, 0);
	return chunk;
}

/*
 * Takes up to `most` free blocks of one chunk, without touching them. The last one in `blocks` has
 * the lowest address; a stripe hands it out first, so timers set one after another lie in order.
 */
static unsigned slab_cut(struct slab *slab, void **blocks, unsigned most)
{
	struct chunk *chunk = list_entry(slab->with_free.next, struct chunk, link);
	uint32_t free_before;
	uint32_t held_before;
	unsigned count;

	if (list_is_empty(&slab->with_free) && !(chunk = slab_begin_chunk(slab)))
		return 0;
	free_before = chunk->free_count;
	held_before = chunk->held;
	count = chunk_take(chunk, blocks, most);
	slab_count(slab, chunk, free_before, held_before);
	return count;
}

/* Gives `count` blocks back to their chunks. */
static void slab_uncut(struct slab *slab, void **blocks, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct chunk *chunk = chunk_of(blocks[i]);

		chunk_give(chunk, blocks[i]);
		slab_count(slab, chunk, chunk->free_count - 1, chunk->held);
	}
}

/* Returns whether less than an eighth of a chunk is free, and no spare chunk is ready or in the
 * making. */
static bool slab_wants_spare(const struct slab *slab)
{
	return slab->free_count < CHUNK_SIZE / 8 / slab->block_size && !slab->spare &&
	       !slab->preparing;
}

/* Prepares the spare chunk if one is wanted. The caller has no lock and no stripe. */
static void slab_prepare(struct slab *slab)
{
	struct chunk *chunk;
	bool wants;

	pthread_mutex_lock(&slab->lock);
	wants = slab_wants_spare(slab);
	slab->preparing |= wants;
	pthread_mutex_unlock(&slab->lock);
	if (!wants)
		return;
	chunk = pages_map_aligned(CHUNK_SIZE);
	if (chunk) {
		pages_use_huge(chunk, CHUNK_SIZE, true);
		pages_populate(chunk, CHUNK_SIZE);
	}
	pthread_mutex_lock(&slab->lock);
	slab->spare = chunk;
	counter_add(&slab->held, chunk ? CHUNK_SIZE : 0);
	slab->preparing = false;
	pthread_mutex_unlock(&slab->lock);
}

/* ---- Taking ---- */

static void slab_fetch(const void *block)
{
	prefetch_to_write(block);
	prefetch_to_write((const char *)block + CACHE_LINE);
}

/* Takes a magazine's blocks from the depot; the last one is the magazine's own. Under the lock. */
static unsigned slab_take_magazine(struct slab *slab, void **blocks)
{
	struct slab_magazine *magazine = slab->magazines;
	unsigned count;

	if (!magazine)
		return 0;
	slab->magazines = magazine->next;
	if (slab->magazines)
		slab_fetch(slab->magazines); /* for the next thread */
	count = (unsigned)magazine->count;
	memcpy(blocks, magazine->blocks, count * sizeof(*blocks));
	blocks[count] = magazine;
	slab->depot_count -= count + 1;
	return count + 1;
}

/* Refills the stripe with one block of malloc, or with none if out of memory. */
static void slab_refill_from_malloc(struct slab *slab, struct slab_stripe *stripe)
{
	stripe->blocks[0] = aligned_alloc(slab->block_size & -slab->block_size, slab->block_size);
	stripe->count = stripe->blocks[0] != NULL;
}

/* Refills an empty stripe, if there is memory. Returns whether a spare chunk is wanted. */
static bool slab_refill(struct slab *slab, struct slab_stripe *stripe)
{
	bool wants = false;

	if (!slab->recycles) {
		slab_refill_from_malloc(slab, stripe);
		return false;
	}
	pthread_mutex_lock(&slab->lock);
	stripe->count = slab_take_magazine(slab, stripe->blocks);
	if (stripe->count == 0) {
		stripe->count = slab_cut(slab, stripe->blocks, slab->magazine + 1);
		wants = slab_wants_spare(slab);
	}
	counter_add(&slab->out, stripe->count);
	pthread_mutex_unlock(&slab->lock);
	for (unsigned i = stripe->count; slab->fetches && i > 0; i--)
		slab_fetch(stripe->blocks[i - 1]);
	return wants;
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

/* Refills the empty stripe, takes a block from it and leaves it. Returns NULL if out of memory. */
static __attribute__((noinline)) void *slab_take_refilled(struct slab *slab,
							  struct slab_stripe *stripe)
{
	bool wants_spare = slab_refill(slab, stripe);
	void *block = stripe->count > 0 ? stripe->blocks[--stripe->count] : NULL;

	slab_leave_stripe(stripe);
	if (wants_spare)
		slab_prepare(slab);
	return block;
}

/* The stripe nearly always has a block. */
void *slab_take(struct slab *slab)
{
	struct slab_stripe *stripe = slab_enter_stripe(slab);
	void *block;

	if (stripe->count == 0)
		return slab_take_refilled(slab, stripe);
	block = stripe->blocks[--stripe->count];
	slab_leave_stripe(stripe);
	return block;
}

/* ---- Giving back ---- */

/* Makes `block` a magazine of the blocks in the bin. */
static void slab_fill_magazine(struct slab_bin *bin, void *block)
{
	struct slab_magazine *magazine = block;

	bin->full += bin->count + 1;
	magazine->count = bin->count;
	memcpy(magazine->blocks, bin->blocks, bin->count * sizeof(*bin->blocks));
	magazine->next = bin->magazines;
	if (!bin->magazines)
		bin->last = magazine;
	bin->magazines = magazine;
	bin->count = 0;
}

/* Moves the bin's full magazines to the depot. Under the lock. */
static void slab_put_magazines(struct slab *slab, struct slab_bin *bin)
{
	bin->last->next = slab->magazines;
	slab->magazines = bin->magazines;
	bin->magazines = NULL;
	slab->depot_count += bin->full;
	counter_add(&slab->given, bin->full);
	counter_subtract(&slab->out, bin->full);
	bin->full = 0;
}

void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin, void *block)
{
	if (!slab->recycles) {
		free(block);
		return;
	}
	slab_fill_magazine(bin, block);
	if (pthread_mutex_trylock(&slab->lock) == 0) {
		slab_put_magazines(slab, bin);
		pthread_mutex_unlock(&slab->lock);
	}
}

void slab_flush(struct slab *slab, struct slab_bin *bin)
{
	if (bin->count > 0)
		slab_fill_magazine(bin, bin->blocks[--bin->count]);
	if (!bin->magazines)
		return;
	pthread_mutex_lock(&slab->lock);
	slab_put_magazines(slab, bin);
	pthread_mutex_unlock(&slab->lock);
}

struct chunk_used slab_find_used(struct slab *slab, const struct chunk *chunk, size_t number)
{
	struct chunk_used used = {number, UINT64_MAX};

	if (pthread_mutex_trylock(&slab->lock) == 0) {
		used = chunk_find_used(chunk, number);
		pthread_mutex_unlock(&slab->lock);
	} else if (chunk->block_count - number < 64) {
		used.mask = ((uint64_t)1 << (chunk->block_count - number)) - 1;
	}
	return used;
}

/* ---- Giving memory back to the system ---- */

struct slab_use slab_use(const struct slab *slab)
{
	return (struct slab_use){.held = counter_read(&slab->held),
				 .in_use = counter_read(&slab->out) * slab->block_size};
}

uint64_t slab_traffic(const struct slab *slab)
{
	/* Every block taken is out, or was given back. */
	return (2 * counter_read(&slab->given) + counter_read(&slab->out)) * slab->block_size;
}

uint64_t slab_surplus(const struct slab *slab)
{
	uint64_t given = (counter_read(&slab->given) - slab->trimmed_given) * slab->block_size;
	struct slab_use use = slab_use(slab);
	uint64_t unused = use.held > use.in_use ? use.held - use.in_use : 0;

	/* More than half of the blocks that kept pages in the last trim are gone now. */
	if (counter_read(&slab->out) < slab->trimmed_out / 2)
		return unused;
	return unused < given ? unused : given;
}

/* Returns the blocks of all stripes to their chunks: each of them keeps a page from going. */
static void slab_empty_stripes(struct slab *slab)
{
	for (int i = 0; i < SLAB_STRIPES; i++) {
		struct slab_stripe *stripe = &slab->stripes[i];

		if (!slab_try_stripe(stripe))
			continue;
		pthread_mutex_lock(&slab->lock);
		slab_uncut(slab, stripe->blocks, stripe->count);
		counter_add(&slab->given, stripe->count);
		counter_subtract(&slab->out, stripe->count);
		pthread_mutex_unlock(&slab->lock);
		stripe->count = 0;
		slab_leave_stripe(stripe);
	}
}

static void slab_begin_trim(struct slab *slab)
{
	struct chunk *spare;

	slab_empty_stripes(slab);
	pthread_mutex_lock(&slab->lock);
	slab->visit++;
	slab->to_collect = slab->depot_count;
	slab->begun_given = counter_read(&slab->given);
	slab->begun_out = counter_read(&slab->out);
	spare = slab->spare;
	slab->spare = NULL;
	counter_subtract(&slab->held, spare ? CHUNK_SIZE : 0);
	pthread_mutex_unlock(&slab->lock);
	if (spare)
		pages_unmap_aligned(spare, CHUNK_SIZE);
}

/* Returns some of the depot's blocks to their chunks, as many in total as it had at the
 * beginning. */
static void slab_collect(struct slab *slab)
{
	for (int i = 0; i < LOCKS_A_STEP && slab->to_collect > 0; i++) {
		pthread_mutex_lock(&slab->lock);
		for (unsigned done = 0; done < BLOCKS_A_LOCK && slab->to_collect > 0;) {
			void *blocks[SLAB_MAGAZINE];
			unsigned count = slab_take_magazine(slab, blocks);

			done += count;
			slab_uncut(slab, blocks, count);
			/* Other threads may have taken the rest. */
			slab->to_collect = count > 0 && count < slab->to_collect
						   ? slab->to_collect - count
						   : 0;
		}
		pthread_mutex_unlock(&slab->lock);
	}
}

/* Returns a chunk that this trim has not fully searched, or NULL if it is done. Under the lock. */
static struct chunk *slab_next_to_look_at(struct slab *slab)
{
	struct chunk *chunk = list_entry(slab->with_free.next, struct chunk, link);

	if (list_is_empty(&slab->with_free))
		return NULL;
	if (chunk->visit != slab->visit)
		chunk_begin_look(chunk);
	chunk->visit = slab->visit;
	return chunk_is_looked_at(chunk) ? NULL : chunk;
}

/* Takes a row of free pages of the chunk. Returns false, and moves the chunk to the end of its
 * list, if all pages have been searched. Under the lock. */
static bool slab_take_pages(struct slab *slab, struct chunk *chunk, struct chunk_pages *pages)
{
	uint32_t free_before = chunk->free_count;

	if (chunk_take_pages(chunk, PAGES_A_CALL, pages)) {
		slab_count(slab, chunk, free_before, chunk->held);
		return true;
	}
	list_remove(&chunk->link);
	list_append(&slab->with_free, &chunk->link);
	return false;
}

/* Gives the pages back to the system. Returns false if they stay. Under no lock. */
static bool slab_release_pages(struct slab *slab, struct chunk *chunk,
			       const struct chunk_pages *pages)
{
	size_t size = (size_t)(pages->end - pages->first) * chunk->page_size;

	if (slab->hooks && !slab->hooks->forget(slab->hooks->argument, chunk, pages))
		return false;
	/* Keeps the kernel from filling the gap with a huge page again. */
	if (!chunk->is_small)
		pages_use_huge(chunk, CHUNK_SIZE, false);
	chunk->is_small = true;
	return pages_release((char *)chunk + (size_t)pages->first * chunk->page_size, size);
}

/* Frees the blocks of `pages`. `are_gone` says that the pages went back to the system. */
static void slab_give_pages(struct slab *slab, struct chunk *chunk, const struct chunk_pages *pages,
			    bool are_gone)
{
	uint32_t free_before;
	uint32_t held_before;

	pthread_mutex_lock(&slab->lock);
	free_before = chunk->free_count;
	held_before = chunk->held;
	chunk_give_pages(chunk, pages, are_gone);
	slab_count(slab, chunk, free_before, held_before);
	pthread_mutex_unlock(&slab->lock);
}

/* Removes a chunk with free blocks only from the slab. Under the lock. */
static void slab_forget_chunk(struct slab *slab, struct chunk *chunk)
{
	list_remove(&chunk->link);
	slab->chunk_count--;
	slab->free_count -= chunk->free_count;
	counter_subtract(&slab->held, (uint64_t)chunk->held * chunk->page_size);
}

/* Gives back a chunk, or some pages of one. Returns the cost in pages, or 0 if the trim is done. */
static unsigned slab_release_some(struct slab *slab)
{
	struct chunk_pages pages = {0};
	struct chunk *chunk;
	bool is_unused;
	bool found;

	pthread_mutex_lock(&slab->lock);
	chunk = slab_next_to_look_at(slab);
	is_unused = chunk && !slab->hooks && chunk_is_unused(chunk);
	found = chunk && !is_unused && slab_take_pages(slab, chunk, &pages);
	if (is_unused)
		slab_forget_chunk(slab, chunk);
	pthread_mutex_unlock(&slab->lock);
	if (!chunk)
		return 0;
	if (is_unused)
		pages_unmap_aligned(chunk, CHUNK_SIZE);
	else if (found)
		slab_give_pages(slab, chunk, &pages, slab_release_pages(slab, chunk, &pages));
	return is_unused ? PAGES_A_STEP : CALL_IN_PAGES + pages.end - pages.first;
}

bool slab_trim(struct slab *slab)
{
	if (!slab->is_trimming) {
		if (counter_read(&slab->held) == 0)
			return false;
		slab_begin_trim(slab);
		slab->is_trimming = true;
		return true;
	}
	if (slab->to_collect > 0) {
		slab_collect(slab);
		return true;
	}
	for (unsigned cost = 0; cost < PAGES_A_STEP;) {
		unsigned more = slab_release_some(slab);

		if (more == 0) {
			slab->is_trimming = false;
			slab->trimmed_given = slab->begun_given;
			slab->trimmed_out = slab->begun_out;
			return false;
		}
		cost += more;
	}
	return true;
}
