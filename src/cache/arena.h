/* SPDX-License-Identifier: MIT */
/*
 * An arena is one cache's memory for what is large or many: tables, large entries, and the pages
 * that others are cut from. Any thread may call these functions.
 */
#ifndef CACHE_ARENA_H
#define CACHE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/turn_lock.h"

/* Spans of up to ARENA_SPAN_MOST lie in regions; larger ones are mapped each by itself. */
enum { ARENA_LEAF = 4096, ARENA_SPAN_MOST = 1 << 20, ARENA_REGION = 1 << 21 };

struct arena_region;

struct arena {
	struct turn_lock lock;
	struct turn_lock_sleep sleep; /* for the lock */
	/* Under it. */
	struct list regions; /* regions with something free */
	unsigned region_count;
	bool is_tight;        /* there is a limit in bytes */
	uint64_t used;        /* bytes in spans */
	uint64_t idle;        /* resident bytes in no span */
	uint64_t used_before; /* `used` at the last arena_trim() */
};

void arena_init(struct arena *arena);
/* Frees the regions. All spans must have been given back. */
void arena_destroy(struct arena *arena);
/* Sets whether only little may be idle. */
void arena_set_tight(struct arena *arena, bool is_tight);
/*
 * Returns at least `size` bytes, of any content, at a multiple of 64, or NULL if out of memory. A
 * power of two from ARENA_LEAF to ARENA_SPAN_MOST stands at a multiple of itself.
 */
void *arena_take(struct arena *arena, size_t size);
/* Gives back a span, with the size it was taken with. */
void arena_give(struct arena *arena, void *memory, size_t size);
/* Gives back one part of a large span that no thread looks at any more. Returns true if the rest is
 * for arena_give(), with the whole size. */
bool arena_give_some(struct arena *arena, void *memory, size_t size);
/* Returns how many bytes a span of that size takes. */
size_t arena_span_size(size_t size);
/* Gives what is idle beyond its share back to the system, up to `most` bytes in short steps. The
 * share is less at rest: if as much is used as at the last call. Returns whether there is more, or
 * will be if the next call finds the arena at rest. */
bool arena_trim(struct arena *arena, size_t most);
/* Returns the arena of a span of at least ARENA_LEAF bytes, from any address in its first MiB. */
struct arena *arena_of(const void *memory);

#endif
