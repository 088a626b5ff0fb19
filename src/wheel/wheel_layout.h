/* SPDX-License-Identifier: MIT */
/* What wheel.c and its layouts share. */
#ifndef WHEEL_LAYOUT_H
#define WHEEL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/list.h"
#include "base/pages.h"
#include "base/ticks.h"
#include "timer.h"
#include "wheel_sort.h"

struct wheel;

enum { WHEEL_COMING = 64 };

/* Later than every tick, and than every tick that a timer may ask for. */
#define TICK_NONE UINT64_MAX

struct wheel_layout {
	/* Links a timer that is not due before `tick`, which is to come, into its slot. */
	void (*place)(struct wheel *wheel, struct timer *timer, uint64_t tick);
	/* The next tick at which a slot comes up; TICK_NONE: no slot is used. */
	uint64_t (*next_tick)(struct wheel *wheel);
	/* now has become a tick: takes the slots that come up. */
	void (*take_slots)(struct wheel *wheel);
	/* The last timer was taken out of `list`, which may be a slot. May be NULL. */
	void (*emptied)(struct wheel *wheel, struct list *list);
	/* Asserts that each timer is in a slot where it is found in time; returns their count. */
	size_t (*check)(struct wheel *wheel);
};

struct wheel {
	const struct wheel_layout *layout;
	struct pages pages; /* the slots, and what leads to them */
	bool ordered;
	struct ticks ticks;
	tw_duration patience; /* what a crowd may take to be worked off */
	/* The slot of a timer that is due so many ticks after now, or more, comes up sooner than
	 * the timer is due. UINT64_MAX: no slot does. */
	uint64_t early_from;
	tw_duration early_after; /* the same: a deadline that is farther from now_time */
	bool expired_late;
	uint64_t now;
	tw_duration now_time; /* of that tick */
	/* No timer that is due, by its deadline or at once, has a later deadline. */
	tw_duration due_until;
	uint64_t sequence; /* of the last command */
	size_t count;
	struct list due;  /* of the newest tick */
	struct list late; /* left over from earlier ticks; not in an ordered wheel */
	/* To be re-filed: each slot that came up is one, as far as there are enough. */
	struct list coming[WHEEL_COMING];
	uint64_t coming_used;   /* bit i: coming[i] may have timers */
	unsigned coming_turn;   /* which one's turn it is … */
	unsigned coming_seen;   /* … and how many of its timers were looked at */
	struct wheel_sort sort; /* of an ordered wheel: those of coming that are due */
};

/* Makes a zeroed wheel an empty one. `wheel` is the first member of the layout's struct. */
void wheel_init(struct wheel *wheel, const struct wheel_layout *layout, bool ordered);

/* Slots lie in zeroed memory: before a timer is linked there, a slot points nowhere. */
static inline bool wheel_slot_is_empty(const struct list *slot)
{
	return !slot->next || list_is_empty(slot);
}

/* A slot came up: its timers are to be re-filed; its timers are due, or most of them. */
void wheel_take_coming(struct wheel *wheel, struct list *slot);
void wheel_take_due(struct wheel *wheel, struct list *slot);

/* Asserts that a list or slot holds together, and no timer that is due before `first`; returns the
 * count. */
size_t wheel_check_list(const struct wheel *wheel, const struct list *list, uint64_t first);

/* Links a timer into a slot or into due, as the last one. But one that repeats becomes the first,
 * where order does not count: then no crowd in its tick holds it up. */
static inline void wheel_link(struct wheel *wheel, struct list *list, struct timer *timer)
{
	bool first = timer->class == TIMER_PERIODIC && !wheel->ordered;

	if (!list->next)
		list_init(list);
	list_append(first ? list->next : list, &timer->link);
}

struct wheel *wheel_levels_create(size_t slots, bool ordered);
struct wheel *wheel_rounds_create(size_t slots, bool ordered);

#endif
