/* SPDX-License-Identifier: MIT */
/*
 * In this harness threads take blocks from a slab, write to them, and give them back, by a magazine
 * or all at once; one more may trim it meanwhile. No block is with two threads (their writes would
 * race), and each take sees the earlier writes to the block. At the end all blocks are in the slab
 * again, each once and counted right, and so are all the chunks that were mapped. Pages are given
 * back to the system only where all blocks are free: it writes zero to them. Bounds:
 *
 *   THREADS, TAKES   each thread takes TAKES blocks and gives them back,
 *   ROUNDS           and repeats this ROUNDS times
 *   MAGAZINE         blocks in a magazine, beside its own: 0 to 3
 *   CHUNK, HEADER    bytes of a chunk, and of these its header's. Where all is used at once, a
 *                    spare one is wanted
 *   ONE_STRIPE       1: all threads begin at the same stripe
 *   STRIPES          the slab's stripes, up to 16
 *   GIVES            LATE: the bin is flushed when all is done; FLUSH: after each round
 *   TRIMS            how often one thread trims meanwhile. A page is as large as the header
 *   HOOKS            1: the chunks stay, with their headers; otherwise unused ones are unmapped
 *   USED             blocks that are taken and given back before the threads begin
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef TAKES
#define TAKES 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef MAGAZINE
#define MAGAZINE 2
#endif
#ifndef GIVES
#define GIVES FLUSH
#endif
#ifndef TRIMS
#define TRIMS 0
#endif
#ifndef HOOKS
#define HOOKS 1
#endif
#ifndef USED
#define USED 0
#endif

#include "proof_slab.h"

enum gives { LATE, FLUSH };

struct block {
	void *room[5]; /* the slab uses this while it has the block */
	int uses;
	bool is_taken;
	_Alignas(CACHE_LINE) char end[];
};

_Static_assert(offsetof(struct slab_magazine, blocks) + MAGAZINE * sizeof(void *) <=
		       offsetof(struct block, uses),
	       "a magazine must lie in the slab's part of a block");

enum { BLOCKS_A_CHUNK = (CHUNK - HEADER) / CACHE_LINE, BLOCKS_A_PAGE = HEADER / CACHE_LINE };

_Static_assert(BLOCKS_A_CHUNK <= 64, "they must have bits");
_Static_assert(TRIMS == 0 || CHUNK % HEADER == 0, "a chunk must have whole pages");

/* The trimmer and main have these numbers. */
enum { TRIMMER = THREADS, MAIN = THREADS + 1 };

_Static_assert(MAIN < PROOF_MAPPERS, "each thread has a number");

static void blocks_clear(void *memory, size_t size)
{
	struct block *blocks = memory;

	for (size_t i = 0; i < size / sizeof(*blocks); i++) {
		for (int j = 0; j < 5; j++)
			blocks[i].room[j] = NULL;
		blocks[i].uses = 0;
		blocks[i].is_taken = false;
	}
}

static bool chunk_may_begin(void *argument, struct chunk *chunk)
{
	(void)argument;
	(void)chunk;
	return true;
}

static bool chunk_may_forget(void *argument, struct chunk *chunk, const struct chunk_pages *pages)
{
	(void)argument;
	(void)chunk;
	(void)pages;
	return true;
}

static const struct slab_hooks hooks = {chunk_may_begin, chunk_may_forget, NULL};

/* slab_init_hooked() would assign a whole struct, which GenMC refuses. */
static struct slab slab = {.block_size = sizeof(struct block),
			   .magazine = MAGAZINE,
			   .recycles = true,
			   .hooks = HOOKS ? &hooks : NULL};
static struct slab_bin bins[THREADS];

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
		for (int i = 0; i < TAKES; i++)
			block_give(bin, blocks[i]);
		if (GIVES == FLUSH || round == ROUNDS - 1)
			slab_flush(&slab, bin);
	}
	assert(!bin->magazines && bin->count == 0);
	return NULL;
}

static void *trimmer_run(void *argument)
{
	thread_number = TRIMMER;
	for (int i = 0; i < TRIMS; i++)
		while (slab_trim(&slab))
			continue;
	return argument;
}

/* Runs before any thread. The used blocks then lie in the depot. */
static void slab_use_some(void)
{
	struct slab_bin bin = {0};
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

static uint64_t judge_stripes(void)
{
	uint64_t met = 0;

	for (int i = 0; i < SLAB_STRIPES; i++) {
		for (unsigned j = 0; j < slab.stripes[i].count; j++)
			met += block_meet(slab.stripes[i].blocks[j]);
		/* relaxed: no thread is left. */
		assert(!atomic_load_explicit(&slab.stripes[i].busy, memory_order_relaxed));
	}
	assert(met == counter_read(&slab.out));
	return met;
}

static uint64_t judge_depot(void)
{
	uint64_t met = 0;

	for (struct slab_magazine *magazine = slab.magazines; magazine; magazine = magazine->next) {
		for (size_t i = 0; i < magazine->count; i++)
			met += block_meet(magazine->blocks[i]);
		met += block_meet(magazine);
	}
	assert(met == slab.depot_count);
	return met;
}

/* Pages that were given back have free blocks only. */
static void judge_pages(const struct chunk *chunk)
{
	uint32_t held = 1;

	for (uint32_t page = 1; page < CHUNK / HEADER; page++) {
		bool is_absent = chunk->absent[0] >> page & 1;
		uint64_t all = ((uint64_t)1 << BLOCKS_A_PAGE) - 1;

		held += !is_absent;
		assert(!is_absent || (~chunk->free[0] >> (page - 1) * BLOCKS_A_PAGE & all) == 0);
	}
	assert(chunk->held == held);
}

/* Adds the bytes of the chunks to *held. */
static uint64_t judge_chunks(const struct list *chunks, bool has_free, uint64_t *held)
{
	uint64_t met = 0;

	for (const struct list *link = chunks->next; link != chunks; link = link->next) {
		struct chunk *chunk = list_entry((struct list *)link, struct chunk, link);
		uint64_t met_before = met;

		for (size_t i = 0; i < BLOCKS_A_CHUNK; i++)
			if (chunk->free[0] >> i & 1)
				met += block_meet(chunk_block(chunk, sizeof(struct block), i));
		assert(met - met_before == chunk->free_count);
		assert((chunk->free_count > 0) == has_free);
		if (CHUNK % HEADER == 0)
			judge_pages(chunk);
		*held += (uint64_t)chunk->held * HEADER;
	}
	return met;
}

static void judge(void)
{
	uint64_t held = slab.spare ? CHUNK : 0;
	uint64_t in_chunks = judge_chunks(&slab.with_free, true, &held) +
			     judge_chunks(&slab.used_up, false, &held);

	assert(in_chunks == slab.free_count);
	assert(in_chunks + judge_depot() + judge_stripes() == slab.chunk_count * BLOCKS_A_CHUNK);
	assert(held == counter_read(&slab.held));
	assert(!slab.preparing);
}

int main(void)
{
	pthread_t threads[THREADS + 1];

	thread_number = MAIN;
	list_init(&slab.with_free);
	list_init(&slab.used_up);
	slab_use_some();
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread_run, (void *)i);
	if (TRIMS > 0)
		pthread_create(&threads[THREADS], NULL, trimmer_run, NULL);
	for (int i = 0; i < THREADS + (TRIMS > 0); i++)
		pthread_join(threads[i], NULL);
	judge();
	slab_destroy(&slab);
	assert(chunks_mapped() == 0);
	return 0;
}
