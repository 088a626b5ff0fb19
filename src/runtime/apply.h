/* SPDX-License-Identifier: MIT */
/* Commands in their order: what each does to the pending timers. Owner only. */
#ifndef APPLY_H
#define APPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "owner_state.h"

/* Applies up to `most` commands; runs nothing. Returns whether there may be more. */
bool owner_apply(struct owner *owner, size_t most);
/* Applies commands, `most` at a time, until the commands before position `end` are
 * applied. It waits where a producer has one of them half written. */
void owner_apply_until(struct owner *owner, size_t most, uint64_t end);
/* Answers a question of the owner's thread after the commands before it. */
void owner_answer_here(struct owner *owner, struct question *question);
/* Ends the round of waits for idleness if it began before tick `end`: all that was due by then is
 * done. Returns whether none is under way. */
bool owner_end_idle(struct owner *owner, uint64_t end);
/* Fixes the first advance's end, if there is one that has not begun. */
void owner_begin_advances(struct owner *owner);
/* Up to which time things are due: an advance's end, or now. */
tw_duration owner_target_time(struct owner *owner);
/* Ends the first advance, if it had begun: all that was due at its end is done. Returns false if
 * there is none. */
bool owner_end_advance(struct owner *owner);

#endif
