/* SPDX-License-Identifier: MIT */
/* The public calls that ask the owner for something between commands, and mostly wait for it. */
#include <errno.h>
#include <stdlib.h>

#include "ask.h"
#include "walk.h"

enum tw_status tw_drain(struct tw_wheel *wheel, tw_execute_fn *each, void *context)
{
	enum tw_status status = wheel_state(wheel);
	struct command_cell *cell;
	uint64_t position;
	struct drain *drain;

	if (status != TW_OK)
		return status;
	if (!each)
		return TW_INVALID;
	drain = malloc(sizeof(*drain));
	if (!drain)
		return TW_NO_MEMORY;
	status = wheel_claim(wheel, &cell, &position);
	if (status != TW_OK) {
		free(drain);
		return status;
	}
	*drain = (struct drain){.each = each, .context = context, .references = 1};
	cell->command.hash = 0;
	cell->command.kind = COMMAND_DRAIN;
	cell->command.drain = drain;
	wheel_publish(wheel, cell, position);
	return TW_OK;
}

enum tw_status tw_stop(struct tw_wheel *wheel)
{
	enum tw_status status = wheel_state(wheel);
	struct owner *owner;

	if (status != TW_OK)
		return status;
	if (!fork_guard_close(&wheel->guard))
		return TW_CLOSED;
	owner = &wheel->owner;
	/* seq_cst: no task starts after this; pairs with the load in job_may_run(). */
	atomic_store_explicit(&owner->out.target.stopped, true, memory_order_seq_cst);
	command_queue_close(&owner->queue);
	/* seq_cst: after this thread's commands, and before the look for a sleeping owner; pairs
	 * with owner_is_stopping(). */
	atomic_store_explicit(&owner->stopping, true, memory_order_seq_cst);
	owner_note_call(owner);
	wheel_wake(wheel);
	/* Where another thread drives, which may hang in a task, the rest is for the next drive. */
	if (!owner->has_thread && !owner_is_here(owner) && wheel_try_drive(wheel)) {
		(void)wheel_drive(wheel, NULL, TW_FOREVER, SIZE_MAX);
		wheel_end_drive(wheel);
	}
	return TW_OK;
}

enum tw_status tw_flush(struct tw_wheel *wheel)
{
	struct question question = {.kind = QUESTION_FLUSH};
	enum tw_status status = wheel_may_ask(wheel);

	return status == TW_OK ? wheel_ask(wheel, &question) : status;
}

enum tw_status tw_wait_idle_until(struct tw_wheel *wheel, tw_duration deadline)
{
	enum tw_status status;

	status = wheel ? wheel_presence(wheel) : TW_INVALID;
	if (status != TW_OK)
		return status;
	if (wheel_is_in_task(wheel))
		return TW_INVALID;
	if (clock_has_reached(&wheel->owner.clock, deadline))
		return TW_TIMED_OUT;
	status = wheel_wait_idle(wheel, deadline);
	/* A task that was waited for may have stopped the wheel: what that releases is owed too. */
	if (status == TW_OK && wheel_state(wheel) != TW_OK)
		status = wheel_wait_idle(wheel, deadline);
	return status;
}

enum tw_status tw_wait_idle(struct tw_wheel *wheel)
{
	return tw_wait_idle_until(wheel, TW_FOREVER);
}

/* Asks for what the question's key has. */
static enum tw_status wheel_ask_by_key(struct tw_wheel *wheel, struct question *question)
{
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK)
		return status;
	if (!key_is_valid(question->key.bytes, question->key.size))
		return TW_INVALID;
	question->key.hash = key_hash(&wheel->seed, question->key.bytes, question->key.size);
	return wheel_ask(wheel, question);
}

enum tw_status tw_take_timer(struct tw_wheel *wheel, const void *key, size_t key_size, void **value)
{
	struct question question = {.kind = QUESTION_TAKE, .key = {.bytes = key, .size = key_size}};
	enum tw_status status = value ? wheel_ask_by_key(wheel, &question) : TW_INVALID;

	if (status == TW_OK)
		*value = question.value;
	return status;
}

enum tw_status tw_contains(struct tw_wheel *wheel, const void *key, size_t key_size,
			   tw_duration *remaining)
{
	struct question question = {.kind = QUESTION_CONTAINS,
				    .key = {.bytes = key, .size = key_size}};
	enum tw_status status = wheel_ask_by_key(wheel, &question);

	if (status == TW_OK && remaining)
		*remaining = time_left(question.deadline, clock_now(&wheel->owner.clock));
	return status;
}

enum tw_status tw_advance(struct tw_wheel *wheel, tw_duration by)
{
	struct question question = {.kind = QUESTION_ADVANCE, .time = by};
	enum tw_status status = wheel_may_ask(wheel);

	if (status != TW_OK)
		return status;
	if (wheel->owner.clock.kind != TW_CLOCK_MANUAL || by < 0)
		return TW_INVALID;
	return wheel_ask(wheel, &question);
}

/* Visits all that is pending. The owner copies some timers a turn; the caller visits the copies
 * meanwhile, and asks for the next ones. */
static enum tw_status wheel_walk(struct tw_wheel *wheel, struct walk *walk, tw_visit_fn *visit,
				 void *context)
{
	while (walk->position != WALK_END) {
		struct question question = {.kind = QUESTION_WALK, .walk = walk};
		enum tw_status status = wheel_state(wheel);

		if (status == TW_OK)
			status = wheel_ask(wheel, &question);
		if (status != TW_OK)
			return status;
		if (!job_visit(&wheel->owner.out.target, visit, context, walk->timers, walk->count))
			return TW_OK;
	}
	return TW_OK;
}

enum tw_status tw_each(struct tw_wheel *wheel, tw_visit_fn *visit, void *context)
{
	enum tw_status status = wheel_state(wheel);
	struct walk walk = {0};

	if (status != TW_OK)
		return status;
	if (!visit)
		return TW_INVALID;
	status = wheel_walk(wheel, &walk, visit, context);
	walk_destroy(&walk);
	return status;
}

/* Polls where there may be something to do. The drive has begun. Returns how long the program may
 * sleep before the next tw_poll. */
static tw_duration wheel_poll_driven(struct tw_wheel *wheel, size_t most)
{
	struct owner *owner = &wheel->owner;
	tw_duration left = 0;
	bool more;

	event_count_cancel(&owner->event);
	owner->poll_began = clock_now(&owner->clock);
	/* What tasks set for now during this poll is for the next. */
	owner->in.held_waits = false;
	(void)owner_release_held(owner);
	owner->in.held_waits = true;
	more = wheel_drive(wheel, NULL, TW_FOREVER, most);
	owner->poll_began = TW_FOREVER;
	if (!more)
		job_flush(&owner->out.target, &owner->out.bin);
	owner_begin_sleep(owner, more);
	if (!more && !owner_has_next_jobs(owner)) {
		owner->rests_until = owner_next_time(owner);
		left = time_left(owner->rests_until, clock_now(&owner->clock));
	}
	wheel_end_drive(wheel);
	return left;
}

enum tw_status tw_poll(struct tw_wheel *wheel, tw_duration *until_next)
{
	return tw_poll_some(wheel, SIZE_MAX, until_next);
}

enum tw_status tw_poll_some(struct tw_wheel *wheel, size_t most, tw_duration *until_next)
{
	enum tw_status status;
	struct owner *owner;
	tw_duration left;
	bool is_here;

	status = wheel ? wheel_presence(wheel) : TW_INVALID;
	if (status != TW_OK)
		return status;
	owner = &wheel->owner;
	/* A loop inside a task sleeps, as far as this wheel goes, until the task returns. */
	is_here = owner_is_here(owner);
	if (is_here) {
		event_count_hush(&owner->event);
		owner->in.is_hushed = true;
	}
	if (is_here || owner->has_thread || most == 0)
		return wheel_state(wheel) == TW_OK ? TW_INVALID : TW_CLOSED;
	if (wheel_begin_drive_or_rest(wheel, &left))
		left = wheel_poll_driven(wheel, most);
	status = wheel_state(wheel);
	if (until_next && status == TW_OK)
		*until_next = left;
	return status;
}

int tw_fd(struct tw_wheel *wheel)
{
	int descriptor;

	if (wheel_may_ask(wheel) != TW_OK || wheel->owner.has_thread) {
		errno = EINVAL;
		return -1;
	}
	wheel_begin_drive(wheel);
	descriptor = owner_descriptor(&wheel->owner);
	wheel_end_drive(wheel);
	return descriptor;
}
