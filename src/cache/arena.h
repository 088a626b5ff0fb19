/* SPDX-License-Identifier: MIT */
/*
 * Memory of one cache for what is large or many: tables, and the chunks that entries are cut from.
 * Any thread. Lives until its last owner lets go of it, which may be long after the cache.
 */
#ifndef CACHE_ARENA_H
#define CACHE_ARENA_H

#include <stddef.h>

struct arena;
struct arena_region;

/* A power of two of bytes, at a multiple of 64. */
struct arena_span {
	void *memory;
	struct arena_region *region; /* NULL: it came from the C library */
	size_t size;
};

enum { ARENA_SPAN_LEAST = 4096, ARENA_SPAN_MOST = 1 << 21 };

/* With one owner; NULL: out of memory. */
struct arena *arena_create(void);
void arena_acquire(struct arena *arena);
/* All spans of the owner that lets go have been given back. */
void arena_release(struct arena *arena);
/* At least `size` bytes, of any content; memory NULL: out of memory. */
struct arena_span arena_take(struct arena *arena, size_t size);
void arena_give(struct arena *arena, const struct arena_span *span);

#endif
