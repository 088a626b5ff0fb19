/* SPDX-License-Identifier: MIT */
/*
 * A schedule whose next run is always never, and which is moved by tw_timer_reset: that needs no
 * memory, no room in the wheel's queue, and may be done under a lock, for it waits for nobody. Runs
 * of one timer never overlap.
 */
#include "wakeup.h"

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
	atomic_init(&wakeup->timer, timer.id);
	return status;
}

enum tw_status wakeup_set(struct wakeup *wakeup, tw_duration delay)
{
	/* relaxed: an id, which leads to nothing of ours. */
	struct tw_timer timer = {atomic_load_explicit(&wakeup->timer, memory_order_relaxed)};

	return tw_timer_reset(wakeup->wheel, timer, delay);
}

void wakeup_mend(struct wakeup *wakeup)
{
	/* relaxed: as above. */
	uint64_t lost = atomic_load_explicit(&wakeup->timer, memory_order_relaxed);
	struct tw_timer timer;

	/* relaxed: who takes the id away mends it; others have nothing to wait for. */
	if (lost == 0 || wakeup_set(wakeup, 0) != TW_NOT_FOUND ||
	    !atomic_compare_exchange_strong_explicit(&wakeup->timer, &lost, 0, memory_order_relaxed,
						     memory_order_relaxed))
		return;
	if (tw_schedule_func(wakeup->wheel, never, wakeup->run, wakeup->argument, &timer) == TW_OK)
		lost = timer.id;
	/* relaxed: as above. If it failed, the old id lets the next one try again. */
	atomic_store_explicit(&wakeup->timer, lost, memory_order_relaxed);
	wakeup_set(wakeup, 0);
}

void wakeup_close(struct wakeup *wakeup)
{
	/* relaxed: as above. */
	struct tw_timer timer = {atomic_load_explicit(&wakeup->timer, memory_order_relaxed)};

	if (timer.id == 0)
		return;
	/* A stopped wheel knows no timers any more, but waits for what still runs. */
	if (tw_timer_stop_wait(wakeup->wheel, timer) == TW_CLOSED)
		tw_wait_idle(wakeup->wheel);
}
