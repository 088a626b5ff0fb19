/* SPDX-License-Identifier: MIT */
/*
 * Replacing a value leaves the pending timer where it is, in the index and if possible in its slot:
 * the new value and deadline go into it, and the set command's timer, which has the same key,
 * carries the old value back.
 *
 * Flush and contains are answered on the spot; the other requests that are waited for stand in a
 * list of their own until what they wait for has come.
 */
#include "apply.h"

#include "handle.h"
#include "base/inlined.h"
#include "base/thread.h"
#include "memory.h"
#include "keyless.h"
#include "retire.h"

enum { COMMANDS_A_WALK = 256 }; /* a step of a walk takes at most as long as this */

_Static_assert((int)COMMAND_KEY_INLINE <= (int)TIMER_SMALL_KEY,
	       "a key that travels in a cell fits a timer of the first size class");

static const void *command_key(const struct command *command)
{
	return command->key_size > COMMAND_KEY_INLINE ? command->timer->hh.key : command->key;
}

/* A guess is the timer that a command's key probably has, or NULL, and the index's removals when it
 * was found. */
struct guess {
	struct keyed_timer *timer;
	uint64_t removals;
};

static struct keyed_timer *owner_find(struct owner *owner, const struct command *command,
				      struct guess guess)
{
	return timer_index_confirm(&owner->pending.index, command_key(command), command->key_size,
				   command->hash, guess.timer, guess.removals);
}

/* The timer leaves the pending set and runs now. */
static void owner_fire_now(struct owner *owner, struct keyed_timer *timer)
{
	pending_remove(&owner->pending, timer);
	counter_add_ordered(&owner->out.counts.fired, 1);
	outbox_run(&owner->out, &timer->timer, JOB_LANE_PROMPT);
}

/* The timer of a set command, now whole. */
static struct keyed_timer *command_timer(const struct command *command)
{
	struct keyed_timer *timer = command->timer;

	if (command->key_size <= COMMAND_KEY_INLINE)
		timer_make(timer, command->key, command->key_size, command->hash);
	timer->timer.value = command->value;
	timer->timer.deadline = command->time;
	return timer;
}

static void owner_renew(struct owner *owner, struct keyed_timer *old, void *value,
			tw_duration deadline)
{
	tw_duration before = old->timer.deadline;

	old->timer.value = value;
	old->timer.deadline = deadline;
	wheel_moved(owner->pending.wheel, &old->timer, before, false);
}

static void owner_replace(struct owner *owner, struct keyed_timer *old, struct keyed_timer *timer)
{
	void *value = timer->timer.value;
	tw_duration deadline = timer->timer.deadline;

	timer->timer.value = old->timer.value;
	timer->timer.deadline = old->timer.deadline;
	outbox_release(&owner->out, &timer->timer, TW_REPLACED);
	owner_renew(owner, old, value, deadline);
}

/* Arms the timer, or replaces the value that its key has. */
static void owner_arm(struct owner *owner, struct keyed_timer *timer, struct keyed_timer *old)
{
	if (old) {
		counter_add_ordered(&owner->out.counts.replaced, 1);
		owner_replace(owner, old, timer);
		return;
	}
	counter_add_ordered(&owner->out.counts.set, 1);
	pending_add(&owner->pending, timer);
}

static INLINED void owner_set(struct owner *owner, const struct command *command,
			      struct guess guess)
{
	struct keyed_timer *old = owner_find(owner, command, guess);

	if (old && !owner->out.target.release && command->key_size <= COMMAND_KEY_INLINE) {
		/* No function gets the old value: the new timer's memory is not needed. */
		counter_add_ordered(&owner->out.counts.replaced, 1);
		timer_give_memory(&owner->out.store, &owner->out.bin, command->timer);
		limit_give(&owner->out.places);
		owner_renew(owner, old, command->value, command->time);
	} else {
		owner_arm(owner, command_timer(command), old);
	}
}

static INLINED void owner_move(struct owner *owner, const struct command *command,
			       struct guess guess)
{
	struct keyed_timer *timer = owner_find(owner, command, guess);
	tw_duration before;

	if (!timer)
		return;
	before = timer->timer.deadline;
	timer->timer.deadline = command->time;
	counter_add_ordered(&owner->out.counts.moved, 1);
	if (command->kind == COMMAND_MOVE) {
		wheel_moved(owner->pending.wheel, &timer->timer, before, false);
		return;
	}
	owner_fire_now(owner, timer);
}

/* The pending timer becomes the caller's. */
static void owner_unset(struct owner *owner, struct keyed_timer *timer)
{
	counter_add_ordered(&owner->out.counts.removed, 1);
	pending_remove(&owner->pending, timer);
}

static INLINED void owner_remove(struct owner *owner, const struct command *command,
				 struct guess guess)
{
	struct keyed_timer *timer = owner_find(owner, command, guess);

	if (!timer)
		return;
	owner_unset(owner, timer);
	outbox_release(&owner->out, &timer->timer, TW_REMOVED);
}

static INLINED void owner_apply_command(struct owner *owner, const struct command *command,
					struct guess guess)
{
	if (command->kind == COMMAND_SET) {
		owner_set(owner, command, guess);
		return;
	}
	if (command->kind == COMMAND_SET_HANDLE) {
		owner_begin_alarm(owner, command->alarm);
		return;
	}
	if (command->kind == COMMAND_REMOVE)
		owner_remove(owner, command, guess);
	else
		owner_move(owner, command, guess);
	if (command->timer)
		timer_free(&owner->out.store, &owner->out.bin, command->timer);
}

/* After a stop: a set was accepted before it, so its value must come back. */
static void owner_refuse_command(struct owner *owner, const struct command *command)
{
	if (command->kind == COMMAND_SET) {
		counter_add_ordered(&owner->out.counts.stopped, 1);
		outbox_release(&owner->out, &command_timer(command)->timer, TW_STOPPED);
	} else if (command->kind == COMMAND_SET_HANDLE) {
		owner_begin_alarm(owner, command->alarm);
	} else if (command->timer) {
		timer_free(&owner->out.store, &owner->out.bin, command->timer);
	}
}

/* Applies the queue's first commands, up to `count` ≤ PENDING_BATCH, as far as they lie side by
 * side, and pops them. Returns how many. */
static size_t owner_apply_commands(struct owner *owner, size_t count)
{
	struct timer_guesses guesses;
	size_t row;
	struct command_cell *cells = command_queue_first(&owner->queue, &row);

	count = count < row ? count : row;
	if (!owner->is_stopped)
		pending_prefetch(&owner->pending, &owner->queue, cells, count, &guesses);
	for (size_t i = 0; i < count; i++) {
		const struct command *command = &cells[i].command;

		if (owner->is_stopped)
			owner_refuse_command(owner, command);
		else
			owner_apply_command(owner, command,
					    (struct guess){guesses.timers[i], guesses.removals});
	}
	owner_publish_pending(owner);
	command_queue_pop(&owner->queue, count);
	return count;
}

static void owner_answer_all(struct owner *owner, struct list *requests, enum tw_status status)
{
	struct list *link;

	while ((link = list_take_first(requests)))
		requests_answer(&owner->requests, list_entry(link, struct request, link), status);
}

static struct keyed_timer *owner_find_key(struct owner *owner, const struct request *request)
{
	return timer_index_find(&owner->pending.index, request->key.bytes, request->key.size,
				request->key.hash);
}

static enum tw_status owner_look_up(struct owner *owner, struct request *request)
{
	const struct keyed_timer *timer = owner_find_key(owner, request);

	if (!timer)
		return TW_NOT_FOUND;
	request->deadline = timer->timer.deadline;
	return TW_OK;
}

static enum tw_status owner_take(struct owner *owner, struct request *request)
{
	struct keyed_timer *timer = owner_find_key(owner, request);

	if (!timer)
		return TW_NOT_FOUND;
	request->value = timer->timer.value;
	owner_unset(owner, timer);
	outbox_free(&owner->out, timer);
	owner_publish_pending(owner);
	return TW_OK;
}

/* Arms the request's timer, unless its key has one. */
static enum tw_status owner_add(struct owner *owner, const struct request *request)
{
	struct keyed_timer *timer = request->timer;

	if (owner->is_stopped)
		return TW_CLOSED;
	if (timer_index_find(&owner->pending.index, timer->hh.key, timer->hh.keylen,
			     timer->hh.hashv))
		return TW_EXISTS;
	owner_arm(owner, timer, NULL);
	owner_publish_pending(owner);
	return TW_OK;
}

/* The timer's deadline, unless it is done, stopped, or on a pending set that is being emptied. */
static enum tw_status owner_look_up_handle(struct owner *owner, struct request *request)
{
	struct alarm *alarm = handle_find(&owner->out.handles, request->id);
	enum alarm_state state;
	uint64_t generation;

	if (!alarm)
		return TW_NOT_FOUND;
	state = alarm_state(alarm, &generation, &request->deadline);
	if (generation != handle_generation(request->id))
		return TW_NOT_FOUND;
	if (state == ALARM_RUNS)
		return TW_RUNNING;
	if (state == ALARM_IS_AWAY)
		return TW_OK;
	/* It may be on its way back to the wheel. */
	return state == ALARM_IS_FILED && (timer_place(&alarm->timer) != TIMER_IN_WHEEL ||
					   alarm->timer.pending_set == owner->pending.number)
		       ? TW_OK
		       : TW_NOT_FOUND;
}

/* Those that look at the pending timers. */
static enum tw_status owner_look(struct owner *owner, struct request *request)
{
	if (owner->is_stopped)
		return TW_CLOSED;
	if (request->kind == REQUEST_CONTAINS)
		return owner_look_up(owner, request);
	if (request->kind == REQUEST_TAKE)
		return owner_take(owner, request);
	if (request->kind == REQUEST_REMAINING)
		return owner_look_up_handle(owner, request);
	walk_step(request->walk, &owner->pending, &owner->out.handles);
	return TW_OK;
}

static void owner_serve(struct owner *owner, struct request *request)
{
	switch (request->kind) {
	case REQUEST_FLUSH:
		requests_answer(&owner->requests, request, TW_OK);
		break;
	case REQUEST_IDLE:
		request->time = clock_now(&owner->clock);
		list_append(&owner->asked.idlers, &request->link);
		break;
	case REQUEST_CONTAINS:
	case REQUEST_TAKE:
	case REQUEST_REMAINING:
	case REQUEST_WALK:
		requests_answer(&owner->requests, request, owner_look(owner, request));
		break;
	case REQUEST_ADD:
		requests_answer(&owner->requests, request, owner_add(owner, request));
		break;
	case REQUEST_TAKE_OUT:
		owner_take_out_alarm(owner, request->alarm);
		requests_answer(&owner->requests, request, TW_OK);
		break;
	case REQUEST_ADVANCE:
		if (owner->is_stopped)
			requests_answer(&owner->requests, request, TW_CLOSED);
		else
			list_append(&owner->asked.advances, &request->link);
		break;
	case REQUEST_DRAIN:
		owner_drain(owner, (struct drain_request *)request);
		break;
	case REQUEST_STOP:
		owner_stop(owner);
		owner_answer_all(owner, &owner->asked.advances, TW_CLOSED);
		break;
	}
}

/* What a request takes of a turn, in commands. */
static size_t request_cost(const struct request *request)
{
	return request->kind == REQUEST_WALK ? COMMANDS_A_WALK : 1;
}

/* How many of the next commands, up to `most`, can be applied before the next request. */
static size_t owner_peek(struct owner *owner, size_t most, bool *request_is_next)
{
	size_t count = command_queue_peek(&owner->queue, most);
	uint64_t head = command_queue_head(&owner->queue);
	/* After the look at the commands: see request.c on order. */
	uint64_t position = requests_first_position(&owner->requests);

	*request_is_next = position <= head;
	if (position - head < count && !*request_is_next)
		count = (size_t)(position - head);
	return count;
}

/*
 * Changes come without end, faster than they are seen: a request waits for those that were there
 * when this was first called for it. Returns whether they were seen.
 */
static __attribute__((noinline)) bool owner_has_seen_enough(struct owner *owner)
{
	const struct alarm_table *table = &owner->out.alarms;
	struct owner_marks *marks = &owner->asked.marks;

	if (marks->are_set)
		return alarm_table_is_past(table, &marks->alarms);
	alarm_table_mark(table, &marks->alarms);
	marks->are_set = true;
	return false;
}

bool owner_apply(struct owner *owner, size_t most)
{
	while (most > 0) {
		bool request_is_next;
		size_t batch = most < PENDING_BATCH ? most : PENDING_BATCH;
		size_t count = owner_peek(owner, batch, &request_is_next);

		if (request_is_next) {
			/* It comes after the changes that were made before it, too. */
			size_t seen = owner_apply_changes(owner, most);
			struct request *request;

			if (seen >= most && !owner_has_seen_enough(owner))
				return true;
			owner->asked.marks.are_set = false;
			request = requests_take(&owner->requests);
			seen += request_cost(request);
			owner_serve(owner, request);
			most -= seen < most ? seen : most;
			continue;
		}
		if (count == 0)
			return false;
		count = owner_apply_commands(owner, count);
		owner->applied += count;
		most -= count;
	}
	return true;
}

void owner_apply_until(struct owner *owner, size_t most, uint64_t end)
{
	unsigned tries = 0;

	while (owner_apply(owner, most) || command_queue_head(&owner->queue) < end) {
		if (command_queue_head(&owner->queue) > end)
			return;
		/* The producer of the next command may have it half written. */
		if (command_queue_peek(&owner->queue, 1) == 0)
			thread_back_off(&tries);
	}
}

void owner_serve_here(struct owner *owner, struct request *request)
{
	size_t most = owner->queue.capacity;

	request->is_here = true;
	owner->asked.marks.are_set = false;
	/* The caller's own commands, and handles that were stopped. */
	do
		owner_apply_until(owner, most, command_queue_tail(&owner->queue));
	while (owner_apply_changes(owner, most) >= most && !owner_has_seen_enough(owner));
	owner->asked.marks.are_set = false;
	owner_serve(owner, request);
}

bool owner_answer_idlers(struct owner *owner, uint64_t end)
{
	struct list *link = owner->asked.idlers.next;

	if (list_is_empty(&owner->asked.idlers))
		return true;
	while (link != &owner->asked.idlers) {
		struct request *request = list_entry(link, struct request, link);

		link = link->next;
		if (tick_before(&owner->clock.ticks, request->time) >= end)
			continue;
		list_remove(&request->link);
		requests_answer(&owner->requests, request, TW_OK);
	}
	return list_is_empty(&owner->asked.idlers);
}

/* The first advance, or NULL. */
static struct request *owner_first_advance(struct owner *owner)
{
	if (list_is_empty(&owner->asked.advances))
		return NULL;
	return list_entry(owner->asked.advances.next, struct request, link);
}

void owner_begin_advances(struct owner *owner)
{
	struct request *request = owner_first_advance(owner);

	if (!request || request->begun)
		return;
	request->begun = true;
	request->time = time_add(clock_now(&owner->clock), request->time);
}

tw_duration owner_target_time(struct owner *owner)
{
	const struct request *request = owner_first_advance(owner);

	if (request)
		return request->time;
	return owner->poll_began != TW_FOREVER ? owner->poll_began : clock_now(&owner->clock);
}

bool owner_end_advance(struct owner *owner)
{
	struct request *request = owner_first_advance(owner);

	if (!request)
		return false;
	if (!request->begun)
		return true;
	list_remove(&request->link);
	if (request->time > clock_now(&owner->clock))
		clock_set_manual(&owner->clock, request->time);
	requests_answer(&owner->requests, request, TW_OK);
	return true;
}
