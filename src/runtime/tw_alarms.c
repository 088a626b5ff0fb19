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
	alarm_init(&alarm_of(alarm)->alarm, run, argument);
	alarm_of(alarm)->wheel = wheel;
	return TW_OK;
}

static inline enum tw_status alarm_set_to(struct own_alarm *own, tw_duration deadline, bool for_now)
{
	struct tw_wheel *wheel = own->wheel;
	bool changed = false;
	enum tw_status status;

	if (!wheel_is_open(wheel))
		return TW_CLOSED;
	status = alarm_set(&wheel->owner.out.alarms, &own->alarm, 0, deadline, for_now, &changed);
	wheel_note_change(wheel, changed, for_now);
	return status;
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
