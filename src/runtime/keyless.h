/* SPDX-License-Identifier: MIT */
/* These functions file handles and alarms in the wheel and take them out. Only the owner may call
 * them. */
#ifndef KEYLESS_H
#define KEYLESS_H

#include <stdbool.h>
#include <stddef.h>

#include "owner_state.h"

/* Puts the timer into the wheel by its deadline. A timer that an inline task makes due now waits
 * for the next turn. */
void owner_place(struct owner *owner, struct timer *timer, bool in_task);
/* Takes the timer out of the wheel, or out of the list for the next turn. */
void owner_unplace(struct owner *owner, struct timer *timer);
/* Files the timers that wait for the next turn: they are due now. Returns false if there are
 * none. */
bool owner_begin_next_turn(struct owner *owner);

/* Handles up to `most` alarms that were set sooner or closed. Returns their number. */
size_t owner_see_alarms(struct owner *owner, size_t most);
/* Claims the run of an alarm that has left the wheel. Returns false if it must not run now; then it
 * was filed again if it is still set. */
bool owner_claim_alarm(struct owner *owner, struct alarm *alarm);
/* Takes an alarm that is being destroyed out of its list, and lets go of it. Not one
 * that is on its way to the inbox. */
void owner_take_out_alarm(struct owner *owner, struct alarm *alarm);
/* Moves an alarm from a retired pending set to the one in use. */
void owner_retire_alarm(struct owner *owner, struct alarm *alarm);

#endif
