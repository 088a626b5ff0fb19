/* SPDX-License-Identifier: MIT */
/*
 * The pending timers: in the wheel by deadline, in the index by key. Owner only. A drain or a stop
 * takes the whole pending set away at once and empties it at leisure.
 */
#ifndef PENDING_H
#define PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command_queue.h"
#include "wheel/timer.h"
#include "wheel/timer_index.h"
#include "wheel/wheel.h"

enum { PENDING_BATCH = TIMER_INDEX_BATCH }; /* timers or commands that are looked at together */

struct pending {
	struct wheel *wheel;
	struct timer_index index;
	size_t count;    /* the timers on it, without alarms; not of a retired one */
	uint16_t number; /* for handles: differs from those of the few others about */
};

/* What a pending set is made of: constant. */
struct pending_plan {
	enum tw_layout layout;
	size_t slots;
	bool ordered; /* see wheel_create() */
	const struct ticks *ticks;
	tw_duration patience; /* see wheel_create() */
};

/* Returns false if there is no memory. */
bool pending_init(struct pending *pending, const struct pending_plan *plan);
/* The timers still on it are not touched. */
void pending_destroy(struct pending *pending);
/* Destroys it in steps: gives back some of its memory. Returns whether it is destroyed. */
bool pending_discard(struct pending *pending);

/* Brings into the cache what applying the queue's first `count` commands touches; and guesses the
 * timer of each. They are PENDING_BATCH at most, and lie in `cells`. */
void pending_prefetch(const struct pending *pending, struct command_queue *queue,
		      const struct command_cell *cells, size_t count,
		      struct timer_guesses *guesses);

/* Adds a timer. No pending timer may have its key. */
void pending_add(struct pending *pending, struct keyed_timer *timer);
void pending_remove(struct pending *pending, struct keyed_timer *timer);
/* Adds a handle or an alarm, which has no key. */
void pending_add_without_key(struct pending *pending, struct timer *timer);
void pending_remove_without_key(struct pending *pending, struct timer *timer);
/* Looks at up to `most` ≤ PENDING_BATCH timers; takes the expired ones out, returns how many. Not
 * where timers run in order. */
size_t pending_expire(struct pending *pending, struct timer **expired, size_t most);
/* Where they do, takes the next one out as wheel_expire_next() does. */
struct timer *pending_expire_next(struct pending *pending);

#endif
