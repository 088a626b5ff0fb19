/* SPDX-License-Identifier: MIT */
/*
 * The slab: threads take blocks, write to them, and give them back, by a magazine or all at once.
 * No block is with two threads (their writes would race), each take sees what was done with the
 * block before, and at the end all blocks are in the slab again, each once, and with them all the
 * chunks that were mapped. Bounds:
 *
 *   THREADS, TAKES   each thread takes so many blocks and gives them back,
 *   ROUNDS           so many times
 *   TOGETHER         1: it takes them in one call
 *   MAGAZINE         blocks in a magazine, beside its own: 0 to 2
 *   CHUNK            bytes of a chunk; of 256 all is used at once, and a spare one wanted
 *   ONE_STRIPE       1: all threads begin at the same stripe
 *   GIVES            LATE: the bin is flushed when all is done; FLUSH: after each round
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef TAKES
#define TAKES 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef TOGETHER
#define TOGETHER 0
#endif
#ifndef MAGAZINE
#define MAGAZINE 2
#endif
#ifndef CHUNK
#define CHUNK 512
#endif
#ifndef ONE_STRIPE
#define ONE_STRIPE 1
#endif
#ifndef GIVES
#define GIVES FLUSH
#endif

#include "base/slab.h"

#undef SLAB_CHUNK
#define SLAB_CHUNK ((size_t)CHUNK)

enum gives { LATE, FLUSH };

static inline pthread_t proof_self(void)
{
	return ONE_STRIPE ? 0 : pthread_self();
}

#define pthread_self proof_self
#include "base/slab.c"
#undef pthread_self

/* Of addresses, as the slab calls it. */
void *memcpy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size / sizeof(void *); i++)
		((void **)to)[i] = ((void *const *)from)[i];
	return to;
}

struct block {
	void *room[4]; /* the slab's, while it has the block */
	int uses;
	bool is_taken;
	_Alignas(CACHE_LINE) char end[];
};

_Static_assert(offsetof(struct slab_magazine, blocks) + MAGAZINE * sizeof(void *) <=
		       offsetof(struct block, uses),
	       "a magazine must lie in the slab's part of a block");

enum { BLOCKS_A_CHUNK = CHUNK / CACHE_LINE - 1 };

/* Chunks mapped, by the thread that mapped them; the last place is the main thread's. */
static int mapped[THREADS + 1];
static _Thread_local int thread_number = THREADS;

void *pages_map_aligned(size_t size)
{
	mapped[thread_number]++;
	return aligned_alloc(size, size);
}

void pages_unmap_aligned(void *memory, size_t size)
{
	(void)size;
	mapped[thread_number]--;
	free(memory);
}

void pages_use_huge(void *memory, size_t size, bool huge)
{
	(void)memory;
	(void)size;
	(void)huge;
}

void pages_populate(void *memory, size_t size)
{
	(void)memory;
	(void)size;
}

/* Under the slab's lock: what a block says of itself before it is used. */
static bool chunk_begin(void *argument, struct slab_chunk *chunk, size_t number)
{
	struct block *blocks = (struct block *)(void *)(chunk + 1);

	(void)argument;
	(void)number;
	for (int i = 0; i < BLOCKS_A_CHUNK; i++) {
		blocks[i].uses = 0;
		blocks[i].is_taken = false;
	}
	return true;
}

/* As slab_init_hooked(), whose assignment of a whole struct GenMC refuses. */
static struct slab slab = {.block_size = sizeof(struct block),
			   .magazine = MAGAZINE,
			   .recycles = true,
			   .hook = chunk_begin};
static struct slab_bin bins[THREADS];

/* Looking for a free stripe goes on until one is found; an order in which it takes longer shows no
 * more. */
void thread_back_off(unsigned *tries)
{
	++*tries;
	__VERIFIER_assume(false);
}

static void blocks_take(struct block **blocks)
{
	if (TOGETHER)
		assert(slab_take_many(&slab, (void **)blocks, TAKES) == TAKES);
	for (int i = 0; i < TAKES; i++) {
		if (!TOGETHER)
			blocks[i] = slab_take(&slab);
		assert(blocks[i] && !blocks[i]->is_taken);
		blocks[i]->is_taken = true;
		blocks[i]->uses++;
	}
}

static void block_give(struct slab_bin *bin, struct block *block)
{
	assert(block->is_taken);
	block->is_taken = false;
	slab_give(&slab, bin, block);
}

static void *thread_run(void *argument)
{
	struct block *blocks[TAKES];
	struct slab_bin *bin;

	thread_number = (int)(intptr_t)argument;
	bin = &bins[thread_number];
	for (int round = 0; round < ROUNDS; round++) {
		blocks_take(blocks);
		for (int i = 0; i < TAKES; i++)
			block_give(bin, blocks[i]);
		if (GIVES == FLUSH || round == ROUNDS - 1)
			slab_flush(&slab, bin);
	}
	assert(!bin->magazines && bin->count == 0);
	return NULL;
}

/* Counts a block that the slab has, once. */
static void block_meet(void *met_block, int *met)
{
	struct block *block = met_block;

	assert(!block->is_taken);
	block->is_taken = true;
	++*met;
}

static int chunks_mapped(void)
{
	int count = 0;

	for (int i = 0; i <= THREADS; i++)
		count += mapped[i];
	return count;
}

static void judge(void)
{
	int met = 0;

	for (int i = 0; i < SLAB_STRIPES; i++) {
		for (unsigned j = 0; j < slab.stripes[i].count; j++)
			block_meet(slab.stripes[i].blocks[j], &met);
		/* relaxed: no thread is left. */
		assert(!atomic_load_explicit(&slab.stripes[i].busy, memory_order_relaxed));
	}
	for (struct slab_magazine *magazine = slab.magazines; magazine; magazine = magazine->next) {
		for (size_t i = 0; i < magazine->count; i++)
			block_meet(magazine->blocks[i], &met);
		block_meet(magazine, &met);
	}
	met += (int)((size_t)(slab.fresh_end - slab.fresh) / sizeof(struct block));
	assert(met == (int)slab.chunk_count * BLOCKS_A_CHUNK);
	assert(!slab.preparing);
}

int main(void)
{
	pthread_t threads[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread_run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	judge();
	slab_destroy(&slab);
	assert(chunks_mapped() == 0);
	return 0;
}
