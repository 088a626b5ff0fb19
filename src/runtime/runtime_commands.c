/* SPDX-License-Identifier: MIT */
/*
 * The public calls that give commands: look at the arguments, build the command, leave it in the
 * queue.
 *
 * A command's way: claim a cell of the queue, fill it, publish it, wake the owner if it sleeps.
 * What can fail (the timer's memory) comes before the claim, so that a claimed cell is always
 * published.
 */
#include <string.h>

#include "ask.h"

/* Gives back a timer that no command took. */
static void wheel_free_timer(struct tw_wheel *wheel, struct keyed_timer *timer)
{
	struct timer_bin bin = {0};

	timer_free(&wheel->owner.out.store, &bin, timer);
	timer_store_flush(&wheel->owner.out.store, &bin);
}

static void wheel_fill_set(struct tw_wheel *wheel, struct command_cell *cell,
			   struct keyed_timer *timer, bool now)
{
	cell->command.hash = timer->hh.hashv;
	cell->command.key_size = (uint16_t)timer->hh.keylen;
	cell->command.kind = now ? COMMAND_SET_NOW : COMMAND_SET;
	cell->command.in_task = now && owner_is_here(&wheel->owner);
	cell->command.timer = timer;
}

static enum tw_status wheel_set_by_command(struct tw_wheel *wheel, struct keyed_timer *timer,
					   bool now)
{
	struct command_cell *cell;
	uint64_t position;
	enum tw_status status = wheel_claim_for_timer(wheel, &cell, &position);

	if (status != TW_OK)
		return status;
	wheel_fill_set(wheel, cell, timer, now);
	wheel_publish(wheel, cell, position);
	return TW_OK;
}

/* The timer is the owner's on TW_OK, else still the caller's. */
static enum tw_status wheel_set_timer(struct tw_wheel *wheel, struct keyed_timer *timer, bool now)
{
	if (limit_take(&wheel->owner.out.places))
		return wheel_set_by_command(wheel, timer, now);
	return wheel_set_by_request(wheel, &timer->timer);
}

struct set {
	const void *key;
	size_t key_size;
	void *value;
	tw_duration deadline;
	uint64_t expiry;
	bool now; /* the deadline is past */
};

static struct keyed_timer *wheel_new_timer(struct tw_wheel *wheel, const struct set *set)
{
	uint32_t hash = key_hash(&wheel->seed, set->key, set->key_size);
	struct keyed_timer *timer =
		timer_new(&wheel->owner.out.store, set->key, set->key_size, hash);

	if (!timer)
		return NULL;
	timer->timer.value = set->value;
	timer->timer.deadline = set->deadline;
	timer->timer.expiry = set->expiry;
	return timer;
}

static enum tw_status wheel_set(struct tw_wheel *wheel, const struct set *set)
{
	struct keyed_timer *timer = wheel_new_timer(wheel, set);
	enum tw_status status;

	if (!timer)
		return TW_NO_MEMORY;
	status = wheel_set_timer(wheel, timer, set->now);
	if (status != TW_OK)
		wheel_free_timer(wheel, timer);
	return status;
}

/* delay > 0 */
static void set_deadline(struct tw_wheel *wheel, struct set *set, tw_duration now,
			 tw_duration delay)
{
	const struct clock *clock = &wheel->owner.clock;

	/* A delay under one interval counts as one interval. */
	set->deadline = time_add(now, delay < clock->interval ? clock->interval : delay);
	set->expiry = clock_tick_after(clock, set->deadline);
}

enum tw_status tw_set_timer(struct tw_wheel *wheel, const void *key, size_t key_size, void *value,
			    tw_duration delay)
{
	struct set set = {.key = key, .key_size = key_size, .value = value};
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK)
		return status;
	if (!key_is_valid(key, key_size) || delay <= 0)
		return TW_INVALID;
	set_deadline(wheel, &set, clock_now(&wheel->owner.clock), delay);
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
	struct keyed_timer *carrier = NULL;
	uint32_t hash = key_hash(&wheel->seed, key, key_size);
	uint64_t position;
	enum tw_status status;

	if (key_size > COMMAND_KEY_INLINE) {
		carrier = timer_new(&wheel->owner.out.store, key, key_size, hash);
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
	command.deadline = time_add(clock_now(clock), delay);
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

enum { SET_GROUP = 16 }; /* timers whose commands are claimed together */

/* Makes timers for the first items, up to SET_GROUP; fewer when one fails: then its status. */
static size_t wheel_new_timers(struct tw_wheel *wheel, const struct tw_set *items, size_t n,
			       struct keyed_timer **timers, enum tw_status *status)
{
	tw_duration now = clock_now(&wheel->owner.clock);
	size_t count = 0;

	for (; count < n && count < SET_GROUP; count++) {
		const struct tw_set *item = &items[count];
		struct set set = {
			.key = item->key, .key_size = item->key_size, .value = item->value};

		*status = TW_INVALID;
		if (!key_is_valid(item->key, item->key_size) || item->delay <= 0)
			break;
		set_deadline(wheel, &set, now, item->delay);
		timers[count] = wheel_new_timer(wheel, &set);
		*status = TW_NO_MEMORY;
		if (!timers[count])
			break;
		*status = TW_OK;
	}
	return count;
}

/* Leaves the timers in the queue, together if there is room; answers how many, and why no more. */
static size_t wheel_set_group(struct tw_wheel *wheel, struct keyed_timer **timers, size_t count,
			      enum tw_status *status)
{
	struct command_queue *queue = &wheel->owner.queue;
	size_t done = 0;
	uint64_t position;

	if (wheel->owner.out.places.most > 0 ||
	    !command_queue_claim_many(queue, count, &position)) {
		for (; done < count; done++) {
			*status = wheel_set_timer(wheel, timers[done], false);
			if (*status != TW_OK)
				break;
		}
		return done;
	}
	for (; done < count; done++, position++) {
		struct command_cell *cell = command_queue_cell(queue, position);

		wheel_fill_set(wheel, cell, timers[done], false);
		wheel_publish(wheel, cell, position);
	}
	return done;
}

enum tw_status tw_set_timers(struct tw_wheel *wheel, const struct tw_set *items, size_t n,
			     size_t *accepted)
{
	struct keyed_timer *timers[SET_GROUP];
	enum tw_status status = wheel_state(wheel);
	size_t done = 0;

	if (status == TW_OK && !items && n > 0)
		status = TW_INVALID;
	while (done < n && status == TW_OK) {
		enum tw_status made;
		enum tw_status set = TW_OK;
		size_t count = wheel_new_timers(wheel, items + done, n - done, timers, &made);
		size_t given = count ? wheel_set_group(wheel, timers, count, &set) : 0;

		for (size_t i = given; i < count; i++)
			wheel_free_timer(wheel, timers[i]);
		done += given;
		status = set != TW_OK ? set : made;
	}
	if (accepted)
		*accepted = done;
	return status;
}
