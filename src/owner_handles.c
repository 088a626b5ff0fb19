/* SPDX-License-Identifier: MIT */
/* Setting timers by handle, and learning of their stops and resets: see handle.c. */
#include "owner.h"

/* Puts the handle into the wheel by its expiry; what an inline task wants at once is put off. */
static void owner_place_handle(struct owner *owner, struct handle *handle, bool in_task)
{
	struct timer *timer = &handle->timer;

	if (in_task && timer->expiry <= wheel_now(owner->shelf.wheel)) {
		timer->place = HANDLE_IN_NEXT_TURN;
		list_append(&owner->next_handles, &timer->link);
		return;
	}
	timer->place = HANDLE_IN_WHEEL;
	timer->shelf = owner->shelf.number;
	wheel_add(owner->shelf.wheel, timer);
}

void owner_begin_next_turn(struct owner *owner)
{
	struct list *link;

	while ((link = list_take_first(&owner->next_handles)))
		owner_place_handle(owner, timer_handle(timer_of_link(link)), false);
}

/* A new deadline: the tick of it. One that is not after now is due at once. */
static void owner_date_handle(struct owner *owner, struct handle *handle)
{
	tw_duration deadline = handle->timer.deadline;

	bool now = deadline <= clock_now(&owner->clock) && deadline != TW_FOREVER;

	handle->timer.expiry = now ? 0 : clock_tick_after(&owner->clock, deadline);
}

void owner_set_handle(struct owner *owner, struct handle *handle, bool in_task)
{
	tw_duration deadline = handle->timer.deadline;

	switch (handle_apply_set(handle)) {
	case HANDLE_REFILE:
	case HANDLE_REPEAT:
		if (handle->timer.deadline != deadline)
			owner_date_handle(owner, handle);
		owner_count(&owner->counts.set, 1);
		owner_place_handle(owner, handle, in_task);
		return;
	case HANDLE_FREE:
		handle_free(&owner->handles, &owner->bin.handles, handle);
		break;
	case HANDLE_KEEP:
		break;
	}
	/* Stopped before it was set. */
	owner_count(&owner->counts.set, 1);
	owner_count(&owner->counts.removed, 1);
	owner_unreserve(owner, 1);
}

/* Takes the handle out of where it waits; one that comes back from a worker is in no place. */
static void owner_unplace_handle(struct owner *owner, struct handle *handle)
{
	if (handle->timer.place == HANDLE_IN_WHEEL)
		wheel_remove(owner->shelf.wheel, &handle->timer);
	else if (handle->timer.place == HANDLE_IN_NEXT_TURN)
		list_remove(&handle->timer.link);
}

static void owner_remove_handle(struct owner *owner, struct handle *handle)
{
	if (handle->timer.place != HANDLE_AWAY) {
		owner_unplace_handle(owner, handle);
		owner_count(&owner->counts.removed, 1);
		owner_unreserve(owner, 1);
	}
	handle_free(&owner->handles, &owner->bin.handles, handle);
}

static void owner_refile_handle(struct owner *owner, struct handle *handle, bool in_task)
{
	bool was_away = handle->timer.place == HANDLE_AWAY;

	owner_unplace_handle(owner, handle);
	if (owner->is_stopped) {
		owner_retire_timer(owner, &handle->timer, NULL);
		return;
	}
	if (was_away && owner->max_pending > 0) {
		/* relaxed: a count, orders nothing. It has its place again, over the limit if must
		 * be. */
		atomic_fetch_add_explicit(&owner->reserved, 1, memory_order_relaxed);
	}
	owner_date_handle(owner, handle);
	owner_place_handle(owner, handle, in_task);
}

bool owner_take_changes(struct owner *owner, size_t most)
{
	struct handle *handle;

	for (size_t i = 0; i < most; i++) {
		handle = handle_take_change(&owner->handles);
		if (!handle)
			break;
		switch (handle_apply_change(handle, owner->shelf.number)) {
		case HANDLE_FREE:
			owner_remove_handle(owner, handle);
			break;
		case HANDLE_REFILE:
			owner_refile_handle(owner, handle, owner->in_dispatch);
			break;
		case HANDLE_REPEAT:
			owner_refile_handle(owner, handle, false);
			break;
		case HANDLE_KEEP:
			break;
		}
		owner->applied++;
		if (i + 1 == most)
			return false;
	}
	owner_publish_pending(owner);
	return true;
}
