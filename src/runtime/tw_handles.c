/* SPDX-License-Identifier: MIT */
/*
 * The public calls for timers by handle. Setting one is a command like any other; resets and stops
 * are done on the spot (handle.c). What one costs is mostly the first touch of the handle, which is
 * in no cache.
 */
#include <assert.h>
#include <stdlib.h>

#include "ask.h"
#include "handle_changes.h"

/* Gives back a handle that no command took. */
static void wheel_free_handle(struct tw_wheel *wheel, struct handle *handle)
{
	struct handle_table *table = &wheel->owner.out.handles;
	struct slab_bin bin = {0};

	handle_free(table, &bin, handle);
	slab_flush(&table->slab, &bin);
}

static enum tw_status wheel_set_handle_by_command(struct tw_wheel *wheel, struct handle *handle)
{
	struct command_cell *cell;
	uint64_t position;
	enum tw_status status = wheel_claim(wheel, &cell, &position);

	if (status != TW_OK)
		return status;
	cell->command.hash = 0;
	cell->command.kind = COMMAND_SET_HANDLE;
	cell->command.in_task = owner_is_here(&wheel->owner);
	cell->command.handle = handle;
	wheel_publish(wheel, cell, position);
	return TW_OK;
}

/* What a new handle is made of. */
struct handle_set {
	void (*run)(void *argument);
	const struct schedule *schedule; /* or NULL */
	void *argument;
	tw_duration now;
	tw_duration deadline;
};

/* Returns whether a timer with this deadline runs at once. */
static bool deadline_is_now(tw_duration deadline, tw_duration now)
{
	return deadline <= now && deadline != TW_FOREVER;
}

static struct handle *wheel_new_handle(struct tw_wheel *wheel, const struct handle_set *set,
				       uint64_t *id)
{
	struct schedule *schedule = set->schedule ? malloc(sizeof(*schedule)) : NULL;
	struct handle *handle;

	if (set->schedule && !schedule)
		return NULL;
	handle = handle_new(&wheel->owner.out.handles, id);
	if (!handle) {
		free(schedule);
		return NULL;
	}
	handle->run = set->run;
	if (schedule) {
		*schedule = *set->schedule;
		handle_make_periodic(handle, schedule);
	}
	handle->timer.value = set->argument;
	handle_arm(handle, set->deadline, deadline_is_now(set->deadline, set->now));
	return handle;
}

/* Sets a timer that has its place. */
static enum tw_status wheel_set_placed(struct tw_wheel *wheel, const struct handle_set *set,
				       struct tw_timer *timer)
{
	enum tw_status status;
	struct handle *handle;
	uint64_t id;

	handle = wheel_new_handle(wheel, set, &id);
	if (!handle)
		return TW_NO_MEMORY;
	/* Before the command: its run may want to know it. */
	if (timer)
		timer->id = id;
	status = wheel_set_handle_by_command(wheel, handle);
	if (status != TW_OK)
		wheel_free_handle(wheel, handle);
	return status;
}

static enum tw_status wheel_set_handle(struct tw_wheel *wheel, const struct handle_set *set,
				       struct tw_timer *timer)
{
	struct limit *places = &wheel->owner.out.places;
	enum tw_status status = wheel_state(wheel);

	if (timer)
		timer->id = 0;
	if (status != TW_OK || !set->run)
		return status == TW_OK ? TW_INVALID : status;
	if (!limit_take(places))
		return wheel_refuse(wheel);
	status = wheel_set_placed(wheel, set, timer);
	if (status == TW_OK)
		return TW_OK;
	limit_give(places);
	if (timer)
		timer->id = 0;
	return status;
}

/* The answer where no timer is set: the wheel's state, or else TW_INVALID. */
static __attribute__((cold, noinline)) enum tw_status wheel_set_no_handle(
	const struct tw_wheel *wheel, struct tw_timer *timer)
{
	enum tw_status status = wheel_state(wheel);

	if (timer)
		timer->id = 0;
	return status == TW_OK ? TW_INVALID : status;
}

/* now + delay; with a delay ≤ 0 never later than now, and never TW_FOREVER, which is not now. */
static tw_duration deadline_after(tw_duration now, tw_duration delay)
{
	assert(now >= 0);
	if (delay > 0)
		return time_add(now, delay);
	return now + delay == TW_FOREVER ? TW_FOREVER - 1 : now + delay;
}

enum tw_status tw_after_func(struct tw_wheel *wheel, tw_duration delay, void (*run)(void *),
			     void *argument, struct tw_timer *timer)
{
	struct handle_set set = {.run = run, .argument = argument};

	if (!wheel)
		return wheel_set_no_handle(wheel, timer);
	set.now = clock_now(&wheel->owner.clock);
	set.deadline = deadline_after(set.now, delay);
	return wheel_set_handle(wheel, &set, timer);
}

enum tw_status tw_every(struct tw_wheel *wheel, tw_duration first, tw_duration period,
			enum tw_missed missed, void (*run)(void *), void *argument,
			struct tw_timer *timer)
{
	const struct schedule schedule = {.run = run, .period = period, .missed = missed};
	struct handle_set set = {.run = run, .schedule = &schedule, .argument = argument};

	if (!wheel || period <= 0 || missed > TW_MISSED_SKIP)
		return wheel_set_no_handle(wheel, timer);
	set.now = clock_now(&wheel->owner.clock);
	set.deadline = deadline_after(set.now, first);
	return wheel_set_handle(wheel, &set, timer);
}

enum tw_status tw_schedule_func(struct tw_wheel *wheel,
				tw_duration (*next)(void *argument, tw_duration previous),
				void (*run)(void *), void *argument, struct tw_timer *timer)
{
	const struct schedule schedule = {.run = run, .next = next};
	struct handle_set set = {.run = run, .schedule = &schedule, .argument = argument};

	if (!next || !run || wheel_state(wheel) != TW_OK)
		return wheel_set_no_handle(wheel, timer);
	if (timer)
		timer->id = 0;
	set.now = clock_now(&wheel->owner.clock);
	set.deadline = next(argument, set.now);
	if (set.deadline <= set.now)
		return TW_NOT_FOUND;
	return wheel_set_handle(wheel, &set, timer);
}

enum tw_status tw_timer_remaining(struct tw_wheel *wheel, struct tw_timer timer,
				  tw_duration *remaining)
{
	struct request request = {.kind = REQUEST_REMAINING, .id = timer.id};
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK)
		return status;
	status = wheel_ask_and_wait(wheel, &request);
	if (status == TW_OK && remaining)
		*remaining = time_left(request.deadline, clock_now(&wheel->owner.clock));
	return status;
}

/* The argument of a stopped timer is the caller's; the owner has to see the timer. */
static inline void wheel_end_stop(struct tw_wheel *wheel)
{
	limit_give(&wheel->owner.out.places);
	wheel_notify(wheel, EVENT_COUNT_SLEEPING);
}

enum tw_status tw_timer_stop(struct tw_wheel *wheel, struct tw_timer timer)
{
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK)
		return status;
	status = handle_stop(&wheel->owner.out.handles, timer.id);
	if (status == TW_OK)
		wheel_end_stop(wheel);
	return status;
}

enum tw_status tw_timer_take(struct tw_wheel *wheel, struct tw_timer timer, void **argument)
{
	enum tw_status status = argument ? wheel_state(wheel) : TW_INVALID;

	if (status != TW_OK)
		return status;
	status = handle_take_value(&wheel->owner.out.handles, timer.id, argument);
	if (status == TW_OK)
		wheel_end_stop(wheel);
	return status;
}

enum tw_status tw_timer_stop_wait(struct tw_wheel *wheel, struct tw_timer timer)
{
	enum tw_status status = wheel_state(wheel);
	struct handle_table *handles;
	struct run run;

	if (status != TW_OK)
		return status;
	handles = &wheel->owner.out.handles;
	if (wheel_is_in_task(wheel) || !handle_find_run(handles, timer.id, &run))
		return tw_timer_stop(wheel, timer);
	status = tw_timer_stop(wheel, timer);
	if (status == TW_RUNNING || status == TW_REARMED)
		handle_table_wait(handles, &run);
	return status == TW_REARMED ? TW_OK : status;
}

enum tw_status tw_timer_reset(struct tw_wheel *wheel, struct tw_timer timer, tw_duration delay)
{
	enum tw_status status = wheel_state(wheel);
	struct handle *handle;
	bool changed = false;
	tw_duration deadline;
	tw_duration now;

	if (status != TW_OK)
		return status;
	/* The handle is in no cache; the clock is read while it comes. */
	handle = handle_fetch(&wheel->owner.out.handles, timer.id);
	now = clock_now(&wheel->owner.clock);
	deadline = deadline_after(now, delay);
	status = handle_reset(&wheel->owner.out.handles, handle, timer.id, deadline,
			      deadline_is_now(deadline, now), &changed);
	if (changed)
		wheel_notify(wheel, EVENT_COUNT_SLEEPING);
	return status;
}
