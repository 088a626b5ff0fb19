/* SPDX-License-Identifier: MIT */
/* This file has the wheel, whose slots are arranged in levels or in rounds, and what wheel.c and
 * these two share. */
#ifndef WHEEL_LAYOUT_H
#define WHEEL_LAYOUT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/list.h"
#include "base/pages.h"
#include "base/ticks.h"
#include "timer.h"

enum { WHEEL_COMING = 64 };

/* This tick is later than all ticks of clocks and timers. */
#define TICK_NONE UINT64_MAX

enum { LEVELS_MOST = 63 }; /* levels if each has two slots */

struct level {
	unsigned shift;     /* log2 of the ticks in a slot */
	uint64_t bit;       /* the level's bit in used_levels */
	struct list *slots; /* the slots of the window */
	uint64_t *used;     /* a bit for each of them */
};

/* TW_LAYOUT_LEVELS: wheel_levels.c. */
struct levels {
	int level_count;
	uint64_t window;      /* slots of a level, two laps; a power of two */
	uint64_t used_levels; /* bit l is set if level l may have timers */
	struct level levels[LEVELS_MOST];
};

/* TW_LAYOUT_ROUNDS: wheel_rounds.c. */
struct rounds {
	size_t slot_count;
	struct list *slots;
	size_t leaves; /* a power of two, at least slot_count */
	/* ~ earliest, so that zeroed memory means no timer. Node 1 is the root; node n has the
	 * children 2n and 2n + 1. */
	uint64_t *tree;
};

struct wheel {
	/* The slots, and the sets or trees over them. */
	void *memory;
	size_t memory_size; /* bytes */
	bool has_rounds;    /* TW_LAYOUT_ROUNDS */
	bool ordered;
	struct ticks ticks;
	tw_duration patience; /* the time in which the caller works off a crowd */
	/* Timers whose deadlines are farther from now_time lie in slots that come up early. */
	tw_duration early_after;
	bool expired_late;
	uint64_t now;
	tw_duration now_time; /* the time of `now` */
	/* No due timer has a later deadline. */
	tw_duration due_until;
	uint64_t sequence; /* the number of the last command */
	struct list due;   /* timers of the present tick */
	struct list rest;  /* left over from earlier ticks, or to be put in order */
	/* Lists to re-file, one for each slot that came up. The last takes all further slots. */
	struct list coming[WHEEL_COMING];
	uint64_t coming_used; /* bit i: coming[i] may have timers */
	unsigned coming_turn; /* the list whose turn it is */
	struct list next;     /* due timers of the next batch, in an ordered wheel */
	bool is_sorted;       /* `next` is in order */
	union {
		struct levels levels;
		struct rounds rounds;
	};
};

/* Returns whether a slot is empty. Slots lie in zeroed memory: a slot is NULL until its first
 * use. */
static inline bool wheel_slot_is_empty(const struct list *slot)
{
	return !slot->next || list_is_empty(slot);
}

/* Takes a slot that came up, whose timers are to be re-filed. */
static inline void wheel_take_coming(struct wheel *wheel, struct list *slot)
{
	int free = WHEEL_COMING - 1;

	if (wheel_slot_is_empty(slot))
		return;
	if (wheel->ordered) {
		list_append_all(&wheel->rest, slot);
		return;
	}
	if (wheel->coming_used != UINT64_MAX)
		free = __builtin_ctzll(~wheel->coming_used);
	list_append_all(&wheel->coming[free], slot);
	wheel->coming_used |= (uint64_t)1 << free;
}

/* Takes a slot that came up, whose timers are due, or most of them. */
static inline void wheel_take_due(struct wheel *wheel, struct list *slot)
{
	if (!wheel_slot_is_empty(slot))
		list_append_all(wheel->ordered ? &wheel->rest : &wheel->due, slot);
}

/* Asserts that the links of a list or slot are right, and that no timer in it is due before tick
 * `first`. Returns the number of timers. */
static inline size_t wheel_check_list(const struct wheel *wheel, const struct list *list,
				      uint64_t first)
{
	size_t count = 0;

	(void)wheel;
	(void)first;
	if (!list->next)
		return 0;
	for (struct list *link = list->next; link != list; link = link->next, count++) {
		assert(link->next->previous == link);
		assert(first == 0 ||
		       tick_after(&wheel->ticks, timer_of_link(link)->deadline) >= first);
	}
	return count;
}

/* Links a timer into a slot or into `due`, as the last one. In a wheel that is not ordered a
 * periodic timer becomes the first, so that no crowd in its tick delays it. */
static inline void wheel_link(struct wheel *wheel, struct list *list, struct timer *timer)
{
	bool first = timer->class == TIMER_PERIODIC && !wheel->ordered;

	if (!list->next)
		list_init(list);
	list_append(first ? list->next : list, &timer->link);
}

/* Makes the slots of a zeroed wheel. Returns false if out of memory. */
bool levels_init(struct wheel *wheel, size_t slots);
bool rounds_init(struct wheel *wheel, size_t slots);
/* Links a timer that is not due into the slot for `tick`, which is after the present one. */
void levels_place(struct wheel *wheel, struct timer *timer, uint64_t tick);
void rounds_place(struct wheel *wheel, struct timer *timer, uint64_t tick);
/* Returns the next tick at which a slot comes up, or TICK_NONE if no slot is used. */
uint64_t levels_next_tick(struct wheel *wheel);
uint64_t rounds_next_tick(struct wheel *wheel);
/* Takes the slots that come up at the present tick. Called once a tick. */
void levels_take_slots(struct wheel *wheel);
void rounds_take_slots(struct wheel *wheel);
/* Asserts that each timer in a slot is found in time. Returns the number of these timers. */
size_t levels_check(const struct wheel *wheel);
size_t rounds_check(const struct wheel *wheel);

#endif
