/* SPDX-License-Identifier: MIT */
/*
 * When a shard's entries are to be looked at for their age: lists of entries by tick, of which the
 * wheel is told the first alone. Under the shard's lock. Knows ticks, no clock.
 */
#ifndef CACHE_EXPIRY_H
#define CACHE_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#include "entry.h"

enum { EXPIRY_DIGIT = 5, EXPIRY_LEVELS = 10, EXPIRY_SLOTS = 1 << EXPIRY_DIGIT };

/* Later than every tick that entries are filed under. */
#define EXPIRY_NEVER UINT64_MAX

struct expiry {
	uint64_t now;                 /* the tick up to which slots have come up */
	uint32_t used[EXPIRY_LEVELS]; /* a bit for each slot that may hold entries */
	struct tw_cache_entry *slots[EXPIRY_LEVELS][EXPIRY_SLOTS];
	struct tw_cache_entry *due; /* came up, not looked at yet */
};

void expiry_init(struct expiry *expiry);
/* The entry is to be looked at at that tick. */
void expiry_file(struct expiry *expiry, struct tw_cache_entry *entry, uint64_t tick);
/* If it is filed. */
void expiry_unfile(struct tw_cache_entry *entry);
/* `entry` is new and takes the place of `old`, which must be filed. */
void expiry_take_place(struct tw_cache_entry *entry, struct tw_cache_entry *old);
/* Fetches what both calls above will touch. */
static inline void expiry_prefetch(const struct tw_cache_entry *entry)
{
	__builtin_prefetch(entry->expiry_next, 1);
	__builtin_prefetch(entry->expiry_place, 1);
}

/* The tick at which something comes up; EXPIRY_NEVER: nothing will. */
uint64_t expiry_next(const struct expiry *expiry);
/* Takes out up to `most` entries that have come up by the tick `now`, early ones too. */
unsigned expiry_take(struct expiry *expiry, uint64_t now, struct tw_cache_entry **entries,
		     unsigned most);

#endif
