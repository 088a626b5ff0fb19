/* SPDX-License-Identifier: MIT */
/*
 * Replacing a value leaves the pending timer where it is, in the index and if possible in its slot:
 * the new value and deadline go into it, and the set command's timer, which has the same key,
 * carries the old value back.
 *
 * A question is answered on the spot, but an advance when it has ended; a wait for idleness ends
 * with its round. They come after the changes of alarms that were made before them, as drains and
 * the stop do. A stop has no place in the queue: it comes when the queue is empty.
 */
#include "base/compiler.h"
#include "base/thread.h"
#include "owner_state.h"

enum { COMMANDS_A_WALK = 256 }; /* a step of a walk takes at most as long as this */

_Static_assert((int)COMMAND_KEY_INLINE <= (int)TIMER_SMALL_KEY,
	       "a key that travels in a cell fits a timer of the first size class");

/* A guess is the timer that a command's key probably has, or NULL, and the index's removals when it
 * was found. */
struct guess {
	struct keyed_timer *timer;
	uint64_t removals;
};

static INLINED struct keyed_timer *owner_find(struct owner *owner, const struct command *command,
					      struct guess guess)
{
	const void *key =
		command->key_size > COMMAND_KEY_INLINE ? command->timer->hh.key : command->key;

	if (guess.timer && timer_index_confirms(&owner->pending.index, key, command->key_size,
						command->hash, guess.timer, guess.removals))
		return guess.timer;
	return pending_find(&owner->pending, key, command->key_size, command->hash);
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
	wheel_moved(owner->pending.wheel, &old->timer, before);
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

static void owner_arm(struct owner *owner, struct keyed_timer *timer)
{
	counter_add_ordered(&owner->out.counts.set, 1);
	pending_add(&owner->pending, timer);
}

static INLINED void owner_set(struct owner *owner, const struct command *command,
			      struct guess guess)
{
	struct keyed_timer *old = owner_find(owner, command, guess);

	if (!old) {
		owner_arm(owner, command_timer(command));
		return;
	}
	counter_add_ordered(&owner->out.counts.replaced, 1);
	if (owner->out.target.release || command->key_size > COMMAND_KEY_INLINE) {
		owner_replace(owner, old, command_timer(command));
		return;
	}
	/* No function gets the old value: the new timer's memory is not needed. */
	timer_give_memory(&owner->out.store, &owner->out.bin, command->timer);
	limit_give(&owner->out.places);
	owner_renew(owner, old, command->value, command->time);
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
		wheel_moved(owner->pending.wheel, &timer->timer, before);
		return;
	}
	pending_remove(&owner->pending, timer);
	counter_add_ordered(&owner->out.counts.fired, 1);
	outbox_run(&owner->out, &timer->timer, JOB_LANE_PROMPT);
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

/* After a stop nothing is found by key; but a set was accepted before it, so its value must come
 * back. */
static INLINED void owner_apply_command(struct owner *owner, const struct command *command,
					struct guess guess)
{
	if (command->kind == COMMAND_SET && owner->is_stopped) {
		counter_add_ordered(&owner->out.counts.stopped, 1);
		outbox_release(&owner->out, &command_timer(command)->timer, TW_STOPPED);
	} else if (command->kind == COMMAND_SET) {
		owner_set(owner, command, guess);
	} else if (command->kind == COMMAND_SET_HANDLE) {
		owner_begin_alarm(owner, command->alarm);
	} else {
		if (command->kind == COMMAND_REMOVE)
			owner_remove(owner, command, guess);
		else
			owner_move(owner, command, guess);
		if (command->timer)
			timer_free(&owner->out.store, &owner->out.bin, command->timer);
	}
}

/* Applies the queue's first commands, up to `count` ≤ PENDING_BATCH, as far as they lie side by
 * side and need not be applied one by one, and pops them. Returns how many. */
static size_t owner_apply_commands(struct owner *owner, size_t count)
{
	struct timer_guesses guesses;
	size_t row;
	struct command_cell *cells = command_queue_first(&owner->queue, &row);
	size_t applied = 0;

	count = count < row ? count : row;
	pending_prefetch(&owner->pending, &owner->queue, cells, count, &guesses);
	for (; applied < count; applied++) {
		const struct command *command = &cells[applied].command;

		if (command->kind >= COMMAND_ASK)
			break;
		owner_apply_command(owner, command,
				    (struct guess){guesses.timers[applied], guesses.removals});
	}
	owner_publish_pending(owner);
	command_queue_pop(&owner->queue, applied);
	return applied;
}

/* Finds what the question's key has; a take takes it out. */
static enum tw_status owner_look_up(struct owner *owner, struct question *question)
{
	struct keyed_timer *timer = pending_find(&owner->pending, question->key.bytes,
						 question->key.size, question->key.hash);

	if (!timer)
		return TW_NOT_FOUND;
	if (question->kind == QUESTION_CONTAINS) {
		question->deadline = timer->timer.deadline;
		return TW_OK;
	}
	question->value = timer->timer.value;
	owner_unset(owner, timer);
	outbox_free(&owner->out, timer);
	owner_publish_pending(owner);
	return TW_OK;
}

/* Arms the question's timer, unless its key has one. */
static enum tw_status owner_add(struct owner *owner, const struct question *question)
{
	struct keyed_timer *timer = question->timer;

	if (pending_find(&owner->pending, timer->hh.key, timer->hh.keylen, timer->hh.hashv))
		return TW_EXISTS;
	owner_arm(owner, timer);
	owner_publish_pending(owner);
	return TW_OK;
}

/* Does what the question asks for. */
static enum tw_status owner_reply(struct owner *owner, struct question *question)
{
	if (owner->is_stopped && question->kind > QUESTION_TAKE_OUT)
		return TW_CLOSED;
	switch (question->kind) {
	case QUESTION_FLUSH:
		break;
	case QUESTION_TAKE_OUT:
		owner_take_out_alarm(owner, question->alarm);
		break;
	case QUESTION_CONTAINS:
	case QUESTION_TAKE:
		return owner_look_up(owner, question);
	case QUESTION_ADD:
		return owner_add(owner, question);
	case QUESTION_WALK:
		return walk_step(question->walk, &owner->pending, &owner->out.handles)
			       ? TW_OK
			       : TW_NO_MEMORY;
	case QUESTION_ADVANCE:
		question->time = time_add(clock_now(&owner->clock), question->time);
		owner->advance = question;
		break;
	}
	return TW_OK;
}

static void owner_answer(struct owner *owner, struct question *question)
{
	enum tw_status status = owner_reply(owner, question);

	if (owner->advance != question)
		question_answer(question, status, &owner->out.alarms.waiting);
}

static void owner_begin_round(struct owner *owner)
{
	owner->idle.covered = owner->idle.asked;
	owner->idle.time = clock_now(&owner->clock);
	owner->idle.is_early = owner_has_next_jobs(owner);
}

/* A wait for idleness has come, at that position of the queue. */
static void owner_ask_idle(struct owner *owner, uint64_t position)
{
	owner->idle.asked = position + 1;
	/* relaxed: the owner writes it. */
	if (owner->idle.covered == atomic_load_explicit(&owner->idle.done, memory_order_relaxed))
		owner_begin_round(owner);
}

/*
 * Changes come without end, faster than they are applied: a command waits for those that were there
 * when this was first called for it. Returns whether they were applied.
 */
static __attribute__((noinline)) bool owner_is_past_changes(struct owner *owner)
{
	const struct alarm_table *table = &owner->out.alarms;
	struct owner_marks *marks = &owner->marks;

	if (marks->are_set)
		return alarm_table_is_past(table, marks->inboxes);
	alarm_table_mark(table, marks->inboxes);
	marks->are_set = true;
	return false;
}

static void owner_answer_advance(struct owner *owner, enum tw_status status)
{
	struct question *question = owner->advance;

	owner->advance = NULL;
	question_answer(question, status, &owner->out.alarms.waiting);
}

/*
 * Applies the first command, one of those that are applied one by one; where there is none, stops.
 * Returns what that takes of a turn, in commands, and 0 if it has to wait for changes before it.
 */
static size_t owner_apply_one(struct owner *owner, const struct command *first, size_t most)
{
	size_t seen = owner_apply_changes(owner, most);
	bool drains = !first || first->kind == COMMAND_DRAIN;
	struct command command;
	size_t cost = 1;

	if (seen >= most && !owner_is_past_changes(owner))
		return 0;
	if (drains && owner->pending.has_stale) {
		owner_sweep(owner);
		return most;
	}
	owner->marks.are_set = false;
	if (!first) {
		owner_stop(owner);
		if (owner->advance)
			owner_answer_advance(owner, TW_CLOSED);
		return seen + cost;
	}
	command = *first;
	command_queue_pop(&owner->queue, 1);
	if (command.kind == COMMAND_IDLE) {
		owner_ask_idle(owner, command_queue_head(&owner->queue) - 1);
	} else if (drains) {
		owner_drain(owner, command.drain);
	} else {
		cost = command.question->kind == QUESTION_WALK ? COMMANDS_A_WALK : 1;
		owner_answer(owner, command.question);
	}
	return seen + cost;
}

bool owner_apply(struct owner *owner, size_t most)
{
	while (most > 0) {
		size_t batch = most < PENDING_BATCH ? most : PENDING_BATCH;
		size_t count = command_queue_peek(&owner->queue, batch);
		const struct command *first = NULL;

		if (count > 0) {
			first = command_queue_at(&owner->queue, 0);
			if (first->kind < COMMAND_ASK) {
				count = owner_apply_commands(owner, count);
				owner->applied += count;
				most -= count;
				continue;
			}
		} else if (!owner_is_stopping(owner) || command_queue_count(&owner->queue) > 0) {
			return false;
		}
		count = owner_apply_one(owner, first, most);
		if (count == 0)
			return true;
		most -= count < most ? count : most;
	}
	return true;
}

bool owner_drain_waits(struct owner *owner)
{
	if (!owner->pending.has_stale)
		return false;
	if (command_queue_peek(&owner->queue, 1) == 0)
		return owner_is_stopping(owner);
	return command_queue_at(&owner->queue, 0)->kind == COMMAND_DRAIN;
}

void owner_apply_until(struct owner *owner, size_t most, uint64_t end, bool sweeps)
{
	unsigned tries = 0;

	while (owner_apply(owner, most) || command_queue_head(&owner->queue) < end) {
		if (command_queue_head(&owner->queue) > end ||
		    (!sweeps && owner_drain_waits(owner)))
			return;
		/* The producer of the next command may have it half written. */
		if (command_queue_peek(&owner->queue, 1) == 0 &&
		    command_queue_count(&owner->queue) > 0)
			thread_back_off(&tries);
	}
}

void owner_answer_here(struct owner *owner, struct question *question)
{
	size_t most = owner->queue.capacity;

	owner->marks.are_set = false;
	/* The caller's own commands, and what it has changed. */
	do
		owner_apply_until(owner, most, command_queue_tail(&owner->queue), true);
	while (owner_apply_changes(owner, most) >= most && !owner_is_past_changes(owner));
	owner->marks.are_set = false;
	owner_answer(owner, question);
}

bool owner_end_idle(struct owner *owner, uint64_t end)
{
	struct owner_idle *idle = &owner->idle;
	/* relaxed: the owner writes it. */
	uint64_t done = atomic_load_explicit(&idle->done, memory_order_relaxed);

	if (done == idle->covered)
		return true;
	if (idle->is_early || tick_before(&owner->clock.ticks, idle->time) >= end)
		return false;
	/* seq_cst: publishes what was done, before waiting_tell(); pairs with
	 * moment_has_come(). */
	atomic_store_explicit(&idle->done, idle->covered, memory_order_seq_cst);
	waiting_tell(&owner->out.alarms.waiting);
	if (idle->asked == idle->covered)
		return true;
	owner_begin_round(owner);
	return false;
}

tw_duration owner_target_time(struct owner *owner)
{
	if (owner->advance)
		return owner->advance->time;
	return owner->poll_began != TW_FOREVER ? owner->poll_began : clock_now(&owner->clock);
}

bool owner_end_advance(struct owner *owner, uint64_t target)
{
	const struct question *question = owner->advance;

	if (!question)
		return false;
	/* It may have come in this turn. */
	if (tick_before(&owner->clock.ticks, question->time) > target)
		return true;
	if (question->time > clock_now(&owner->clock))
		clock_set_manual(&owner->clock, question->time);
	owner_answer_advance(owner, TW_OK);
	return true;
}
