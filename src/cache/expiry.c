/* SPDX-License-Identifier: MIT */
/*
 * A shard has one timer in the wheel, and its expiry keeps what is to be examined at which tick. A
 * timer costs 88 bytes and a command; a million entries have no room for that.
 *
 * An expiry keeps the hash of a key, and not its entry: 8 bytes in a block of up to 30. So an entry
 * needs no links for it, and a removal touches no neighbours. The entry knows the place where its
 * hash is filed; a replacement files the hash again only for an earlier place. Hashes that replaced
 * and removed entries leave behind come up some day and are not wanted any more. When they become
 * more than the rest, the shard forgets all hashes and files its entries again (shard.c).
 *
 * Ticks are numbers of eleven digits to the base 32: 292 years of microseconds have 53 bits. A hash
 * is filed at the level of the highest digit in which its tick differs from now, in the slot of
 * that digit. So all slots of a level lie after now, lower levels come up before higher ones, and
 * the next slot to come up is found by two looks. When a slot of level 0 comes up, its entries are
 * due. A slot of a higher level comes up at its first tick, and its hashes are filed again, lower:
 * each entry's deadline is examined then, for it may have moved to later without a new filing.
 *
 * Invariants:
 *   each slot with hashes has its bit in `used`
 *   every hash lies in a slot that comes up at its tick or before
 *   `count` is the number of hashes in slots and in `due`
 *
 * A slot that comes up is first moved to `due` as a whole, and taken from there a block at a time,
 * so that the lock can be released in between.
 */
#include "expiry.h"

#include <stdlib.h>
#include <string.h>

#include "pool.h"

/* The first block of a slot is small, for in a small cache it is the only one; the next are larger,
 * and the largest are the pool's, so that their memory comes back when they do. */
enum { BLOCK_LEAST = 2 };

_Static_assert(sizeof(struct expiry_block) + EXPIRY_BLOCK_MOST * sizeof(uint64_t) ==
		       POOL_EXPIRY_BLOCK,
	       "the largest fill a block of the pool");

void expiry_init(struct expiry *expiry, struct pool *pool, uint64_t now)
{
	memset(expiry, 0, sizeof(*expiry));
	expiry->pool = pool;
	expiry->now = now;
}

/* Returns an empty block, or NULL if out of memory. */
static struct expiry_block *block_new(const struct expiry *expiry, unsigned capacity)
{
	struct expiry_block *block;

	if (capacity == EXPIRY_BLOCK_MOST)
		block = pool_take_expiry_block(expiry->pool);
	else
		block = malloc(sizeof(*block) + capacity * sizeof(block->hashes[0]));
	if (!block)
		return NULL;
	block->count = 0;
	block->capacity = (uint16_t)capacity;
	return block;
}

static void block_free(struct expiry_block *block)
{
	if (block->capacity == EXPIRY_BLOCK_MOST)
		pool_give_expiry_block(block);
	else
		free(block);
}

/* Forgets a list. Its hashes are not wanted any more: one is the link to the next list. */
static void expiry_forget(struct expiry *expiry, struct expiry_block **list)
{
	if (!*list)
		return;
	(*list)->hashes[0] = (uintptr_t)expiry->forgotten;
	expiry->forgotten = *list;
	*list = NULL;
}

void expiry_clear(struct expiry *expiry)
{
	for (unsigned place = 0; place < EXPIRY_PLACES; place++)
		expiry_forget(expiry, &expiry->slots[place]);
	expiry_forget(expiry, &expiry->due);
	memset(expiry->used, 0, sizeof(expiry->used));
	expiry->count = 0;
}

bool expiry_free_some(struct expiry *expiry, unsigned blocks)
{
	for (; blocks > 0 && expiry->forgotten; blocks--) {
		struct expiry_block *block = expiry->forgotten;

		if (block->next) {
			expiry->forgotten = block->next;
			expiry->forgotten->hashes[0] = block->hashes[0];
		} else {
			expiry->forgotten = (struct expiry_block *)(uintptr_t)block->hashes[0];
		}
		block_free(block);
	}
	return expiry->forgotten;
}

void expiry_close(struct expiry *expiry)
{
	expiry_clear(expiry);
	while (expiry_free_some(expiry, 1))
		continue;
}

static void expiry_list(struct expiry *expiry, struct expiry_block *block, unsigned place)
{
	expiry->used[place / EXPIRY_SLOTS] |= 1u << place % EXPIRY_SLOTS;
	block->place = (uint16_t)place;
	block->next = expiry->slots[place];
	expiry->slots[place] = block;
}

bool expiry_file(struct expiry *expiry, uint64_t hash, unsigned place)
{
	struct expiry_block *block = expiry->slots[place];

	if (!block || block->count == block->capacity) {
		unsigned capacity = block ? block->capacity * 2u + 2 : BLOCK_LEAST;

		if (capacity > EXPIRY_BLOCK_MOST)
			capacity = EXPIRY_BLOCK_MOST;
		block = block_new(expiry, capacity);
		if (!block)
			return false;
		expiry_list(expiry, block, place);
	}
	block->hashes[block->count++] = hash;
	expiry->count++;
	return true;
}

/* Returns the first place to come up, or 0 if there is none. */
static unsigned expiry_next_place(const struct expiry *expiry)
{
	for (unsigned level = 0; level < EXPIRY_LEVELS; level++)
		if (expiry->used[level])
			return level * EXPIRY_SLOTS + (unsigned)__builtin_ctz(expiry->used[level]);
	return 0;
}

uint64_t expiry_place_tick(const struct expiry *expiry, unsigned place)
{
	unsigned shift = place / EXPIRY_SLOTS * EXPIRY_DIGIT;
	uint64_t above = expiry->now >> shift >> EXPIRY_DIGIT;

	return place == 0 ? EXPIRY_NEVER : (above << EXPIRY_DIGIT | place % EXPIRY_SLOTS) << shift;
}

uint64_t expiry_next(const struct expiry *expiry)
{
	return expiry->due ? expiry->now : expiry_place_tick(expiry, expiry_next_place(expiry));
}

/* Moves the first slot to come up by `now` to the empty `due`. Returns false if there is none. */
static bool expiry_come_up(struct expiry *expiry, uint64_t now)
{
	unsigned place = expiry_next_place(expiry);
	uint64_t tick = expiry_place_tick(expiry, place);

	if (tick <= now) {
		expiry->now = tick;
		expiry->used[place / EXPIRY_SLOTS] &= ~(1u << place % EXPIRY_SLOTS);
		expiry->due = expiry->slots[place];
		expiry->slots[place] = NULL;
		return true;
	}
	if (now > expiry->now)
		expiry->now = now;
	return false;
}

struct expiry_block *expiry_take(struct expiry *expiry, uint64_t now)
{
	struct expiry_block *block;

	while (!expiry->due)
		if (!expiry_come_up(expiry, now))
			return NULL;
	block = expiry->due;
	expiry->due = block->next;
	__builtin_prefetch(block->next);
	expiry->count -= block->count;
	return block;
}

void expiry_give_back(struct expiry *expiry, struct expiry_block *block, unsigned place)
{
	if (block->count == 0) {
		block_free(block);
		return;
	}
	expiry_list(expiry, block, place);
	expiry->count += block->count;
}
