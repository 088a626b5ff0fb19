/* SPDX-License-Identifier: MIT */
/*
 * A shard has one timer in the wheel, and its expiry keeps what is to be examined at which tick. A
 * timer costs 88 bytes and a command; a million entries have no room for that.
 *
 * An expiry keeps the hash of a key, and not its entry: 8 bytes in a block of up to 30, a cell of
 * the pool. So an entry needs no links for it, and a removal touches no neighbours. The entry knows
 * the place where its hash is filed; a replacement files the hash again only for an earlier place.
 * Hashes that replaced and removed entries leave behind come up some day and are not wanted any
 * more. When they become more than the rest, blocks are examined early, slot by slot: what is
 * wanted is filed again, and the rest is gone.
 *
 * A key that is removed and set again may have several hashes in one slot, where one is wanted. So
 * a slot has turns: when its hashes are taken out, early or in time, what is filed there from then
 * on is of the other turn. The entry has that in its place once one of the hashes was examined, and
 * the others are of no use.
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
 *   the blocks in a slot are of its present turn, those in `due` of one slot's turn before that
 *   every hash lies in a slot that comes up at its tick or before
 *   `count` is the number of hashes in slots and in `due`
 *
 * A slot that comes up, or is examined early, is first moved to `due` as a whole, and taken from
 * there a block at a time, so that the lock can be released in between.
 */
#include "expiry.h"

#include "pool.h"

_Static_assert(sizeof(struct expiry_block) == POOL_EXPIRY_BLOCK, "it fills a cell of the pool");

/* Returns an empty block, or NULL if out of memory. */
static struct expiry_block *block_new(const struct expiry *expiry)
{
	struct pool_cell *cell = NULL;
	struct expiry_block *block;
	size_t taken = 0;

	if (pool_take(expiry->pool, POOL_EXPIRY, 1, &cell, &taken) == 0)
		return NULL;
	block = (struct expiry_block *)(void *)cell;
	block->count = 0;
	return block;
}

static void blocks_free(struct expiry_block *block)
{
	struct expiry_block *next;

	for (; block; block = next) {
		next = block->next;
		pool_give(block);
	}
}

void expiry_close(struct expiry *expiry)
{
	for (unsigned slot = 0; slot < EXPIRY_ALL_SLOTS; slot++)
		blocks_free(expiry->slots[slot]);
	blocks_free(expiry->due);
}

static void expiry_list(struct expiry *expiry, struct expiry_block *block, unsigned place)
{
	unsigned slot = place / 2;

	expiry->used[slot / EXPIRY_SLOTS] |= 1u << slot % EXPIRY_SLOTS;
	block->place = (uint16_t)place;
	block->next = expiry->slots[slot];
	expiry->slots[slot] = block;
}

bool expiry_file(struct expiry *expiry, uint64_t hash, unsigned place)
{
	struct expiry_block *block = expiry->slots[place / 2];

	if (!block || block->count == EXPIRY_BLOCK_MOST) {
		block = block_new(expiry);
		if (!block)
			return false;
		expiry_list(expiry, block, place);
	}
	block->hashes[block->count++] = hash;
	expiry->count++;
	return true;
}

/* Returns the first used slot after that one to come up, or 0 if there is none. */
static unsigned expiry_next_slot(const struct expiry *expiry, unsigned after)
{
	uint32_t later = UINT32_MAX << after % EXPIRY_SLOTS << 1;

	for (unsigned level = after / EXPIRY_SLOTS; level < EXPIRY_LEVELS; level++) {
		uint32_t used = expiry->used[level] & later;

		if (used)
			return level * EXPIRY_SLOTS + (unsigned)__builtin_ctz(used);
		later = UINT32_MAX;
	}
	return 0;
}

uint64_t expiry_place_tick(const struct expiry *expiry, unsigned place)
{
	unsigned slot = place / 2;
	unsigned shift = slot / EXPIRY_SLOTS * EXPIRY_DIGIT;
	uint64_t above = expiry->now >> shift >> EXPIRY_DIGIT;

	return place == 0 ? EXPIRY_NEVER : (above << EXPIRY_DIGIT | slot % EXPIRY_SLOTS) << shift;
}

uint64_t expiry_next(const struct expiry *expiry)
{
	return expiry->due ? expiry->now
			   : expiry_place_tick(expiry, expiry_next_slot(expiry, 0) * 2);
}

/* Moves the hashes of a slot to the empty `due`, and begins the slot's next turn. */
static void expiry_empty(struct expiry *expiry, unsigned slot)
{
	uint32_t bit = 1u << slot % EXPIRY_SLOTS;

	expiry->used[slot / EXPIRY_SLOTS] &= ~bit;
	expiry->turns[slot / EXPIRY_SLOTS] ^= bit;
	expiry->due = expiry->slots[slot];
	expiry->slots[slot] = NULL;
}

/* Has the first slot come up by `now`, while `due` is empty. Returns false if there is none. */
static bool expiry_come_up(struct expiry *expiry, uint64_t now)
{
	unsigned slot = expiry_next_slot(expiry, 0);
	uint64_t tick = expiry_place_tick(expiry, slot * 2);

	if (tick <= now) {
		expiry->now = tick;
		expiry_empty(expiry, slot);
		return true;
	}
	if (now > expiry->now)
		expiry->now = now;
	return false;
}

/* Takes the first block of `due`. Returns NULL if there is none. */
static struct expiry_block *expiry_take_due(struct expiry *expiry)
{
	struct expiry_block *block = expiry->due;

	if (!block)
		return NULL;
	expiry->due = block->next;
	__builtin_prefetch(block->next);
	expiry->count -= block->count;
	return block;
}

struct expiry_block *expiry_take(struct expiry *expiry, uint64_t now)
{
	while (!expiry->due)
		if (!expiry_come_up(expiry, now))
			return NULL;
	return expiry_take_due(expiry);
}

struct expiry_block *expiry_take_early(struct expiry *expiry)
{
	if (!expiry->due) {
		expiry->early = expiry_next_slot(expiry, expiry->early);
		if (expiry->early == 0)
			expiry->early = expiry_next_slot(expiry, 0);
		expiry_empty(expiry, expiry->early);
	}
	return expiry_take_due(expiry);
}

void expiry_give_back(struct expiry *expiry, struct expiry_block *block, unsigned place)
{
	if (block->count == 0) {
		pool_give(block);
		return;
	}
	expiry_list(expiry, block, place);
	expiry->count += block->count;
}
