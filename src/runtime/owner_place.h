/* SPDX-License-Identifier: MIT */
/* These functions file handles and alarms in the wheel and take them out. Only the owner may call
 * them. */
#ifndef OWNER_PLACE_H
#define OWNER_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "owner_state.h"

/* Returns the tick at which what is for now is due: any, but where the pool has a limit the present
 * one by the clock, so that it comes after what was due before. */
static inline uint64_t owner_tick_for_now(struct owner *owner)
{
	if (!owner->out.pool_is_limited)
		return 0;
	return tick_before(&owner->clock.ticks, clock_now(&owner->clock));
}

/* Puts the timer into the wheel by its deadline. A timer that an inline task makes due now waits
 * for the next turn. */
void owner_place(struct owner *owner, struct timer *timer, bool in_task);
/* Takes the timer out of the wheel, or out of the list for the next turn. */
void owner_unplace(struct owner *owner, struct timer *timer);
/* Files the timers that wait for the next turn: they are due now. */
void owner_begin_next_turn(struct owner *owner);

/* Handles up to `most` alarms that were set sooner or destroyed. Returns their number. */
size_t owner_see_alarms(struct owner *owner, size_t most);
/* Claims the run of an alarm that has left the wheel. Returns false if it must not run now; then it
 * was filed again if it is still set. */
bool owner_claim_alarm(struct owner *owner, struct alarm *alarm);
/* Moves an alarm from a retired pending set to the one in use. */
void owner_retire_alarm(struct owner *owner, struct alarm *alarm);

#endif
