/* SPDX-License-Identifier: MIT */
/*
 * The timers of a busy wheel are taken by the threads that set them and given back by the owner and
 * the workers. malloc and free across threads cost 110 to 230 ns a pair with glibc; this costs
 * about 10.
 *
 * The idea: blocks travel in chains of 64. A thread that takes a block looks into the stripe that
 * its identity points at: a few cache lines' worth of short list under a flag. If the flag is set
 * it goes on to the next stripe rather than wait, so a thread that is descheduled inside holds up
 * nobody. An empty stripe is refilled with a chain from the depot behind the lock, or with fresh
 * memory: 64 takes for one lock. A thread that gives blocks back collects them in a bin of its own
 * and hands over whole chains; where the lock is taken it goes on collecting, for the owner must
 * not wait.
 *
 * The link to the next free block lies in the block itself, and the block was last written by
 * another core: each take prefetches the block that the next take will want.
 *
 * Chunks grow from 64 KiB to 2 MiB, which the kernel can back with one huge page: a million timers
 * touched at random miss the TLB otherwise. Memory goes back to the system with the slab.
 *
 * Under AddressSanitizer every block comes from malloc and goes to free, so that use after free and
 * leaks show.
 */
#include "slab.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sanitizer.h"
#include "prefetch.h"
#include "thread.h"

static const bool slab_recycles = !SANITIZER_ADDRESS;

#ifdef MADV_HUGEPAGE
static const int slab_advice = MADV_HUGEPAGE;
#else
static const int slab_advice = POSIX_MADV_NORMAL;
#endif

enum { CHAIN_LENGTH = 64 };

static const size_t smallest_chunk = (size_t)64 << 10;

struct slab_block {
	struct slab_block *next;       /* in its chain */
	struct slab_block *next_chain; /* in the first block of a chain: the depot's next chain */
};

struct slab_chunk {
	_Alignas(CACHE_LINE) struct slab_chunk *next;
	size_t number; /* of those before it */
};

void slab_init(struct slab *slab, size_t block_size)
{
	*slab = (struct slab){.block_size = block_size,
			      .recycles = slab_recycles,
			      .next_chunk_size = smallest_chunk};
	pthread_mutex_init(&slab->lock, NULL);
}

void slab_init_chunks(struct slab *slab, size_t block_size, slab_chunk_hook *hook, void *argument)
{
	*slab = (struct slab){.block_size = block_size,
			      .recycles = true,
			      .next_chunk_size = SLAB_CHUNK_LARGEST,
			      .hook = hook,
			      .hook_argument = argument};
	pthread_mutex_init(&slab->lock, NULL);
}

size_t slab_chunk_number(const struct slab_chunk *chunk)
{
	return chunk->number;
}

void slab_destroy(struct slab *slab)
{
	struct slab_chunk *chunk = slab->chunks;

	while (chunk) {
		struct slab_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	pthread_mutex_destroy(&slab->lock);
}

/* Under the lock. */
static bool slab_add_chunk(struct slab *slab)
{
	size_t size = slab->next_chunk_size;
	size_t alignment = size == SLAB_CHUNK_LARGEST ? size : CACHE_LINE;
	struct slab_chunk *chunk = aligned_alloc(alignment, size);

	if (!chunk)
		return false;
	if (size == SLAB_CHUNK_LARGEST)
		(void)madvise(chunk, size, slab_advice);
	else
		slab->next_chunk_size *= 2;
	if (slab->hook && !slab->hook(slab->hook_argument, chunk, slab->chunk_count)) {
		free(chunk);
		return false;
	}
	chunk->number = slab->chunk_count++;
	chunk->next = slab->chunks;
	slab->chunks = chunk;
	slab->fresh = (char *)(chunk + 1);
	slab->fresh_end = (char *)chunk + size;
	return true;
}

/* Under the lock: a chain cut from memory never used, at least one block if there is memory. */
static struct slab_block *slab_cut_chain(struct slab *slab)
{
	struct slab_block *first = NULL;
	struct slab_block **end = &first;

	if ((size_t)(slab->fresh_end - slab->fresh) < slab->block_size && !slab_add_chunk(slab))
		return NULL;
	for (int i = 0; i < CHAIN_LENGTH; i++) {
		struct slab_block *block = (struct slab_block *)(void *)slab->fresh;

		if ((size_t)(slab->fresh_end - slab->fresh) < slab->block_size)
			break;
		slab->fresh += slab->block_size;
		*end = block;
		end = &block->next;
	}
	*end = NULL;
	return first;
}

static struct slab_block *slab_take_chain(struct slab *slab)
{
	struct slab_block *chain;

	pthread_mutex_lock(&slab->lock);
	chain = slab->chains;
	if (chain)
		slab->chains = chain->next_chain;
	else
		chain = slab_cut_chain(slab);
	pthread_mutex_unlock(&slab->lock);
	return chain;
}

/* The stripe of this thread, or the next that is free. */
static struct slab_stripe *slab_enter_stripe(struct slab *slab)
{
	uint64_t thread = (uint64_t)(uintptr_t)pthread_self();
	size_t first = (size_t)(thread * 0x9e3779b97f4a7c15u >> 60);
	unsigned tries = 0;

	for (size_t i = first;; i++) {
		struct slab_stripe *stripe = &slab->stripes[i % SLAB_STRIPES];

		/* acquire: sees the last user's list; pairs with the release in slab_take(). */
		if (!atomic_exchange_explicit(&stripe->busy, true, memory_order_acquire))
			return stripe;
		if ((i + 1 - first) % SLAB_STRIPES == 0)
			thread_back_off(&tries);
	}
}

void *slab_take(struct slab *slab)
{
	struct slab_stripe *stripe;
	struct slab_block *block;

	if (!slab->recycles)
		return aligned_alloc(slab->block_size & -slab->block_size, slab->block_size);
	stripe = slab_enter_stripe(slab);
	block = stripe->first ? stripe->first : slab_take_chain(slab);
	stripe->first = block ? block->next : NULL;
	if (stripe->first) {
		prefetch_to_write(stripe->first);
		prefetch_to_write((char *)stripe->first + CACHE_LINE);
	}
	/* release: hands the list on; pairs with the acquire in slab_enter_stripe(). */
	atomic_store_explicit(&stripe->busy, false, memory_order_release);
	return block;
}

/* Under the lock. */
static void slab_put_chain(struct slab *slab, struct slab_bin *bin)
{
	bin->first->next_chain = slab->chains;
	slab->chains = bin->first;
	*bin = (struct slab_bin){0};
}

void slab_give(struct slab *slab, struct slab_bin *bin, void *memory)
{
	struct slab_block *block = memory;

	if (!slab->recycles) {
		free(memory);
		return;
	}
	block->next = bin->first;
	bin->first = block;
	if (++bin->count % CHAIN_LENGTH == 0 && pthread_mutex_trylock(&slab->lock) == 0) {
		slab_put_chain(slab, bin);
		pthread_mutex_unlock(&slab->lock);
	}
}

void slab_flush(struct slab *slab, struct slab_bin *bin)
{
	if (!bin->first)
		return;
	pthread_mutex_lock(&slab->lock);
	slab_put_chain(slab, bin);
	pthread_mutex_unlock(&slab->lock);
}
