/* SPDX-License-Identifier: MIT */
/*
 * What the public calls share, and those of them that drive the wheel, or wait for the owner.
 *
 * Where no other thread would make room in a full queue, the caller does the owner's work itself:
 * with TW_DRIVE_CALLER, and wherever the caller is the owner (in an inline task). With
 * TW_DRIVE_CALLER a thread that waits for an answer does it too, under the drive lock.
 */
#include "ask.h"

#include <errno.h>

#include "base/thread.h"

enum {
	TURNS_A_POLL = 64,
	TIMERS_A_TURN_AT_LEAST = 256 /* done with, where there are that many */
};

/* The drive lock has been taken. */
static void owner_begin_drive(struct owner *owner)
{
	owner->rests_until = INT64_MIN;
	owner_set_here(owner, true);
}

/* Returns how long there is nothing to do, as the poll before has found, for nobody has driven or
 * called since; or 0. Under the drive lock. */
static inline tw_duration owner_rest(struct owner *owner)
{
	tw_duration now = clock_now(&owner->clock);

	if (now < owner->rests_until && alarm_table_is_empty(&owner->out.alarms) &&
	    command_queue_count(&owner->queue) == 0 && event_count_is_settled(&owner->event))
		return time_left(owner->rests_until, now);
	return 0;
}

/* Where callers drive: from begin to end, the calling thread is the owner. */
static void wheel_begin_drive(struct tw_wheel *wheel)
{
	pthread_mutex_lock(&wheel->owner.drive);
	owner_begin_drive(&wheel->owner);
}

/* Begins the drive if no other thread is at it. */
static bool wheel_try_drive(struct tw_wheel *wheel)
{
	if (pthread_mutex_trylock(&wheel->owner.drive) != 0)
		return false;
	owner_begin_drive(&wheel->owner);
	return true;
}

static void wheel_end_drive(struct tw_wheel *wheel)
{
	owner_set_here(&wheel->owner, false);
	pthread_mutex_unlock(&wheel->owner.drive);
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
	} else if (wheel_try_drive(wheel)) {
		(void)owner_apply_turn(owner, NULL);
		wheel_end_drive(wheel);
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

/*
 * The drive has begun: does what is due, with up to `jobs` inline calls; until the moment has come,
 * which may be NULL, or the clock has reached the deadline. Returns whether there is more: without
 * a moment where tasks cause more for ever.
 */
static bool wheel_drive(struct tw_wheel *wheel, const struct moment *until, tw_duration deadline,
			size_t jobs)
{
	struct owner *owner = &wheel->owner;
	struct owner_inline *in = &owner->in;
	size_t turns =
		TURNS_A_POLL + (size_t)counter_read(&owner->pending_count) / TIMERS_A_TURN_AT_LEAST;
	bool more = true;

	if (until || !wheel_is_open(wheel))
		turns = SIZE_MAX;
	for (; more && jobs > 0 && turns > 0; turns--) {
		if (until && (moment_has_come(until) || clock_has_reached(&owner->clock, deadline)))
			break;
		in->jobs_most = jobs < OWNER_JOBS_A_TURN ? jobs : OWNER_JOBS_A_TURN;
		more = owner_turn(owner);
		jobs -= in->jobs_run < jobs ? in->jobs_run : jobs;
	}
	in->jobs_most = OWNER_JOBS_A_TURN;
	return more;
}

/*
 * Claims a cell for a caller that waits for what it asks, however full the queue is and also after
 * a stop. Returns NULL if there is none by the deadline.
 */
static struct command_cell *wheel_claim_to_wait(struct tw_wheel *wheel, tw_duration deadline,
						uint64_t *position)
{
	struct owner *owner = &wheel->owner;
	struct command_cell *cell;
	unsigned tries = 0;

	while (!(cell = command_queue_claim_first(&owner->queue, position))) {
		if (clock_has_reached(&owner->clock, deadline))
			return NULL;
		wheel_wake(wheel);
		if (owner->has_thread)
			thread_back_off(&tries);
		else
			(void)wheel_make_room(wheel, &tries);
	}
	return cell;
}

/* Publishes a command whose maker waits. */
static void wheel_publish_asked(struct tw_wheel *wheel, struct command_cell *cell,
				uint64_t position)
{
	cell->command.hash = 0;
	command_queue_publish(cell, position);
	event_count_hurry(&wheel->owner.event);
}

/* Drives until the moment has come, if no other thread is at it, which may hang in a task. */
static void wheel_drive_towards(struct tw_wheel *wheel, const struct moment *moment,
				tw_duration deadline)
{
	struct owner *owner = &wheel->owner;

	if (!wheel_try_drive(wheel))
		return;
	(void)wheel_drive(wheel, moment, deadline, SIZE_MAX);
	/* What the last turn has left half done. */
	if (moment_has_come(moment) && owner_is_busy(owner))
		(void)wheel_drive(wheel, NULL, TW_FOREVER, SIZE_MAX);
	job_flush(&owner->out.target, &owner->out.bin);
	/* A task has called tw_poll: the descriptor calls for the next one again. */
	if (owner->in.is_hushed)
		owner_begin_sleep(owner, true);
	owner->in.is_hushed = false;
	wheel_end_drive(wheel);
}

/* Waits until the moment has come, or the clock has reached the deadline. Where callers drive, they
 * do so by turns; a turn ends when its inline tasks have returned. Not inlined: an answer that is
 * there needs none of it. */
static __attribute__((noinline)) bool wheel_await(struct tw_wheel *wheel,
						  const struct moment *moment, tw_duration deadline)
{
	struct owner *owner = &wheel->owner;
	struct waiting *waiting = &owner->out.alarms.waiting;
	bool has_come = moment_has_come(moment);
	unsigned tries = 0;

	while (!has_come && !owner->has_thread) {
		wheel_drive_towards(wheel, moment, deadline);
		has_come = moment_has_come(moment);
		if (!has_come && clock_has_reached(&owner->clock, deadline))
			return false;
		/* A command claimed but not yet published is for its producer to finish. */
		if (!has_come)
			thread_back_off(&tries);
	}
	if (has_come)
		return true;
	waiting_begin(waiting);
	while (!(has_come = moment_has_come(moment)) &&
	       waiting_pause(waiting, &owner->clock, deadline))
		continue;
	waiting_end(waiting);
	return has_come;
}

/* Answers a question as the owner, which applies commands and runs no task. */
static void wheel_answer(struct tw_wheel *wheel, struct question *question)
{
	wheel_begin_drive(wheel);
	(void)owner_apply_turn(&wheel->owner, question);
	wheel_end_drive(wheel);
	/* A loop that sleeps at the descriptor has to learn of what was added. */
	if (question->kind == QUESTION_ADD)
		wheel_wake(wheel);
}

enum tw_status wheel_ask(struct tw_wheel *wheel, struct question *question)
{
	const struct moment answered = {&question->answers, 0};
	struct command_cell *cell;
	uint64_t position;

	if (owner_is_here(&wheel->owner)) {
		owner_answer_here(&wheel->owner, question);
	} else if (!wheel->owner.has_thread) {
		wheel_answer(wheel, question);
	} else {
		cell = wheel_claim_to_wait(wheel, TW_FOREVER, &position);
		cell->command.kind = COMMAND_ASK;
		cell->command.question = question;
		wheel_publish_asked(wheel, cell, position);
	}
	if (!moment_has_come(&answered))
		(void)wheel_await(wheel, &answered, TW_FOREVER);
	return question->status;
}

/* Waits until the owner has handed over all that is due. */
static enum tw_status wheel_await_idle_owner(struct tw_wheel *wheel, tw_duration deadline)
{
	uint64_t position;
	struct command_cell *cell = wheel_claim_to_wait(wheel, deadline, &position);
	struct moment done = {&wheel->owner.idle.done, position};

	if (!cell)
		return TW_TIMED_OUT;
	cell->command.kind = COMMAND_IDLE;
	cell->command.timer = NULL;
	wheel_publish_asked(wheel, cell, position);
	return wheel_await(wheel, &done, deadline) ? TW_OK : TW_TIMED_OUT;
}

enum tw_status wheel_wait_idle(struct tw_wheel *wheel, tw_duration deadline)
{
	struct worker_pool *pool = wheel->owner.out.pool;
	enum tw_status status;
	int rounds = 0;

	do {
		status = wheel_await_idle_owner(wheel, deadline);
		if (status == TW_OK && pool && !worker_pool_wait_until(pool, deadline))
			status = TW_TIMED_OUT;
		/* For the commands that they gave. */
		if (status == TW_OK && pool)
			status = wheel_await_idle_owner(wheel, deadline);
		/* Again for what closes are to call after a run that was waited for. */
	} while (status == TW_OK && ++rounds < 2 &&
		 alarm_table_is_closing(&wheel->owner.out.alarms));
	return status;
}

/* TW_OK where a call may ask the owner and wait; TW_INVALID where it would wait for itself. */
static enum tw_status wheel_may_ask(struct tw_wheel *wheel)
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

/* ---- Public calls ---- */

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

enum tw_status tw_advance(struct tw_wheel *wheel, tw_duration by)
{
	struct question question = {.kind = QUESTION_ADVANCE, .time = by};
	enum tw_status status = wheel_may_ask(wheel);

	if (status != TW_OK)
		return status;
	if (wheel->owner.clock.kind != TW_CLOCK_MANUAL || by < 0)
		return TW_INVALID;
	pthread_mutex_lock(&wheel->owner.advances);
	status = wheel_ask(wheel, &question);
	pthread_mutex_unlock(&wheel->owner.advances);
	return status;
}

/* Polls where there may be something to do, under the drive lock. Returns how long the program may
 * sleep before the next tw_poll. Not inlined: an idle poll then saves fewer registers. */
static __attribute__((noinline)) tw_duration wheel_poll_driven(struct tw_wheel *wheel, size_t most)
{
	struct owner *owner = &wheel->owner;
	tw_duration left = 0;
	bool more;

	owner_begin_drive(owner);
	event_count_cancel(&owner->event);
	owner->poll_began = clock_now(&owner->clock);
	/* What tasks set for now during this poll is for the next. */
	owner->idle.is_early &= !pending_has_held(&owner->pending);
	pending_release_held(&owner->pending);
	more = wheel_drive(wheel, NULL, TW_FOREVER, most);
	owner->poll_began = TW_FOREVER;
	if (!more)
		job_flush(&owner->out.target, &owner->out.bin);
	owner_begin_sleep(owner, more);
	if (!more && !owner_has_next_jobs(owner)) {
		owner->rests_until = owner_next_time(owner);
		left = time_left(owner->rests_until, clock_now(&owner->clock));
	}
	owner_set_here(owner, false);
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
	pthread_mutex_lock(&owner->drive);
	left = owner_rest(owner);
	if (left == 0)
		left = wheel_poll_driven(wheel, most);
	pthread_mutex_unlock(&owner->drive);
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
