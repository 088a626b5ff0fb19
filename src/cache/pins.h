/* SPDX-License-Identifier: MIT */
/*
 * A pin keeps an entry after the call that found it. A count in the entry is one line of memory for
 * all threads, and the hottest entry's line goes from core to core with each pin and each release.
 * So a thread notes what a lookup of its own has found in hazard pointers (Michael, 2004), which
 * are a line of its own. A thread that frees entries looks at the hazards of all threads when no
 * reader sees the entry any more, and makes counted pins of those that name it, before it gives up
 * the table's reference.
 */
#ifndef CACHE_PINS_H
#define CACHE_PINS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "entry.h"

/* A model checker sets fewer, to go through all orders. */
#ifndef HAZARDS
#define HAZARDS 6
#endif

/* Hazards are one thread's. When it ends, another thread gets them as they are. */
struct hazards {
	/* Set by the thread; set to NULL by it, or by what counts the pin. */
	_Alignas(64) _Atomic(const struct tw_cache_entry *) entries[HAZARDS];
	struct hazards *next; /* constant while there is a cache */
	atomic_bool is_taken; /* a thread has them */
};

extern _Thread_local struct hazards *own_hazards __attribute__((tls_model("initial-exec")));

/* Gives the calling thread its hazards. Returns NULL if out of memory. */
struct hazards *hazards_take(void);
/* Gives up the hazards of the calling thread, which ends. */
void hazards_give_back(void);
/* Frees the hazards of ended threads. No cache may exist, or be made meanwhile. */
void hazards_free(void);

/* Pins an entry that the caller has found in a table, in the era that it is inside of. */
static inline void entry_hold(const struct tw_cache_entry *entry)
{
	struct hazards *own = own_hazards ? own_hazards : hazards_take();

	for (int i = 0; own && i < HAZARDS; i++) {
		/* relaxed: others only make it NULL. */
		if (atomic_load_explicit(&own->entries[i], memory_order_relaxed))
			continue;
		/* release: all of what this replaces has been read; and a look that sees that the
		 * reader has left its era sees this (reader_leave, epochs_gather, hazards_look). */
		atomic_store_explicit(&own->entries[i], entry, memory_order_release);
		return;
	}
	entry_pin(entry);
}

/* `struct hazards_seen` has what threads hold by hazards. */
enum { HAZARDS_SEEN = 64 };

struct hazards_seen {
	const struct tw_cache_entry *entries[HAZARDS_SEEN];
	unsigned count; /* at HAZARDS_SEEN there may be more */
};

/* Collects the hazards of all threads, after a look at the readers: of the entries that no reader
 * saw then, it finds all that a thread has pinned. */
void hazards_look(struct hazards_seen *seen);
/* Makes counted pins of the hazards of an entry that no reader sees, before entry_let_go(). */
void hazards_count(const struct hazards_seen *seen, struct tw_cache_entry *entry);

#endif
