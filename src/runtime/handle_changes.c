/* SPDX-License-Identifier: MIT */
/* What the actions that handle.c returns do to the pending timers. */
#include "handle_changes.h"

#include "handle.h"
#include "keyless.h"
#include "retire.h"

/* Files a handle that is in no list. A call of it would be 10 instructions. */
static inline __attribute__((always_inline)) void owner_file_handle(struct owner *owner,
								    struct handle *handle,
								    bool in_task)
{
	/* One for now is due at any tick. */
	handle->timer.tick = 0;
	owner_place(owner, &handle->timer, in_task);
}

/* No other thread has the handle. */
static inline void owner_free_handle(struct owner *owner, struct handle *handle)
{
	handle_free(&owner->out.handles, &owner->out.bin.handles, handle);
}

void owner_set_handle(struct owner *owner, struct handle *handle, bool in_task)
{
	enum handle_action action = handle_apply_set(handle);

	counter_add_ordered(&owner->out.counts.set, 1);
	if (action == HANDLE_FILE) {
		owner_file_handle(owner, handle, in_task);
		return;
	}
	/* Stopped before it was set. */
	if (action == HANDLE_FREE)
		owner_free_handle(owner, handle);
	counter_add_ordered(&owner->out.counts.removed, 1);
}

bool owner_claim_handle(struct owner *owner, struct handle *handle)
{
	if (handle_is_due(handle))
		return true;
	owner_file_handle(owner, handle, owner->in.in_dispatch);
	return false;
}

static void owner_remove_handle(struct owner *owner, struct handle *handle)
{
	owner_unplace(owner, &handle->timer);
	counter_add_ordered(&owner->out.counts.removed, 1);
	owner_free_handle(owner, handle);
}

/* What an inline task resets to now waits for the next turn. */
static void owner_move_handle(struct owner *owner, struct handle *handle, tw_duration before)
{
	struct timer *timer = &handle->timer;
	bool waits = owner->in.in_dispatch && timer->by_tick;

	if (timer_place(timer) == TIMER_IN_WHEEL && !waits) {
		timer->tick = 0;
		wheel_moved(owner->pending.wheel, timer, before, timer->by_tick);
		return;
	}
	owner_unplace(owner, timer);
	owner_file_handle(owner, handle, waits);
}

/* Sets a handle again after its run. A deadline of its schedule is filed as any other, even if it
 * has passed: a run that takes longer than its period must not overtake what is due before it. */
static void owner_take_back_handle(struct owner *owner, struct handle *handle)
{
	if (owner->is_stopped) {
		owner_retire_timer(owner, &handle->timer, NULL);
		return;
	}
	owner_file_handle(owner, handle, handle->timer.by_tick && owner->in.in_dispatch);
}

/* Sees to a handle that was reset to run sooner, or has come back. Not inlined: the look for
 * changes would become dearer. */
static __attribute__((noinline)) void owner_apply_change(struct owner *owner, struct handle *handle)
{
	bool is_here = handle_is_here(handle, owner->pending.number);
	/* The deadline of a handle that is not here is another thread's. */
	tw_duration before = is_here ? handle->timer.deadline : 0;

	switch (handle_apply_change(handle, is_here)) {
	case HANDLE_KEEP:
		break;
	case HANDLE_FREE:
		owner_free_handle(owner, handle);
		break;
	case HANDLE_REMOVE:
		owner_remove_handle(owner, handle);
		break;
	case HANDLE_FILE:
		owner_take_back_handle(owner, handle);
		break;
	case HANDLE_MOVE:
		owner_move_handle(owner, handle, before);
		break;
	}
}

/* Those that were reset to run sooner, that ran, or were found reset when they should have. */
static size_t owner_see_changed(struct owner *owner)
{
	struct handle *handle;
	size_t seen = 0;

	for (; seen < PENDING_BATCH && (handle = handle_take_changed(&owner->out.handles)); seen++)
		owner_apply_change(owner, handle);
	return seen;
}

/* Takes a batch of stopped handles out, whose neighbours are fetched together: see pending.c. Not
 * inlined, for the same reason. Returns their number. */
static __attribute__((noinline)) size_t owner_see_stopped(struct owner *owner)
{
	struct handle *batch[PENDING_BATCH];
	size_t count = handle_take_stopped(&owner->out.handles, batch, PENDING_BATCH);

	for (size_t i = 0; i < count; i++)
		if (handle_is_here(batch[i], owner->pending.number))
			wheel_prefetch(&batch[i]->timer);
	for (size_t i = 0; i < count; i++) {
		bool is_here = handle_is_here(batch[i], owner->pending.number);
		enum handle_action action = handle_apply_stop(batch[i], is_here);

		if (action == HANDLE_REMOVE)
			owner_remove_handle(owner, batch[i]);
		else if (action == HANDLE_FREE)
			owner_free_handle(owner, batch[i]);
	}
	return count;
}

size_t owner_see_some_handles(struct owner *owner, size_t most)
{
	size_t seen = 0;
	bool more;

	/* The kinds take turns, so that none holds up the others. Where a batch was not full, there
	 * were no more. */
	do {
		size_t changed = owner_see_changed(owner);
		size_t alarms = owner_see_alarms(owner, PENDING_BATCH);
		size_t stopped =
			handle_none_is_stopped(&owner->out.handles) ? 0 : owner_see_stopped(owner);

		seen += changed + alarms + stopped;
		more = changed == PENDING_BATCH || alarms == PENDING_BATCH ||
		       stopped == PENDING_BATCH;
	} while (more && seen < most);
	owner->applied += seen;
	owner_publish_pending(owner);
	return seen;
}
