/* SPDX-License-Identifier: MIT */
/*
 * The timers of a busy wheel are taken by the threads that set them and given back by the owner and
 * the workers. malloc and free across threads cost 110 to 230 ns a pair with glibc; this costs
 * about 10.
 *
 * The idea: blocks travel in magazines. A magazine is a free block in which the addresses of others
 * are written (Bonwick's magazines, 2001, with their room taken from the blocks): 15 blocks of 128
 * bytes. So nobody touches a free block to pass it on, and the thread that takes it need not wait
 * for its lines, which another core wrote last.
 *
 * A thread that takes a block looks into the stripe that its identity points at: a magazine spread
 * out under a flag. If the flag is set it goes on to the next stripe rather than wait, so a thread
 * that is descheduled inside holds up nobody. An empty stripe is refilled with a magazine from the
 * depot behind the lock, or with fresh memory. A thread that gives blocks back collects them in a
 * bin of its own, and hands over magazines when it has filled one; where the lock is taken it goes
 * on collecting, for the owner must not wait.
 *
 * Chunks are 2 MiB, which the kernel can back with one huge page: a million timers touched at
 * random miss the TLB otherwise. A small slab touches only what it uses of its first. For the
 * kernel, a new huge page is some 100 us of work: the thread that finds little left of a chunk
 * makes the next one ready, and no other waits for it. Memory goes back to the system with the
 * slab.
 *
 * Under AddressSanitizer every block comes from malloc and goes to free, so that use after free and
 * leaks show.
 */
#include "slab.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"
#include "prefetch.h"
#include "sanitizer.h"
#include "thread.h"

static const bool slab_recycles = !SANITIZER_ADDRESS;

/* So many bytes before a chunk is used up, the next is wanted. */
static const ptrdiff_t spare_before = SLAB_CHUNK / 8;

struct slab_magazine {
	struct slab_magazine *next;
	size_t count;
	void *blocks[];
};

struct slab_chunk {
	_Alignas(CACHE_LINE) struct slab_chunk *next;
	size_t number; /* of those before it */
};

static void slab_init_any(struct slab *slab, size_t block_size, size_t room)
{
	size_t others = (room - sizeof(struct slab_magazine)) / sizeof(void *);

	*slab = (struct slab){.block_size = block_size};
	slab->magazine = (unsigned)(others < SLAB_MAGAZINE ? others : SLAB_MAGAZINE - 1);
	pthread_mutex_init(&slab->lock, NULL);
}

void slab_init(struct slab *slab, size_t block_size)
{
	slab_init_any(slab, block_size, block_size);
	slab->recycles = slab_recycles;
}

void slab_init_hooked(struct slab *slab, size_t block_size, size_t room, slab_chunk_hook *hook,
		      void *argument)
{
	slab_init_any(slab, block_size, room);
	slab->recycles = true;
	slab->hook = hook;
	slab->hook_argument = argument;
}

size_t slab_chunk_number(const struct slab_chunk *chunk)
{
	return chunk->number;
}

void slab_destroy(struct slab *slab)
{
	struct slab_chunk *chunk = slab->chunks;

	if (slab->spare)
		pages_unmap_aligned(slab->spare, SLAB_CHUNK);
	while (chunk) {
		struct slab_chunk *next = chunk->next;

		pages_unmap_aligned(chunk, SLAB_CHUNK);
		chunk = next;
	}
	pthread_mutex_destroy(&slab->lock);
}

/* ---- Fresh memory ---- */

/* Under the lock: has a chunk to cut blocks from; false: out of memory. */
static bool slab_begin_chunk(struct slab *slab)
{
	struct slab_chunk *chunk = slab->spare;

	slab->spare = NULL;
	if (!chunk)
		chunk = pages_map_aligned(SLAB_CHUNK);
	if (!chunk)
		return false;
	if (slab->hook && !slab->hook(slab->hook_argument, chunk, slab->chunk_count)) {
		pages_unmap_aligned(chunk, SLAB_CHUNK);
		return false;
	}
	pages_use_huge(chunk, SLAB_CHUNK, slab->chunk_count > 0);
	chunk->number = slab->chunk_count++;
	chunk->next = slab->chunks;
	slab->chunks = chunk;
	slab->fresh = (char *)(chunk + 1);
	slab->fresh_end = (char *)chunk + SLAB_CHUNK;
	return true;
}

/* Under the lock: up to `most` blocks never used, the last of which lies first: it is taken first,
 * and timers that are set one after another lie so. They are not touched. */
static unsigned slab_cut(struct slab *slab, void **blocks, unsigned most)
{
	size_t left = (size_t)(slab->fresh_end - slab->fresh) / slab->block_size;
	unsigned count;

	if (left == 0) {
		if (!slab_begin_chunk(slab))
			return 0;
		left = most;
	}
	count = left < most ? (unsigned)left : most;
	for (unsigned i = count; i > 0; slab->fresh += slab->block_size)
		blocks[--i] = slab->fresh;
	return count;
}

/* Under the lock. */
static bool slab_wants_spare(const struct slab *slab)
{
	return slab->chunks && !slab->spare && !slab->preparing &&
	       slab->fresh_end - slab->fresh < spare_before;
}

/* Has the next chunk ready before it is needed. Under no lock and in no stripe. */
static void slab_prepare(struct slab *slab)
{
	struct slab_chunk *chunk;
	bool wants;

	pthread_mutex_lock(&slab->lock);
	wants = slab_wants_spare(slab);
	slab->preparing |= wants;
	pthread_mutex_unlock(&slab->lock);
	if (!wants)
		return;
	chunk = pages_map_aligned(SLAB_CHUNK);
	if (chunk) {
		pages_use_huge(chunk, SLAB_CHUNK, true);
		pages_populate(chunk, SLAB_CHUNK);
	}
	pthread_mutex_lock(&slab->lock);
	slab->spare = chunk;
	slab->preparing = false;
	pthread_mutex_unlock(&slab->lock);
}

/* ---- Taking ---- */

static void slab_fetch(const void *block)
{
	prefetch_to_write(block);
	prefetch_to_write((const char *)block + CACHE_LINE);
}

/* Under the lock: the blocks of a magazine, the last of which is its own. */
static unsigned slab_take_magazine(struct slab *slab, void **blocks)
{
	struct slab_magazine *magazine = slab->magazines;
	unsigned count;

	if (!magazine)
		return 0;
	slab->magazines = magazine->next;
	if (slab->magazines)
		slab_fetch(slab->magazines); /* for the next that comes */
	count = (unsigned)magazine->count;
	memcpy(blocks, magazine->blocks, count * sizeof(*blocks));
	blocks[count] = magazine;
	return count + 1;
}

/* Answers whether a spare chunk is wanted. */
static bool slab_refill(struct slab *slab, struct slab_stripe *stripe)
{
	bool wants;

	pthread_mutex_lock(&slab->lock);
	stripe->count = slab_take_magazine(slab, stripe->blocks);
	if (stripe->count == 0)
		stripe->count = slab_cut(slab, stripe->blocks, slab->magazine + 1);
	wants = slab_wants_spare(slab);
	pthread_mutex_unlock(&slab->lock);
	for (unsigned i = stripe->count; slab->fetches && i > 0; i--)
		slab_fetch(stripe->blocks[i - 1]);
	return wants;
}

/* The stripe of this thread, or the next that is free. */
static struct slab_stripe *slab_enter_stripe(struct slab *slab)
{
	uint64_t thread = (uint64_t)(uintptr_t)pthread_self();
	size_t first = (size_t)(thread * 0x9e3779b97f4a7c15u >> 60);
	unsigned tries = 0;

	for (size_t i = first;; i++) {
		struct slab_stripe *stripe = &slab->stripes[i % SLAB_STRIPES];

		/* acquire: sees the last user's blocks; pairs with the release in
		 * slab_leave_stripe(). */
		if (!atomic_exchange_explicit(&stripe->busy, true, memory_order_acquire))
			return stripe;
		if ((i + 1 - first) % SLAB_STRIPES == 0)
			thread_back_off(&tries);
	}
}

static void slab_leave_stripe(struct slab_stripe *stripe)
{
	/* release: hands the blocks on; pairs with the acquire in slab_enter_stripe(). */
	atomic_store_explicit(&stripe->busy, false, memory_order_release);
}

static size_t slab_take_from_malloc(struct slab *slab, void **blocks, size_t count)
{
	size_t taken = 0;

	while (taken < count && (blocks[taken] = aligned_alloc(slab->block_size & -slab->block_size,
							       slab->block_size)))
		taken++;
	return taken;
}

size_t slab_take_many(struct slab *slab, void **blocks, size_t count)
{
	struct slab_stripe *stripe;
	size_t taken = 0;
	bool wants_spare = false;

	if (!slab->recycles)
		return slab_take_from_malloc(slab, blocks, count);
	stripe = slab_enter_stripe(slab);
	while (taken < count) {
		if (stripe->count == 0)
			wants_spare |= slab_refill(slab, stripe);
		if (stripe->count == 0)
			break;
		blocks[taken++] = stripe->blocks[--stripe->count];
	}
	slab_leave_stripe(stripe);
	if (wants_spare)
		slab_prepare(slab);
	return taken;
}

void *slab_take(struct slab *slab)
{
	void *block;

	return slab_take_many(slab, &block, 1) == 1 ? block : NULL;
}

/* ---- Giving back ---- */

/* The block becomes a magazine of those in the bin. */
static void slab_fill_magazine(struct slab_bin *bin, void *block)
{
	struct slab_magazine *magazine = block;

	magazine->count = bin->count;
	memcpy(magazine->blocks, bin->blocks, bin->count * sizeof(*bin->blocks));
	magazine->next = bin->magazines;
	if (!bin->magazines)
		bin->last = magazine;
	bin->magazines = magazine;
	bin->count = 0;
}

/* Under the lock: the bin's full magazines become the depot's. */
static void slab_put_magazines(struct slab *slab, struct slab_bin *bin)
{
	bin->last->next = slab->magazines;
	slab->magazines = bin->magazines;
	bin->magazines = NULL;
}

void slab_give(struct slab *slab, struct slab_bin *bin, void *block)
{
	if (!slab->recycles) {
		free(block);
		return;
	}
	if (bin->count < slab->magazine) {
		bin->blocks[bin->count++] = block;
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
