/* SPDX-License-Identifier: MIT */
/*
 * The pending timers: in the wheel by deadline, in the index by key. Owner only.
 *
 * Epochs. A timer has the epoch of its set. A drain begins the next epoch, and with that all timers
 * that are pending become stale: they are no longer found by key, and are handed over where one is
 * met. A sweep finds them all, some at a time. A stop begins the last epoch. An epoch begins when
 * no timer is stale.
 */
#ifndef PENDING_H
#define PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "command_queue.h"
#include "handle.h"
#include "wheel/timer.h"
#include "wheel/timer_index.h"
#include "wheel/wheel.h"

enum { PENDING_BATCH = TIMER_INDEX_BATCH }; /* timers or commands that are looked at together */

/* A sweep goes round: through the buckets of the index, the last one first, then through the
 * handles. */
struct pending_sweep {
	uint32_t buckets;           /* those before it are still to come */
	struct handle_scan handles; /* where that is 0 */
};

struct pending {
	struct wheel *wheel;
	struct timer_index index;
	size_t count;       /* timers, without alarms, also those that are stale */
	size_t stale_count; /* those that are stale */
	bool has_stale;     /* there are some, or were a moment ago */
	uint16_t epoch;     /* the present one */
	struct pending_sweep sweep;
	/* Inline, while tasks run: a timer without a key that is due when it is added waits, for a
	 * task that sets itself for now must not keep its tick from ending. */
	bool holds;
	struct list held;
};

/* Returns false if there is no memory. wheel_create() says what the arguments are. */
bool pending_init(struct pending *pending, size_t slots, const struct ticks *ticks, bool ordered,
		  tw_duration patience);
/* The timers still on it are not touched. */
void pending_destroy(struct pending *pending);

/* Returns whether a timer that is no alarm is stale. */
static inline bool pending_is_stale(const struct pending *pending, const struct timer *timer)
{
	return timer->epoch != pending->epoch;
}

/* Begins the next epoch: all timers are stale. */
void pending_begin_epoch(struct pending *pending);
/* Takes up to `most` stale timers out; returns how many. It finds none in some of the calls. */
size_t pending_sweep(struct pending *pending, struct handle_table *handles, struct timer **stale,
		     size_t most);

/* Brings into the cache what applying the queue's first `count` commands touches; and guesses the
 * timer of each. They are PENDING_BATCH at most, and lie in `cells`. */
void pending_prefetch(const struct pending *pending, struct command_queue *queue,
		      const struct command_cell *cells, size_t count,
		      struct timer_guesses *guesses);

/* Returns the timer, or the next one in its bucket with the same key, that is not stale, or
 * NULL. */
struct keyed_timer *pending_pass_stale(const struct pending *pending, struct keyed_timer *timer);
/* Returns the timer of the key, or NULL. */
static inline struct keyed_timer *pending_find(const struct pending *pending, const void *key,
					       size_t key_size, uint32_t hash)
{
	struct keyed_timer *timer = timer_index_find(&pending->index, key, key_size, hash);

	return timer && pending->has_stale ? pending_pass_stale(pending, timer) : timer;
}

/* Adds a timer. No pending timer may have its key. */
void pending_add(struct pending *pending, struct keyed_timer *timer);
void pending_remove(struct pending *pending, struct keyed_timer *timer);
/* Returns whether timers wait that were due when they were added. */
static inline bool pending_has_held(const struct pending *pending)
{
	return !list_is_empty(&pending->held);
}
/* Lets them expire. */
void pending_release_held(struct pending *pending);
/* Adds a handle or an alarm, which has no key. */
void pending_add_without_key(struct pending *pending, struct timer *timer);
void pending_remove_without_key(struct pending *pending, struct timer *timer);
/* Looks at up to `most` ≤ PENDING_BATCH timers; takes the expired ones out, returns how many. Not
 * where timers run in order. */
size_t pending_expire(struct pending *pending, struct timer **expired, size_t most);
/* Where they do, takes the next one out as wheel_expire_next() does. */
struct timer *pending_expire_next(struct pending *pending);

/* A walk goes through the pending timers, in steps between which they change, and copies them for
 * its caller. It is zeroed before the first step. */
struct walk {
	uint64_t position; /* all before it have been met; WALK_END: all */
	uint64_t handles;  /* the table's end when the walk began */
	size_t count;
	size_t used; /* bytes of the keys */
	/* What a step has room for: timers, and bytes of their keys. */
	size_t room;
	size_t bytes;
	struct tw_pending_timer *timers;
	char *keys;
};

#define WALK_END UINT64_MAX

/* Owner: copies the next timers of the pending set. Takes well under 100 us. Returns false if there
 * is no memory. */
bool walk_step(struct walk *walk, const struct pending *pending, struct handle_table *handles);
/* Any thread: frees the memory of the steps. */
void walk_destroy(struct walk *walk);

#endif
