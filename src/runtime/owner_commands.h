/* SPDX-License-Identifier: MIT */
/* What each command does to the pending timers. Owner only. */
#ifndef OWNER_COMMANDS_H
#define OWNER_COMMANDS_H

#include <stddef.h>

#include "owner_state.h"

/* Applies the queue's first `count` commands, SHELF_BATCH at most, and pops them. */
void owner_apply_commands(struct owner *owner, size_t count);
/* The pending timer that this one, a keyed one or a handle, would replace, or NULL. */
struct keyed_timer *owner_find_old(struct owner *owner, struct timer *timer);
/* Arms a timer that has its place, or replaces the old one. */
void owner_set_placed(struct owner *owner, struct timer *timer, struct keyed_timer *old);

#endif
