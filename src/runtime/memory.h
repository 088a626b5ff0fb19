/* SPDX-License-Identifier: MIT */
/* When the owner gives memory back to the system, and how much. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>

#include <timingwheel/timingwheel.h>

#include "owner_state.h"

void owner_init_memory(struct owner *owner);
/* In each turn: looks at the memory now and then, and does a step where some is to go back. */
void owner_tend_memory(struct owner *owner);
/* Whether some is going back: there is a step to do at once. */
bool owner_is_trimming(const struct owner *owner);
/* When a turn is wanted for that, by the wheel's clock; TW_FOREVER: not for that. */
tw_duration owner_memory_time(struct owner *owner);
/* Any thread: fills in what the statistics have of memory. */
void owner_count_memory(struct owner *owner, struct tw_stats *stats);

#endif
