/* SPDX-License-Identifier: MIT */
/* Commands and requests in their order: what each does to the pending timers. Owner only. */
#ifndef APPLY_H
#define APPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "owner_state.h"

/* Applies up to `most` commands and requests; runs nothing. Returns whether there may be more. */
bool owner_apply(struct owner *owner, size_t most);
/* Applies commands and requests, `most` at a time, until the commands before position `end` are
 * applied. It waits where a producer has one of them half written. */
void owner_apply_until(struct owner *owner, size_t most, uint64_t end);
/* Serves a request of the owner's thread, in an inline task after the commands before it. */
void owner_serve_here(struct owner *owner, struct request *request);
/* Answers the idle waits that came before tick `end`, by which all that was due then is done.
 * Returns whether none is left. */
bool owner_answer_idlers(struct owner *owner, uint64_t end);
/* Fixes the first advance's end, if there is one that has not begun. */
void owner_begin_advances(struct owner *owner);
/* Up to which time things are due: an advance's end, or now. */
tw_duration owner_target_time(struct owner *owner);
/* Ends the first advance, if it had begun: all that was due at its end is done. Returns false if
 * there is none. */
bool owner_end_advance(struct owner *owner);

#endif
