/* SPDX-License-Identifier: MIT */
#include "keyless.h"

void owner_place(struct owner *owner, struct timer *timer, bool in_task)
{
	if (in_task && wheel_is_due(owner->pending.wheel, timer)) {
		timer_set_place(timer, TIMER_IN_NEXT_TURN);
		list_append(&owner->next_timers, &timer->link);
		return;
	}
	timer_set_place(timer, TIMER_IN_WHEEL);
	pending_add_without_key(&owner->pending, timer);
}

void owner_unplace(struct owner *owner, struct timer *timer)
{
	if (timer_place(timer) == TIMER_IN_WHEEL)
		pending_remove_without_key(&owner->pending, timer);
	else if (timer_place(timer) == TIMER_IN_NEXT_TURN)
		list_remove(&timer->link);
}

bool owner_begin_next_turn(struct owner *owner)
{
	struct list *link = list_take_first(&owner->next_timers);
	bool has_some = link;

	for (; link; link = list_take_first(&owner->next_timers))
		owner_place(owner, timer_of_link(link), false);
	return has_some;
}

/* The alarm is in no list. */
static void owner_do_with_alarm(struct owner *owner, struct alarm *alarm, enum alarm_action action)
{
	if (action == ALARM_CLOSE)
		outbox_close(&owner->out, &alarm->timer);
	if (action != ALARM_FILE || owner->is_stopped)
		return;
	/* It gets its deadline when its run is claimed. */
	alarm->timer.deadline = 0;
	alarm->timer.by_tick = true;
	owner_place(owner, &alarm->timer, owner->in.in_dispatch);
}

size_t owner_see_alarms(struct owner *owner, size_t most)
{
	struct alarm *alarm;
	size_t seen = 0;

	for (; seen < most && (alarm = alarm_take_changed(&owner->out.alarms)); seen++) {
		owner_unplace(owner, &alarm->timer);
		timer_set_place(&alarm->timer, TIMER_AWAY);
		owner_do_with_alarm(owner, alarm, alarm_apply_change(alarm));
	}
	return seen;
}

bool owner_claim_alarm(struct owner *owner, struct alarm *alarm)
{
	if (alarm_claim(alarm)) {
		alarm->timer.deadline = tick_time(&owner->clock.ticks, alarm->timer.tick);
		return true;
	}
	owner_retire_alarm(owner, alarm);
	return false;
}

void owner_take_out_alarm(struct owner *owner, struct alarm *alarm)
{
	/* An inline job is in a list, too. */
	if (alarm_is_away(alarm))
		list_remove(&alarm->timer.link);
	else
		owner_unplace(owner, &alarm->timer);
	timer_set_place(&alarm->timer, TIMER_AWAY);
	(void)alarm_let_go(alarm);
}

void owner_retire_alarm(struct owner *owner, struct alarm *alarm)
{
	owner_do_with_alarm(owner, alarm, alarm_look(alarm));
}
