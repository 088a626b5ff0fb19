/* SPDX-License-Identifier: MIT */
/*
 * Sleep and wake for one sleeper; a notifier that finds it awake makes no system call.
 *
 * The sleeper: event_count_prepare(), look once more whether there is work, then event_count_wait()
 * or event_count_cancel(). The others: publish work with a sequentially consistent operation, then
 * event_count_notify(). Either the sleeper's second look sees the work, or the notifier sees the
 * sleeper.
 */
#ifndef EVENT_COUNT_H
#define EVENT_COUNT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <timingwheel/timingwheel.h>

#include "slab.h"

enum event_count_state {
	EVENT_COUNT_AWAKE,
	EVENT_COUNT_NAPPING, /* a short sleep that ordinary work need not end */
	EVENT_COUNT_SLEEPING
};

struct event_count {
	/* Any thread. Alone on its line: notifiers only read it while the sleeper is awake. */
	_Alignas(CACHE_LINE) atomic_int state;
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Constant once opened: readable at the end of a sleep or when notified; -1: not needed. */
	int timer;
};

/* boottime: sleeps end by CLOCK_BOOTTIME, else by CLOCK_MONOTONIC. False: errno tells. */
bool event_count_init(struct event_count *event, bool boottime);
void event_count_destroy(struct event_count *event);

/* The sleeper. `until`: when the sleep is to end, by its clock (TW_FOREVER: no end). */
void event_count_prepare(struct event_count *event, enum event_count_state state,
			 tw_duration until);
void event_count_cancel(struct event_count *event);
/* Until notified, or until then; or a little less, rarely. */
void event_count_wait(struct event_count *event, tw_duration until);

/*
 * For a sleeper that sleeps elsewhere, in its own poll() or epoll: the descriptor that it waits
 * for, -1: errno tells. Instead of event_count_wait() it then calls event_count_cancel() when it is
 * back. clock: of `until`.
 */
int event_count_descriptor(struct event_count *event, clockid_t clock);

/* Any thread. The slow part of event_count_notify(). */
void event_count_wake(struct event_count *event);

/* Any thread. The quick part. */
static inline bool event_count_is_asleep(struct event_count *event, enum event_count_state at_least)
{
	/* seq_cst: after the caller's publication; pairs with the store in event_count_prepare() */
	return atomic_load_explicit(&event->state, memory_order_seq_cst) >= (int)at_least;
}

static inline void event_count_notify(struct event_count *event, enum event_count_state at_least)
{
	if (event_count_is_asleep(event, at_least))
		event_count_wake(event);
}

#endif
