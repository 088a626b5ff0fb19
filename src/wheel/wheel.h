/* SPDX-License-Identifier: MIT */
/*
 * The wheel: timers in, expired timers out. Pure and single-threaded; knows ticks, but no clock, no
 * lock and no key. Nothing but wheel_create allocates.
 *
 * Use: while wheel_next_tick() ≤ the clock's tick: wheel_advance() to it, then wheel_expire() as
 * long as wheel_is_busy(). Between any two calls timers may be added, moved and removed.
 */
#ifndef WHEEL_H
#define WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/prefetch.h"
#include "base/ticks.h"
#include "timer.h"

struct wheel;

/*
 * In an ordered wheel timers expire by tick, and within a tick in the order of their last command.
 * A wheel that isn't ordered may be advanced while it is busy; then the timers that have just
 * become due expire before those left over from earlier ticks, so that a crowd in one tick does not
 * hold up the next ticks. patience: what a crowd may take to be worked off. slots: 1 to
 * TW_SLOTS_MAX. NULL: out of memory.
 */
struct wheel *wheel_create(enum tw_layout layout, size_t slots, const struct ticks *ticks,
			   bool ordered, tw_duration patience);
/* In steps: gives back some of its memory; true: it is destroyed. Timers still in it are not
 * touched. */
bool wheel_discard(struct wheel *wheel);

/* Adds a timer; its deadline and at_once are set. It expires at the first tick that is not before
 * the deadline, or at once. */
void wheel_add(struct wheel *wheel, struct timer *timer);
/* The timer's deadline was `before` and is another now. */
void wheel_moved(struct wheel *wheel, struct timer *timer, tw_duration before, bool at_once);
/* Whether such a move takes a timer out of its list, and touches no more of it than the deadline
 * else. */
bool wheel_move_unlinks(const struct wheel *wheel, tw_duration before, tw_duration after);
/* Whether the timer would be due at once. */
bool wheel_is_due(const struct wheel *wheel, const struct timer *timer);
void wheel_remove(struct wheel *wheel, struct timer *timer);

uint64_t wheel_now(const struct wheel *wheel);
size_t wheel_count(const struct wheel *wheel);
/* The tick, after now, at which the next slot comes up; none: TICK_NEVER or later. */
uint64_t wheel_next_tick(struct wheel *wheel);
/* now ≤ tick ≤ wheel_next_tick(), and if ordered, not busy. */
void wheel_advance(struct wheel *wheel, uint64_t tick);
/* Whether timers wait to be expired or re-filed. */
bool wheel_is_busy(struct wheel *wheel);
/* Whether timers of the newest tick wait to be expired. */
bool wheel_has_due(const struct wheel *wheel);
/* Not in an ordered wheel: these are left over from now on. */
void wheel_put_off(struct wheel *wheel);
/*
 * Takes at most `most` timers in hand: the expired ones leave the wheel and are written to
 * `expired`, the others are re-filed. Returns how many expired: in an ordered wheel none until all
 * of the tick are sorted. Takes no longer than `most` timers take.
 */
size_t wheel_expire(struct wheel *wheel, struct timer **expired, size_t most);
/* Whether what wheel_expire() returned last was left over or re-filed too late; no mixture. */
bool wheel_expired_late(const struct wheel *wheel);
/* Takes up to `most` timers out, whatever their deadline; fewer only when the wheel is empty. The
 * wheel is from then on good for this and wheel_remove() alone. */
size_t wheel_take(struct wheel *wheel, struct timer **taken, size_t most);

/* Asserts the invariants by looking at everything. For tests and TW_DEBUG. */
void wheel_check(struct wheel *wheel);

/* Brings the neighbours that taking the timer out of its list will touch into the cache. */
static inline void wheel_prefetch(const struct timer *timer)
{
	prefetch_to_write(timer->link.next);
	prefetch_to_write(timer->link.previous);
}

#endif
