/* SPDX-License-Identifier: MIT */
/*
 * With TW_DRIVE_LOOP one thread makes all calls, and is the owner in each of them: what a call
 * changes is applied before the call returns. The program's functions run in owner_poll_alone()
 * only, which is given to that thread by the public calls that run them.
 */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stddef.h>

#include "owner_state.h"

void owner_apply_alone(struct owner *owner, struct command *command);
/* Sees to what has been added to the inboxes. */
void owner_see_alone(struct owner *owner);
/* Answers a request. */
void owner_serve_alone(struct owner *owner, struct request *request);
/*
 * Runs up to `most` jobs: those that calls since the last poll have caused, and the timers that are
 * due now, in the order of their deadlines. What the jobs cause, and what they make due, is for the
 * next poll.
 */
void owner_poll_alone(struct owner *owner, size_t most);
/* Ends the poll, also one that a job has left by an exception. */
void owner_end_poll_alone(struct owner *owner);
/* Returns whether there are jobs for the next poll, or timers that are known to be due. */
bool owner_is_busy_alone(struct owner *owner);

#endif
