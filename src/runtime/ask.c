/* SPDX-License-Identifier: MIT */
/*
 * Where no other thread would make room in a full queue, the caller does the owner's work itself:
 * with TW_DRIVE_CALLER, and wherever the caller is the owner (in an inline task). With
 * TW_DRIVE_CALLER a thread that waits for an answer does it too, under the drive lock.
 */
#include "ask.h"

#include <stdlib.h>

#include "base/thread.h"
#include "apply.h"
#include "keyless.h"
#include "memory.h"

enum {
	TURNS_A_POLL = 64,
	TIMERS_A_TURN_AT_LEAST = 256 /* done with, where there are that many */
};

/* The drive lock has been taken. */
static void owner_begin_visit(struct owner *owner)
{
	owner->rests_until = INT64_MIN;
	owner_set_here(owner, true);
}

static void owner_end_visit(struct owner *owner)
{
	owner_set_here(owner, false);
	pthread_mutex_unlock(&owner->drive);
}

/* Returns whether there is nothing to do at that time, as the poll before has found: nobody has
 * driven or called since. Under the drive lock. */
static inline bool owner_rests(struct owner *owner, tw_duration now)
{
	return owner_may_rest(owner, now) && !owner_has_changes(owner) &&
	       command_queue_count(&owner->queue) == 0 &&
	       requests_first_position(&owner->requests) == REQUESTS_NONE &&
	       event_count_is_settled(&owner->event);
}

void wheel_begin_drive(struct tw_wheel *wheel)
{
	pthread_mutex_lock(&wheel->owner.drive);
	owner_begin_visit(&wheel->owner);
}

bool wheel_try_drive(struct tw_wheel *wheel)
{
	if (pthread_mutex_trylock(&wheel->owner.drive) != 0)
		return false;
	owner_begin_visit(&wheel->owner);
	return true;
}

bool wheel_begin_drive_or_rest(struct tw_wheel *wheel, tw_duration *left)
{
	struct owner *owner = &wheel->owner;
	tw_duration now;

	pthread_mutex_lock(&owner->drive);
	now = clock_now(&owner->clock);
	if (!owner_rests(owner, now)) {
		owner_begin_visit(owner);
		return true;
	}
	*left = time_left(owner->rests_until, now);
	pthread_mutex_unlock(&owner->drive);
	return false;
}

void wheel_end_drive(struct tw_wheel *wheel)
{
	owner_end_visit(&wheel->owner);
}

enum tw_status wheel_refuse(struct tw_wheel *wheel)
{
	counter_add_shared(&wheel->refused, 1);
	return TW_FULL;
}

/*
 * The queue is full, and this thread has to make room: TW_OK when there may be some now. Another
 * caller may be driving, for long, or have the queue's first command half written.
 */
static enum tw_status wheel_make_room(struct tw_wheel *wheel, unsigned *tries)
{
	struct owner *owner = &wheel->owner;

	/* First, for what is applied is room for others, too. */
	thread_back_off(tries);
	if (owner_is_here(owner)) {
		(void)owner_apply(owner, owner->queue.capacity);
	} else if (pthread_mutex_trylock(&owner->drive) == 0) {
		owner_begin_visit(owner);
		(void)owner_apply_turn(owner, NULL);
		owner_end_visit(owner);
	}
	return wheel_state(wheel);
}

enum tw_status wheel_wait_for_cell(struct tw_wheel *wheel, struct command_cell **cell,
				   uint64_t *position)
{
	struct owner *owner = &wheel->owner;
	enum tw_status status = TW_OK;
	unsigned tries = 0;

	while (!*cell && status == TW_OK) {
		if (!wheel->waits_when_full)
			return wheel_refuse(wheel);
		if (owner->has_thread && !owner_is_here(owner)) {
			wheel_wake(wheel);
			*cell = command_queue_wait(&owner->queue, position);
			return *cell ? TW_OK : TW_CLOSED;
		}
		status = wheel_make_room(wheel, &tries);
		*cell = command_queue_claim_first(&owner->queue, position);
	}
	return *cell ? TW_OK : status;
}

bool wheel_turn_while_due(struct tw_wheel *wheel, size_t jobs)
{
	struct owner_inline *in = &wheel->owner.in;
	size_t most = TURNS_A_POLL +
		      (size_t)counter_read(&wheel->owner.pending_count) / TIMERS_A_TURN_AT_LEAST;
	bool more = true;

	for (size_t turns = 0; more && jobs > 0 && turns < most; turns++) {
		in->jobs_most = jobs < OWNER_JOBS_A_TURN ? jobs : OWNER_JOBS_A_TURN;
		more = owner_turn(&wheel->owner);
		jobs -= in->jobs_run < jobs ? in->jobs_run : jobs;
	}
	in->jobs_most = OWNER_JOBS_A_TURN;
	return more;
}

/* Returns whether the owner answers the request as soon as it serves it: a question, or an add. */
static bool request_is_answered_at_once(const struct request *request)
{
	switch (request->kind) {
	case REQUEST_FLUSH:
	case REQUEST_CONTAINS:
	case REQUEST_TAKE:
	case REQUEST_REMAINING:
	case REQUEST_WALK:
	case REQUEST_ADD:
	case REQUEST_TAKE_OUT:
		return true;
	default:
		return false;
	}
}

/* Ends a drive for a request. */
static inline void wheel_end_question(struct tw_wheel *wheel)
{
	/* A task has called tw_poll: the descriptor calls for the next one again. */
	if (wheel->owner.in.is_hushed)
		owner_begin_sleep(&wheel->owner, true);
	wheel->owner.in.is_hushed = false;
	wheel_end_drive(wheel);
}

static void wheel_turn_until_answered(struct tw_wheel *wheel, struct request *request)
{
	unsigned tries = 0;

	wheel_begin_drive(wheel);
	while (!request_is_answered(request)) {
		if (owner_turn(&wheel->owner) || request_is_answered(request))
			continue;
		/* A command claimed but not yet published is for its producer to finish. */
		wheel_end_drive(wheel);
		thread_back_off(&tries);
		wheel_begin_drive(wheel);
	}
	/* What the last turn has left half done. */
	if (owner_is_busy(&wheel->owner))
		(void)wheel_turn_while_due(wheel, SIZE_MAX);
	wheel_end_question(wheel);
}

/* Under the drive lock, which it gives back. */
static bool wheel_turn_once(struct tw_wheel *wheel)
{
	bool more = owner_turn(&wheel->owner);

	wheel_end_question(wheel);
	return more;
}

/* Turns until the request is answered or the deadline has come. A turn ends when its inline tasks
 * have returned. */
static void wheel_turn_until(struct tw_wheel *wheel, struct request *request, tw_duration deadline)
{
	unsigned tries = 0;

	/* Another thread may drive, and hang in a task. */
	while (!request_is_answered(request) && !clock_has_reached(&wheel->owner.clock, deadline))
		if (!wheel_try_drive(wheel) || !wheel_turn_once(wheel))
			thread_back_off(&tries);
}

/* Has the request answered by an owner that applies commands, and runs no task. */
static void wheel_apply(struct tw_wheel *wheel, struct request *request)
{
	pthread_mutex_lock(&wheel->owner.drive);
	owner_begin_visit(&wheel->owner);
	(void)owner_apply_turn(&wheel->owner, request);
	owner_end_visit(&wheel->owner);
}

/* Leaves a request with an owner that sees it without being woken. */
static inline void wheel_ask_quietly(struct tw_wheel *wheel, struct request *request)
{
	requests_add(&wheel->owner.requests, request, &wheel->owner.queue.tail);
	owner_note_call(&wheel->owner);
}

void wheel_ask(struct tw_wheel *wheel, struct request *request)
{
	wheel_ask_quietly(wheel, request);
	wheel_wake(wheel);
}

enum tw_status wheel_ask_and_wait(struct tw_wheel *wheel, struct request *request)
{
	if (owner_is_here(&wheel->owner)) {
		owner_serve_here(&wheel->owner, request);
		return request->status;
	}
	if (wheel->owner.has_thread) {
		wheel_ask(wheel, request);
	} else if (request_is_answered_at_once(request)) {
		wheel_apply(wheel, request);
		/* A loop that sleeps at the descriptor has to learn of what was added. */
		if (request->kind == REQUEST_ADD)
			wheel_wake(wheel);
		return request->status;
	} else {
		wheel_ask_quietly(wheel, request);
		wheel_turn_until_answered(wheel, request);
	}
	return requests_wait(&wheel->owner.requests, request);
}

/* Asks for a flush or for idleness, and waits until `deadline`. */
static enum tw_status wheel_ask_until(struct tw_wheel *wheel, enum request_kind kind,
				      tw_duration deadline)
{
	struct request own = {.kind = kind};
	struct request *request;
	enum tw_status status;

	if (deadline == TW_FOREVER)
		return wheel_ask_and_wait(wheel, &own);
	request = calloc(1, sizeof(*request));
	if (!request)
		return TW_NO_MEMORY;
	request->kind = kind;
	if (wheel->owner.has_thread) {
		wheel_ask(wheel, request);
	} else {
		wheel_ask_quietly(wheel, request);
		wheel_turn_until(wheel, request, deadline);
	}
	status =
		requests_wait_until(&wheel->owner.requests, request, &wheel->owner.clock, deadline);
	/* After a timeout the owner has it for longer than this call lasts. */
	if (status != TW_TIMED_OUT)
		free(request);
	return status;
}

static enum tw_status wheel_wait_once(struct tw_wheel *wheel, tw_duration deadline)
{
	enum tw_status status = wheel_ask_until(wheel, REQUEST_IDLE, deadline);

	if (status != TW_OK || !wheel->owner.out.pool)
		return status;
	if (!worker_pool_wait_until(wheel->owner.out.pool, deadline))
		return TW_TIMED_OUT;
	return wheel_ask_until(wheel, REQUEST_FLUSH, deadline);
}

enum tw_status wheel_wait_idle(struct tw_wheel *wheel, tw_duration deadline)
{
	enum tw_status status = wheel_wait_once(wheel, deadline);

	/* What closes are to call after a run that was waited for. */
	if (status == TW_OK && alarm_table_is_closing(&wheel->owner.out.alarms))
		status = wheel_wait_once(wheel, deadline);
	return status;
}

enum tw_status wheel_may_ask(struct tw_wheel *wheel)
{
	enum tw_status status = wheel_state(wheel);

	if (status == TW_OK && owner_is_here(&wheel->owner))
		return TW_INVALID;
	return status;
}

bool wheel_is_in_task(struct tw_wheel *wheel)
{
	return owner_is_here(&wheel->owner) ||
	       (wheel->owner.out.pool && worker_pool_is_here(wheel->owner.out.pool));
}
