/* SPDX-License-Identifier: MIT */
/*
 * A wheel takes timers in and gives expired timers out. It knows ticks, but no clock, no lock and
 * no key. One thread at a time may call these functions. Only wheel_create() allocates.
 *
 * Use: while wheel_next_tick() ≤ the clock's tick, call wheel_advance() to it, then wheel_expire()
 * while wheel_is_busy(). Timers may be added, moved and removed between any two calls.
 */
#ifndef WHEEL_H
#define WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/compiler.h"
#include "base/list.h"
#include "base/ticks.h"
#include "timer.h"
#include "wheel_levels.h"

enum { WHEEL_COMING = 64 };

struct wheel {
	bool ordered;
	struct ticks ticks;
	tw_duration patience; /* the time in which the caller works off a crowd */
	/* Timers whose deadlines are farther from now_time lie in slots that come up early. */
	tw_duration early_after;
	/* The timers of the last wheel_expire() were left over, or had to be re-filed and were
	 * examined too late. One call never mixes these with others. */
	bool expired_late;
	uint64_t now;         /* the present tick */
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
	size_t next_count;    /* timers added to `next`; some may have left it */
	struct levels levels;
};

/*
 * Creates a wheel with `slots` slots, 1 to TW_SLOTS_MAX. Returns NULL if out of memory.
 *
 * The timers of an ordered wheel expire tick by tick, in the order of their deadlines, and of equal
 * deadlines in that of their last commands; one that becomes due by a command while others of its
 * tick expire may come after some that are later. Any other wheel may be advanced while it is busy:
 * timers that became due just now then expire before those left over from earlier ticks, so that a
 * crowd in one tick does not delay the next ticks. `patience` is the time in which the caller works
 * off a crowd.
 */
struct wheel *wheel_create(size_t slots, const struct ticks *ticks, bool ordered,
			   tw_duration patience);
/* Touches no timer. */
void wheel_destroy(struct wheel *wheel);

/* Adds a timer whose `deadline` and `is_for_now` are set. It expires at the first tick that is not
 * before the deadline; as soon as it can if that tick has come, or if it is for now. */
void wheel_add(struct wheel *wheel, struct timer *timer);
/* Moves a timer that is not for now, whose deadline has been changed from `before`. */
void wheel_moved(struct wheel *wheel, struct timer *timer, tw_duration before);
/* Returns whether wheel_moved() takes a timer out of its list when its deadline changes from
 * `before` to `after`. If not, the move touches only the line of the deadline. */
bool wheel_move_unlinks(const struct wheel *wheel, tw_duration before, tw_duration after);
/* Returns whether the timer is due at the wheel's present tick. */
bool wheel_is_due(const struct wheel *wheel, const struct timer *timer);
void wheel_remove(struct timer *timer);

/* Returns the tick, after the present one, at which the next slot comes up. It is TICK_NEVER or
 * later if no slot comes up. */
uint64_t wheel_next_tick(struct wheel *wheel);
/* Advances the wheel to `tick`, from the present tick to wheel_next_tick(). An ordered wheel must
 * not be busy. */
void wheel_advance(struct wheel *wheel, uint64_t tick);
/* Returns whether timers wait to be expired or re-filed. */
bool wheel_is_busy(struct wheel *wheel);
/* Treats the timers in `due` as left over from an earlier tick. The wheel must not be ordered. */
void wheel_put_off(struct wheel *wheel);
/* Handles at most `most` timers, in a time bounded by that number: the expired ones leave the
 * wheel and are written to `expired`, the others are re-filed. Returns the number expired. The
 * wheel must not be ordered. */
size_t wheel_expire(struct wheel *wheel, struct timer **expired, size_t most);
/* Takes the next timer that is due out of an ordered wheel. Returns NULL if there is none, or,
 * where the wheel is still busy, if a few more have been examined. None expires until all timers of
 * the batch are sorted, which one call does; any other takes a bounded time. */
struct timer *wheel_expire_next(struct wheel *wheel);

/* Asserts the invariants by examining all slots and timers, and returns their number. For tests and
 * TW_DEBUG. */
size_t wheel_check(struct wheel *wheel);

/* Prefetches the neighbours that taking the timer out of its list will touch. */
static inline void wheel_prefetch(const struct timer *timer)
{
	prefetch_to_write(timer->link.next);
	prefetch_to_write(timer->link.previous);
}

#endif
