/* SPDX-License-Identifier: MIT */
/* The alarms among the timers: filed by their tick, passed over by drains; see alarm.c. */
#include "owner.h"

/* The alarm is in no list. */
static void owner_do_with_alarm(struct owner *owner, struct tw_alarm *alarm,
				enum alarm_action action)
{
	if (action == ALARM_FREE)
		alarm_free(&owner->alarms, &owner->bin.alarms, alarm);
	else if (action == ALARM_FILE && !owner->is_stopped)
		owner_place(owner, &alarm->timer, owner->in_dispatch);
}

/* False: it is on a retired shelf, and will be seen to when it is taken from there. */
static bool owner_unplace_alarm(struct owner *owner, struct timer *timer)
{
	if (timer_place(timer) == TIMER_IN_WHEEL && timer->shelf != owner->shelf.number)
		return false;
	owner_unplace(owner, timer);
	timer_set_place(timer, TIMER_AWAY);
	return true;
}

size_t owner_see_alarms(struct owner *owner, size_t most)
{
	struct tw_alarm *alarm;
	size_t seen = 0;

	for (; seen < most && (alarm = alarm_take_changed(&owner->alarms)); seen++) {
		bool is_in_no_list = owner_unplace_alarm(owner, &alarm->timer);
		enum alarm_action action = alarm_apply_change(alarm);

		if (is_in_no_list)
			owner_do_with_alarm(owner, alarm, action);
	}
	return seen;
}

bool owner_claim_alarm(struct owner *owner, struct tw_alarm *alarm)
{
	if (alarm_claim(alarm, wheel_now(owner->shelf.wheel))) {
		alarm->timer.deadline = clock_tick_time(&owner->clock, alarm->timer.expiry);
		return true;
	}
	owner_retire_alarm(owner, alarm);
	return false;
}

void owner_retire_alarm(struct owner *owner, struct tw_alarm *alarm)
{
	owner_do_with_alarm(owner, alarm, alarm_look(alarm));
}
