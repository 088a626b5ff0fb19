/* SPDX-License-Identifier: MIT */
/*
 * This is a slab's environment in a harness: small chunks, on small pages, from a system that shows
 * what is done to them. CHUNK, HEADER and PAGE are the bytes of a chunk, of its header and of a
 * page. STRIPES is the number of the slab's stripes, up to 16, BATCH that of the blocks in a bin.
 * The slab keeps no empty pages while it has less than eight.
 *
 * The harness defines what zeroing does to a page's blocks: blocks_clear().
 */
#ifndef PROOF_SLAB_H
#define PROOF_SLAB_H

#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef CHUNK
#define CHUNK 512
#endif
#ifndef HEADER
#define HEADER 256
#endif
#ifndef PAGE
#define PAGE 64
#endif
#ifndef BATCH
#define BATCH 1
#endif
#ifndef STRIPES
#define STRIPES 16
#endif
#ifndef ONE_STRIPE
#define ONE_STRIPE 1
#endif

#define CHUNK_SIZE ((size_t)CHUNK)
#define CHUNK_PAGE ((size_t)PAGE)
#define CHUNK_FIRST ((size_t)(HEADER / PAGE))
#define SLAB_BATCH BATCH
#define EMPTY_PAGES_KEPT 0

#include "base/slab.h"

#define SLAB_STRIPES STRIPES

static inline pthread_t proof_self(void)
{
	return ONE_STRIPE ? 0 : pthread_self();
}

#define pthread_self proof_self
#include "base/slab.c"
#undef pthread_self

/* The search for a free stripe goes on until one is found; orders in which it takes longer show no
 * more. */
void thread_back_off(unsigned *tries)
{
	++*tries;
	__VERIFIER_assume(false);
}

/* Writes zero to the fields that the harness reads; they must belong to the calling thread. */
static void blocks_clear(void *memory, size_t size);

/* Chunks are listed by the thread that mapped them; each thread has a number of its own. */
enum { PROOF_MAPPERS = 5 };
static int mapped[PROOF_MAPPERS];
static _Thread_local int thread_number;

static inline int chunks_mapped(void)
{
	int count = 0;

	for (int i = 0; i < PROOF_MAPPERS; i++)
		count += mapped[i];
	return count;
}

size_t pages_size(void)
{
	return PAGE;
}

/* It clears what the header must begin with, and what the harness reads of blocks. */
void *pages_map_aligned(size_t alignment, size_t size)
{
	struct chunk *chunk = aligned_alloc(alignment, size);

	mapped[thread_number]++;
	chunk->present = 0;
	for (int set = 0; set < PAGE_SETS; set++)
		chunk->counts[set] = chunk->sets[0][set] = 0;
	blocks_clear(chunk_page(chunk, CHUNK_FIRST), CHUNK - HEADER);
	return chunk;
}

void pages_unmap_aligned(void *memory, size_t size)
{
	(void)size;
	mapped[thread_number]--;
	free(memory);
}

bool pages_release(void *memory, size_t size)
{
	blocks_clear(memory, size);
	return true;
}

void pages_use_huge(void *memory, size_t size, bool huge)
{
	(void)memory;
	(void)size;
	(void)huge;
}

void pages_make_huge(void *memory, size_t size)
{
	(void)memory;
	(void)size;
}

#endif
