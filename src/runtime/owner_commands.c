/* SPDX-License-Identifier: MIT */
/*
 * Replacing a value leaves the pending timer where it is, in the index and if possible in its slot:
 * the new value and deadline go into it, and the set command's timer, which has the same key,
 * carries the old value back.
 */
#include "owner_commands.h"

#include "owner_handles.h"
#include "owner_retire.h"

static struct keyed_timer *owner_find(struct owner *owner, const struct command *command)
{
	const void *key = command->timer ? command->timer->key : command->key;

	return timer_index_find(&owner->shelf.index, key, command->key_size, command->hash);
}

/* The timer leaves the shelf and runs now; where the pool has a limit, once there is room. */
static void owner_fire_now(struct owner *owner, struct keyed_timer *timer, bool in_next_turn)
{
	if (owner->out.pool_is_limited) {
		wheel_move(owner->shelf.wheel, &timer->timer, 0);
		return;
	}
	shelf_remove(&owner->shelf, timer);
	counter_add_ordered(&owner->out.counts.fired, 1);
	limit_give(&owner->out.places, 1);
	if (!in_next_turn) {
		outbox_run(&owner->out, &timer->timer, JOB_LANE_PROMPT);
		return;
	}
	timer->timer.job = TIMER_RUN;
	list_append(&owner->out.next_jobs, &timer->timer.link);
}

static void owner_replace(struct owner *owner, struct keyed_timer *old, struct keyed_timer *timer)
{
	void *value = old->timer.value;
	tw_duration deadline = old->timer.deadline;
	uint64_t expiry = timer->timer.expiry;

	old->timer.value = timer->timer.value;
	old->timer.deadline = timer->timer.deadline;
	timer->timer.value = value;
	timer->timer.deadline = deadline;
	outbox_release(&owner->out, &timer->timer, TW_REPLACED);
	wheel_move(owner->shelf.wheel, &old->timer, expiry);
}

/* Arms the timer, or replaces the value that its key has; answers the one that is pending now. */
static struct keyed_timer *owner_arm(struct owner *owner, struct keyed_timer *timer,
				     struct keyed_timer *old)
{
	if (old) {
		counter_add_ordered(&owner->out.counts.replaced, 1);
		owner_replace(owner, old, timer);
		return old;
	}
	counter_add_ordered(&owner->out.counts.set, 1);
	shelf_add(&owner->shelf, timer);
	return timer;
}

static void owner_set(struct owner *owner, const struct command *command)
{
	struct keyed_timer *old = owner_find(owner, command);
	struct keyed_timer *pending;

	if (old)
		limit_give(&owner->out.places, 1);
	pending = owner_arm(owner, command->timer, old);
	/* An inline task that sets itself again in the past must not keep its turn busy forever. */
	if (command->kind == COMMAND_SET_NOW)
		owner_fire_now(owner, pending, command->in_task);
}

static void owner_move(struct owner *owner, const struct command *command)
{
	struct keyed_timer *timer = owner_find(owner, command);

	if (!timer)
		return;
	counter_add_ordered(&owner->out.counts.moved, 1);
	timer->timer.deadline = command->deadline;
	if (command->kind == COMMAND_MOVE) {
		wheel_move(owner->shelf.wheel, &timer->timer, command->expiry);
		return;
	}
	owner_fire_now(owner, timer, false);
}

static void owner_remove(struct owner *owner, const struct command *command)
{
	struct keyed_timer *timer = owner_find(owner, command);

	if (!timer)
		return;
	counter_add_ordered(&owner->out.counts.removed, 1);
	shelf_remove(&owner->shelf, timer);
	limit_give(&owner->out.places, 1);
	outbox_release(&owner->out, &timer->timer, TW_REMOVED);
}

static bool command_is_set(const struct command *command)
{
	return command->kind == COMMAND_SET || command->kind == COMMAND_SET_NOW;
}

static void owner_apply_command(struct owner *owner, const struct command *command)
{
	if (command_is_set(command)) {
		owner_set(owner, command);
		return;
	}
	if (command->kind == COMMAND_SET_HANDLE) {
		owner_set_handle(owner, command->handle, command->in_task);
		return;
	}
	if (command->kind == COMMAND_RESET_HANDLE) {
		owner_reset_handle(owner, command);
		return;
	}
	if (command->kind == COMMAND_REMOVE)
		owner_remove(owner, command);
	else
		owner_move(owner, command);
	if (command->timer)
		timer_free(&owner->out.store, &owner->out.bin, command->timer);
}

/* After a stop: a set was accepted before it, so its value must come back. */
static void owner_refuse_command(struct owner *owner, const struct command *command)
{
	if (command_is_set(command)) {
		counter_add_ordered(&owner->out.counts.stopped, 1);
		outbox_release(&owner->out, &command->timer->timer, TW_STOPPED);
	} else if (command->kind == COMMAND_SET_HANDLE) {
		owner_retire_timer(owner, &command->handle->timer, NULL);
	} else if (command->kind != COMMAND_RESET_HANDLE && command->timer) {
		timer_free(&owner->out.store, &owner->out.bin, command->timer);
	}
}

void owner_apply_commands(struct owner *owner, size_t count)
{
	if (!owner->is_stopped)
		shelf_prefetch(&owner->shelf, &owner->queue, count);
	for (size_t i = 0; i < count; i++) {
		const struct command *command = command_queue_at(&owner->queue, i);

		if (owner->is_stopped)
			owner_refuse_command(owner, command);
		else
			owner_apply_command(owner, command);
	}
	owner_publish_pending(owner);
	command_queue_pop(&owner->queue, count);
}

struct keyed_timer *owner_find_old(struct owner *owner, struct timer *timer)
{
	const struct keyed_timer *keyed;

	if (timer_is_handle(timer))
		return NULL;
	keyed = timer_keyed(timer);
	return timer_index_find(&owner->shelf.index, keyed->key, keyed->hh.keylen, keyed->hh.hashv);
}

void owner_set_placed(struct owner *owner, struct timer *timer, struct keyed_timer *old)
{
	if (timer_is_handle(timer))
		owner_set_handle(owner, timer_handle(timer), false);
	else
		(void)owner_arm(owner, timer_keyed(timer), old);
	owner_publish_pending(owner);
}
