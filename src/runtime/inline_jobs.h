/* SPDX-License-Identifier: MIT */
/* Tasks, releases and drain functions that run where the wheel is driven. Owner only. */
#ifndef INLINE_JOBS_H
#define INLINE_JOBS_H

#include <stdbool.h>

#include "owner_state.h"

/* Returns whether this turn goes on with what a crowded one left, and leaves the queue alone. */
bool owner_resume_turn(struct owner *owner);
/* Another tick or turn begins: allows as many rounds again. */
void owner_begin_rounds(struct owner *owner);
/* Submits the jobs gathered so far to the pool; or runs the inline jobs, and those that they
 * cause. */
void owner_dispatch(struct owner *owner);
/* Does what owner_settle() does where there is something to do. */
void owner_settle_jobs(struct owner *owner);
/* Inline: does what the tasks of this tick have left behind. Returns false if that is nothing. */
static inline bool owner_settle(struct owner *owner)
{
	if (owner->out.pool || (!pending_has_stale(&owner->pending) && !owner_has_jobs(owner)))
		return false;
	owner_settle_jobs(owner);
	return true;
}

#endif
