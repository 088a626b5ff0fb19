/* SPDX-License-Identifier: MIT */
/*
 * One drain, or the stop, is under way at a time; the next one waits in the queue until no stale
 * timer is left. A drain is referred to by each of its timers, until its function has returned or
 * the timer was stopped, and by the owner until none is pending.
 *
 * Inline jobs keep the order of events. What happens after a drain comes after all of its timers,
 * and waits for them in a list.
 */
#include "owner_state.h"

/* Ends the drain under way if none of its timers is left. */
static void owner_end_drain(struct owner *owner)
{
	if (!owner->pending.has_stale || owner->pending.stale_count > 0)
		return;
	owner->pending.has_stale = false;
	if (owner->drain)
		drain_release(owner->drain);
	list_append_all(&owner->out.jobs, &owner->after_drain);
	owner->out.jobs_end = &owner->out.jobs;
}

/* What is pending belongs to the drain from now on, or is released if that is NULL. */
static void owner_begin_drain(struct owner *owner, struct drain *drain)
{
	if (drain) {
		/* relaxed: the jobs are published by their submission. */
		atomic_store_explicit(&drain->references, 1 + owner->pending.count,
				      memory_order_relaxed);
	}
	owner->drain = drain;
	list_init(&owner->after_drain);
	owner->out.jobs_end = &owner->after_drain;
	pending_begin_epoch(&owner->pending);
	owner_end_drain(owner);
	owner_publish_pending(owner);
}

void owner_drain(struct owner *owner, struct drain *drain)
{
	if (owner->is_stopped)
		drain_release(drain);
	else
		owner_begin_drain(owner, drain);
}

void owner_stop(struct owner *owner)
{
	owner_begin_drain(owner, NULL);
	owner->is_stopped = true;
}

/* Hands over a stale timer that has left the pending ones, unless it is a handle that was
 * stopped. */
static void owner_hand_over_stale(struct owner *owner, struct timer *timer)
{
	bool has_key = timer_has_key(timer);

	if (!has_key)
		timer_set_place(timer, TIMER_AWAY);
	if (has_key || alarm_take(timer_alarm(timer))) {
		outbox_retire(&owner->out, timer, owner->drain, &owner->out.jobs);
		return;
	}
	owner_settle_alarm(owner, timer_alarm(timer));
	if (owner->drain)
		drain_release(owner->drain);
}

bool owner_hand_over_if_stale(struct owner *owner, struct timer *timer)
{
	if (timer_is_alarm(timer) || !pending_is_stale(&owner->pending, timer))
		return false;
	owner->pending.stale_count--;
	owner_hand_over_stale(owner, timer);
	return true;
}

void owner_sweep(struct owner *owner)
{
	struct timer *stale[PENDING_BATCH];
	size_t count = pending_sweep(&owner->pending, &owner->out.handles, stale, PENDING_BATCH);

	for (size_t i = 0; i < count; i++)
		owner_hand_over_stale(owner, stale[i]);
	owner_end_drain(owner);
}
