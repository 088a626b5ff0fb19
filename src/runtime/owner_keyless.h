/* SPDX-License-Identifier: MIT */
/* Handles and alarms among the pending timers: filed, taken out, alarms seen to. Owner only. */
#ifndef OWNER_KEYLESS_H
#define OWNER_KEYLESS_H

#include <stdbool.h>
#include <stddef.h>

#include "owner_state.h"

/* Puts it into the wheel by its deadline; what an inline task wants at once is put off. */
void owner_place(struct owner *owner, struct timer *timer, bool in_task);
/* Takes it out of where it waits. */
void owner_unplace(struct owner *owner, struct timer *timer);
/* Those that were put off until the next turn are due now. */
void owner_begin_next_turn(struct owner *owner);

/* Sees to up to `most` alarms that were set sooner or destroyed; returns how many. */
size_t owner_see_alarms(struct owner *owner, size_t most);
/* Of an alarm that has left the wheel. False: it is not to run, and was filed anew if need be. */
bool owner_claim_alarm(struct owner *owner, struct tw_alarm *alarm);
/* Of an alarm on a retired pending set: it goes to the one in use. */
void owner_retire_alarm(struct owner *owner, struct tw_alarm *alarm);

#endif
