/* SPDX-License-Identifier: MIT */
/*
 * An event count lets one thread sleep until others notify it. A notifier that finds the sleeper
 * awake makes no system call.
 *
 * The sleeper calls event_count_prepare(), looks a second time for work, and then calls
 * event_count_wait() or event_count_cancel(). A notifier publishes work by a sequentially
 * consistent operation and then calls event_count_notify(). Either the sleeper's second look sees
 * the work, or the notifier sees the sleeper.
 *
 * Which calls may run together (x), and which may not (-):
 *
 *                     prepare,     cancel,  wait   notify, wake, is_asleep,
 *                     is_hurried,  hush            hurry
 *                     calm
 *   prepare,          -            -        -      x
 *   is_hurried, calm
 *   cancel, hush      -            -        -      x
 *   wait              -            -        -      x
 *   notify, wake,     x            x        x      x
 *   is_asleep, hurry
 *
 * The sleeper may call event_count_descriptor() while it is awake, also together with notifiers.
 */
#ifndef EVENT_COUNT_H
#define EVENT_COUNT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "clock.h"
#include "slab.h"

enum event_count_state {
	EVENT_COUNT_AWAKE,
	EVENT_COUNT_NAPPING, /* a short sleep that ordinary work need not end */
	EVENT_COUNT_SLEEPING
};

struct event_count {
	/* Any thread reads and writes it. It has a cache line of its own: notifiers only read it
	 * while the sleeper is awake. */
	_Alignas(CACHE_LINE) atomic_int state;
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	pthread_cond_t wake;
	/* A timer's descriptor, constant once opened, or -1. It becomes readable at the end of a
	 * sleep and when the sleeper is notified. */
	int timer;
	atomic_bool is_hurried; /* work that a nap must not delay was published */
	/* A notifier has set the timer since the sleeper did. */
	atomic_bool is_rung;
	tw_duration armed; /* the sleeper's: the time that it has set the timer to */
};

/*
 * Initializes the event count. Its sleeps end by CLOCK_BOOTTIME if `boottime`, else by
 * CLOCK_MONOTONIC. Returns false with errno set if the system has no timer for that.
 */
bool event_count_init(struct event_count *event, bool boottime);
void event_count_destroy(struct event_count *event);

/* Announces that the sleeper will sleep in `state` until `until`, a time of the sleep's clock, or
 * TW_FOREVER. Only the sleeper may call this. */
void event_count_prepare(struct event_count *event, enum event_count_state state,
			 tw_duration until);
/* Takes the announcement back. Only the sleeper may call this. */
void event_count_cancel(struct event_count *event);
/* Makes the descriptor, if there is one, unreadable until the next event_count_prepare(). A late
 * notifier may undo it. Only the sleeper may call this, while it is awake. */
void event_count_hush(struct event_count *event);
/*
 * Sleeps until notified, or until `until`, which must be that of event_count_prepare(). It may
 * return too early, rarely. It is no cancellation point. Only the sleeper may call this.
 */
void event_count_wait(struct event_count *event, tw_duration until);

/*
 * Returns the descriptor that a sleeper waits for in its own poll() or epoll, or -1 with errno set.
 * It calls event_count_cancel() after that, and never event_count_wait(). `clock` is the clock of
 * the times passed to event_count_prepare().
 */
int event_count_descriptor(struct event_count *event, clockid_t clock);

/* Wakes the sleeper if it still is asleep: the slow part of event_count_notify(). Any thread. */
void event_count_wake(struct event_count *event);

/* Returns whether the sleeper's state is `at_least` or more: the quick part of
 * event_count_notify(). Any thread. */
static inline bool event_count_is_asleep(struct event_count *event, enum event_count_state at_least)
{
	/* seq_cst: after the caller's publication; pairs with the store in event_count_prepare() */
	return atomic_load_explicit(&event->state, memory_order_seq_cst) >= (int)at_least;
}

/* Returns whether a notifier has set the timer since the sleeper did. Only the sleeper may call
 * this. */
static inline bool event_count_is_rung(struct event_count *event)
{
	/* acquire: as in event_count_arm(). */
	return atomic_load_explicit(&event->is_rung, memory_order_acquire);
}

/* Returns whether the sleeper, which is announced, need not set the timer again: no notifier has
 * come, and the timer is not set by one that was held up. Only the sleeper may call this. */
static inline bool event_count_is_settled(struct event_count *event)
{
	return event->timer < 0 ||
	       (event_count_is_asleep(event, EVENT_COUNT_SLEEPING) && !event_count_is_rung(event));
}

/* Wakes the sleeper if its state is `at_least` or more. Any thread. */
static inline void event_count_notify(struct event_count *event, enum event_count_state at_least)
{
	if (event_count_is_asleep(event, at_least))
		event_count_wake(event);
}

/* Notifies a sleeper of work that a nap must not delay. Any thread. */
static inline void event_count_hurry(struct event_count *event)
{
	/* seq_cst: before the look for a napping sleeper; publishes the work, beside that of an
	 * earlier call; pairs with event_count_is_hurried() and event_count_calm(). */
	(void)atomic_exchange_explicit(&event->is_hurried, true, memory_order_seq_cst);
	event_count_notify(event, EVENT_COUNT_NAPPING);
}

/* Returns whether event_count_hurry() was called since the last event_count_calm(): a part of the
 * sleeper's second look. */
static inline bool event_count_is_hurried(struct event_count *event)
{
	/* seq_cst: after the announcement; pairs with event_count_hurry(). */
	return atomic_load_explicit(&event->is_hurried, memory_order_seq_cst);
}

/* The sleeper is about to do the work of earlier calls of event_count_hurry(). */
static inline void event_count_calm(struct event_count *event)
{
	/* relaxed: the exchange decides. acquire: sees that work; pairs with
	 * event_count_hurry(). */
	if (atomic_load_explicit(&event->is_hurried, memory_order_relaxed))
		(void)atomic_exchange_explicit(&event->is_hurried, false, memory_order_acquire);
}

/* ---- Waiting ---- */

/*
 * Threads wait here for what another thread does. One that does it when nobody waits makes no
 * system call.
 *
 * A waiter calls waiting_begin(), and waiting_pause() while what it waits for is not there, and
 * waiting_end(). The other thread does it, by a sequentially consistent store, and calls
 * waiting_tell(). Either the waiter's look sees it, or the other thread sees the waiter.
 */
struct waiting {
	_Alignas(CACHE_LINE) atomic_int waiters;
	pthread_mutex_t lock;
	pthread_cond_t done;
};

void waiting_init(struct waiting *waiting);
void waiting_destroy(struct waiting *waiting);

/* The waiter looks for what it waits for after this, by a sequentially consistent load. */
void waiting_begin(struct waiting *waiting);
/* Sleeps until it is woken, or for a while. Returns false, without sleeping, if the clock has
 * reached the deadline; `clock` may be NULL if that is TW_FOREVER. */
bool waiting_pause(struct waiting *waiting, const struct clock *clock, tw_duration deadline);
void waiting_end(struct waiting *waiting);

/* Wakes all waiters: the slow part of waiting_tell(). */
void waiting_wake(struct waiting *waiting);

/* Something that threads may wait for is done. */
static inline void waiting_tell(struct waiting *waiting)
{
	/* seq_cst: after it was done; pairs with the addition in waiting_begin(). */
	if (atomic_load_explicit(&waiting->waiters, memory_order_seq_cst) > 0)
		waiting_wake(waiting);
}

#endif
