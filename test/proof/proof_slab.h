/* SPDX-License-Identifier: MIT */
/*
 * This is a slab's environment in a harness: small chunks, on small pages, from a system that shows
 * what is done to them. CHUNK and HEADER are the bytes of a chunk and of its header; a page is as
 * large as the header. STRIPES is the number of the slab's stripes, up to 16.
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
#ifndef STRIPES
#define STRIPES 16
#endif
#ifndef ONE_STRIPE
#define ONE_STRIPE 1
#endif

#define CHUNK_SIZE ((size_t)CHUNK)
#define CHUNK_HEADER ((size_t)HEADER)

#include "base/chunk.c"
#include "base/slab.h"

#define SLAB_STRIPES STRIPES

static inline pthread_t proof_self(void)
{
	return ONE_STRIPE ? 0 : pthread_self();
}

#define pthread_self proof_self
#include "base/slab.c"
#undef pthread_self

_Static_assert(sizeof(struct chunk) + sizeof(uint64_t) <= HEADER,
	       "the bits of up to 64 blocks must lie in the header");

/* The slab copies addresses only. */
void *memcpy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size / sizeof(void *); i++)
		((void **)to)[i] = ((void *const *)from)[i];
	return to;
}

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
	return HEADER;
}

void *pages_map_aligned(size_t size)
{
	struct chunk *chunk = aligned_alloc(size, size);

	mapped[thread_number]++;
	for (int i = 0; i < CHUNK_PAGES_MOST / 64; i++)
		chunk->absent[i] = 0;
	chunk->free[0] = 0;
	chunk->first_word = 0;
	blocks_clear(chunk_block(chunk, 0, 0), CHUNK - HEADER);
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

void pages_populate(void *memory, size_t size)
{
	(void)memory;
	(void)size;
}

#endif
