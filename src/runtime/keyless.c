/* SPDX-License-Identifier: MIT */
/* Alarms are taken from the inbox in batches, whose neighbours in the wheel are fetched together:
 * see pending.c. */
#include "base/compiler.h"
#include "owner_state.h"

/* Takes the timer out of the wheel, or out of the list that has it. */
static void owner_unplace(struct owner *owner, struct timer *timer)
{
	if (timer_place(timer) == TIMER_IN_WHEEL)
		pending_remove_without_key(&owner->pending, timer);
	else if (timer_place(timer) == TIMER_IN_JOBS)
		list_remove(&timer->link);
	timer_set_place(timer, TIMER_AWAY);
}

/* Ends an alarm that is idle. `was_pending`: until it was stopped. */
static void owner_end_alarm(struct owner *owner, struct alarm *alarm, bool was_pending)
{
	if (alarm->timer.class == TIMER_ALARM) {
		outbox_close(&owner->out, &alarm->timer);
		return;
	}
	if (was_pending)
		counter_add_ordered(&owner->out.counts.removed, 1);
	handle_free(&owner->out.handles, &owner->out.bin.handles, alarm);
}

/* Does what is to be done with an alarm that is in no list. */
static INLINED void owner_act(struct owner *owner, struct alarm *alarm, enum alarm_action action,
			      bool was_pending)
{
	if (action == ALARM_END) {
		owner_end_alarm(owner, alarm, was_pending);
	} else if (action == ALARM_FILE && !owner->is_stopped) {
		timer_set_place(&alarm->timer, TIMER_IN_WHEEL);
		pending_add_without_key(&owner->pending, &alarm->timer);
	} else if (action == ALARM_FILE && timer_is_handle(&alarm->timer) && alarm_take(alarm)) {
		outbox_retire(&owner->out, &alarm->timer, NULL, owner->out.jobs_end);
	}
}

void owner_settle_alarm(struct owner *owner, struct alarm *alarm)
{
	owner_act(owner, alarm, alarm_look(alarm), true);
}

void owner_begin_alarm(struct owner *owner, struct alarm *alarm)
{
	timer_set_place(&alarm->timer, TIMER_AWAY);
	if (!owner->is_stopped)
		counter_add_ordered(&owner->out.counts.set, 1);
	owner_settle_alarm(owner, alarm);
}

bool owner_claim_alarm(struct owner *owner, struct alarm *alarm)
{
	uint64_t tick = owner->pending.wheel->now;
	bool is_here = owner->out.alarms.is_here;

	if (alarm_claim(alarm, tick_time(&owner->clock.ticks, tick), is_here)) {
		timer_set_place(&alarm->timer, is_here ? TIMER_IN_JOBS : TIMER_AWAY);
		return true;
	}
	timer_set_place(&alarm->timer, TIMER_AWAY);
	owner_settle_alarm(owner, alarm);
	return false;
}

INLINED void owner_take_out_alarm(struct owner *owner, struct alarm *alarm)
{
	owner_unplace(owner, &alarm->timer);
	(void)alarm_let_go(alarm);
}

/* ---- Changes ---- */

/* Returns whether the timer's command has still to come, or a drain to take it. */
static inline bool owner_will_see(const struct owner *owner, const struct timer *timer)
{
	if (timer_place(timer) == TIMER_NEW)
		return true;
	return owner->pending.has_stale && timer_is_handle(timer) &&
	       timer_place(timer) == TIMER_IN_WHEEL && pending_is_stale(&owner->pending, timer);
}

/* Sees to an alarm that was taken from an inbox. */
static void owner_apply_change(struct owner *owner, struct alarm *alarm)
{
	struct timer *timer = &alarm->timer;
	bool was_handed_over = timer_place(timer) == TIMER_IN_JOBS && timer_is_handle(timer);
	enum alarm_action action;
	bool was_filed;

	if (owner_will_see(owner, timer)) {
		alarm_leave(alarm);
		return;
	}
	/* Before other threads may have it. */
	owner_unplace(owner, timer);
	action = alarm_apply_change(alarm, &was_filed);
	if (was_handed_over)
		counter_add(&owner->out.thread.counts[action == ALARM_FILE ? JOB_UNBEGUN_RESET
									   : JOB_UNBEGUN_REMOVED],
			    1);
	owner_act(owner, alarm, action, was_filed && !was_handed_over);
}

/* Returns the alarm of the link, and fetches what a change of it touches. */
static inline struct alarm *alarm_of_change(struct inbox_link *link)
{
	struct alarm *alarm = list_entry(link, struct alarm, change);

	prefetch_to_write(&alarm->timer);
	prefetch_to_write(&alarm->word);
	return alarm;
}

/* Takes a batch from one inbox in the order in which they came, or else one of each of ALARM_LISTS
 * inboxes after the other: a look at one link waits for no other. Returns how many. */
static INLINED size_t owner_take_changes(struct inbox *inboxes, struct alarm **batch, bool in_order)
{
	size_t lists = in_order ? 1 : ALARM_LISTS;
	size_t taken = 0;
	size_t before;

	do {
		before = taken;
		for (size_t i = 0; i < lists && taken < PENDING_BATCH; i++) {
			struct inbox_link *link =
				in_order ? inbox_take_oldest(&inboxes[i]) : inbox_take(&inboxes[i]);

			if (link)
				batch[taken++] = alarm_of_change(link);
		}
	} while (taken > before && taken < PENDING_BATCH);
	return taken;
}

static void owner_apply_batch(struct owner *owner, struct alarm **batch, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (timer_place(&batch[i]->timer) == TIMER_IN_WHEEL)
			wheel_prefetch(&batch[i]->timer);
	for (size_t i = 0; i < count; i++)
		owner_apply_change(owner, batch[i]);
}

/* Does what owner_apply_changes() does, where there are some. */
static __attribute__((noinline)) size_t owner_apply_some_changes(struct owner *owner, size_t most)
{
	struct inbox *inboxes = owner->out.alarms.inboxes;
	struct alarm *batch[PENDING_BATCH];
	size_t applied = 0;
	bool more;

	/* They take turns. Where a batch was not full, there were no more. */
	do {
		size_t stops = 0;
		size_t sets = owner->out.alarms.is_here ? owner_take_changes(inboxes, batch, true)
							: owner_take_changes(inboxes, batch, false);

		owner_apply_batch(owner, batch, sets);
		/* That was work, too. */
		if (inbox_is_turning(inboxes))
			sets = PENDING_BATCH;
		if (!alarm_lists_are_empty(inboxes + ALARM_LISTS))
			stops = owner_take_changes(inboxes + ALARM_LISTS, batch, false);
		owner_apply_batch(owner, batch, stops);
		applied += sets + stops;
		more = sets == PENDING_BATCH || stops == PENDING_BATCH;
	} while (more && applied < most);
	owner->applied += applied;
	owner_publish_pending(owner);
	return applied;
}

INLINED size_t owner_apply_changes(struct owner *owner, size_t most)
{
	if (!alarm_table_is_empty(&owner->out.alarms))
		return owner_apply_some_changes(owner, most);
	owner_publish_pending(owner);
	return 0;
}
