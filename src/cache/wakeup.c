/* SPDX-License-Identifier: MIT */
/*
 * A schedule whose next run is always never, and which is moved by tw_timer_reset: that needs no
 * memory. Runs of one timer never overlap.
 *
 * It needs room in the wheel's queue. Where the wheel refuses, a flush of it makes room; but not
 * in an inline task, which the flush would wait for. A wakeup that could not be set in its own run
 * is asked for its next one after that, which needs no room; others are set at the cache's next
 * occasion.
 *
 * Closing takes the timer's id away first, so that a run which goes on meanwhile finds nothing to
 * set, and does not take that for a drain and mend it. Whoever mends has taken the id away
 * likewise, and finds the mark of the closing when he wants to put the new one there.
 */
#include "wakeup.h"

#include <pthread.h>

static tw_duration wakeup_next(void *argument, tw_duration previous)
{
	struct wakeup *wakeup = argument;

	(void)previous;
	/* relaxed: matters in the wakeup's own run, which has just ended. */
	if (!atomic_exchange_explicit(&wakeup->is_missed, false, memory_order_relaxed))
		return TW_FOREVER;
	return tw_now(wakeup->wheel) + tw_interval_of(wakeup->wheel);
}

static void wakeup_run(void *argument)
{
	const struct wakeup *wakeup = argument;

	wakeup->run(wakeup->argument);
}

enum tw_status wakeup_open(struct wakeup *wakeup, struct tw_wheel *wheel, void (*run)(void *),
			   void *argument)
{
	struct tw_timer timer;
	enum tw_status status;

	wakeup->wheel = wheel;
	wakeup->run = run;
	wakeup->argument = argument;
	atomic_init(&wakeup->is_missed, false);
	status = tw_schedule_func(wheel, wakeup_next, wakeup_run, wakeup, &timer);
	atomic_init(&wakeup->timer, status == TW_OK ? timer.id : WAKEUP_CLOSED);
	return status;
}

/* Whether a call that answered so should be tried again: there is room now. */
static bool wakeup_has_room_after(const struct wakeup *wakeup, enum tw_status status)
{
	return status == TW_FULL && tw_flush(wakeup->wheel) == TW_OK;
}

static enum tw_status wakeup_reset(struct wakeup *wakeup, tw_duration delay)
{
	/* relaxed: an id, which leads to nothing of ours. */
	struct tw_timer timer = {atomic_load_explicit(&wakeup->timer, memory_order_relaxed)};
	enum tw_status status;

	if (timer.id == WAKEUP_CLOSED)
		return TW_CLOSED;
	do
		status = tw_timer_reset(wakeup->wheel, timer, delay);
	while (wakeup_has_room_after(wakeup, status));
	return status;
}

/* Where others have taken all places that the wheel has for timers, no flush makes room. */
static enum tw_status wakeup_schedule(struct wakeup *wakeup, struct tw_timer *timer)
{
	enum { TRIES = 8 };
	enum tw_status status;
	int tries = 0;

	do
		status = tw_schedule_func(wakeup->wheel, wakeup_next, wakeup_run, wakeup, timer);
	while (++tries < TRIES && wakeup_has_room_after(wakeup, status));
	return status;
}

static bool wakeup_open_anew(struct wakeup *wakeup)
{
	/* relaxed: as above. */
	uint64_t lost = atomic_load_explicit(&wakeup->timer, memory_order_relaxed);
	uint64_t none = 0;
	struct tw_timer timer;
	enum tw_status status;

	if (lost == 0)
		return false;
	status = wakeup_reset(wakeup, 0);
	if (status != TW_NOT_FOUND)
		return status == TW_OK;
	/* relaxed: who takes the id away mends it; others have nothing to wait for. */
	if (!atomic_compare_exchange_strong_explicit(&wakeup->timer, &lost, 0, memory_order_relaxed,
						     memory_order_relaxed))
		return false;
	status = wakeup_schedule(wakeup, &timer);
	/* If it fails, the old id lets the next one try again. */
	if (status != TW_OK)
		timer.id = lost;
	/* relaxed: an id; of this and wakeup_close() one is first. */
	if (atomic_compare_exchange_strong_explicit(&wakeup->timer, &none, timer.id,
						    memory_order_relaxed, memory_order_relaxed))
		return wakeup_reset(wakeup, 0) == TW_OK;
	(void)tw_timer_stop(wakeup->wheel, timer);
	return false;
}

bool wakeup_mend(struct wakeup *wakeup)
{
	bool is_there;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	is_there = wakeup_open_anew(wakeup);
	pthread_setcancelstate(state, &state);
	return is_there;
}

void wakeup_repeat(struct wakeup *wakeup)
{
	/* relaxed: see wakeup_next(). */
	atomic_store_explicit(&wakeup->is_missed, true, memory_order_relaxed);
}

bool wakeup_set(struct wakeup *wakeup, tw_duration delay)
{
	enum tw_status status;
	int state;

	/* It may wait, and may write to wake the wheel: where a cancelled thread would end. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	status = wakeup_reset(wakeup, delay);
	pthread_setcancelstate(state, &state);
	if (status == TW_NOT_FOUND)
		return wakeup_mend(wakeup);
	if (status != TW_OK)
		wakeup_repeat(wakeup);
	return status == TW_OK;
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
