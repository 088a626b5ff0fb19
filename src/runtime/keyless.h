/* SPDX-License-Identifier: MIT */
/* The owner's part in an alarm's life (alarm.h): it learns what others have changed, and files
 * alarms in the wheel and takes them out. Owner only. */
#ifndef KEYLESS_H
#define KEYLESS_H

#include <stdbool.h>
#include <stddef.h>

#include "alarm.h"
#include "owner_state.h"

/* Files the timers that wait for the next turn: they are due now. Returns false if there are
 * none. */
bool owner_begin_next_turn(struct owner *owner);

/* Returns whether alarms were changed, as mostly they were not: after a task, or before an
 * answer. */
static inline bool owner_has_changes(const struct owner *owner)
{
	return !alarm_table_is_empty(&owner->out.alarms);
}
/* Does what owner_apply_changes() does, where there are some. */
size_t owner_apply_some_changes(struct owner *owner, size_t most);
/* Sees to the alarms that were set, stopped or closed, or whose runs have ended, and returns how
 * many: less than `most`: all; more by a few batches at the most. */
static inline size_t owner_apply_changes(struct owner *owner, size_t most)
{
	if (owner_has_changes(owner))
		return owner_apply_some_changes(owner, most);
	owner_publish_pending(owner);
	return 0;
}

/* Sees to a handle's alarm whose first set was a command. */
void owner_begin_alarm(struct owner *owner, struct alarm *alarm);
/* Sees to an alarm that is in no list, and does not run: it has left the wheel, or is back from a
 * run here. */
void owner_settle_alarm(struct owner *owner, struct alarm *alarm);
/* Claims the run of an alarm that has left the wheel. Returns false if it must not run now; then it
 * was filed again if it is still set. */
bool owner_claim_alarm(struct owner *owner, struct alarm *alarm);
/* Hands over a stale timer, with a key or without, that has left the pending ones: see drains.c. */
void owner_hand_over_stale(struct owner *owner, struct timer *timer);
/* Takes an alarm that is being destroyed out of its list, and lets go of it. Not one
 * that is on its way to the inbox. */
void owner_take_out_alarm(struct owner *owner, struct alarm *alarm);

#endif
