/* SPDX-License-Identifier: MIT */
/* The owner's loop: its turns, its sleep, its thread. */
#ifndef OWNER_H
#define OWNER_H

#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/timingwheel.h>

#include "owner_state.h"

/* Returns TW_OK, TW_NO_MEMORY, or TW_SYSTEM with errno set. Starts no owner thread yet. */
enum tw_status owner_init(struct owner *owner, tw_duration interval, size_t slots,
			  tw_execute_fn *execute, const struct tw_options *options);
/* Everything must have been handed over. */
void owner_destroy(struct owner *owner);
/* Starts the owner's thread; 0 or an errno value. */
int owner_start(struct owner *owner, const char *name);
/* Ends and joins it. From then on its callers drive the wheel. */
void owner_end(struct owner *owner);

/* Owner only, from here on. */

/*
 * Does one turn of the loop: a bounded number of commands, of due timers and of stale ones.
 * Returns whether there is more to do at once.
 */
bool owner_turn(struct owner *owner);
/*
 * Applies commands, and answers `question`, which may be NULL, but runs no task: timers that are
 * due stay for the next turn. Where callers drive. Returns whether there is more to apply.
 */
bool owner_apply_turn(struct owner *owner, struct question *question);
/* Whether timers are due or stale, or jobs begun, that the last turn had to leave. */
bool owner_is_busy(struct owner *owner);
/* Whether inline tasks wait for the next turn. */
bool owner_has_next_jobs(struct owner *owner);
/* The time of the next turn that is known of; TW_FOREVER: none. */
tw_duration owner_next_time(struct owner *owner);
/*
 * Returns a descriptor for a caller that drives the wheel and sleeps in poll() or epoll, or -1 and
 * sets errno. Before it sleeps, the caller calls owner_begin_sleep() with whether there is more to
 * do at once; when it is back, event_count_cancel().
 */
int owner_descriptor(struct owner *owner);
void owner_begin_sleep(struct owner *owner, bool more);

#endif
