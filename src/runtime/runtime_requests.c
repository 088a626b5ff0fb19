/* SPDX-License-Identifier: MIT */
/*
 * The public calls that ask the owner for something between the commands, and mostly wait for it.
 * With TW_DRIVE_CALLER the waiting thread does the owner's work meanwhile, under the drive lock.
 */
#include <errno.h>
#include <stdlib.h>

#include "runtime.h"
#include "base/thread.h"

enum {
	TURNS_A_POLL = 64,
	TIMERS_A_TURN_AT_LEAST = 256 /* done with, where there are that many */
};

/* The lock has been taken. A cancelled thread gives it back first: inline tasks may wait. */
static void owner_begin_drive(struct owner *owner)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &owner->cancel_state);
	/* relaxed: matters to this thread alone. */
	atomic_store_explicit(&owner->driver, (uintptr_t)pthread_self(), memory_order_relaxed);
}

void wheel_begin_drive(struct tw_wheel *wheel)
{
	pthread_mutex_lock(&wheel->owner.drive);
	owner_begin_drive(&wheel->owner);
}

bool wheel_try_drive(struct tw_wheel *wheel)
{
	if (pthread_mutex_trylock(&wheel->owner.drive) != 0)
		return false;
	owner_begin_drive(&wheel->owner);
	return true;
}

void wheel_end_drive(struct tw_wheel *wheel)
{
	struct owner *owner = &wheel->owner;
	int state = owner->cancel_state;

	/* relaxed: matters to this thread alone. */
	atomic_store_explicit(&owner->driver, 0, memory_order_relaxed);
	pthread_mutex_unlock(&owner->drive);
	pthread_setcancelstate(state, &state);
}

/* Does what is due. Where tasks cause more for ever, not all of it: then true. */
static bool wheel_turn_while_due(struct tw_wheel *wheel)
{
	size_t most = TURNS_A_POLL + tw_pending(wheel) / TIMERS_A_TURN_AT_LEAST;
	bool more = true;

	for (size_t turns = 0; more && turns < most; turns++)
		more = owner_turn(&wheel->owner);
	return more;
}

static void wheel_turn_until_answered(struct tw_wheel *wheel, struct request *request)
{
	unsigned tries = 0;

	wheel_begin_drive(wheel);
	while (!request_is_answered(request)) {
		if (owner_turn(&wheel->owner) || request_is_answered(request))
			continue;
		/* A command claimed but not yet published is for its producer to finish; and tasks
		 * that the pool is full of may have to drive the wheel. */
		wheel_end_drive(wheel);
		thread_back_off(&tries);
		wheel_begin_drive(wheel);
	}
	/* What the last turn has left half done. */
	if (owner_is_busy(&wheel->owner))
		(void)wheel_turn_while_due(wheel);
	wheel_end_drive(wheel);
}

/* Leaves a request with the owner. */
static void wheel_ask(struct tw_wheel *wheel, struct request *request)
{
	requests_add(&wheel->owner.requests, request, &wheel->owner.queue.tail);
	owner_note_call(&wheel->owner);
	wheel_wake(wheel);
}

enum tw_status wheel_ask_and_wait(struct tw_wheel *wheel, struct request *request)
{
	wheel_ask(wheel, request);
	if (!wheel->owner.has_thread)
		wheel_turn_until_answered(wheel, request);
	return requests_wait(&wheel->owner.requests, request);
}

enum tw_status wheel_may_ask(struct tw_wheel *wheel)
{
	enum tw_status status = wheel_state(wheel);

	if (status == TW_OK && owner_is_here(&wheel->owner))
		return TW_INVALID;
	return status;
}

/* All the memory that a drain needs; NULL: out of memory. */
static struct drain_request *drain_request_create(const struct shelf_plan *plan,
						  tw_execute_fn *each, void *context)
{
	struct drain_request *request = calloc(1, sizeof(*request));
	struct drain *drain = malloc(sizeof(*drain));

	if (!request || !drain || !shelf_init(&request->retirement.shelf, plan)) {
		free(drain);
		free(request);
		return NULL;
	}
	drain->each = each;
	drain->context = context;
	atomic_init(&drain->references, 1);
	request->request.kind = REQUEST_DRAIN;
	request->retirement.drain = drain;
	return request;
}

/* With TW_DRIVE_CALLER: does what the owner has to do now, unless that is already going on here. */
static void wheel_drive_if_caller(struct tw_wheel *wheel)
{
	if (wheel->owner.has_thread || owner_is_here(&wheel->owner))
		return;
	wheel_begin_drive(wheel);
	while (owner_turn(&wheel->owner))
		continue;
	wheel_end_drive(wheel);
}

/* One drain too many waits until those before it have been handed over, if it may. */
static enum tw_status wheel_reserve_drain(struct tw_wheel *wheel)
{
	struct owner *owner = &wheel->owner;
	unsigned tries = 0;

	/* relaxed, twice: a count, orders nothing. */
	while (atomic_fetch_add_explicit(&owner->drains, 1, memory_order_relaxed) >= DRAINS_MOST) {
		struct request flush = {.kind = REQUEST_FLUSH};

		atomic_fetch_sub_explicit(&owner->drains, 1, memory_order_relaxed);
		if (!wheel->waits_when_full || owner_is_here(owner))
			return wheel_refuse(wheel);
		/* Not for an idle owner: a task that the pool is full of would wait for itself. */
		(void)wheel_ask_and_wait(wheel, &flush);
		if (wheel_state(wheel) != TW_OK)
			return TW_CLOSED;
		thread_back_off(&tries);
	}
	return TW_OK;
}

enum tw_status tw_drain(struct tw_wheel *wheel, tw_execute_fn *each, void *context)
{
	enum tw_status status = wheel_state(wheel);
	struct drain_request *request;

	if (status != TW_OK)
		return status;
	if (!each)
		return TW_INVALID;
	status = wheel_reserve_drain(wheel);
	if (status != TW_OK)
		return status;
	request = drain_request_create(&wheel->owner.plan, each, context);
	if (!request) {
		/* relaxed: a count, orders nothing. */
		atomic_fetch_sub_explicit(&wheel->owner.drains, 1, memory_order_relaxed);
		return TW_NO_MEMORY;
	}
	wheel_ask(wheel, &request->request);
	return TW_OK;
}

enum tw_status tw_stop(struct tw_wheel *wheel)
{
	struct owner *owner;

	if (!wheel)
		return TW_INVALID;
	if (!fork_guard_close(wheel->guard))
		return TW_CLOSED;
	owner = &wheel->owner;
	/* seq_cst: no task starts after this; pairs with the load in job_may_run(). */
	atomic_store_explicit(&owner->target.stopped, true, memory_order_seq_cst);
	command_queue_close(&owner->queue);
	owner->stop_request.kind = REQUEST_STOP;
	wheel_ask(wheel, &owner->stop_request);
	wheel_drive_if_caller(wheel);
	return TW_OK;
}

enum tw_status tw_flush(struct tw_wheel *wheel)
{
	struct request request = {.kind = REQUEST_FLUSH};
	enum tw_status status = wheel_may_ask(wheel);

	return status == TW_OK ? wheel_ask_and_wait(wheel, &request) : status;
}

bool wheel_is_in_task(struct tw_wheel *wheel)
{
	return owner_is_here(&wheel->owner) ||
	       (wheel->owner.pool && worker_pool_is_here(wheel->owner.pool));
}

int tw_is_in_task(struct tw_wheel *wheel)
{
	return wheel && wheel_is_in_task(wheel);
}

/* Once: all that is due by now, and the commands that it gives. */
static void wheel_wait_idle(struct tw_wheel *wheel)
{
	struct request idle = {.kind = REQUEST_IDLE};
	struct request flush = {.kind = REQUEST_FLUSH};

	(void)wheel_ask_and_wait(wheel, &idle);
	if (!wheel->owner.pool)
		return;
	worker_pool_wait(wheel->owner.pool);
	(void)wheel_ask_and_wait(wheel, &flush);
}

enum tw_status tw_wait_idle(struct tw_wheel *wheel)
{
	if (!wheel)
		return TW_INVALID;
	if (fork_guard_state(wheel->guard) == FORK_GUARD_CHILD)
		return TW_CLOSED;
	if (wheel_is_in_task(wheel))
		return TW_INVALID;
	wheel_wait_idle(wheel);
	/* A task that was waited for may have stopped the wheel: what that releases is owed too. */
	if (wheel_state(wheel) != TW_OK)
		wheel_wait_idle(wheel);
	return TW_OK;
}

enum tw_status tw_contains(struct tw_wheel *wheel, const void *key, size_t key_size,
			   tw_duration *remaining)
{
	struct request request = {.kind = REQUEST_CONTAINS,
				  .key = {.bytes = key, .size = key_size}};
	enum tw_status status = wheel_may_ask(wheel);
	tw_duration now;

	if (status != TW_OK)
		return status;
	if (!key_is_valid(key, key_size))
		return TW_INVALID;
	request.key.hash = key_hash(&wheel->seed, key, key_size);
	status = wheel_ask_and_wait(wheel, &request);
	if (status != TW_OK || !remaining)
		return status;
	now = tw_now(wheel);
	if (request.deadline == TW_FOREVER)
		*remaining = TW_FOREVER;
	else
		*remaining = request.deadline > now ? request.deadline - now : 0;
	return TW_OK;
}

enum tw_status tw_advance(struct tw_wheel *wheel, tw_duration by)
{
	struct request request = {.kind = REQUEST_ADVANCE, .time = by};
	enum tw_status status = wheel_may_ask(wheel);

	if (status != TW_OK)
		return status;
	if (wheel->owner.clock.kind != TW_CLOCK_MANUAL || by < 0 ||
	    (wheel->owner.pool_is_limited && wheel_is_in_task(wheel)))
		return TW_INVALID;
	return wheel_ask_and_wait(wheel, &request);
}

enum tw_status tw_poll(struct tw_wheel *wheel, tw_duration *until_next)
{
	enum tw_status status = wheel_may_ask(wheel);
	tw_duration next;
	tw_duration now;
	bool more;

	if (status != TW_OK)
		return status;
	if (wheel->owner.has_thread)
		return TW_INVALID;
	wheel_begin_drive(wheel);
	owner_end_sleep(&wheel->owner);
	more = wheel_turn_while_due(wheel);
	owner_begin_sleep(&wheel->owner, more);
	now = tw_now(wheel);
	more |= owner_has_next_jobs(&wheel->owner);
	next = owner_next_time(&wheel->owner);
	if (more)
		next = now;
	else if (wheel->owner.held_back)
		next = time_add(now, wheel->owner.clock.interval);
	wheel_end_drive(wheel);
	if (!until_next)
		return wheel_state(wheel);
	if (next == TW_FOREVER)
		*until_next = TW_FOREVER;
	else
		*until_next = next > now ? next - now : 0;
	return wheel_state(wheel);
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
