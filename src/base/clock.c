/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include "thread.h"

bool clock_init(struct clock *clock, enum tw_clock kind, tw_duration interval)
{
	struct timespec resolution;

	clock->kind = kind;
	clock->id = kind == TW_CLOCK_BOOTTIME ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
	if (clock_getres(clock->id, &resolution) != 0)
		return false;
	clock->ticks.interval = interval;
	atomic_init(&clock->manual_now, 0);
	clock->ticks.origin = kind == TW_CLOCK_MANUAL ? 0 : clock_read_real(clock->id);
	return true;
}

/* Returns when, on CLOCK_MONOTONIC, a thread that waits for `deadline` has to look again. */
static tw_duration clock_next_look(const struct clock *clock, tw_duration deadline)
{
	tw_duration left;

	if (deadline == TW_FOREVER || clock->kind == TW_CLOCK_MONOTONIC)
		return deadline;
	/* CLOCK_BOOTTIME goes on while the machine is suspended, and the sleep does not. */
	left = clock->kind == TW_CLOCK_MANUAL ? TW_MILLISECOND
					      : time_left(deadline, clock_now(clock));
	return clock_read_real(CLOCK_MONOTONIC) + (left < TW_SECOND ? left : TW_SECOND);
}

bool clock_wait(const struct clock *clock, pthread_cond_t *condition, pthread_mutex_t *lock,
		tw_duration deadline)
{
	if (clock_has_reached(clock, deadline))
		return false;
	(void)condition_wait(condition, lock, clock_next_look(clock, deadline));
	return true;
}
