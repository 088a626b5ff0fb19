/* SPDX-License-Identifier: MIT */
/*
 * A slab is memory for blocks of one size that one thread takes and another gives back.
 *
 * Which calls may run together (x), and which may not (-):
 *
 *                          take   give   flush   use   traffic, surplus, trim
 *   take                   x      x      x       x     x
 *   give                   x      b      b       x     x
 *   flush                  x      b      b       x     x
 *   use, find_used         x      x      x       x     x
 *   traffic ... trim       x      x      x       x     -
 *
 *   b   if each call has another bin
 *
 * Other threads cannot take a block that lies in a bin. slab_give() passes the bin's blocks on when
 * they fill a magazine, slab_flush() passes all of them on.
 */
#ifndef SLAB_H
#define SLAB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chunk.h"
#include "list.h"

enum {
	SLAB_STRIPES = 16,
	SLAB_MAGAZINE = 32 /* blocks, at most */
};

struct slab_magazine;

/* Functions that a slab calls when its memory comes and goes. */
struct slab_hooks {
	/* Called for a new chunk before any of its blocks is used, under the slab's lock. Returns
	 * false to refuse the chunk. */
	bool (*begin)(void *argument, struct chunk *chunk);
	/* Called before `pages`, with free blocks only, may go back to the system and become zero,
	 * under no lock. Returns false to keep them. */
	bool (*forget)(void *argument, struct chunk *chunk, const struct chunk_pages *pages);
	void *argument;
};

/* A stripe holds free blocks that threads take without the lock. */
struct slab_stripe {
	_Alignas(CACHE_LINE) atomic_bool busy;
	/* Only the thread that set `busy` touches these. */
	unsigned count;
	void *blocks[SLAB_MAGAZINE];
};

struct slab {
	/* Constant. */
	size_t block_size;
	unsigned magazine; /* blocks in a magazine, not counting its own */
	bool recycles;     /* false where every block comes from malloc */
	bool fetches; /* prefetch blocks: their users write to them as soon as they take them */
	const struct slab_hooks *hooks; /* or NULL; with hooks every chunk in use stays mapped */
	struct slab_stripe stripes[SLAB_STRIPES]; /* any thread */
	/* Any thread touches these under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	struct slab_magazine *magazines;
	struct list with_free; /* chunks that have free blocks */
	struct list used_up;   /* the others */
	size_t chunk_count;
	size_t free_count;   /* free blocks in chunks */
	size_t depot_count;  /* free blocks in magazines */
	struct chunk *spare; /* the next chunk, prepared before it is needed; in no list */
	bool preparing;      /* a thread is preparing a spare chunk */
	/* Statistics, written under the lock and read by any thread. */
	_Atomic uint64_t held;  /* bytes from the system */
	_Atomic uint64_t given; /* blocks given back, in total */
	_Atomic uint64_t out;   /* blocks that are in no chunk and no magazine of the depot */
	/* Only the one thread that trims touches these. */
	uint64_t begun_given; /* `given` and `out` when this trim began */
	uint64_t begun_out;
	uint64_t trimmed_given; /* `given` and `out` when the last trim began that searched all */
	uint64_t trimmed_out;
	size_t to_collect; /* blocks of the depot that this trim still has to collect */
	uint32_t visit;    /* number of this trim */
	bool is_trimming;
};

/* A bin holds blocks that one thread is giving back. A zeroed bin is empty. */
struct slab_bin {
	struct slab_magazine *magazines; /* full magazines, the last filled first */
	struct slab_magazine *last;      /* the full magazine that was filled first */
	size_t full;                     /* blocks in full magazines, with their own */
	unsigned count;
	void *blocks[SLAB_MAGAZINE];
};

/* Initializes a slab. `block_size` is a multiple of 8, from 72 bytes to a page. */
void slab_init(struct slab *slab, size_t block_size);
/*
 * Initializes a slab with hooks. Its memory holds blocks and nothing else until slab_destroy(),
 * also under a sanitizer. The slab writes only the first `room` bytes of a free block, unless the
 * hook `forget` has allowed its page to go.
 */
void slab_init_hooked(struct slab *slab, size_t block_size, size_t room,
		      const struct slab_hooks *hooks);
/* Frees all memory. No block may be used after that. */
void slab_destroy(struct slab *slab);

/*
 * Returns a block with undefined content, or NULL if out of memory. Blocks share no cache line if
 * their size is a multiple of one.
 */
void *slab_take(struct slab *slab);
/* Gives back a block when the bin has as many as a magazine: they become one. slab_give() calls
 * it. */
void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin, void *block);

/* Gives back a block through the caller's bin. */
static inline void slab_give(struct slab *slab, struct slab_bin *bin, void *block)
{
	if (bin->count < slab->magazine)
		bin->blocks[bin->count++] = block;
	else
		slab_give_to_full_bin(slab, bin, block);
}

/* Empties the bin: any thread can take its blocks after that. */
void slab_flush(struct slab *slab, struct slab_bin *bin);

/* Bytes that the slab has from the system, and bytes in use. */
struct slab_use {
	uint64_t held;
	uint64_t in_use;
};
struct slab_use slab_use(const struct slab *slab);

/* Returns what chunk_find_used() returns. Free blocks in bins, stripes and the depot count as used,
 * and all blocks do if the lock is taken: the call does not wait. */
struct chunk_used slab_find_used(struct slab *slab, const struct chunk *chunk, size_t number);

/* ---- One thread at a time may call the following functions ---- */

/* Returns the bytes taken plus the bytes given back, in total. */
uint64_t slab_traffic(const struct slab *slab);
/* Returns an estimate of the bytes that a trim can give back. */
uint64_t slab_surplus(const struct slab *slab);
/*
 * Does one step, of about 100 us, of giving back to the system what is free, as far as the blocks
 * in use allow. Returns true while there is more to do.
 */
bool slab_trim(struct slab *slab);

#endif
