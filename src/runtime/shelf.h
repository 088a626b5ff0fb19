/* SPDX-License-Identifier: MIT */
/*
 * The pending timers: in the wheel by deadline, in the index by key. Owner only. A drain or a stop
 * takes the whole shelf away at once and empties it at leisure.
 */
#ifndef SHELF_H
#define SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command_queue.h"
#include "wheel/timer.h"
#include "wheel/timer_index.h"
#include "wheel/wheel.h"

enum { SHELF_BATCH = TIMER_INDEX_BATCH }; /* timers or commands that are looked at together */

struct shelf {
	struct wheel *wheel;
	struct timer_index index;
	size_t alarms;   /* in the wheel, and not counted */
	uint16_t number; /* for handles: tells it from others about, of which there are few */
};

/* What a shelf is made of: constant. */
struct shelf_plan {
	enum tw_layout layout;
	size_t slots;
	bool ordered;
	const struct ticks *ticks;
	tw_duration patience; /* see wheel_create() */
};

/* False: out of memory. */
bool shelf_init(struct shelf *shelf, const struct shelf_plan *plan);
/* The timers still on it are not touched. */
void shelf_destroy(struct shelf *shelf);
/* In steps: gives back some of its memory; true: it is destroyed. */
bool shelf_discard(struct shelf *shelf);

/* Brings into the cache what applying the queue's first `count` commands, SHELF_BATCH at most,
 * touches; and guesses the timer of each. */
void shelf_prefetch(const struct shelf *shelf, struct command_queue *queue, size_t count,
		    struct timer_guess *guesses);

/* There must be none with its key. */
void shelf_add(struct shelf *shelf, struct keyed_timer *timer);
void shelf_remove(struct shelf *shelf, struct keyed_timer *timer);
/* Those of handles and alarms. */
void shelf_add_keyless(struct shelf *shelf, struct timer *timer);
void shelf_remove_keyless(struct shelf *shelf, struct timer *timer);
/* The timers on it, without alarms. */
size_t shelf_count(const struct shelf *shelf);
/* Looks at up to `most` ≤ SHELF_BATCH timers; takes the expired ones out, returns how many. */
size_t shelf_expire(struct shelf *shelf, struct timer **expired, size_t most);

#endif
