/* SPDX-License-Identifier: MIT */
/* Drains and stops: all that is pending becomes stale at once, and is handed over bit by bit. Owner
 * only. */
#ifndef DRAINS_H
#define DRAINS_H

#include <stdbool.h>

#include "owner_state.h"

/* Returns whether a drain or a stop may begin: not while as many as there are epochs are being
 * handed over. */
bool owner_may_drain(const struct owner *owner);
/* Begins a drain. After a stop it has nothing to drain, and ends. */
void owner_drain(struct owner *owner, struct drain *drain);
/* Begins the last epoch. */
void owner_stop(struct owner *owner);
/* Hands over some of the stale timers, which there must be or have been. */
void owner_sweep(struct owner *owner);
/* Hands over a timer that has expired if it is stale; returns whether it is. */
bool owner_hand_over_if_stale(struct owner *owner, struct timer *timer);

#endif
