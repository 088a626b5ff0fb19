/* SPDX-License-Identifier: MIT */
/* Tasks, releases and drain functions that run where the wheel is driven. Owner only. */
#ifndef OWNER_INLINE_H
#define OWNER_INLINE_H

#include <stdbool.h>

#include "owner_state.h"

/* True: this turn goes on with what a crowded one has left, and leaves the queue alone. */
bool owner_resume_turn(struct owner *owner);
/* As many rounds are allowed again: another tick begins. */
void owner_begin_rounds(struct owner *owner);
/* Submits the jobs gathered so far to the pool; or runs the inline jobs, and those that they
 * cause. */
void owner_dispatch(struct owner *owner);
/* Inline: does what the tasks of this tick have left behind. */
void owner_settle(struct owner *owner);

#endif
