/* SPDX-License-Identifier: MIT */
/*
 * Levels are the slots of a wheel: lists of timers, by tick. One thread at a time may call these
 * functions. `now` is the present tick, which grows only to levels_next_tick().
 */
#ifndef WHEEL_LEVELS_H
#define WHEEL_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/ticks.h"

/* This tick is later than all ticks of clocks and timers. */
#define TICK_NONE UINT64_MAX

enum { LEVELS_MOST = 63 }; /* levels if each has two slots */

struct level {
	unsigned shift;     /* log2 of the ticks in a slot */
	uint64_t bit;       /* the level's bit in used_levels */
	struct list *slots; /* the slots of the window */
	uint64_t *used;     /* a bit for each of them */
};

struct levels {
	/* The slots and the bits of all levels. */
	void *memory;
	size_t memory_size; /* bytes */
	int level_count;
	uint64_t window;      /* slots of a level, two laps; a power of two */
	uint64_t used_levels; /* bit l is set if level l may have timers */
	struct level levels[LEVELS_MOST];
};

/* Makes a zeroed struct's levels, of `slots` slots rounded up to a power of two, at most 2^16. The
 * caller unmaps the memory. Returns false if out of memory. */
bool levels_init(struct levels *levels, size_t slots);
/* Returns the slot for a timer that comes up at `tick`, which is after the present one. The caller
 * links the timer. */
struct list *levels_slot(struct levels *levels, uint64_t now, uint64_t tick);
/* Returns the next tick at which a slot comes up, or TICK_NONE if no slot is used. */
uint64_t levels_next_tick(struct levels *levels, uint64_t now);

/* Returns the level's slot `number`, with its bit cleared. The caller empties it. */
static inline struct list *level_take_slot(const struct levels *levels, struct level *level,
					   uint64_t number)
{
	size_t slot = number & (levels->window - 1);

	level->used[slot / 64] &= ~((uint64_t)1 << slot % 64);
	return &level->slots[slot];
}

/* Returns whether a slot is empty. Slots lie in zeroed memory: a slot is NULL until its first
 * use. */
static inline bool wheel_slot_is_empty(const struct list *slot)
{
	return !slot->next || list_is_empty(slot);
}

/* Asserts that the links of a list or slot are right, and that no timer in it is due before tick
 * `first`. Returns the number of timers. */
size_t wheel_slot_check(const struct list *slot, const struct ticks *ticks, uint64_t first);
/* Asserts that each timer in a slot is found in time. Returns the number of these timers. */
size_t levels_check(const struct levels *levels, const struct ticks *ticks, uint64_t now);

#endif
