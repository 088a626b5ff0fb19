/* SPDX-License-Identifier: MIT */
/*
 * A walk goes through the pending timers, in steps between which the timers change. walk.c says in
 * which order, and why that meets each timer once. Owner only, except walk_init(), walk_destroy()
 * and walk_grow().
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "handle.h"
#include "pending.h"

/* Copies of some timers, for the caller of the walk. */
struct walk {
	uint64_t position; /* all before it have been met; WALK_END: all */
	uint64_t handles;  /* the table's end when the walk began */
	size_t count;
	size_t used; /* bytes of the keys */
	/* What a step has room for, and where it met too much: what it needs. */
	size_t room;
	size_t bytes;
	size_t room_needed;
	size_t bytes_needed;
	struct tw_pending_timer *timers;
	char *keys;
};

#define WALK_END UINT64_MAX

/* Returns false if there is no memory. */
bool walk_init(struct walk *walk);
void walk_destroy(struct walk *walk);
/* Makes the room that the last step lacked, if any. Returns false if there is no memory. */
bool walk_grow(struct walk *walk);

/* Copies the next timers of the pending set. Takes well under 100 us; with no room for timers whose
 * keys have the same hash, or nearly, it copies none, and says what it needs. */
void walk_step(struct walk *walk, const struct pending *pending, struct handle_table *handles);

#endif
