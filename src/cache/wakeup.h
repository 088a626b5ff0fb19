/* SPDX-License-Identifier: MIT */
/*
 * A timer of the wheel that is there from the beginning, so that setting it needs no memory and
 * can't be refused. Any thread.
 */
#ifndef CACHE_WAKEUP_H
#define CACHE_WAKEUP_H

#include <stdatomic.h>

#include <timingwheel/timingwheel.h>

struct wakeup {
	/* Constant after wakeup_open. */
	struct tw_wheel *wheel; /* NULL: never opened */
	void (*run)(void *argument);
	void *argument;
	/* Any thread. */
	_Atomic uint64_t timer; /* 0: being mended; WAKEUP_CLOSED */
};

#define WAKEUP_CLOSED UINT64_MAX

/* Never runs until it is set. Statuses of tw_schedule_func. */
enum tw_status wakeup_open(struct wakeup *wakeup, struct tw_wheel *wheel, void (*run)(void *),
			   void *argument);
/* Runs once, `delay` from now (≤ 0: now), instead of when it was set to before. TW_NOT_FOUND: it
 * was drained, see wakeup_mend(). TW_CLOSED: it was closed, or the wheel has been stopped. May be
 * called under a lock: a cancelled thread gets through. */
enum tw_status wakeup_set(struct wakeup *wakeup, tw_duration delay);
/* Opens it anew after a drain of the wheel, to run now; not once it was closed. With no lock
 * held. */
void wakeup_mend(struct wakeup *wakeup);
/* It does not run any more on return, and will not. Not from a task of the wheel. Fine where it
 * was not opened, or closed before. */
void wakeup_close(struct wakeup *wakeup);

#endif
