/* SPDX-License-Identifier: MIT */
/*
 * The public calls: look at the arguments, build the command or request, leave it with the owner.
 *
 * A command's way: claim a cell of the queue, fill it, publish it, wake the owner if it sleeps. What
 * can fail (the timer's memory) comes before the claim, so that a claimed cell is always published.
 *
 * Where nobody else would do it, the caller does the owner's work itself: with TW_DRIVE_CALLER under
 * the drive lock, and wherever the caller is the owner (in an inline task) and the queue is full.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "fork_guard.h"
#include "key_hash.h"
#include "owner.h"

enum { DEFAULT_QUEUE_CAPACITY = 8192, MOST_QUEUE_CAPACITY = 1 << 26 };

struct tw_wheel {
	/* Constant after tw_create. */
	struct fork_guard *guard;
	struct key_hash_seed seed;
	uint64_t wake_mask; /* of a napping owner: twice a lap of the queue */
	bool waits_when_full;
	/* Any thread. */
	_Atomic uint64_t refused;
	struct owner owner;
};

/* ---- Opening and closing ---- */

static bool options_are_valid(const struct tw_options *options)
{
	return options->layout <= TW_LAYOUT_ROUNDS && options->clock <= TW_CLOCK_MANUAL &&
	       options->drive <= TW_DRIVE_CALLER && options->when_full <= TW_WHEN_FULL_FAIL &&
	       options->workers >= TW_WORKERS_INLINE && options->workers <= TW_WORKERS_MAX &&
	       options->queue_capacity <= MOST_QUEUE_CAPACITY;
}

static struct tw_options options_with_defaults(const struct tw_options *given)
{
	struct tw_options options = {0};

	if (given)
		options = *given;
	if (options.queue_capacity == 0)
		options.queue_capacity = DEFAULT_QUEUE_CAPACITY;
	if (!options.name)
		options.name = "tw";
	return options;
}

/* The rest of tw_create, with its memory there. */
static enum tw_status wheel_open(struct tw_wheel *wheel, const struct owner_settings *settings)
{
	const struct tw_options *options = settings->options;
	enum tw_status status;

	wheel->guard = fork_guard_create();
	if (!wheel->guard)
		return TW_NO_MEMORY;
	key_hash_seed_init(&wheel->seed);
	wheel->waits_when_full = options->when_full == TW_WHEN_FULL_WAIT;
	status = owner_init(&wheel->owner, settings);
	if (status != TW_OK)
		goto no_owner;
	wheel->wake_mask = wheel->owner.queue.capacity / 2 - 1;
	if (!wheel->owner.has_thread || owner_start(&wheel->owner, options->name) == 0)
		return TW_OK;
	status = TW_SYSTEM;
	owner_destroy(&wheel->owner);
no_owner:
	fork_guard_destroy(wheel->guard);
	return status;
}

enum tw_status tw_create(struct tw_wheel **result, tw_duration interval, size_t slots,
			 tw_execute_fn *execute, const struct tw_options *given)
{
	struct tw_options options = options_with_defaults(given);
	struct owner_settings settings = {interval, slots, execute, &options};
	struct tw_wheel *wheel;
	enum tw_status status;
	int error;

	if (!result)
		return TW_INVALID;
	*result = NULL;
	if (interval <= 0 || slots == 0 || slots > TW_SLOTS_MAX || !execute ||
	    !options_are_valid(&options))
		return TW_INVALID;
	wheel = aligned_alloc(CACHE_LINE, sizeof(*wheel));
	if (!wheel)
		return TW_NO_MEMORY;
	memset(wheel, 0, sizeof(*wheel));
	status = wheel_open(wheel, &settings);
	if (status == TW_OK) {
		*result = wheel;
		return TW_OK;
	}
	error = errno;
	free(wheel);
	errno = error;
	return status;
}

static enum tw_status wheel_state(const struct tw_wheel *wheel)
{
	if (!wheel)
		return TW_INVALID;
	return fork_guard_state(wheel->guard) == FORK_GUARD_OPEN ? TW_OK : TW_CLOSED;
}

static void wheel_wake(struct tw_wheel *wheel)
{
	event_count_notify(&wheel->owner.event, EVENT_COUNT_NAPPING);
}

/* ---- Being the owner, with TW_DRIVE_CALLER ---- */

static void wheel_begin_drive(struct tw_wheel *wheel)
{
	struct owner *owner = &wheel->owner;

	pthread_mutex_lock(&owner->drive);
	/* relaxed: matters to this thread alone. */
	atomic_store_explicit(&owner->driver, (uintptr_t)pthread_self(), memory_order_relaxed);
}

static void wheel_end_drive(struct tw_wheel *wheel)
{
	struct owner *owner = &wheel->owner;

	/* relaxed: matters to this thread alone. */
	atomic_store_explicit(&owner->driver, 0, memory_order_relaxed);
	pthread_mutex_unlock(&owner->drive);
}

static void wheel_turn_until_answered(struct tw_wheel *wheel, struct request *request)
{
	wheel_begin_drive(wheel);
	while (!request_is_answered(request)) {
		/* A command claimed but not yet published is for its producer to finish. */
		if (!owner_turn(&wheel->owner) && !request_is_answered(request))
			sched_yield();
	}
	wheel_end_drive(wheel);
}

/* Leaves a request with the owner. */
static void wheel_ask(struct tw_wheel *wheel, struct request *request)
{
	requests_add(&wheel->owner.requests, request, &wheel->owner.queue.tail);
	wheel_wake(wheel);
}

/* Asks and waits. Not for the owner itself. */
static enum tw_status wheel_ask_and_wait(struct tw_wheel *wheel, struct request *request)
{
	wheel_ask(wheel, request);
	if (!wheel->owner.has_thread)
		wheel_turn_until_answered(wheel, request);
	return requests_wait(&wheel->owner.requests, request);
}

/* TW_OK where a call may ask the owner and wait. */
static enum tw_status wheel_may_ask(struct tw_wheel *wheel)
{
	enum tw_status status = wheel_state(wheel);

	if (status == TW_OK && owner_is_here(&wheel->owner))
		return TW_INVALID;
	return status;
}

/* ---- Commands ---- */

static enum tw_status wheel_refuse(struct tw_wheel *wheel)
{
	/* relaxed: statistic, orders nothing. */
	atomic_fetch_add_explicit(&wheel->refused, 1, memory_order_relaxed);
	return TW_FULL;
}

/* The queue is full: TW_OK when there may be room now. */
static enum tw_status wheel_make_room(struct tw_wheel *wheel)
{
	struct owner *owner = &wheel->owner;

	if (!wheel->waits_when_full)
		return wheel_refuse(wheel);
	if (owner_is_here(owner)) {
		(void)owner_apply(owner, owner->queue.capacity);
		return TW_OK;
	}
	if (!owner->has_thread) {
		wheel_begin_drive(wheel);
		(void)owner_turn(owner);
		wheel_end_drive(wheel);
		return wheel_state(wheel);
	}
	wheel_wake(wheel);
	return command_queue_wait(&owner->queue) ? TW_OK : TW_CLOSED;
}

/* A cell to fill and publish. */
static enum tw_status wheel_claim(struct tw_wheel *wheel, struct command_cell **cell,
				  uint64_t *position)
{
	enum tw_status status = TW_OK;

	while (!(*cell = command_queue_claim(&wheel->owner.queue, position)) && status == TW_OK)
		status = wheel_make_room(wheel);
	return *cell ? TW_OK : status;
}

static void wheel_publish(struct tw_wheel *wheel, struct command_cell *cell, uint64_t position)
{
	bool half_full = (position & wheel->wake_mask) == 0;

	command_queue_publish(cell, position);
	event_count_notify(&wheel->owner.event,
			   half_full ? EVENT_COUNT_NAPPING : EVENT_COUNT_SLEEPING);
}

static bool key_is_valid(const void *key, size_t key_size)
{
	return key && key_size > 0 && key_size <= TW_KEY_SIZE_MAX;
}

/* Gives back a timer that no command took. */
static void wheel_free_timer(struct tw_wheel *wheel, struct timer *timer)
{
	struct timer_bin bin = {0};

	timer_free(&wheel->owner.store, &bin, timer);
	timer_store_flush(&wheel->owner.store, &bin);
}

/* With max_pending: a place for the timer, if one is free at a glance. */
static bool wheel_reserve(struct owner *owner)
{
	if (owner->max_pending == 0)
		return true;
	/* relaxed, twice: a count, orders nothing. */
	if (atomic_fetch_add_explicit(&owner->reserved, 1, memory_order_relaxed) <
	    owner->max_pending)
		return true;
	atomic_fetch_sub_explicit(&owner->reserved, 1, memory_order_relaxed);
	return false;
}

/* No place was free at a glance: the owner, who knows which keys exist, must say. */
static enum tw_status wheel_set_by_request(struct tw_wheel *wheel, struct timer *timer)
{
	struct owner *owner = &wheel->owner;
	struct request request = {.kind = REQUEST_SET,
				  .timer = timer,
				  .may_wait = wheel->waits_when_full && owner->has_thread};
	enum tw_status status;

	if (owner_is_here(owner)) {
		while (owner_apply(owner, owner->queue.capacity))
			continue;
		status = owner_set_within_limit(owner, timer);
	} else {
		status = wheel_ask_and_wait(wheel, &request);
	}
	return status == TW_FULL ? wheel_refuse(wheel) : status;
}

static enum tw_status wheel_set_by_command(struct tw_wheel *wheel, struct timer *timer, bool now)
{
	struct command_cell *cell;
	uint64_t position;
	enum tw_status status = wheel_claim(wheel, &cell, &position);

	if (status != TW_OK)
		return status;
	cell->command.hash = timer->hh.hashv;
	cell->command.key_size = (uint16_t)timer->hh.keylen;
	cell->command.kind = now ? COMMAND_SET_NOW : COMMAND_SET;
	cell->command.in_task = now && owner_is_here(&wheel->owner);
	cell->command.timer = timer;
	wheel_publish(wheel, cell, position);
	return TW_OK;
}

struct set {
	const void *key;
	size_t key_size;
	void *value;
	tw_duration deadline;
	uint64_t expiry;
	bool now; /* the deadline is past */
};

static enum tw_status wheel_set(struct tw_wheel *wheel, const struct set *set)
{
	struct owner *owner = &wheel->owner;
	uint32_t hash = key_hash(&wheel->seed, set->key, set->key_size);
	struct timer *timer = timer_new(&owner->store, set->key, set->key_size, hash);
	enum tw_status status;

	if (!timer)
		return TW_NO_MEMORY;
	timer->value = set->value;
	timer->deadline = set->deadline;
	timer->expiry = set->expiry;
	if (wheel_reserve(owner)) {
		status = wheel_set_by_command(wheel, timer, set->now);
		if (status != TW_OK && owner->max_pending > 0) {
			/* relaxed: a count, orders nothing. */
			atomic_fetch_sub_explicit(&owner->reserved, 1, memory_order_relaxed);
		}
	} else {
		status = wheel_set_by_request(wheel, timer);
	}
	if (status != TW_OK)
		wheel_free_timer(wheel, timer);
	return status;
}

enum tw_status tw_set_timer(struct tw_wheel *wheel, const void *key, size_t key_size, void *value,
			    tw_duration delay)
{
	struct set set = {.key = key, .key_size = key_size, .value = value};
	enum tw_status status = wheel_state(wheel);
	const struct clock *clock;
	tw_duration now;

	if (status != TW_OK)
		return status;
	if (!key_is_valid(key, key_size) || delay <= 0)
		return TW_INVALID;
	clock = &wheel->owner.clock;
	now = clock_now(clock);
	set.deadline = clock_add(now, delay);
	/* A delay under one interval counts as one interval. */
	set.expiry = clock_tick_after(
		clock, delay < clock->interval ? clock_add(now, clock->interval) : set.deadline);
	return wheel_set(wheel, &set);
}

enum tw_status tw_set_timer_at(struct tw_wheel *wheel, const void *key, size_t key_size,
			       void *value, tw_duration deadline)
{
	struct set set = {.key = key, .key_size = key_size, .value = value, .deadline = deadline};
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK)
		return status;
	if (!key_is_valid(key, key_size))
		return TW_INVALID;
	set.now = deadline <= clock_now(&wheel->owner.clock) && deadline != TW_FOREVER;
	set.expiry = clock_tick_after(&wheel->owner.clock, deadline);
	return wheel_set(wheel, &set);
}

/* Move and remove: a key too long for the cell is carried by a timer. */
static enum tw_status wheel_command(struct tw_wheel *wheel, const void *key, size_t key_size,
				    const struct command *command)
{
	struct command_cell *cell;
	struct timer *carrier = NULL;
	uint32_t hash = key_hash(&wheel->seed, key, key_size);
	uint64_t position;
	enum tw_status status;

	if (key_size > COMMAND_KEY_INLINE) {
		carrier = timer_new(&wheel->owner.store, key, key_size, hash);
		if (!carrier)
			return TW_NO_MEMORY;
	}
	status = wheel_claim(wheel, &cell, &position);
	if (status != TW_OK) {
		if (carrier)
			wheel_free_timer(wheel, carrier);
		return status;
	}
	cell->command.hash = hash;
	cell->command.key_size = (uint16_t)key_size;
	cell->command.kind = command->kind;
	cell->command.expiry = command->expiry;
	cell->command.deadline = command->deadline;
	cell->command.timer = carrier;
	if (!carrier)
		memcpy(cell->command.key, key, key_size);
	wheel_publish(wheel, cell, position);
	return TW_OK;
}

enum tw_status tw_move_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
			     tw_duration delay)
{
	enum tw_status status = wheel_state(wheel);
	struct command command = {.kind = COMMAND_MOVE};
	const struct clock *clock;

	if (status != TW_OK)
		return status;
	if (!key_is_valid(key, key_size) || delay <= 0)
		return TW_INVALID;
	clock = &wheel->owner.clock;
	command.deadline = clock_add(clock_now(clock), delay);
	command.expiry = clock_tick_after(clock, command.deadline);
	if (delay < clock->interval)
		command.kind = COMMAND_MOVE_NOW;
	return wheel_command(wheel, key, key_size, &command);
}

enum tw_status tw_remove_timer(struct tw_wheel *wheel, const void *key, size_t key_size)
{
	static const struct command command = {.kind = COMMAND_REMOVE};
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK)
		return status;
	if (!key_is_valid(key, key_size))
		return TW_INVALID;
	return wheel_command(wheel, key, key_size, &command);
}

/* ---- Requests ---- */

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

enum tw_status tw_drain(struct tw_wheel *wheel, tw_execute_fn *each, void *context)
{
	enum tw_status status = wheel_state(wheel);
	struct drain_request *request;

	if (status != TW_OK)
		return status;
	if (!each)
		return TW_INVALID;
	request = drain_request_create(&wheel->owner.plan, each, context);
	if (!request)
		return TW_NO_MEMORY;
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
	/* seq_cst: no task starts after this; pairs with the load in job_run(). */
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

/* Whether the caller runs in a task, release or drain function of this wheel. */
static bool wheel_is_in_task(struct tw_wheel *wheel)
{
	return owner_is_here(&wheel->owner) ||
	       (wheel->owner.pool && worker_pool_is_here(wheel->owner.pool));
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

void tw_destroy(struct tw_wheel *wheel)
{
	if (!wheel || fork_guard_state(wheel->guard) == FORK_GUARD_CHILD || wheel_is_in_task(wheel))
		return;
	(void)tw_stop(wheel);
	(void)tw_wait_idle(wheel);
	owner_end(&wheel->owner);
	owner_destroy(&wheel->owner);
	fork_guard_destroy(wheel->guard);
	free(wheel);
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
	if (wheel->owner.clock.kind != TW_CLOCK_MANUAL || by < 0)
		return TW_INVALID;
	return wheel_ask_and_wait(wheel, &request);
}

enum tw_status tw_poll(struct tw_wheel *wheel, tw_duration *until_next)
{
	enum tw_status status = wheel_may_ask(wheel);
	tw_duration next;
	tw_duration now;

	if (status != TW_OK)
		return status;
	if (wheel->owner.has_thread)
		return TW_INVALID;
	wheel_begin_drive(wheel);
	while (owner_turn(&wheel->owner))
		continue;
	now = tw_now(wheel);
	next = owner_has_next_jobs(&wheel->owner) ? now : owner_next_time(&wheel->owner);
	wheel_end_drive(wheel);
	if (!until_next)
		return wheel_state(wheel);
	if (next == TW_FOREVER)
		*until_next = TW_FOREVER;
	else
		*until_next = next > now ? next - now : 0;
	return wheel_state(wheel);
}

/* ---- Asking without stopping anyone ---- */

/* relaxed: a statistic, orders nothing. */
static uint64_t count_of(_Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

size_t tw_pending(struct tw_wheel *wheel)
{
	return wheel ? (size_t)count_of(&wheel->owner.counts.pending) : 0;
}

tw_duration tw_now(struct tw_wheel *wheel)
{
	return wheel ? clock_now(&wheel->owner.clock) : 0;
}

enum tw_status tw_get_stats(struct tw_wheel *wheel, struct tw_stats *stats)
{
	struct owner_counts *counts;

	if (!wheel || !stats)
		return TW_INVALID;
	if (fork_guard_state(wheel->guard) == FORK_GUARD_CHILD)
		return TW_CLOSED;
	counts = &wheel->owner.counts;
	*stats = (struct tw_stats){
		.set = count_of(&counts->set),
		.replaced = count_of(&counts->replaced),
		.moved = count_of(&counts->moved),
		.removed = count_of(&counts->removed),
		.fired = count_of(&counts->fired) - count_of(&wheel->owner.target.released),
		.drained = count_of(&counts->drained),
		.stopped = count_of(&counts->stopped) + count_of(&wheel->owner.target.released),
		.refused = count_of(&wheel->refused),
		.pending = count_of(&counts->pending),
		.queued = command_queue_count(&wheel->owner.queue),
		.unfinished = wheel->owner.pool ? worker_pool_unfinished(wheel->owner.pool) : 0,
		.turns = count_of(&counts->turns),
		.wakeups = count_of(&counts->wakeups),
		.full_waits = count_of(&wheel->owner.queue.waits),
		.longest_turn = (tw_duration)count_of(&counts->longest_turn),
	};
	return TW_OK;
}
