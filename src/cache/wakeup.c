/* SPDX-License-Identifier: MIT */
/*
 * A schedule whose next run is always never, and which is moved by tw_timer_reset: that needs no
 * memory, no room in the wheel's queue, and may be done under a lock, for it waits for nobody. Runs
 * of one timer never overlap.
 *
 * Closing takes the timer's id away first, so that a run which goes on meanwhile finds nothing to
 * set, and does not take that for a drain and mend it. Whoever mends has taken the id away likewise,
 * and finds the mark of the closing when he wants to put the new one there.
 */
#include "wakeup.h"

#include <pthread.h>

static tw_duration never(void *argument, tw_duration previous)
{
	(void)argument;
	(void)previous;
	return TW_FOREVER;
}

enum tw_status wakeup_open(struct wakeup *wakeup, struct tw_wheel *wheel, void (*run)(void *),
			   void *argument)
{
	struct tw_timer timer;
	enum tw_status status = tw_schedule_func(wheel, never, run, argument, &timer);

	wakeup->wheel = wheel;
	wakeup->run = run;
	wakeup->argument = argument;
	atomic_init(&wakeup->timer, status == TW_OK ? timer.id : WAKEUP_CLOSED);
	return status;
}

enum tw_status wakeup_set(struct wakeup *wakeup, tw_duration delay)
{
	/* relaxed: an id, which leads to nothing of ours. */
	struct tw_timer timer = {atomic_load_explicit(&wakeup->timer, memory_order_relaxed)};
	enum tw_status status;
	int state;

	if (timer.id == WAKEUP_CLOSED)
		return TW_CLOSED;
	/* It may write to wake the wheel, where a cancelled thread would end, with its locks. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	status = tw_timer_reset(wakeup->wheel, timer, delay);
	pthread_setcancelstate(state, &state);
	return status;
}

void wakeup_mend(struct wakeup *wakeup)
{
	/* relaxed: as above. */
	uint64_t lost = atomic_load_explicit(&wakeup->timer, memory_order_relaxed);
	uint64_t none = 0;
	struct tw_timer timer;
	int state;

	/* relaxed: who takes the id away mends it; others have nothing to wait for. */
	if (lost == 0 || wakeup_set(wakeup, 0) != TW_NOT_FOUND ||
	    !atomic_compare_exchange_strong_explicit(&wakeup->timer, &lost, 0, memory_order_relaxed,
						     memory_order_relaxed))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	/* If it fails, the old id lets the next one try again. */
	if (tw_schedule_func(wakeup->wheel, never, wakeup->run, wakeup->argument, &timer) != TW_OK)
		timer.id = lost;
	/* relaxed: an id; of this and wakeup_close() one is first. */
	if (!atomic_compare_exchange_strong_explicit(&wakeup->timer, &none, timer.id,
						     memory_order_relaxed, memory_order_relaxed))
		(void)tw_timer_stop(wakeup->wheel, timer);
	else
		wakeup_set(wakeup, 0);
	pthread_setcancelstate(state, &state);
}

void wakeup_close(struct wakeup *wakeup)
{
	struct tw_timer timer;
	enum tw_status status = TW_NOT_FOUND;

	if (!wakeup->wheel)
		return;
	/* relaxed: an id; of this and wakeup_mend() one is first. */
	timer.id = atomic_exchange_explicit(&wakeup->timer, WAKEUP_CLOSED, memory_order_relaxed);
	if (timer.id == WAKEUP_CLOSED)
		return;
	if (timer.id != 0)
		status = tw_timer_stop_wait(wakeup->wheel, timer);
	/* A stopped wheel knows no timers any more, and a drained one may run all the same. */
	if (status == TW_CLOSED || status == TW_NOT_FOUND)
		tw_wait_idle(wakeup->wheel);
}
