/* SPDX-License-Identifier: MIT */
/* The public calls for alarms: done on the spot, see alarm.c. */
#include "ask.h"

enum tw_status tw_alarm_create(struct tw_wheel *wheel, void (*run)(void *), void *argument,
			       struct tw_alarm **alarm)
{
	enum tw_status status = wheel_state(wheel);

	if (!alarm)
		return TW_INVALID;
	*alarm = NULL;
	if (status != TW_OK)
		return status;
	if (!run)
		return TW_INVALID;
	*alarm = alarm_create(&wheel->owner.out.alarms, wheel, run, argument);
	return *alarm ? TW_OK : TW_NO_MEMORY;
}

/* The owner has an alarm to see to. */
static void wheel_tell_of_alarm(struct tw_wheel *wheel)
{
	owner_note_call(&wheel->owner);
	wheel_notify(wheel, EVENT_COUNT_SLEEPING);
}

static enum tw_status wheel_set_alarm(struct tw_wheel *wheel, struct tw_alarm *alarm, uint64_t tick)
{
	bool changed = false;
	enum tw_status status = alarm_set(&wheel->owner.out.alarms, alarm, tick, &changed);

	if (changed)
		wheel_tell_of_alarm(wheel);
	return status;
}

enum tw_status tw_alarm_set(struct tw_alarm *alarm, tw_duration delay)
{
	enum tw_status status = alarm ? wheel_state(alarm->wheel) : TW_INVALID;
	const struct clock *clock;
	tw_duration now;

	if (status != TW_OK)
		return status;
	clock = &alarm->wheel->owner.clock;
	now = clock_now(clock);
	if (delay <= 0)
		return wheel_set_alarm(alarm->wheel, alarm, tick_before(&clock->ticks, now));
	if (delay < clock->ticks.interval)
		delay = clock->ticks.interval;
	return wheel_set_alarm(alarm->wheel, alarm,
			       tick_after(&clock->ticks, time_add(now, delay)));
}

enum tw_status tw_alarm_set_at(struct tw_alarm *alarm, tw_duration deadline)
{
	enum tw_status status = alarm ? wheel_state(alarm->wheel) : TW_INVALID;

	if (status != TW_OK)
		return status;
	return wheel_set_alarm(alarm->wheel, alarm,
			       tick_after(&alarm->wheel->owner.clock.ticks, deadline));
}

enum tw_status tw_alarm_stop(struct tw_alarm *alarm)
{
	enum tw_status status = alarm ? wheel_state(alarm->wheel) : TW_INVALID;

	return status == TW_OK ? alarm_stop(alarm) : status;
}

enum tw_status tw_alarm_remaining(struct tw_alarm *alarm, tw_duration *remaining)
{
	enum tw_status status = alarm ? wheel_state(alarm->wheel) : TW_INVALID;
	const struct clock *clock;
	uint64_t tick;

	if (status != TW_OK)
		return status;
	status = alarm_due(alarm, &tick);
	if (status != TW_OK || !remaining)
		return status;
	clock = &alarm->wheel->owner.clock;
	*remaining = time_left(tick_time(&clock->ticks, tick), clock_now(clock));
	return status;
}

/* Waits for the alarm's run, if the wait can end. */
static enum tw_status wheel_wait_for_alarm(struct tw_wheel *wheel, struct tw_alarm *alarm)
{
	struct run run = alarm_run(alarm);
	struct job_wait wait;

	if (job_is_here(run.timer))
		return TW_RUNNING;
	if (!job_begin_wait(&wait, &run))
		return TW_INVALID;
	handle_table_wait(&wheel->owner.out.handles, &run);
	job_end_wait(&wait);
	return TW_OK;
}

/* Not inlined: the other way needs no stack. */
static __attribute__((noinline)) enum tw_status wheel_destroy_after_run(struct tw_wheel *wheel,
									struct tw_alarm *alarm)
{
	enum tw_status status = wheel_wait_for_alarm(wheel, alarm);

	if (alarm_give_back(&wheel->owner.out.alarms, alarm, NULL))
		wheel_tell_of_alarm(wheel);
	return status;
}

enum tw_status tw_alarm_close(struct tw_alarm *alarm, void (*closed)(void *argument))
{
	struct tw_wheel *wheel;
	enum tw_status status;
	bool changed = false;

	if (!alarm)
		return TW_INVALID;
	if (fork_guard_state(alarm->wheel->guard) == FORK_GUARD_CHILD)
		return TW_CLOSED;
	wheel = alarm->wheel;
	status = alarm_close(&wheel->owner.out.alarms, alarm, closed, &changed);
	if (changed)
		wheel_tell_of_alarm(wheel);
	return status;
}

enum tw_status tw_alarm_destroy(struct tw_alarm *alarm)
{
	struct tw_wheel *wheel;
	enum tw_status status;
	bool changed = false;

	if (!alarm)
		return TW_OK;
	wheel = alarm->wheel;
	if (fork_guard_state(wheel->guard) == FORK_GUARD_CHILD)
		return TW_CLOSED;
	status = alarm_destroy(&wheel->owner.out.alarms, alarm, &changed);
	if (status == TW_RUNNING)
		return wheel_destroy_after_run(wheel, alarm);
	if (changed)
		wheel_tell_of_alarm(wheel);
	return status;
}
