/* SPDX-License-Identifier: MIT */
/*
 * The wheel knows the deadlines by which timers are filed. A handle or an alarm that was put off
 * has a later one, and an alarm that was stopped has none: the search looks each of them up.
 */
#include "earliest.h"

#include "keyless.h"

/* A wheel_look_fn. */
static bool owner_look_up(void *context, struct timer *timer)
{
	struct owner *owner = context;
	enum tw_status status;
	uint64_t tick;

	if (timer_is_handle(timer) && handle_looks_reset(timer_handle(timer)))
		handle_put_off(timer_handle(timer));
	if (!timer_is_alarm(timer))
		return true;
	status = alarm_due(timer_alarm(timer), &tick);
	if (status == TW_OK && tick > timer->tick)
		timer->tick = tick;
	/* One that is set sooner, or closed, comes through the inbox. */
	if (status != TW_NOT_FOUND)
		return true;
	owner_unplace(owner, timer);
	timer_set_place(timer, TIMER_AWAY);
	owner_retire_alarm(owner, timer_alarm(timer));
	return false;
}

tw_duration owner_next_deadline(struct owner *owner)
{
	if (owner_has_jobs(owner) || !list_is_empty(&owner->next_timers) ||
	    !list_is_empty(&owner->retirements))
		return clock_now(&owner->clock);
	return wheel_earliest(owner->pending.wheel, owner_look_up, owner);
}
