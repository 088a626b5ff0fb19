/* SPDX-License-Identifier: MIT */
/* The public calls for alarms: done on the spot, see alarm.c. */
#include "ask.h"
#include "keyless.h"

/* What there is to look at before an alarm is made. */
static enum tw_status wheel_may_make_alarm(const struct tw_wheel *wheel, run_fn *run)
{
	enum tw_status status = wheel_state(wheel);

	return status == TW_OK && !run ? TW_INVALID : status;
}

enum tw_status tw_alarm_create(struct tw_wheel *wheel, void (*run)(void *), void *argument,
			       struct tw_alarm **alarm)
{
	enum tw_status status;

	if (!alarm)
		return TW_INVALID;
	*alarm = NULL;
	status = wheel_may_make_alarm(wheel, run);
	if (status != TW_OK)
		return status;
	*alarm = (struct tw_alarm *)alarm_create(&wheel->owner.out.alarms, wheel, run, argument);
	return *alarm ? TW_OK : TW_NO_MEMORY;
}

enum tw_status tw_alarm_init(struct tw_wheel *wheel, struct tw_alarm *alarm, void (*run)(void *),
			     void *argument)
{
	enum tw_status status = wheel_may_make_alarm(wheel, run);

	if (status != TW_OK || !alarm)
		return status == TW_OK ? TW_INVALID : status;
	alarm_init(alarm_of(alarm), wheel, run, argument);
	return TW_OK;
}

/* The owner has an alarm to see to. After an inline task it looks by itself. */
static void wheel_tell_of_alarm(struct tw_wheel *wheel)
{
	wheel_notify(wheel, EVENT_COUNT_SLEEPING);
}

/* The state of the alarm's wheel, or TW_INVALID if there is no alarm. */
static inline enum tw_status alarm_state(const struct alarm *alarm)
{
	return alarm ? wheel_state(alarm->wheel) : TW_INVALID;
}

static enum tw_status wheel_set_alarm(struct tw_wheel *wheel, struct alarm *alarm, uint64_t tick)
{
	bool changed = false;
	enum tw_status status = alarm_set(&wheel->owner.out.alarms, alarm, tick, &changed);

	if (changed)
		wheel_tell_of_alarm(wheel);
	return status;
}

static inline enum tw_status alarm_set_by_tick(struct alarm *alarm, uint64_t tick)
{
	if (!wheel_is_open(alarm->wheel))
		return TW_CLOSED;
	return wheel_set_alarm(alarm->wheel, alarm, tick);
}

enum tw_status tw_alarm_set(struct tw_alarm *alarm, tw_duration delay)
{
	struct alarm *inner = alarm_of(alarm);
	const struct clock *clock;
	tw_duration now;

	if (!inner)
		return TW_INVALID;
	clock = &inner->wheel->owner.clock;
	now = clock_now(clock);
	if (delay <= 0)
		return alarm_set_by_tick(inner, tick_before(&clock->ticks, now));
	if (delay < clock->ticks.interval)
		delay = clock->ticks.interval;
	return alarm_set_by_tick(inner, tick_after(&clock->ticks, time_add(now, delay)));
}

enum tw_status tw_alarm_set_at(struct tw_alarm *alarm, tw_duration deadline)
{
	struct alarm *inner = alarm_of(alarm);

	if (!inner)
		return TW_INVALID;
	return alarm_set_by_tick(inner, tick_after(&inner->wheel->owner.clock.ticks, deadline));
}

enum tw_status tw_alarm_stop(struct tw_alarm *alarm)
{
	struct alarm *inner = alarm_of(alarm);

	if (!inner)
		return TW_INVALID;
	return wheel_is_open(inner->wheel) ? alarm_stop(inner) : TW_CLOSED;
}

/* Waits for the alarm's run, unless this is a task. Not inlined: the other way needs no stack. */
static __attribute__((noinline)) enum tw_status wheel_destroy_running(struct tw_wheel *wheel,
								      struct alarm *alarm)
{
	struct run run = alarm_run(alarm);
	bool waits = !wheel_is_in_task(wheel);

	if (waits)
		handle_table_wait(&wheel->owner.out.handles, &run);
	if (alarm_give_back(&wheel->owner.out.alarms, alarm, NULL))
		wheel_tell_of_alarm(wheel);
	return waits ? TW_OK : TW_RUNNING;
}

enum tw_status tw_alarm_close(struct tw_alarm *alarm, void (*closed)(void *argument))
{
	struct alarm *inner = alarm_of(alarm);
	struct tw_wheel *wheel;
	enum tw_status status;
	bool changed = false;

	if (!inner || (!closed && alarm_is_own(inner)))
		return TW_INVALID;
	wheel = inner->wheel;
	status = wheel_presence(wheel);
	if (status != TW_OK)
		return status;
	status = alarm_close(&wheel->owner.out.alarms, inner, closed, &changed);
	if (changed)
		wheel_tell_of_alarm(wheel);
	return status;
}

enum tw_status tw_alarm_destroy(struct tw_alarm *alarm)
{
	struct alarm *inner = alarm_of(alarm);
	struct tw_wheel *wheel;
	enum tw_status status;
	bool changed = false;

	if (!inner)
		return TW_OK;
	if (alarm_is_own(inner))
		return TW_INVALID;
	wheel = inner->wheel;
	status = wheel_presence(wheel);
	if (status != TW_OK)
		return status;
	status = alarm_destroy(&wheel->owner.out.alarms, inner, &changed);
	if (status == TW_RUNNING)
		return wheel_destroy_running(wheel, inner);
	if (changed)
		wheel_tell_of_alarm(wheel);
	return status;
}
