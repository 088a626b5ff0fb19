/* SPDX-License-Identifier: MIT */
/*
 * In this harness threads take blocks from a slab, write to them, and give them back, when a bin is
 * full or all at once; pages without a block in use go back to the system meanwhile, which writes
 * zero to them. No block is with two threads, and none on a page that goes (their writes would
 * race), and each take sees the earlier writes to the block. At the end all blocks are in the slab
 * again, each once and counted right, and so are all the chunks that were mapped. Bounds:
 *
 *   THREADS, TAKES   each thread takes TAKES blocks and gives them back,
 *   ROUNDS           and repeats this ROUNDS times
 *   PASSES           1: blocks are given back by another thread, which is passed them
 *   BATCH            blocks in a bin
 *   CHUNK, HEADER, PAGE   bytes of a chunk, of its header and of a page; a block has 64
 *   ONE_STRIPE       1: all threads begin at the same stripe
 *   STRIPES          the slab's stripes, up to 16
 *   GIVES            LATE: the bin is flushed when all is done; FLUSH: after each round
 *   USED             blocks that are taken and given back before the threads begin
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef TAKES
#define TAKES 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef PASSES
#define PASSES 0
#endif
#ifndef GIVES
#define GIVES FLUSH
#endif
#ifndef USED
#define USED 0
#endif

#include "proof_slab.h"

enum gives { LATE, FLUSH };

struct block {
	void *link; /* the slab uses this while it has the block */
	int uses;
	bool is_taken;
	_Alignas(CACHE_LINE) char end[];
};

enum { PAGE_BLOCKS = PAGE / CACHE_LINE };

/* Main has this number, and the thread that blocks are passed to the one before. */
enum { RECEIVER = THREADS, MAIN = THREADS + 1 };

_Static_assert(MAIN < PROOF_MAPPERS, "each thread has a number");

static void blocks_clear(void *memory, size_t size)
{
	struct block *blocks = memory;

	for (size_t i = 0; i < size / CACHE_LINE; i++) {
		struct block *block = (struct block *)((char *)blocks + i * CACHE_LINE);

		block->link = NULL;
		block->uses = 0;
		block->is_taken = false;
	}
}

static bool chunk_may_begin(void *argument, struct chunk *chunk)
{
	(void)argument;
	(void)chunk;
	return true;
}

/* Reads the page, as the handles' hook does. */
static bool chunk_may_forget(void *argument, struct chunk *chunk, const void *first)
{
	const struct block *block = first;

	(void)argument;
	(void)chunk;
	assert(!block->is_taken);
	return true;
}

static const struct slab_hooks hooks = {chunk_may_begin, chunk_may_forget, NULL};

/* slab_init() would assign a whole struct, which GenMC refuses. */
static struct slab slab = {.block_size = CACHE_LINE,
			   .reciprocal = 65536 / CACHE_LINE,
			   .unit = 1,
			   .recycles = true,
			   .hooks = &hooks};
static struct slab_bin bins[THREADS + 1];
static _Atomic(struct block *) passed[THREADS][TAKES];

static void blocks_take(struct block **blocks)
{
	for (int i = 0; i < TAKES; i++) {
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
		for (int i = 0; i < TAKES; i++) {
			if (PASSES)
				/* release: pairs with the acquire in receive(). */
				atomic_store_explicit(&passed[thread_number][i], blocks[i],
						      memory_order_release);
			else
				block_give(bin, blocks[i]);
		}
		if (GIVES == FLUSH || round == ROUNDS - 1)
			slab_flush(&slab, bin);
	}
	assert(!bin->more && bin->count == 0);
	return NULL;
}

/* Gives back what it finds that it was passed, and the rest when all have ended. */
static void receive(void)
{
	for (int thread = 0; thread < THREADS; thread++) {
		for (int i = 0; i < TAKES; i++) {
			/* acquire: pairs with the release in thread_run(). */
			struct block *block =
				atomic_load_explicit(&passed[thread][i], memory_order_acquire);

			if (!block)
				continue;
			/* relaxed: only this thread, or main after it, reads it again. */
			atomic_store_explicit(&passed[thread][i], NULL, memory_order_relaxed);
			block_give(&bins[RECEIVER], block);
		}
	}
	slab_flush(&slab, &bins[RECEIVER]);
}

static void *receiver_run(void *argument)
{
	thread_number = RECEIVER;
	receive();
	return argument;
}

/* Runs before any thread. */
static void slab_use_some(void)
{
	static struct slab_bin bin;
	void *blocks[USED + 1];

	for (int i = 0; i < USED; i++)
		blocks[i] = slab_take(&slab);
	for (int i = 0; i < USED; i++)
		slab_give(&slab, &bin, blocks[i]);
	slab_flush(&slab, &bin);
}

/* ---- The end ---- */

/* Meets a block that the slab has; each is met once. */
static uint64_t block_meet(void *met_block)
{
	struct block *block = met_block;

	assert(!block->is_taken);
	block->is_taken = true;
	return 1;
}

/* Meets the blocks of a page. Returns their number. */
static uint64_t blocks_meet(char *page, uint64_t mask)
{
	uint64_t met = 0;

	for (int i = 0; i < PAGE_BLOCKS; i++)
		if (mask >> i & 1)
			met += block_meet(page + i * CACHE_LINE);
	return met;
}

static uint64_t judge_stripes(void)
{
	uint64_t met = 0;

	for (int i = 0; i < SLAB_STRIPES; i++) {
		struct slab_stripe *stripe = &slab.stripes[i];

		met += blocks_meet(stripe->blocks.page, stripe->blocks.mask);
		for (unsigned j = 0; j < stripe->count; j++)
			met += blocks_meet(stripe->more[j].page, stripe->more[j].mask);
		/* relaxed: no thread is left. */
		assert(!atomic_load_explicit(&stripe->lock.is_taken, memory_order_relaxed));
	}
	assert(met == counter_read(&slab.out));
	return met;
}

/* Judges a chunk's sets of pages, and counts the empty ones. Returns the number of its free
 * blocks. */
static uint64_t judge_chunk(struct chunk *chunk, size_t *empty)
{
	uint32_t present = 0;
	uint64_t met = 0;

	for (size_t page = CHUNK_FIRST; page < CHUNK_PAGES; page++) {
		uint64_t free = chunk->free[page];
		bool is_present = !pages_have(chunk, PAGES_ABSENT, page);
		bool is_empty = is_present && free == chunk->all;

		met += blocks_meet(chunk_page(chunk, page), free);
		assert(is_present || free == chunk->all);
		assert(pages_have(chunk, PAGES_USABLE, page) == (is_present && free != 0));
		assert(pages_have(chunk, PAGES_EMPTY, page) == is_empty);
		present += is_present;
		*empty += is_empty;
	}
	assert(chunk->present == present);
	return met;
}

static void judge(void)
{
	uint64_t met = judge_stripes();
	size_t present = 0;
	size_t empty = 0;
	size_t count = 0;

	for (int i = 0; i < SLAB_LISTS; i++) {
		for (struct list *link = slab.chunks[i].next; link != &slab.chunks[i];
		     link = link->next) {
			struct chunk *chunk = list_entry(link, struct chunk, link);

			met += judge_chunk(chunk, &empty);
			assert(chunk->list == (enum slab_list)i &&
			       chunk_list(chunk) == chunk->list);
			present += chunk->present;
			count++;
		}
	}
	assert(count == slab.chunk_count && (int)count == chunks_mapped());
	assert(met == count * (CHUNK_PAGES - CHUNK_FIRST) * PAGE_BLOCKS);
	assert(slab.present == present && slab.empty == empty && empty <= present / 8);
	assert(counter_read(&slab.held) == present * PAGE + count * HEADER);
}

int main(void)
{
	pthread_t threads[THREADS + 1];

	thread_number = MAIN;
	for (int i = 0; i < SLAB_LISTS; i++)
		list_init(&slab.chunks[i]);
	slab_use_some();
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread_run, (void *)i);
	if (PASSES)
		pthread_create(&threads[THREADS], NULL, receiver_run, NULL);
	for (int i = 0; i < THREADS + PASSES; i++)
		pthread_join(threads[i], NULL);
	receive();
	judge();
	slab_destroy(&slab);
	assert(chunks_mapped() == 0);
	return 0;
}
