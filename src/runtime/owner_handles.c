/* SPDX-License-Identifier: MIT */
/* What the actions that handle.c returns do to the pending timers. */
#include "owner_handles.h"

#include "handle.h"
#include "owner_place.h"
#include "owner_retire.h"

/* A timer whose deadline is not after now is for now: it gets the tick, and true is returned. */
static bool owner_is_for_now(struct owner *owner, struct timer *timer, tw_duration now)
{
	if (timer->deadline > now || timer->deadline == TW_FOREVER)
		return false;
	timer->tick = owner_tick_for_now(owner);
	return true;
}

/*
 * The time for all commands of a batch: it is read when the first of them needs it, so after each
 * of them was given. While a batch is applied the queue's head stands still.
 */
static tw_duration owner_batch_time(struct owner *owner)
{
	uint64_t head = command_queue_head(&owner->queue);

	if (owner->batch_head != head) {
		owner->batch_head = head;
		owner->batch_time = clock_now(&owner->clock);
	}
	return owner->batch_time;
}

/* No other thread has the handle. */
static inline void owner_free_handle(struct owner *owner, struct handle *handle)
{
	if (handle_closed(handle))
		outbox_close(&owner->out, &handle->timer);
	else
		handle_free(&owner->out.handles, &owner->out.bin.handles, handle);
}

void owner_set_handle(struct owner *owner, struct handle *handle, bool in_task)
{
	tw_duration deadline = handle->timer.deadline;

	switch (handle_apply_set(handle)) {
	case HANDLE_REFILE:
	case HANDLE_REPEAT:
		if (handle->timer.deadline != deadline)
			handle->timer.by_tick =
				owner_is_for_now(owner, &handle->timer, clock_now(&owner->clock));
		else if (handle->timer.by_tick)
			handle->timer.tick = owner_tick_for_now(owner);
		counter_add_ordered(&owner->out.counts.set, 1);
		owner_place(owner, &handle->timer, in_task);
		return;
	case HANDLE_FREE:
		owner_free_handle(owner, handle);
		break;
	case HANDLE_KEEP:
		break;
	}
	/* Stopped before it was set. */
	counter_add_ordered(&owner->out.counts.set, 1);
	counter_add_ordered(&owner->out.counts.removed, 1);
	limit_give(&owner->out.places, 1);
}

/* Inlined it would make each look for stopped handles dearer. */
static __attribute__((noinline)) void owner_remove_handle(struct owner *owner,
							  struct handle *handle)
{
	if (timer_place(&handle->timer) != TIMER_AWAY) {
		owner_unplace(owner, &handle->timer);
		counter_add_ordered(&owner->out.counts.removed, 1);
		limit_give(&owner->out.places, 1);
	}
	owner_free_handle(owner, handle);
}

void owner_reset_handle(struct owner *owner, const struct command *command)
{
	struct handle *handle = command->handle;
	struct timer *timer;
	tw_duration before;
	bool for_now;

	if (!handle || !handle_is_pending_here(handle, command->id, owner->pending.number))
		return;
	timer = &handle->timer;
	before = timer->deadline;
	handle_apply_reset(handle);
	for_now = owner_is_for_now(owner, timer, owner_batch_time(owner));
	if (timer_place(timer) == TIMER_IN_WHEEL && !(command->in_task && for_now)) {
		wheel_moved(owner->pending.wheel, timer, before, for_now);
		return;
	}
	owner_unplace(owner, timer);
	timer->by_tick = for_now;
	owner_place(owner, timer, command->in_task);
}

/* Sets a handle again after its run. A deadline of its schedule is filed as any other, even if it
 * has passed: a run that takes longer than its period must not overtake what is due before it. */
static void owner_take_back_handle(struct owner *owner, struct handle *handle,
				   enum handle_action action)
{
	bool is_reset = action == HANDLE_REFILE;

	if (owner->is_stopped) {
		owner_retire_timer(owner, &handle->timer, NULL);
		return;
	}
	(void)limit_take_over(&owner->out.places);
	handle->timer.by_tick =
		is_reset && owner_is_for_now(owner, &handle->timer, clock_now(&owner->clock));
	owner_place(owner, &handle->timer, is_reset && owner->in.in_dispatch);
}

/* Those that ran, or were found reset when they should have. */
static size_t owner_see_returned(struct owner *owner)
{
	struct handle *handle;
	size_t seen = 0;

	for (; seen < PENDING_BATCH && (handle = handle_take_returned(&owner->out.handles));
	     seen++) {
		enum handle_action action = handle_apply_return(handle);

		if (action == HANDLE_FREE) {
			counter_add_ordered(&owner->out.counts.removed, 1);
			owner_remove_handle(owner, handle);
		} else {
			owner_take_back_handle(owner, handle, action);
		}
	}
	return seen;
}

/* In batches, whose neighbours are fetched together: see pending.c. */
static size_t owner_see_stopped(struct owner *owner)
{
	struct handle *batch[PENDING_BATCH];
	size_t count = handle_take_stopped(&owner->out.handles, batch, PENDING_BATCH);

	if (count == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (handle_is_here(batch[i], owner->pending.number))
			wheel_prefetch(&batch[i]->timer);
	for (size_t i = 0; i < count; i++)
		if (handle_apply_stop(batch[i], owner->pending.number) == HANDLE_FREE)
			owner_remove_handle(owner, batch[i]);
	return count;
}

size_t owner_see_handles(struct owner *owner, size_t most)
{
	size_t seen = 0;
	bool more;

	/* By turns, lest many of one kind hold up the others. Where a batch was not full, there
	 * were no more. */
	do {
		size_t returned = owner_see_returned(owner);
		size_t alarms = owner_see_alarms(owner, PENDING_BATCH);
		size_t stopped = owner_see_stopped(owner);

		seen += returned + alarms + stopped;
		more = returned == PENDING_BATCH || alarms == PENDING_BATCH ||
		       stopped == PENDING_BATCH;
	} while (more && seen < most);
	owner->applied += seen;
	owner_publish_pending(owner);
	return seen;
}
