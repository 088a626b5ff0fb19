/* SPDX-License-Identifier: MIT */
/* Drains and stops: a whole pending set is taken away at once, and emptied bit by bit. */
#ifndef RETIRE_H
#define RETIRE_H

#include <stdbool.h>

#include "owner_state.h"

/* Any thread: takes all the memory that a drain needs. Returns NULL if there is too little. */
struct drain_request *drain_request_create(const struct pending_plan *plan, tw_execute_fn *each,
					   void *context);

/* Owner only, from here on. */

/* Hands on some timers of the oldest retired pending set, which must exist. Where it has none,
 * gives back some of its memory. */
void owner_retire_some(struct owner *owner);
/* Exchanges the pending set for the request's new one; after a stop, ends the drain. */
void owner_drain(struct owner *owner, struct drain_request *request);
/* Retires the pending set for good. */
void owner_stop(struct owner *owner);

#endif
