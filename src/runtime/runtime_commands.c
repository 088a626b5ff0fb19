/* SPDX-License-Identifier: MIT */
/*
 * The public calls that give commands: look at the arguments, build the command, leave it in the
 * queue.
 *
 * A command's way: claim a cell of the queue, fill it, publish it, wake the owner if it sleeps.
 * What can fail (the timer's memory) comes before the claim, so that a claimed cell is always
 * published.
 */
#include "ask.h"

struct set {
	const void *key;
	size_t key_size;
	void *value;
	tw_duration deadline;
	bool now; /* the deadline is past */
};

/* The command of a set, whose timer is `timer`: memory for it, or whole. */
static void wheel_fill_set(struct tw_wheel *wheel, struct command *command, const struct set *set,
			   uint32_t hash, struct keyed_timer *timer)
{
	command->hash = hash;
	command->key_size = (uint16_t)set->key_size;
	command->kind = set->now ? COMMAND_SET_NOW : COMMAND_SET;
	command->in_task = set->now && owner_is_here(&wheel->owner);
	command->deadline = set->deadline;
	command->value = set->value;
	command->timer = timer;
	if (set->key_size <= COMMAND_KEY_INLINE)
		key_copy(command->key, set->key, set->key_size);
}

/* A whole timer; NULL: out of memory. */
static struct keyed_timer *wheel_make_timer(struct tw_wheel *wheel, const struct set *set,
					    uint32_t hash)
{
	struct keyed_timer *timer =
		timer_new(&wheel->owner.out.store, set->key, set->key_size, hash);

	if (!timer)
		return NULL;
	timer->timer.value = set->value;
	timer->timer.deadline = set->deadline;
	return timer;
}

/* Gives back a timer that no command took: whole, or memory for one. */
static void wheel_free_timer(struct tw_wheel *wheel, struct keyed_timer *timer, bool is_whole)
{
	struct timer_store *store = &wheel->owner.out.store;
	struct timer_bin bin = {0};

	if (is_whole)
		timer_free(store, &bin, timer);
	else
		timer_give_memory(store, &bin, timer);
	timer_store_flush(store, &bin);
}

/* The limit is reached: the owner, which knows the keys, must say. */
static enum tw_status wheel_ask_for_place(struct tw_wheel *wheel, const struct set *set,
					  uint32_t hash)
{
	struct keyed_timer *timer = wheel_make_timer(wheel, set, hash);
	enum tw_status status;

	if (!timer)
		return TW_NO_MEMORY;
	status = wheel_set_by_request(wheel, &timer->timer);
	if (status != TW_OK)
		wheel_free_timer(wheel, timer, true);
	return status;
}

/* NULL: out of memory. */
static struct keyed_timer *wheel_take_memory(struct tw_wheel *wheel)
{
	struct keyed_timer *timer;

	return timer_take_memory(&wheel->owner.out.store, &timer, 1) == 1 ? timer : NULL;
}

/*
 * The timer's memory is taken here and not touched: key and value travel in the cell, and the owner
 * lays them into it.
 */
static enum tw_status wheel_set(struct tw_wheel *wheel, const struct set *set)
{
	uint32_t hash = key_hash(&wheel->seed, set->key, set->key_size);
	bool is_whole = set->key_size > COMMAND_KEY_INLINE;
	struct keyed_timer *timer;
	struct command_cell *cell;
	uint64_t position;
	enum tw_status status = TW_NO_MEMORY;

	if (!limit_take(&wheel->owner.out.places))
		return wheel_ask_for_place(wheel, set, hash);
	timer = is_whole ? wheel_make_timer(wheel, set, hash) : wheel_take_memory(wheel);
	if (timer)
		status = wheel_claim(wheel, &cell, &position);
	if (status != TW_OK) {
		limit_give(&wheel->owner.out.places, 1);
		if (timer)
			wheel_free_timer(wheel, timer, is_whole);
		return status;
	}
	wheel_fill_set(wheel, &cell->command, set, hash, timer);
	wheel_publish(wheel, cell, position);
	return TW_OK;
}

/* delay > 0 */
static void set_deadline(struct tw_wheel *wheel, struct set *set, tw_duration now,
			 tw_duration delay)
{
	const struct clock *clock = &wheel->owner.clock;

	/* A delay under one interval counts as one interval. */
	set->deadline =
		time_add(now, delay < clock->ticks.interval ? clock->ticks.interval : delay);
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
			wheel_free_timer(wheel, carrier, true);
		return status;
	}
	cell->command.hash = hash;
	cell->command.key_size = (uint16_t)key_size;
	cell->command.kind = command->kind;
	cell->command.deadline = command->deadline;
	cell->command.timer = carrier;
	if (!carrier)
		key_copy(cell->command.key, key, key_size);
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
	if (delay < clock->ticks.interval)
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

/* ---- Many at once ---- */

enum { GROUP = 16 }; /* items whose commands are claimed together */

/* TW_OK, or why the item is no set. */
static enum tw_status wheel_look_at_set(struct tw_wheel *wheel, const struct tw_set *item,
					tw_duration now, struct set *set)
{
	if (!key_is_valid(item->key, item->key_size) || item->delay <= 0)
		return TW_INVALID;
	*set = (struct set){.key = item->key, .key_size = item->key_size, .value = item->value};
	set_deadline(wheel, set, now, item->delay);
	return TW_OK;
}

/* The first items, up to GROUP, that are sets whose keys travel in cells. */
static size_t wheel_look_at_sets(struct tw_wheel *wheel, const struct tw_set *items, size_t n,
				 tw_duration now, struct set *sets)
{
	size_t count = 0;

	while (count < n && count < GROUP && items[count].key_size <= COMMAND_KEY_INLINE &&
	       wheel_look_at_set(wheel, &items[count], now, &sets[count]) == TW_OK)
		count++;
	return count;
}

/* All of them in one claim; false: there is no room for all, or no memory. */
static bool wheel_set_together(struct tw_wheel *wheel, const struct set *sets, size_t count)
{
	struct command_queue *queue = &wheel->owner.queue;
	struct keyed_timer *timers[GROUP];
	size_t taken = timer_take_memory(&wheel->owner.out.store, timers, count);
	uint64_t position;

	if (taken < count || !command_queue_claim_many(queue, count, &position)) {
		while (taken > 0)
			wheel_free_timer(wheel, timers[--taken], false);
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		struct command_cell *cell = command_queue_cell(queue, position + i);
		uint32_t hash = key_hash(&wheel->seed, sets[i].key, sets[i].key_size);

		wheel_fill_set(wheel, &cell->command, &sets[i], hash, timers[i]);
		command_queue_publish(cell, position + i);
	}
	wheel_tell(wheel, position + count - 1, count);
	return true;
}

/* Sets the first items, at least one; answers how many, and why no more. */
static size_t wheel_set_some(struct tw_wheel *wheel, const struct tw_set *items, size_t n,
			     enum tw_status *status)
{
	tw_duration now = clock_now(&wheel->owner.clock);
	struct set sets[GROUP];
	size_t count = wheel_look_at_sets(wheel, items, n, now, sets);

	*status = TW_OK;
	if (count > 1 && wheel->owner.out.places.most == 0 &&
	    wheel_set_together(wheel, sets, count))
		return count;
	*status = wheel_look_at_set(wheel, items, now, sets);
	if (*status == TW_OK)
		*status = wheel_set(wheel, sets);
	return *status == TW_OK;
}

enum tw_status tw_set_timers(struct tw_wheel *wheel, const struct tw_set *items, size_t n,
			     size_t *accepted)
{
	enum tw_status status = wheel_state(wheel);
	size_t done = 0;

	if (status == TW_OK && !items && n > 0)
		status = TW_INVALID;
	while (done < n && status == TW_OK)
		done += wheel_set_some(wheel, items + done, n - done, &status);
	if (accepted)
		*accepted = done;
	return status;
}
