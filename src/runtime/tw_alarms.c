/* SPDX-License-Identifier: MIT */
/* The public calls for alarms: done on the spot, see alarm.c. */
#include "ask.h"
#include "base/thread.h"

enum tw_status tw_alarm_init(struct tw_wheel *wheel, struct tw_alarm *alarm, void (*run)(void *),
			     void *argument)
{
	enum tw_status status = wheel_state(wheel);

	if (status != TW_OK || !alarm || !run)
		return status == TW_OK ? TW_INVALID : status;
	alarm_init(alarm_of(alarm), wheel, run, argument);
	return TW_OK;
}

/* The owner has an alarm to see to. After an inline task it looks by itself. */
static void wheel_tell_of_alarm(struct tw_wheel *wheel)
{
	wheel_notify(wheel, EVENT_COUNT_SLEEPING);
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

enum tw_status tw_alarm_close(struct tw_alarm *alarm, void (*closed)(void *argument))
{
	struct alarm *inner = alarm_of(alarm);
	struct tw_wheel *wheel;
	enum tw_status status;
	bool changed = false;

	if (!inner || !closed)
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

/* Waits until no worker and no list has the alarm. */
static void wheel_await_alarm(struct tw_wheel *wheel, struct alarm *alarm, const struct run *hold)
{
	unsigned tries = 0;

	if (run_is_under_way(hold))
		handle_table_wait(&wheel->owner.out.handles, hold);
	/* A worker may be about to put it into the inbox: then another time. */
	while (alarm_is_known(alarm)) {
		struct request request = {.kind = REQUEST_TAKE_OUT, .alarm = alarm};

		(void)wheel_ask_and_wait(wheel, &request);
		if (alarm_is_known(alarm))
			thread_back_off(&tries);
	}
}

enum tw_status tw_alarm_destroy(struct tw_alarm *alarm)
{
	struct alarm *inner = alarm_of(alarm);
	struct tw_wheel *wheel;
	enum tw_status status;
	struct run hold;

	if (!inner || !inner->wheel)
		return TW_OK;
	wheel = inner->wheel;
	status = wheel_presence(wheel);
	if (status != TW_OK)
		return status;
	hold = alarm_hold(inner, wheel->owner.out.pool);
	status = alarm_destroy(inner, &hold, !wheel_is_in_task(wheel));
	if (status == TW_OK)
		wheel_await_alarm(wheel, inner, &hold);
	return status;
}
