/* SPDX-License-Identifier: MIT */
/* The alarms among the timers: filed by their tick, passed over by drains; see alarm.c. */
#include "owner.h"

void owner_file_alarm(struct owner *owner, struct tw_alarm *alarm, bool in_task)
{
	struct timer *timer = &alarm->timer;

	if (in_task && timer->expiry <= wheel_now(owner->shelf.wheel)) {
		alarm_set_place(alarm, ALARM_IN_NEXT_TURN);
		list_append(&owner->next_timers, &timer->link);
		return;
	}
	alarm_set_place(alarm, ALARM_IN_WHEEL);
	timer->shelf = owner->shelf.number;
	shelf_add_alarm(&owner->shelf, timer);
}

/* The alarm is in no list. */
static void owner_do_with_alarm(struct owner *owner, struct tw_alarm *alarm,
				enum alarm_action action)
{
	if (action == ALARM_FREE)
		alarm_free(&owner->alarms, &owner->bin.alarms, alarm);
	else if (action == ALARM_FILE && !owner->is_stopped)
		owner_file_alarm(owner, alarm, owner->in_dispatch);
}

/* False: it is on a retired shelf, and will be seen to when it is taken from there. */
static bool owner_unfile_alarm(struct owner *owner, struct tw_alarm *alarm)
{
	enum alarm_place place = alarm_place(alarm);

	if (place == ALARM_IN_WHEEL && alarm->timer.shelf != owner->shelf.number)
		return false;
	if (place == ALARM_IN_WHEEL)
		shelf_remove_alarm(&owner->shelf, &alarm->timer);
	else if (place == ALARM_IN_NEXT_TURN)
		list_remove(&alarm->timer.link);
	alarm_set_place(alarm, ALARM_NOWHERE);
	return true;
}

size_t owner_see_alarms(struct owner *owner, size_t most)
{
	struct tw_alarm *alarm;
	size_t seen = 0;

	for (; seen < most && (alarm = alarm_take_changed(&owner->alarms)); seen++) {
		bool is_unfiled = owner_unfile_alarm(owner, alarm);
		enum alarm_action action = alarm_apply_change(alarm);

		if (is_unfiled)
			owner_do_with_alarm(owner, alarm, action);
	}
	return seen;
}

bool owner_claim_alarm(struct owner *owner, struct tw_alarm *alarm)
{
	alarm_set_place(alarm, ALARM_NOWHERE);
	if (alarm_claim(alarm, wheel_now(owner->shelf.wheel))) {
		alarm->timer.deadline = clock_tick_time(&owner->clock, alarm->timer.expiry);
		return true;
	}
	owner_do_with_alarm(owner, alarm, alarm_look(alarm));
	return false;
}

void owner_retire_alarm(struct owner *owner, struct tw_alarm *alarm)
{
	alarm_set_place(alarm, ALARM_NOWHERE);
	owner_do_with_alarm(owner, alarm, alarm_look(alarm));
}
