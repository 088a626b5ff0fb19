/* SPDX-License-Identifier: MIT */
/* Setting timers by handle, and learning of resets, stops and runs. Owner only. */
#ifndef HANDLE_CHANGES_H
#define HANDLE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>

#include "owner_state.h"

/* A handle's set command; in_task: given by an inline task. */
void owner_set_handle(struct owner *owner, struct handle *handle, bool in_task);
/* Claims the run of a handle that has left the wheel. Returns false if it was reset: then it is
 * filed again. */
bool owner_claim_handle(struct owner *owner, struct handle *handle);
/* Returns whether handles or alarms were changed, as mostly they were not: after a task, or before
 * an answer. */
static inline bool owner_has_changes(const struct owner *owner)
{
	return !inbox_is_empty(&owner->out.handles.changed) ||
	       !inbox_is_empty(&owner->out.alarms.changed) ||
	       !handle_none_is_stopped(&owner->out.handles);
}
/* Does what owner_see_handles() does, where there are changes. */
size_t owner_see_some_handles(struct owner *owner, size_t most);
/* Sees to the handles that were reset or have come back, the alarms, and the handles that were
 * stopped; returns how many. Less than `most`: to all; more by a few batches at the most. */
static inline size_t owner_see_handles(struct owner *owner, size_t most)
{
	if (owner_has_changes(owner))
		return owner_see_some_handles(owner, most);
	owner_publish_pending(owner);
	return 0;
}

#endif
