/* SPDX-License-Identifier: MIT */
/*
 * A walk goes through the pending timers, in steps between which the timers change. walk.c says in
 * which order, and why that meets each timer once.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "handle.h"
#include "pending.h"

/* Copies of some timers, for the caller of the walk. It is zeroed before the first step. */
struct walk {
	uint64_t position; /* all before it have been met; WALK_END: all */
	uint64_t handles;  /* the table's end when the walk began */
	size_t count;
	size_t used; /* bytes of the keys */
	/* What a step has room for: timers, and bytes of their keys. */
	size_t room;
	size_t bytes;
	struct tw_pending_timer *timers;
	char *keys;
};

#define WALK_END UINT64_MAX

/* Owner: copies the next timers of the pending set. Takes well under 100 us. Returns false if there
 * is no memory. */
bool walk_step(struct walk *walk, const struct pending *pending, struct handle_table *handles);
/* Any thread: frees the memory of the steps. */
void walk_destroy(struct walk *walk);

#endif
