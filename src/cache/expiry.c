/* SPDX-License-Identifier: MIT */
/*
 * A timer in the wheel costs 88 bytes and a command; a million entries have no room for that. So
 * entries are chained by tick, and a shard has one timer, at the first tick that has entries.
 *
 * Ticks are numbers of ten digits to the base 32. An entry is filed at the level of the highest
 * digit in which its tick differs from now, in the slot of that digit. So all slots of a level lie
 * after now, lower levels come up before higher ones, and the next slot to come up is found by two
 * looks. When a slot of level 0 comes up, its entries are due. One of a higher level comes up at
 * its first tick, and its entries are filed anew, lower: who takes them looks at each one's
 * deadline anyway, for it may have moved to later without being filed again.
 *
 * What comes up is first moved to `due` as a whole, and taken from there a few at a time, so that
 * the lock can be let go in between.
 */
#include "expiry.h"

#include <string.h>

/* The last tick that can be told from others; nobody lives to see it. */
static const uint64_t last_tick = ((uint64_t)1 << EXPIRY_DIGIT * EXPIRY_LEVELS) - 1;

void expiry_init(struct expiry *expiry)
{
	memset(expiry, 0, sizeof(*expiry));
}

static void list_push(struct tw_cache_entry **place, struct tw_cache_entry *entry)
{
	entry->expiry_next = *place;
	entry->expiry_place = place;
	if (*place)
		(*place)->expiry_place = &entry->expiry_next;
	*place = entry;
}

void expiry_file(struct expiry *expiry, struct tw_cache_entry *entry, uint64_t tick)
{
	unsigned level;
	unsigned slot;

	if (tick > last_tick)
		tick = last_tick;
	if (tick <= expiry->now) {
		list_push(&expiry->due, entry);
		return;
	}
	level = (63u - (unsigned)__builtin_clzll(tick ^ expiry->now)) / EXPIRY_DIGIT;
	slot = tick >> level * EXPIRY_DIGIT & (EXPIRY_SLOTS - 1);
	expiry->used[level] |= 1u << slot;
	list_push(&expiry->slots[level][slot], entry);
}

void expiry_unfile(struct tw_cache_entry *entry)
{
	if (!entry->expiry_place)
		return;
	*entry->expiry_place = entry->expiry_next;
	if (entry->expiry_next)
		entry->expiry_next->expiry_place = entry->expiry_place;
	entry->expiry_place = NULL;
}

void expiry_take_place(struct tw_cache_entry *entry, struct tw_cache_entry *old)
{
	entry->expiry_next = old->expiry_next;
	entry->expiry_place = old->expiry_place;
	*entry->expiry_place = entry;
	if (entry->expiry_next)
		entry->expiry_next->expiry_place = &entry->expiry_next;
	old->expiry_place = NULL;
}

/* The first slot to come up; false: none. It may be empty: what was in it was taken out. */
static bool expiry_next_slot(const struct expiry *expiry, unsigned *level, unsigned *slot)
{
	for (unsigned i = 0; i < EXPIRY_LEVELS; i++)
		if (expiry->used[i]) {
			*level = i;
			*slot = (unsigned)__builtin_ctz(expiry->used[i]);
			return true;
		}
	return false;
}

static uint64_t slot_tick(const struct expiry *expiry, unsigned level, unsigned slot)
{
	unsigned shift = level * EXPIRY_DIGIT;
	uint64_t above = expiry->now >> shift >> EXPIRY_DIGIT;

	return (above << EXPIRY_DIGIT | slot) << shift;
}

uint64_t expiry_next(const struct expiry *expiry)
{
	unsigned level;
	unsigned slot;

	if (expiry->due)
		return expiry->now;
	return expiry_next_slot(expiry, &level, &slot) ? slot_tick(expiry, level, slot)
						       : EXPIRY_NEVER;
}

/* Moves the first slot that comes up by `now` to `due`; false: there is none. */
static bool expiry_come_up(struct expiry *expiry, uint64_t now)
{
	unsigned level;
	unsigned slot;

	while (expiry_next_slot(expiry, &level, &slot)) {
		struct tw_cache_entry **place = &expiry->slots[level][slot];
		uint64_t tick = slot_tick(expiry, level, slot);

		if (tick > now)
			break;
		expiry->now = tick;
		expiry->used[level] &= ~(1u << slot);
		if (!*place)
			continue;
		expiry->due = *place;
		expiry->due->expiry_place = &expiry->due;
		*place = NULL;
		return true;
	}
	if (now > expiry->now && now <= last_tick)
		expiry->now = now;
	return false;
}

unsigned expiry_take(struct expiry *expiry, uint64_t now, struct tw_cache_entry **entries,
		     unsigned most)
{
	unsigned count = 0;

	while (count < most) {
		struct tw_cache_entry *entry = expiry->due;

		if (!entry) {
			if (!expiry_come_up(expiry, now))
				break;
			continue;
		}
		__builtin_prefetch(entry->expiry_next);
		expiry_unfile(entry);
		entries[count++] = entry;
	}
	return count;
}
