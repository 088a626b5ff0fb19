/* SPDX-License-Identifier: MIT */
/*
 * Memory of one cache for what is large or many: tables, large entries, and the pages that others
 * are cut from. Any thread.
 */
#ifndef CACHE_ARENA_H
#define CACHE_ARENA_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/* Spans of up to ARENA_SPAN_MOST lie in regions; larger ones are mapped each by itself. */
enum { ARENA_LEAF = 4096, ARENA_SPAN_MOST = 1 << 20, ARENA_REGION = 1 << 21 };

struct arena_region;

struct arena {
	pthread_mutex_t lock;
	/* Under it. */
	struct list regions; /* with something free */
	unsigned region_count;
	bool is_tight; /* there is a limit in bytes */
	uint64_t used; /* bytes in spans */
	uint64_t idle; /* bytes that are in none, and resident */
};

void arena_init(struct arena *arena);
/* All spans have been given back. */
void arena_destroy(struct arena *arena);
/* Whether little may be idle. */
void arena_set_tight(struct arena *arena, bool is_tight);
/*
 * At least `size` bytes, of any content, at a multiple of 64; a power of two from ARENA_LEAF to
 * ARENA_SPAN_MOST stands at a multiple of itself. NULL: out of memory.
 */
void *arena_take(struct arena *arena, size_t size);
/* With the size it was taken with. */
void arena_give(struct arena *arena, void *memory, size_t size);
/* How many bytes a span of that size takes. */
size_t arena_span_size(size_t size);
/* Gives back to the system some of what is idle beyond what may be. True: there is more. */
bool arena_trim(struct arena *arena);
/* The arena of a span of ARENA_LEAF and more, from any address in its first MiB. */
struct arena *arena_of(const void *memory);

#endif
