/* SPDX-License-Identifier: MIT */
/*
 * This layout is a hierarchy of wheels whose slots overflow upward, after Varghese and Lauck (1987)
 * and Kafka's timer. A slot of level 0 is a tick; a slot of level n + 1 spans as many ticks as
 * `slots` slots of level n. A timer lies in the finest level whose window has its tick. When a
 * coarser slot comes up, its timers are re-filed into finer ones.
 *
 * Invariants, with number(t, l) = t >> shift of level l:
 *   level 0 has timers filed under a tick t with now < t < now + window
 *   level l > 0 has timers filed under a tick t with
 *     number(now, l) + 1 < number(t, l) < number(now, l) + window
 *   the bit in `used` is set for each slot with a timer; it may be set for an empty slot
 *   the bit in `used_levels` is set for each level with a timer; it may be set for an empty level
 *
 * The second invariant holds because a timer that does not fit level l - 1 is at least two spans of
 * level l away. So a slot of level l comes up when number(now, l) becomes its number - 1, always in
 * the future. The last one lets the search for the next tick skip levels without timers.
 *
 * There are no cascade storms. Other wheels empty a coarse slot in one step when its first tick
 * arrives. Here each level's window is two laps long, 2 * slots slots, so a coarse slot can come up
 * one whole span before its first tick and still fit into the level below. wheel_expire() re-files
 * its timers a bounded number at a time, after the due ones. So a call for `most` timers costs the
 * same for any slot. A storm delays no timer, unless the slot has more timers than can be re-filed
 * within its span.
 *
 * Spans are powers of two: `slots` is rounded up to one, at least 2. So finding a slot takes a
 * shift and a mask. All levels for 64-bit ticks exist from the start: nothing is allocated later,
 * and no delay is too long.
 */
#include "wheel_levels.h"

#include <assert.h>

#include "base/compiler.h"
#include "base/pages.h"
#include "timer.h"

/* Four levels of 2^16 slots cover 64 bits: more slots would cost memory, and save no level. */
enum { MOST_BITS = 16 };

static struct list *level_slot(const struct levels *levels, int level, uint64_t number)
{
	return &levels->levels[level].slots[number & (levels->window - 1)];
}

INLINED struct list *levels_slot(struct levels *levels, uint64_t now, uint64_t tick)
{
	struct level *level = levels->levels;
	uint64_t number = tick;
	size_t slot;

	/* This finds the finest level whose window has the tick. */
	while (number - (now >> level->shift) >= levels->window) {
		level++;
		number = tick >> level->shift;
	}
	slot = number & (levels->window - 1);
	levels->used_levels |= level->bit;
	level->used[slot / 64] |= (uint64_t)1 << slot % 64;
	if (!level->slots[slot].next)
		list_init(&level->slots[slot]);
	return &level->slots[slot];
}

/* Returns the number of words that have a bit for each slot of a level. */
static size_t levels_words(const struct levels *levels)
{
	return (size_t)(levels->window + 63) / 64;
}

/* Sets *number to the number of the level's first used slot, searched around from `first`. Returns
 * false if no slot is used. */
static bool level_first_used(const struct levels *levels, struct level *level, uint64_t first,
			     uint64_t *number)
{
	uint64_t mask = levels->window - 1;
	size_t words = levels_words(levels);
	size_t start = first & mask;
	size_t index = start / 64;
	uint64_t word = level->used[index] >> start % 64 << start % 64;

	/* The last word is the first one, for the slots before the start. */
	for (size_t i = 0; i <= words; i++) {
		for (; word != 0; word &= word - 1) {
			size_t slot = index * 64 + (size_t)__builtin_ctzll(word);

			if (!list_is_empty(&level->slots[slot])) {
				*number = first + ((slot - first) & mask);
				return true;
			}
			level->used[index] &= ~(word & -word);
		}
		index = (index + 1) & (words - 1);
		word = level->used[index];
	}
	return false;
}

uint64_t levels_next_tick(struct levels *levels, uint64_t now)
{
	uint64_t next = TICK_NONE;

	for (uint64_t left = levels->used_levels; left != 0; left &= left - 1) {
		struct level *level = &levels->levels[__builtin_ctzll(left)];
		uint64_t present = now >> level->shift;
		uint64_t number;

		/* No slot of this level, or a coarser one, comes up before its next span. */
		if ((next - 1) >> level->shift <= present)
			break;
		if (!level_first_used(levels, level, present, &number)) {
			levels->used_levels &= ~level->bit;
			continue;
		}
		/* A slot of level 0 comes up at its tick, others one span before their first. */
		number -= level > levels->levels;
		if (number << level->shift < next)
			next = number << level->shift;
	}
	return next;
}

size_t wheel_slot_check(const struct list *slot, const struct ticks *ticks, uint64_t first)
{
	size_t count = 0;

	(void)ticks;
	(void)first;
	if (!slot->next)
		return 0;
	for (struct list *link = slot->next; link != slot; link = link->next, count++) {
		assert(link->next->previous == link);
		assert(first == 0 || tick_after(ticks, timer_of_link(link)->deadline) >= first);
	}
	return count;
}

size_t levels_check(const struct levels *levels, const struct ticks *ticks, uint64_t now)
{
	size_t all = 0;

	for (int i = 0; i < levels->level_count; i++) {
		const struct level *level = &levels->levels[i];
		uint64_t present = now >> level->shift;

		assert(wheel_slot_is_empty(level_slot(levels, i, present)));
		assert(i == 0 || wheel_slot_is_empty(level_slot(levels, i, present + 1)));
		for (uint64_t number = present + 1; number < present + levels->window; number++) {
			size_t slot = number & (levels->window - 1);
			size_t count = wheel_slot_check(&level->slots[slot], ticks,
							number << level->shift);

			assert(count == 0 || levels->used_levels & level->bit);
			assert(count == 0 || level->used[slot / 64] >> slot % 64 & 1);
			all += count;
		}
	}
	return all;
}

bool levels_init(struct levels *levels, size_t slots)
{
	unsigned bits = 1;
	size_t words;
	char *memory;

	while (bits < MOST_BITS && (uint64_t)1 << bits < slots)
		bits++;
	levels->window = (uint64_t)2 << bits;
	/* The last level's window has all ticks: they are at most TICK_NEVER, 2^63. */
	levels->level_count = (int)((62 + bits) / bits);
	words = levels_words(levels);
	levels->memory_size = (size_t)levels->level_count *
			      (levels->window * sizeof(struct list) + words * sizeof(uint64_t));
	levels->memory = memory = pages_map_untouched(levels->memory_size);
	if (!memory)
		return false;
	for (int i = 0; i < levels->level_count; i++) {
		struct level *level = &levels->levels[i];

		level->shift = (unsigned)i * bits;
		level->bit = (uint64_t)1 << i;
		level->slots = (struct list *)(void *)memory;
		memory += levels->window * sizeof(struct list);
		level->used = (uint64_t *)(void *)memory;
		memory += words * sizeof(uint64_t);
	}
	return true;
}
