/* SPDX-License-Identifier: MIT */
/*
 * The public calls by key, and those for all timers: look at the arguments, build the command or
 * the question, leave it in the queue.
 *
 * A command's way: claim a cell of the queue, fill it, publish it, wake the owner if it sleeps.
 * What can fail (the timer's memory) comes before the claim, so that a claimed cell is always
 * published.
 */
#include <stdlib.h>

#include "ask.h"
#include "base/compiler.h"

/* A command by key that is to be given. */
struct order {
	const void *key;
	size_t key_size;
	void *value;      /* a set's */
	tw_duration time; /* the delay; once it is dated, the deadline */
	enum command_kind kind;
};

static inline bool wheel_may_give(const struct tw_wheel *wheel, const struct order *order)
{
	return key_is_valid(order->key, order->key_size) &&
	       (order->time > 0 || order->kind == COMMAND_REMOVE) &&
	       (wheel->owner.out.target.execute || order->kind != COMMAND_SET);
}

/* Returns whether the order's delay is under one interval. */
static inline bool order_is_short(const struct tw_wheel *wheel, const struct order *order)
{
	return order->time < wheel->owner.clock.ticks.interval;
}

/* Makes the order's delay, which counts from the call, a deadline. A set's delay under one interval
 * counts as one interval. */
static inline void wheel_date(struct tw_wheel *wheel, struct order *order)
{
	const struct clock *clock = &wheel->owner.clock;

	if (order->kind == COMMAND_REMOVE)
		return;
	if (order->kind == COMMAND_SET && order_is_short(wheel, order))
		order->time = clock->ticks.interval;
	order->time = time_add(clock_now(clock), order->time);
}

/* `timer`: see struct command. */
static inline void command_fill(struct command *command, const struct order *order, uint32_t hash,
				struct keyed_timer *timer)
{
	command->hash = hash;
	command->key_size = (uint16_t)order->key_size;
	command->kind = (uint8_t)order->kind;
	command->time = order->time;
	command->value = order->value;
	command->timer = timer;
	if (order->key_size <= COMMAND_KEY_INLINE)
		key_copy(command->key, order->key, order->key_size);
}

/* Gives back a timer that no command took: with its key, or memory for one. */
static void wheel_free_timer(struct tw_wheel *wheel, struct keyed_timer *timer, bool has_key)
{
	struct timer_store *store = &wheel->owner.out.store;
	struct timer_bin bin = {0};

	if (has_key)
		timer_free(store, &bin, timer);
	else
		timer_give_memory(store, &bin, timer);
	timer_store_flush(store, &bin);
}

/* Sets *timer to what the command brings the owner, or NULL. Returns false without memory. */
static bool wheel_take_timer(struct tw_wheel *wheel, const struct order *order, uint32_t hash,
			     struct keyed_timer **timer)
{
	struct timer_store *store = &wheel->owner.out.store;

	*timer = NULL;
	if (order->key_size > COMMAND_KEY_INLINE) {
		*timer = timer_new(store, order->key, order->key_size, hash);
		return *timer;
	}
	if (order->kind != COMMAND_SET)
		return true;
	*timer = timer_take_memory(store);
	return *timer;
}

/*
 * A set's memory is taken here and not touched: key and value travel in the cell, and the owner
 * lays them into it.
 */
static enum tw_status wheel_give(struct tw_wheel *wheel, const struct order *order)
{
	uint32_t hash;
	struct keyed_timer *timer;
	struct command_cell *cell;
	uint64_t position;
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK)
		return status;
	status = TW_NO_MEMORY;
	hash = key_hash(&wheel->seed, order->key, order->key_size);
	if (order->kind == COMMAND_SET && !limit_take(&wheel->owner.out.places))
		return wheel_refuse(wheel);
	if (wheel_take_timer(wheel, order, hash, &timer))
		status = wheel_claim(wheel, &cell, &position);
	if (status != TW_OK) {
		if (order->kind == COMMAND_SET)
			limit_give(&wheel->owner.out.places);
		if (timer)
			wheel_free_timer(wheel, timer, order->key_size > COMMAND_KEY_INLINE);
		return status;
	}
	command_fill(&cell->command, order, hash, timer);
	wheel_publish(wheel, cell, position);
	return TW_OK;
}

/* The status where what was asked is invalid: that of the wheel comes first. */
static __attribute__((cold, noinline)) enum tw_status wheel_invalid(const struct tw_wheel *wheel)
{
	enum tw_status status = wheel_state(wheel);

	return status == TW_OK ? TW_INVALID : status;
}

/* A move by less than one interval moves to now. */
static __attribute__((noinline)) enum tw_status wheel_move_now(struct tw_wheel *wheel,
							       struct order order)
{
	enum tw_status status;

	order.kind = COMMAND_MOVE_NOW;
	wheel_date(wheel, &order);
	status = wheel_give(wheel, &order);
	event_count_hurry(&wheel->owner.event);
	return status;
}

static INLINED enum tw_status wheel_give_one(struct tw_wheel *wheel, struct order order)
{
	if (!wheel || !wheel_may_give(wheel, &order))
		return wheel_invalid(wheel);
	if (order.kind == COMMAND_MOVE && order_is_short(wheel, &order))
		return wheel_move_now(wheel, order);
	wheel_date(wheel, &order);
	return wheel_give(wheel, &order);
}

enum tw_status tw_set_timer(struct tw_wheel *wheel, const void *key, size_t key_size, void *value,
			    tw_duration delay)
{
	struct order order = {key, key_size, value, delay, COMMAND_SET};

	return wheel_give_one(wheel, order);
}

/* Asks the owner, which knows the keys, to add the timer. */
static enum tw_status wheel_ask_to_add(struct tw_wheel *wheel, const struct order *order)
{
	uint32_t hash = key_hash(&wheel->seed, order->key, order->key_size);
	struct question question = {.kind = QUESTION_ADD};
	enum tw_status status;

	question.timer = timer_new(&wheel->owner.out.store, order->key, order->key_size, hash);
	if (!question.timer)
		return TW_NO_MEMORY;
	question.timer->timer.value = order->value;
	question.timer->timer.deadline = order->time;
	status = wheel_ask(wheel, &question);
	if (status != TW_OK)
		wheel_free_timer(wheel, question.timer, true);
	return status;
}

enum tw_status tw_add_timer(struct tw_wheel *wheel, const void *key, size_t key_size, void *value,
			    tw_duration delay)
{
	struct order order = {key, key_size, value, delay, COMMAND_SET};
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK)
		return status;
	if (!wheel_may_give(wheel, &order))
		return TW_INVALID;
	if (!limit_take(&wheel->owner.out.places))
		return wheel_refuse(wheel);
	wheel_date(wheel, &order);
	status = wheel_ask_to_add(wheel, &order);
	if (status != TW_OK)
		limit_give(&wheel->owner.out.places);
	return status;
}

enum tw_status tw_move_timer(struct tw_wheel *wheel, const void *key, size_t key_size,
			     tw_duration delay)
{
	struct order order = {key, key_size, NULL, delay, COMMAND_MOVE};

	return wheel_give_one(wheel, order);
}

enum tw_status tw_remove_timer(struct tw_wheel *wheel, const void *key, size_t key_size)
{
	struct order order = {key, key_size, NULL, 0, COMMAND_REMOVE};

	return wheel_give_one(wheel, order);
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

/* ---- All timers ---- */

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
