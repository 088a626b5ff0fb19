/* SPDX-License-Identifier: MIT */
/*
 * A timer of the wheel that is there from the beginning, so that setting it needs no memory. Any
 * thread.
 */
#ifndef CACHE_WAKEUP_H
#define CACHE_WAKEUP_H

#include <stdatomic.h>
#include <stdbool.h>

#include <timingwheel/timingwheel.h>

struct wakeup {
	/* Constant after wakeup_open. */
	struct tw_wheel *wheel; /* NULL: never opened */
	void (*run)(void *argument);
	void *argument;
	/* Any thread. */
	_Atomic uint64_t timer; /* 0: being mended; WAKEUP_CLOSED */
	atomic_bool is_missed;  /* it could not be set: runs again in a tick if it runs now */
};

#define WAKEUP_CLOSED UINT64_MAX

/* Never runs until it is set. Statuses of tw_schedule_func. */
enum tw_status wakeup_open(struct wakeup *wakeup, struct tw_wheel *wheel, void (*run)(void *),
			   void *argument);
/*
 * Runs once, `delay` from now (≤ 0: now), instead of when it was set to before. Where a drain of
 * the wheel has taken it, it is mended. With no lock held: if the wheel's queue is full it waits
 * for room, whatever when_full says, and with TW_DRIVE_CALLER drives the wheel. False: it was
 * closed, the wheel has been stopped, it is just being mended, it can't be, for the wheel has as
 * many timers as it may, or there is no room for an inline task of a wheel that refuses.
 */
bool wakeup_set(struct wakeup *wakeup, tw_duration delay);
/* In its own run: it runs again in the next tick, for which it needs no room. */
void wakeup_repeat(struct wakeup *wakeup);
/* After a drain of the wheel: opens it anew, to run now; not once it was closed. With no lock held.
 * False: it is not there. */
bool wakeup_mend(struct wakeup *wakeup);
/* It does not run any more on return, and will not. Not from a task of the wheel. Fine where it
 * was not opened, or closed before. */
void wakeup_close(struct wakeup *wakeup);

#endif
