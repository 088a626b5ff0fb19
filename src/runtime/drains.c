/* SPDX-License-Identifier: MIT */
/*
 * A drain is referred to by each of its timers, until its function has returned or the timer was
 * stopped, and by the owner until none is pending.
 *
 * Inline jobs keep the order of events. What happens after a drain comes after all of its timers,
 * and waits for them in a list of its epoch. Of several drains under way the next one's timers are
 * such events.
 */
#include "owner_state.h"

bool owner_may_drain(const struct owner *owner)
{
	return epoch_after(owner->pending.epoch) != owner->pending.oldest;
}

/* Ends the epochs that have become empty, the oldest first. */
static void owner_end_epochs(struct owner *owner)
{
	struct pending *pending = &owner->pending;

	while (pending_has_stale(pending) && pending->stale[pending->oldest] == 0) {
		if (owner->drains.of[pending->oldest])
			drain_release(owner->drains.of[pending->oldest]);
		list_append_all(&owner->out.jobs, &owner->drains.after[pending->oldest]);
		pending->oldest = epoch_after(pending->oldest);
	}
	if (!pending_has_stale(pending))
		owner->out.jobs_end = &owner->out.jobs;
}

/* What is pending belongs to the drain from now on, or is released if that is NULL. */
static void owner_begin_epoch(struct owner *owner, struct drain *drain)
{
	struct pending *pending = &owner->pending;
	uint16_t epoch = pending->epoch;

	if (drain) {
		/* relaxed: the jobs are published by their submission. */
		atomic_store_explicit(&drain->references, 1 + pending->count - pending->stale_count,
				      memory_order_relaxed);
	}
	owner->drains.of[epoch] = drain;
	list_init(&owner->drains.after[epoch]);
	owner->out.jobs_end = &owner->drains.after[epoch];
	pending_begin_epoch(pending);
	owner_end_epochs(owner);
}

void owner_drain(struct owner *owner, struct drain *drain)
{
	if (owner->is_stopped)
		drain_release(drain);
	else
		owner_begin_epoch(owner, drain);
	owner_publish_pending(owner);
}

void owner_stop(struct owner *owner)
{
	owner_begin_epoch(owner, NULL);
	owner->is_stopped = true;
	owner_publish_pending(owner);
}

bool owner_hand_over_if_stale(struct owner *owner, struct timer *timer)
{
	if (timer_is_alarm(timer) || !pending_is_stale(&owner->pending, timer))
		return false;
	pending_end_stale(&owner->pending, timer);
	owner_hand_over_stale(owner, timer);
	return true;
}

void owner_sweep(struct owner *owner)
{
	struct timer *stale[PENDING_BATCH];
	size_t count = pending_sweep(&owner->pending, &owner->out.handles, stale, PENDING_BATCH);

	for (size_t i = 0; i < count; i++)
		owner_hand_over_stale(owner, stale[i]);
	owner_end_epochs(owner);
}
