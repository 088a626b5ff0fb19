/* SPDX-License-Identifier: MIT */
/*
 * Applying commands and requests, in their order: what each does to the pending timers.
 *
 * Replacing a value leaves the pending timer where it is, in the index and if possible in its slot:
 * the new value and deadline go into it, and the set command's timer, which has the same key,
 * carries the old value back.
 *
 * A drain or a stop exchanges the whole shelf at once. What was on it is handed over by later
 * turns.
 */
#include <stdlib.h>

#include "owner.h"
#include "base/trace.h"

enum { CHANGES_BEFORE_REQUEST = 1024 };

bool owner_reserve(struct owner *owner)
{
	/* relaxed: a count, orders nothing. */
	if (owner->max_pending == 0 ||
	    atomic_fetch_add_explicit(&owner->reserved, 1, memory_order_relaxed) <
		    owner->max_pending)
		return true;
	owner_unreserve(owner, 1);
	return false;
}

void owner_unreserve(struct owner *owner, size_t count)
{
	/* relaxed: a count, orders nothing. */
	if (owner->max_pending > 0)
		atomic_fetch_sub_explicit(&owner->reserved, count, memory_order_relaxed);
}

static struct keyed_timer *owner_find(struct owner *owner, const struct command *command)
{
	const void *key = command->timer ? command->timer->key : command->key;

	return shelf_find(&owner->shelf, key, command->key_size, command->hash);
}

/* The timer leaves the shelf and runs now; where the pool has a limit, once there is room. */
static void owner_fire_now(struct owner *owner, struct keyed_timer *timer, bool in_next_turn)
{
	if (owner->pool_is_limited) {
		wheel_move(owner->shelf.wheel, &timer->timer, 0);
		return;
	}
	shelf_remove(&owner->shelf, timer);
	counter_add_ordered(&owner->counts.fired, 1);
	owner_unreserve(owner, 1);
	if (!in_next_turn) {
		owner_hand_over(owner, &timer->timer, TIMER_RUN);
		return;
	}
	timer->timer.job = TIMER_RUN;
	list_append(&owner->next_jobs, &timer->timer.link);
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
	owner_release(owner, &timer->timer, TW_REPLACED);
	wheel_move(owner->shelf.wheel, &old->timer, expiry);
}

/* Arms the timer, or replaces the value that its key has; answers the one that is pending now. */
static struct keyed_timer *owner_arm(struct owner *owner, struct keyed_timer *timer,
				     struct keyed_timer *old)
{
	if (old) {
		counter_add_ordered(&owner->counts.replaced, 1);
		owner_replace(owner, old, timer);
		return old;
	}
	counter_add_ordered(&owner->counts.set, 1);
	shelf_add(&owner->shelf, timer);
	return timer;
}

static void owner_set(struct owner *owner, const struct command *command)
{
	struct keyed_timer *old = owner_find(owner, command);
	struct keyed_timer *pending;

	if (old)
		owner_unreserve(owner, 1);
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
	counter_add_ordered(&owner->counts.moved, 1);
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
	counter_add_ordered(&owner->counts.removed, 1);
	shelf_remove(&owner->shelf, timer);
	owner_unreserve(owner, 1);
	owner_release(owner, &timer->timer, TW_REMOVED);
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
		timer_free(&owner->store, &owner->bin, command->timer);
}

/* After a stop: a set was accepted before it, so its value must come back. */
static void owner_refuse_command(struct owner *owner, const struct command *command)
{
	if (command_is_set(command)) {
		counter_add_ordered(&owner->counts.stopped, 1);
		owner_release(owner, &command->timer->timer, TW_STOPPED);
	} else if (command->kind == COMMAND_SET_HANDLE) {
		owner_retire_timer(owner, &command->handle->timer, NULL);
	} else if (command->kind != COMMAND_RESET_HANDLE && command->timer) {
		timer_free(&owner->store, &owner->bin, command->timer);
	}
}

void owner_publish_pending(struct owner *owner)
{
	uint64_t pending = owner->is_stopped ? 0 : shelf_count(&owner->shelf);

	/* relaxed: a statistic, orders nothing. */
	atomic_store_explicit(&owner->counts.pending, pending, memory_order_relaxed);
}

static void owner_apply_batch(struct owner *owner, size_t count)
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

/* The owner's shelf becomes the retirement's, to be emptied by later turns. */
static void owner_retire_shelf(struct owner *owner, struct retirement *retirement)
{
	retirement->shelf = owner->shelf;
	list_init(&retirement->after);
	owner_unreserve(owner, shelf_count(&owner->shelf));
	list_append(&owner->retirements, &retirement->link);
	/* relaxed: a statistic, orders nothing. */
	atomic_store_explicit(&owner->counts.pending, 0, memory_order_relaxed);
}

static void owner_drain(struct owner *owner, struct drain_request *request)
{
	struct shelf fresh = request->retirement.shelf;
	uint64_t now;

	if (owner->is_stopped) {
		shelf_destroy(&fresh);
		owner_end_drain(owner, &request->retirement);
		return;
	}
	owner_begin_next_turn(owner);
	TRACE_DRAIN(shelf_count(&owner->shelf));
	now = wheel_now(owner->shelf.wheel);
	fresh.number = (uint16_t)(owner->shelf.number + 1);
	owner_retire_shelf(owner, &request->retirement);
	wheel_advance(fresh.wheel, now);
	owner->shelf = fresh;
}

static void owner_answer_all(struct owner *owner, struct list *requests, enum tw_status status)
{
	struct list *link;

	while ((link = list_take_first(requests)))
		requests_answer(&owner->requests, list_entry(link, struct request, link), status);
}

static void owner_stop(struct owner *owner)
{
	owner_begin_next_turn(owner);
	TRACE_STOP(shelf_count(&owner->shelf));
	owner_retire_shelf(owner, &owner->stop_retirement);
	owner->is_stopped = true;
	owner_answer_all(owner, &owner->advances, TW_CLOSED);
	owner_answer_all(owner, &owner->parked, TW_CLOSED);
}

static void owner_look_up(struct owner *owner, struct request *request)
{
	const struct keyed_timer *timer;

	if (owner->is_stopped) {
		requests_answer(&owner->requests, request, TW_CLOSED);
		return;
	}
	timer = shelf_find(&owner->shelf, request->key.bytes, request->key.size, request->key.hash);
	if (timer)
		request->deadline = timer->timer.deadline;
	requests_answer(&owner->requests, request, timer ? TW_OK : TW_NOT_FOUND);
}

/* The pending timer that this one would replace, or NULL. */
static struct keyed_timer *owner_find_old(struct owner *owner, struct timer *timer)
{
	const struct keyed_timer *keyed;

	if (timer_is_handle(timer))
		return NULL;
	keyed = timer_keyed(timer);
	return shelf_find(&owner->shelf, keyed->key, keyed->hh.keylen, keyed->hh.hashv);
}

/* Arms a timer that has its place, or replaces the old one. */
static void owner_set_placed(struct owner *owner, struct timer *timer, struct keyed_timer *old)
{
	if (timer_is_handle(timer))
		owner_set_handle(owner, timer_handle(timer), false);
	else
		(void)owner_arm(owner, timer_keyed(timer), old);
	owner_publish_pending(owner);
}

enum tw_status owner_set_within_limit(struct owner *owner, struct timer *timer)
{
	struct keyed_timer *old;

	if (owner->is_stopped)
		return TW_CLOSED;
	old = owner_find_old(owner, timer);
	if (!old && !owner_reserve(owner))
		return TW_FULL;
	owner_set_placed(owner, timer, old);
	return TW_OK;
}

static void owner_set_or_park(struct owner *owner, struct request *request)
{
	enum tw_status status = owner_set_within_limit(owner, request->timer);

	if (status != TW_FULL || !request->may_wait) {
		requests_answer(&owner->requests, request, status);
		return;
	}
	list_append(&owner->parked, &request->link);
	owner->parked_count++;
	/* relaxed: a count, orders nothing. The next free place counts as taken from here on, so
	 * that no later set gets it. */
	atomic_fetch_add_explicit(&owner->reserved, 1, memory_order_relaxed);
}

static bool owner_has_place_for_parked(struct owner *owner)
{
	/* relaxed: a count, orders nothing. A later set that is about to find no place may be in
	 * it too; its request comes next. */
	size_t reserved = atomic_load_explicit(&owner->reserved, memory_order_relaxed);

	return reserved - owner->parked_count < owner->max_pending;
}

void owner_answer_parked(struct owner *owner)
{
	while (!list_is_empty(&owner->parked)) {
		struct request *request = list_entry(owner->parked.next, struct request, link);
		struct keyed_timer *old = owner_find_old(owner, request->timer);

		if (!old && !owner_has_place_for_parked(owner))
			break;
		list_remove(&request->link);
		owner->parked_count--;
		if (old)
			owner_unreserve(owner, 1);
		owner_set_placed(owner, request->timer, old);
		requests_answer(&owner->requests, request, TW_OK);
	}
}

static void owner_begin_advance(struct owner *owner, struct request *request)
{
	if (owner->is_stopped)
		requests_answer(&owner->requests, request, TW_CLOSED);
	else
		list_append(&owner->advances, &request->link);
}

static void owner_serve(struct owner *owner, struct request *request)
{
	switch (request->kind) {
	case REQUEST_FLUSH:
		requests_answer(&owner->requests, request, TW_OK);
		break;
	case REQUEST_IDLE:
		list_append(&owner->idlers, &request->link);
		break;
	case REQUEST_CONTAINS:
		owner_look_up(owner, request);
		break;
	case REQUEST_SET:
		owner_set_or_park(owner, request);
		break;
	case REQUEST_ADVANCE:
		owner_begin_advance(owner, request);
		break;
	case REQUEST_DRAIN:
		owner_drain(owner, (struct drain_request *)request);
		break;
	case REQUEST_STOP:
		owner_stop(owner);
		break;
	}
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

bool owner_apply(struct owner *owner, size_t most)
{
	while (most > 0) {
		bool request_is_next;
		size_t batch = most < SHELF_BATCH ? most : SHELF_BATCH;
		size_t count = owner_peek(owner, batch, &request_is_next);

		/* A request comes after the changes that were made before it, too. */
		if (request_is_next && !owner_see_handles(owner, CHANGES_BEFORE_REQUEST))
			return true;
		if (request_is_next) {
			owner_serve(owner, requests_take(&owner->requests));
			most--;
			continue;
		}
		if (count == 0)
			return false;
		owner_apply_batch(owner, count);
		owner->applied += count;
		most -= count;
	}
	return true;
}
