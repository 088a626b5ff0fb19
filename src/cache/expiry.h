/* SPDX-License-Identifier: MIT */
/*
 * An expiry has hashes of keys by the tick at which a shard is to examine their entries' age; the
 * wheel gets only the first tick. The shard's lock guards it. It knows no clock, and no entries.
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
	EXPIRY_ALL_SLOTS = (EXPIRY_LEVELS - 1) * EXPIRY_SLOTS +
			   (1 << (EXPIRY_BITS - (EXPIRY_LEVELS - 1) * EXPIRY_DIGIT)),
	EXPIRY_PLACES = 2 * EXPIRY_ALL_SLOTS
};

/* EXPIRY_NEVER is later than every tick. */
#define EXPIRY_NEVER UINT64_MAX

struct pool;

struct expiry_block {
	struct expiry_block *next;
	uint16_t place; /* where it stands or stood last */
	uint16_t count;
	uint64_t hashes[EXPIRY_BLOCK_MOST];
};

struct expiry {
	/* These come first: each filing looks at them. */
	uint64_t now;                  /* the tick up to which slots have come up */
	size_t count;                  /* hashes, also those in `due` */
	uint32_t turns[EXPIRY_LEVELS]; /* a bit for each slot: its turn */
	uint32_t used[EXPIRY_LEVELS];  /* a bit for each slot that may hold hashes */
	unsigned early;                /* the slot that was examined early last */
	struct expiry_block *due;      /* blocks that came up and are not examined yet */
	struct expiry_block *slots[EXPIRY_ALL_SLOTS];
	struct pool *pool; /* constant */
};

/* One that is zeroed, except for the time and the pool, has no hashes. */
void expiry_close(struct expiry *expiry);
/*
 * Returns the place, not 0, of a hash to be examined at `tick`, or, if that is not after now, at
 * the next tick. A place is a slot in its present turn. That of a smaller slot comes up first. A
 * place keeps its number until it comes up.
 */
static inline unsigned expiry_place(const struct expiry *expiry, uint64_t tick)
{
	unsigned level;
	unsigned slot;

	assert(tick >> EXPIRY_BITS == 0);
	if (tick <= expiry->now)
		tick = expiry->now + 1;
	level = (63u - (unsigned)__builtin_clzll(tick ^ expiry->now)) / EXPIRY_DIGIT;
	/* It is not 0: a slot of number 0 is never after now. */
	slot = tick >> level * EXPIRY_DIGIT & (EXPIRY_SLOTS - 1);
	return (level * EXPIRY_SLOTS + slot) * 2 + (expiry->turns[level] >> slot & 1);
}

/* Files a hash at a place. Returns false if out of memory. */
bool expiry_file(struct expiry *expiry, uint64_t hash, unsigned place);
/* Returns the first tick of a place, or EXPIRY_NEVER for place 0. */
uint64_t expiry_place_tick(const struct expiry *expiry, unsigned place);
/* Returns the tick at which the next hashes come up, or EXPIRY_NEVER if none will. */
uint64_t expiry_next(const struct expiry *expiry);
/*
 * Takes out a block of hashes that have come up by the tick `now`, early ones too, or returns NULL
 * if there is none. The caller examines them, leaves in the block those that it had no memory to
 * file again, and gives it back: they come up again at that place.
 */
struct expiry_block *expiry_take(struct expiry *expiry, uint64_t now);
/* Takes out a block before its time, of one slot after the other. NULL if there are no hashes. */
struct expiry_block *expiry_take_early(struct expiry *expiry);
void expiry_give_back(struct expiry *expiry, struct expiry_block *block, unsigned place);

#endif
