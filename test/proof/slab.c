/* SPDX-License-Identifier: MIT */
/*
 * The slab: threads take blocks, write to them, and give them back, by a chain or all at once. No
 * block is with two threads (their writes would race), each take sees what was done with the block
 * before, and at the end all blocks are in the slab again, each once. Bounds:
 *
 *   THREADS, TAKES   each thread takes so many blocks and gives them back,
 *   ROUNDS           so many times
 *   ONE_STRIPE       1: all threads begin at the same stripe
 *   GIVES            CHAIN: at the first block its bin has filled a chain; FLUSH: it is flushed
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/slab.h"

/* A chunk holds three blocks of a cache line. */
#undef SLAB_CHUNK_LARGEST
#define SLAB_CHUNK_LARGEST ((size_t)256)

#ifndef THREADS
#define THREADS 2
#endif
#ifndef TAKES
#define TAKES 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef ONE_STRIPE
#define ONE_STRIPE 1
#endif
#ifndef GIVES
#define GIVES FLUSH
#endif

enum gives { CHAIN, FLUSH };

static inline pthread_t proof_self(void)
{
	return ONE_STRIPE ? 0 : pthread_self();
}

#define pthread_self proof_self
#include "base/slab.c"
#undef pthread_self

/* The assignment of a whole bin, which is the one that there is: as clang calls it. */
void *memcpy(void *to, const void *from, size_t size)
{
	assert(size == sizeof(struct slab_bin));
	((struct slab_bin *)to)->first = ((const struct slab_bin *)from)->first;
	((struct slab_bin *)to)->count = ((const struct slab_bin *)from)->count;
	return to;
}

struct block {
	void *links[2]; /* the slab's, while it has the block */
	int uses;
	bool is_taken;
	_Alignas(CACHE_LINE) char end[];
};

enum { BLOCKS_A_CHUNK = 3, BLOCKS_MOST = 2 * ROUNDS * THREADS * TAKES + BLOCKS_A_CHUNK };

/* Under the slab's lock: what a block says of itself before it is used. */
static bool chunk_begin(void *argument, struct slab_chunk *chunk, size_t number)
{
	struct block *blocks = (struct block *)(void *)(chunk + 1);

	(void)argument;
	assert(number < BLOCKS_MOST);
	for (int i = 0; i < BLOCKS_A_CHUNK; i++) {
		blocks[i].uses = 0;
		blocks[i].is_taken = false;
	}
	return true;
}

/* As slab_init_chunks(), whose assignment of a whole struct GenMC refuses. */
static struct slab slab = {.block_size = sizeof(struct block),
			   .recycles = true,
			   .next_chunk_size = SLAB_CHUNK_LARGEST,
			   .hook = chunk_begin};

/* Looking for a free stripe goes on until one is found; an order in which it takes longer shows no
 * more. */
void thread_back_off(unsigned *tries)
{
	++*tries;
	__VERIFIER_assume(false);
}

int madvise(void *memory, size_t size, int advice)
{
	(void)memory;
	(void)size;
	(void)advice;
	return 0;
}

static struct block *block_take(void)
{
	struct block *block = slab_take(&slab);

	assert(block && !block->is_taken);
	block->is_taken = true;
	block->uses++;
	return block;
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
	struct slab_bin bin = {.count = GIVES == CHAIN ? CHAIN_LENGTH - 1 : 0};

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < TAKES; i++)
			blocks[i] = block_take();
		for (int i = 0; i < TAKES; i++)
			block_give(&bin, blocks[i]);
		if (GIVES == FLUSH || round == ROUNDS - 1)
			slab_flush(&slab, &bin);
	}
	assert(!bin.first);
	return argument;
}

/* Counts a block that the slab has, once. */
static void block_meet(struct slab_block *links, int *met)
{
	struct block *block = (struct block *)(void *)links;

	assert(!block->is_taken);
	block->is_taken = true;
	++*met;
}

static void judge(void)
{
	int met = 0;

	for (int i = 0; i < SLAB_STRIPES; i++) {
		for (struct slab_block *block = slab.stripes[i].first; block; block = block->next)
			block_meet(block, &met);
		/* relaxed: no thread is left. */
		assert(!atomic_load_explicit(&slab.stripes[i].busy, memory_order_relaxed));
	}
	for (struct slab_block *chain = slab.chains; chain; chain = chain->next_chain)
		for (struct slab_block *block = chain; block; block = block->next)
			block_meet(block, &met);
	met += (int)((size_t)(slab.fresh_end - slab.fresh) / sizeof(struct block));
	assert(met == (int)slab.chunk_count * BLOCKS_A_CHUNK);
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread_run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	judge();
	slab_destroy(&slab);
	return 0;
}
