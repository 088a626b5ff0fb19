/* SPDX-License-Identifier: MIT */
/*
 * When a shard's entries are to be looked at for their age: hashes of keys by tick, of which the
 * wheel is told the first alone. Under the shard's lock. Knows ticks, no clock, and no entries.
 */
#ifndef CACHE_EXPIRY_H
#define CACHE_EXPIRY_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EXPIRY_DIGIT = 5,
	EXPIRY_LEVELS = 11,
	EXPIRY_SLOTS = 1 << EXPIRY_DIGIT,
	EXPIRY_BITS = 54,       /* ticks are less than 2^54 */
	EXPIRY_BLOCK_MOST = 30, /* hashes in a block */
	EXPIRY_PLACES = (EXPIRY_LEVELS - 1) * EXPIRY_SLOTS +
			(1 << (EXPIRY_BITS - (EXPIRY_LEVELS - 1) * EXPIRY_DIGIT))
};

/* This is later than every tick. */
#define EXPIRY_NEVER UINT64_MAX

struct pool;

struct expiry_block {
	struct expiry_block *next;
	uint16_t place; /* where it stands or stood last */
	uint16_t count;
	uint16_t capacity;
	uint64_t hashes[];
};

struct expiry {
	uint64_t now;                   /* the tick up to which slots have come up */
	uint32_t used[EXPIRY_LEVELS];   /* a bit for each slot that may hold hashes */
	struct expiry_block *due;       /* came up, not looked at yet */
	size_t count;                   /* of hashes, those in `due` too */
	struct expiry_block *forgotten; /* lists, linked by the first block's first hash */
	struct expiry_block *slots[EXPIRY_PLACES];
	struct pool *pool; /* constant */
};

void expiry_init(struct expiry *expiry, struct pool *pool, uint64_t now);
void expiry_close(struct expiry *expiry);
/* Forgets all; the memory is for expiry_free_some(). */
void expiry_clear(struct expiry *expiry);
/* Frees up to so many blocks of what is forgotten; false: nothing is left. */
bool expiry_free_some(struct expiry *expiry, unsigned blocks);
/*
 * Returns the place of what is to be examined at that tick, or, if that is not after now, at the
 * next one: not 0. What has a smaller place comes up before. A place keeps its number until it
 * comes up.
 */
static inline unsigned expiry_place(const struct expiry *expiry, uint64_t tick)
{
	unsigned level;

	assert(tick >> EXPIRY_BITS == 0);
	if (tick <= expiry->now)
		tick = expiry->now + 1;
	level = (63u - (unsigned)__builtin_clzll(tick ^ expiry->now)) / EXPIRY_DIGIT;
	/* Not 0: a slot of number 0 is never after now. */
	return level * EXPIRY_SLOTS + (tick >> level * EXPIRY_DIGIT & (EXPIRY_SLOTS - 1));
}

/* Returns whether nothing is filed there. */
static inline bool expiry_is_empty(const struct expiry *expiry, unsigned place)
{
	return !expiry->slots[place];
}

/* False: out of memory. */
bool expiry_file(struct expiry *expiry, uint64_t hash, unsigned place);
/* The first tick of a place, or EXPIRY_NEVER of place 0. */
uint64_t expiry_place_tick(const struct expiry *expiry, unsigned place);
/* The tick at which something comes up; EXPIRY_NEVER: nothing will. */
uint64_t expiry_next(const struct expiry *expiry);
/*
 * Takes out a block of hashes that have come up by the tick `now`, early ones too; NULL: there is
 * none. The caller looks at them, leaves those in it that could not be filed anew, for want of
 * memory, and gives it back: they come up again at that place.
 */
struct expiry_block *expiry_take(struct expiry *expiry, uint64_t now);
void expiry_give_back(struct expiry *expiry, struct expiry_block *block, unsigned place);

/* Asserts the invariants by examining all blocks. */
void expiry_check(const struct expiry *expiry);

#endif
