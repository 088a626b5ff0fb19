/* SPDX-License-Identifier: MIT */
/*
 * The public calls for timers without a key: by handle, and alarms. Setting a new handle is a
 * command like any other; all else is done on the spot (alarm.c). What a call costs is mostly the
 * first touch of the handle or alarm, which is in no cache.
 */
#include <assert.h>
#include <stdlib.h>

#include "ask.h"
#include "base/compiler.h"
#include "base/thread.h"

/* What a new handle is made of. */
struct handle_set {
	void (*run)(void *argument);
	void *argument;
	tw_duration delay;               /* until the first run, unless the schedule says it */
	const struct schedule *schedule; /* or NULL */
	struct cron_follower *follower;  /* where the schedule has a calendar */
};

/* Returns whether a timer with this deadline runs at once. */
static bool deadline_is_now(tw_duration deadline, tw_duration now)
{
	return deadline <= now && deadline != TW_FOREVER;
}

/* now + delay; with a delay ≤ 0 never later than now, and never TW_FOREVER, which is not now. */
static tw_duration deadline_from(tw_duration now, tw_duration delay)
{
	assert(now >= 0);
	if (delay > 0)
		return time_add(now, delay);
	return now + delay == TW_FOREVER ? TW_FOREVER - 1 : now + delay;
}

/* Sets *deadline to that of the first run. Returns false if the schedule has none. */
static bool handle_first(const struct handle_set *set, tw_duration now, tw_duration *deadline)
{
	const struct schedule *schedule = set->schedule;

	if (schedule && schedule->next) {
		*deadline = schedule->next(set->argument, now);
		return *deadline > now;
	}
	if (schedule && schedule->has_calendar) {
		*deadline = cron_follower_next(set->follower, now);
		return set->follower->due_s != INT64_MAX;
	}
	*deadline = deadline_from(now, set->delay);
	return true;
}

/* Takes the memory of a timer. Returns NULL if there is none. */
static struct alarm *wheel_new_handle(struct tw_wheel *wheel, const struct handle_set *set,
				      uint64_t *id)
{
	size_t more = set->follower ? sizeof(*set->follower) : 0;
	struct schedule *schedule = set->schedule ? malloc(sizeof(*schedule) + more) : NULL;
	struct alarm *alarm = NULL;

	if (!set->schedule || schedule)
		alarm = handle_new(&wheel->owner.out.handles, id);
	if (!alarm) {
		free(schedule);
		return NULL;
	}
	alarm->timer.class = schedule ? TIMER_PERIODIC : TIMER_HANDLE;
	alarm->timer.value = set->argument;
	if (schedule) {
		*schedule = *set->schedule;
		alarm->schedule = schedule;
	} else {
		alarm->function = set->run;
	}
	if (more > 0)
		schedule->follower[0] = *set->follower;
	return alarm;
}

/* Gives back a handle that no command took. */
static void wheel_free_handle(struct tw_wheel *wheel, struct alarm *alarm)
{
	struct handle_table *table = &wheel->owner.out.handles;
	struct slab_bin bin = {0};

	handle_free(table, &bin, alarm);
	slab_flush(&table->slab, &bin);
}

/* Sets a timer that has its place. */
static enum tw_status wheel_set_placed(struct tw_wheel *wheel, const struct handle_set *set,
				       tw_duration deadline, bool for_now, struct tw_timer *timer)
{
	struct command_cell *cell;
	enum tw_status status;
	struct alarm *alarm;
	uint64_t position;
	uint64_t id;

	alarm = wheel_new_handle(wheel, set, &id);
	if (!alarm)
		return TW_NO_MEMORY;
	status = wheel_claim(wheel, &cell, &position);
	if (status != TW_OK) {
		wheel_free_handle(wheel, alarm);
		return status;
	}
	/* Before the command: its run may want to know it. */
	if (timer)
		timer->id = id;
	alarm_begin_life(alarm, deadline, for_now);
	cell->command.hash = 0;
	cell->command.kind = COMMAND_SET_HANDLE;
	cell->command.alarm = alarm;
	wheel_publish(wheel, cell, position);
	if (for_now)
		event_count_hurry(&wheel->owner.event);
	return TW_OK;
}

/* Sets a timer. Without `run`, returns TW_INVALID. */
static enum tw_status wheel_set_handle(struct tw_wheel *wheel, const struct handle_set *set,
				       struct tw_timer *timer)
{
	enum tw_status status = wheel_state(wheel);
	struct limit *places;
	tw_duration deadline;
	tw_duration now;

	if (timer)
		timer->id = 0;
	if (status != TW_OK || !set->run)
		return status == TW_OK ? TW_INVALID : status;
	now = clock_now(&wheel->owner.clock);
	if (set->follower)
		set->follower->clock = &wheel->owner.clock;
	if (!handle_first(set, now, &deadline))
		return TW_NOT_FOUND;
	places = &wheel->owner.out.places;
	if (!limit_take(places))
		return wheel_refuse(wheel);
	status = wheel_set_placed(wheel, set, deadline, deadline_is_now(deadline, now), timer);
	if (status != TW_OK)
		limit_give(places);
	return status;
}

enum tw_status tw_after_func(struct tw_wheel *wheel, tw_duration delay, void (*run)(void *),
			     void *argument, struct tw_timer *timer)
{
	const struct handle_set set = {.run = run, .argument = argument, .delay = delay};

	return wheel_set_handle(wheel, &set, timer);
}

enum tw_status tw_every(struct tw_wheel *wheel, tw_duration first, tw_duration period,
			enum tw_missed missed, void (*run)(void *), void *argument,
			struct tw_timer *timer)
{
	const struct schedule schedule = {.run = run, .period = period, .missed = missed};
	bool is_valid = period > 0 && missed <= TW_MISSED_SKIP;
	const struct handle_set set = {.run = is_valid ? run : NULL,
				       .argument = argument,
				       .delay = first,
				       .schedule = &schedule};

	return wheel_set_handle(wheel, &set, timer);
}

enum tw_status tw_schedule_func(struct tw_wheel *wheel,
				tw_duration (*next)(void *argument, tw_duration previous),
				void (*run)(void *), void *argument, struct tw_timer *timer)
{
	const struct schedule schedule = {.run = run, .next = next};
	const struct handle_set set = {
		.run = next ? run : NULL, .argument = argument, .schedule = &schedule};

	return wheel_set_handle(wheel, &set, timer);
}

enum tw_status tw_schedule_cron(struct tw_wheel *wheel, const struct tw_cron *cron,
				void (*run)(void *), void *argument, struct tw_timer *timer)
{
	const struct schedule schedule = {.run = run, .has_calendar = true, .is_look = true};
	struct cron_follower follower = {.cron = cron, .done_s = INT64_MIN};
	const struct handle_set set = {.run = cron ? run : NULL,
				       .argument = argument,
				       .schedule = &schedule,
				       .follower = &follower};

	return wheel_set_handle(wheel, &set, timer);
}

enum tw_status tw_timer_remaining(struct tw_wheel *wheel, struct tw_timer timer,
				  tw_duration *remaining)
{
	enum tw_status status = wheel_state(wheel);
	tw_duration deadline;
	struct alarm *alarm;
	uint64_t generation;
	enum alarm_state state;

	if (status != TW_OK)
		return status;
	alarm = handle_find(&wheel->owner.out.handles, timer.id);
	if (!alarm)
		return TW_NOT_FOUND;
	state = alarm_state(alarm, &generation, &deadline);
	if (generation != handle_generation(timer.id) || state == ALARM_IDLE)
		return TW_NOT_FOUND;
	if (state == ALARM_RUNS)
		return TW_RUNNING;
	if (remaining)
		*remaining = time_left(deadline, clock_now(&wheel->owner.clock));
	return TW_OK;
}

/* Stops the timer as tw_timer_take does, also once the wheel is stopped. *alarm becomes its handle,
 * or NULL. */
static inline enum tw_status wheel_stop_handle(struct tw_wheel *wheel, uint64_t id, void **argument,
					       struct alarm **alarm)
{
	enum tw_status status = wheel ? wheel_presence(wheel) : TW_INVALID;
	struct outbox *out;
	bool changed = false;

	if (status != TW_OK)
		return status;
	out = &wheel->owner.out;
	*alarm = handle_find(&out->handles, id);
	status = *alarm ? alarm_end_life(&out->alarms, *alarm, handle_generation(id), argument,
					 &changed)
			: TW_NOT_FOUND;
	/* The argument is the caller's. */
	if (status == TW_OK)
		limit_give(&out->places);
	wheel_note_change(wheel, changed, false);
	return status != TW_NOT_FOUND || wheel_is_open(wheel) ? status : TW_CLOSED;
}

enum tw_status tw_timer_take(struct tw_wheel *wheel, struct tw_timer timer, void **argument)
{
	struct alarm *alarm;

	return argument ? wheel_stop_handle(wheel, timer.id, argument, &alarm) : TW_INVALID;
}

enum tw_status tw_timer_stop(struct tw_wheel *wheel, struct tw_timer timer)
{
	void *argument;

	return tw_timer_take(wheel, timer, &argument);
}

enum tw_status tw_timer_stop_wait(struct tw_wheel *wheel, struct tw_timer timer)
{
	struct alarm *alarm;
	void *argument;
	enum tw_status status = wheel_stop_handle(wheel, timer.id, &argument, &alarm);
	struct run run;

	if ((status != TW_RUNNING && status != TW_REARMED) || wheel_is_in_task(wheel))
		return status;
	run = alarm_run(alarm, handle_generation(timer.id));
	alarm_table_wait(&wheel->owner.out.alarms, &run);
	return status == TW_REARMED ? TW_OK : status;
}

/* Sets an alarm of that generation to a deadline, and wakes the owner if it has to know. */
static INLINED enum tw_status wheel_set_alarm(struct tw_wheel *wheel, struct alarm *alarm,
					      uint64_t generation, tw_duration deadline,
					      bool for_now)
{
	bool changed = false;
	enum tw_status status =
		alarm_set(&wheel->owner.out.alarms, alarm, generation, deadline, for_now, &changed);

	wheel_note_change(wheel, changed, for_now);
	return status;
}

enum tw_status tw_timer_reset(struct tw_wheel *wheel, struct tw_timer timer, tw_duration delay)
{
	enum tw_status status = wheel_state(wheel);
	struct alarm *alarm;
	tw_duration deadline;
	tw_duration now;
	bool for_now;

	if (status != TW_OK)
		return status;
	alarm = handle_find(&wheel->owner.out.handles, timer.id);
	if (!alarm)
		return TW_NOT_FOUND;
	/* The handle is in no cache; the clock is read while it comes. */
	prefetch_to_write(&alarm->word);
	now = clock_now(&wheel->owner.clock);
	deadline = deadline_from(now, delay);
	for_now = deadline_is_now(deadline, now);
	status = wheel_set_alarm(wheel, alarm, handle_generation(timer.id), deadline, for_now);
	return status == TW_CLOSED ? TW_NOT_FOUND : status;
}

/* ---- Alarms ---- */

enum tw_status tw_alarm_init(struct tw_wheel *wheel, struct tw_alarm *alarm, void (*run)(void *),
			     void *argument)
{
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK || !alarm || !run)
		return status == TW_OK ? TW_INVALID : status;
	alarm_init(&alarm_of(alarm)->alarm, run, argument);
	alarm_of(alarm)->wheel = wheel;
	return TW_OK;
}

static inline enum tw_status alarm_set_to(struct own_alarm *own, tw_duration deadline, bool for_now)
{
	if (!wheel_is_open(own->wheel))
		return TW_CLOSED;
	return wheel_set_alarm(own->wheel, &own->alarm, 0, deadline, for_now);
}

enum tw_status tw_alarm_set(struct tw_alarm *alarm, tw_duration delay)
{
	struct own_alarm *own = alarm_of(alarm);
	const struct clock *clock;
	tw_duration now;

	if (!own)
		return TW_INVALID;
	clock = &own->wheel->owner.clock;
	now = clock_now(clock);
	if (delay <= 0)
		return alarm_set_to(own, now, true);
	if (delay < clock->ticks.interval)
		delay = clock->ticks.interval;
	return alarm_set_to(own, time_add(now, delay), false);
}

enum tw_status tw_alarm_set_at(struct tw_alarm *alarm, tw_duration deadline)
{
	return alarm ? alarm_set_to(alarm_of(alarm), deadline, false) : TW_INVALID;
}

enum tw_status tw_alarm_stop(struct tw_alarm *alarm)
{
	struct own_alarm *own = alarm_of(alarm);

	if (!own)
		return TW_INVALID;
	return wheel_is_open(own->wheel) ? alarm_stop(&own->alarm) : TW_CLOSED;
}

enum tw_status tw_alarm_close(struct tw_alarm *alarm, void (*closed)(void *argument))
{
	struct own_alarm *own = alarm_of(alarm);
	struct tw_wheel *wheel;
	enum tw_status status;
	bool changed = false;

	if (!own || !closed)
		return TW_INVALID;
	wheel = own->wheel;
	status = wheel_presence(wheel);
	if (status != TW_OK)
		return status;
	status = alarm_close(&wheel->owner.out.alarms, &own->alarm, closed, &changed);
	if (status == TW_OK)
		wheel_note_change(wheel, changed, true);
	return status;
}

/* Waits until no worker and no list has the alarm. */
static void wheel_await_alarm(struct tw_wheel *wheel, struct alarm *alarm, const struct run *hold)
{
	unsigned tries = 0;

	if (run_is_under_way(hold))
		alarm_table_wait(&wheel->owner.out.alarms, hold);
	/* A worker may be about to put it into the inbox: then another time. */
	while (alarm_is_known(alarm)) {
		struct question question = {.kind = QUESTION_TAKE_OUT, .alarm = alarm};

		(void)wheel_ask(wheel, &question);
		if (alarm_is_known(alarm))
			thread_back_off(&tries);
	}
}

enum tw_status tw_alarm_destroy(struct tw_alarm *alarm)
{
	struct own_alarm *own = alarm_of(alarm);
	enum tw_status status;
	struct run hold;

	if (!own || !own->wheel)
		return TW_OK;
	status = wheel_presence(own->wheel);
	if (status != TW_OK)
		return status;
	hold = alarm_hold(&own->alarm, own->wheel->owner.out.pool);
	status = alarm_destroy(&own->alarm, &hold, !wheel_is_in_task(own->wheel));
	if (status == TW_OK)
		wheel_await_alarm(own->wheel, &own->alarm, &hold);
	return status;
}
