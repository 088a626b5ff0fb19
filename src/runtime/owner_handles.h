/* SPDX-License-Identifier: MIT */
/* Setting timers by handle and resetting them, and learning of stops and runs. Owner only. */
#ifndef OWNER_HANDLES_H
#define OWNER_HANDLES_H

#include <stdbool.h>
#include <stddef.h>

#include "owner_state.h"

/* A handle's set command; in_task: given by an inline task. */
void owner_set_handle(struct owner *owner, struct handle *handle, bool in_task);
/* A handle's reset command. */
void owner_reset_handle(struct owner *owner, const struct command *command);
/* Sees to the handles that come back to run again, the alarms, and the handles that were stopped;
 * returns how many. Less than `most`: to all; more by a few batches at the most. */
size_t owner_see_handles(struct owner *owner, size_t most);

#endif
