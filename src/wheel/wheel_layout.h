/* SPDX-License-Identifier: MIT */
/* A wheel layout is the arrangement of slots. This file has what wheel.c and the layouts share. */
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

struct wheel;

enum { WHEEL_COMING = 64 };

/* This tick is later than all ticks of clocks and timers. */
#define TICK_NONE UINT64_MAX

struct wheel_layout {
	/* Links a timer that is not due into the slot for `tick`, which is after the present
	 * one. */
	void (*place)(struct wheel *wheel, struct timer *timer, uint64_t tick);
	/* Returns the next tick at which a slot comes up, or TICK_NONE if no slot is used. */
	uint64_t (*next_tick)(struct wheel *wheel);
	/* Takes the slots that come up at the present tick. Called once a tick. */
	void (*take_slots)(struct wheel *wheel);
	/* Called when the last timer was taken out of `list`, which may be a slot. May be NULL. */
	void (*emptied)(struct wheel *wheel, struct list *list);
	/* Asserts that each timer in a slot is found in time. Returns the number of these
	 * timers. */
	size_t (*check)(struct wheel *wheel);
};

struct wheel {
	const struct wheel_layout *layout;
	struct pages pages; /* the slots, and the sets or trees over them */
	bool ordered;
	struct ticks ticks;
	tw_duration patience; /* the time in which the caller works off a crowd */
	/* If a timer is due this many ticks after now, or more, its slot comes up before the timer
	 * is due. UINT64_MAX means that no slot comes up early. */
	uint64_t early_from;
	tw_duration early_after; /* that number as a time: deadlines farther from now_time */
	bool expired_late;
	uint64_t now;
	tw_duration now_time; /* the time of `now` */
	/* No due timer has a later deadline. */
	tw_duration due_until;
	uint64_t sequence; /* the number of the last command */
	struct list due;   /* timers of the present tick */
	struct list late;  /* left over from earlier ticks; not in an ordered wheel */
	/* Lists to re-file, one for each slot that came up. The last takes all further slots. */
	struct list coming[WHEEL_COMING];
	uint64_t coming_used; /* bit i: coming[i] may have timers */
	unsigned coming_turn; /* the list whose turn it is */
	unsigned coming_seen; /* timers examined in this turn */
	struct list unsorted; /* due timers from `coming`, in an ordered wheel */
	bool is_sorted;       /* each of them was put there in order */
};

/* Initializes a zeroed wheel, the first member of the layout's struct. */
void wheel_init(struct wheel *wheel, const struct wheel_layout *layout, bool ordered);

/* Returns whether a slot is empty. Slots lie in zeroed memory: a slot is NULL until its first
 * use. */
static inline bool wheel_slot_is_empty(const struct list *slot)
{
	return !slot->next || list_is_empty(slot);
}

/* Takes a slot that came up, whose timers are to be re-filed. */
void wheel_take_coming(struct wheel *wheel, struct list *slot);
/* Takes a slot that came up, whose timers are due, or most of them. */
void wheel_take_due(struct wheel *wheel, struct list *slot);

/* Asserts that the links of a list or slot are right, and that no timer in it is due before tick
 * `first`. Returns the number of timers. */
size_t wheel_check_list(const struct wheel *wheel, const struct list *list, uint64_t first);

/* Links a timer into a slot or into `due`, as the last one. In a wheel that is not ordered a
 * periodic timer becomes the first, so that no crowd in its tick delays it. */
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
