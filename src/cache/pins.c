/* SPDX-License-Identifier: MIT */
/*
 * A release by the thread that pinned takes the entry out of its own hazards. A release by another
 * thread, or of a pin that is counted by now, takes one from the count. So the count of an entry
 * that is linked may be less than that of its pins, and less than 0: the table's reference
 * outweighs all pins (ENTRY_OF_TABLE). When the hazards have been counted the count is exact, and
 * no new hazard comes, because no lookup finds the entry any more.
 *
 * The hazards of all threads, also of ended ones, are in one list, which only grows while there is
 * a cache. A thread that begins takes those of one that has ended, with what is left in them.
 * Without a cache all of them are empty: the cache has counted what was left.
 *
 * Invariants:
 *   a hazard that is not NULL names an entry whose table's reference is there
 *   an entry's pins are its count beside the table's reference, and the hazards that name it
 *
 * All calls may run together, with at most one caller of hazards_count() for an entry.
 */
#include "pins.h"

#include <stdlib.h>
#include <string.h>

_Thread_local struct hazards *own_hazards __attribute__((tls_model("initial-exec")));

static _Atomic(struct hazards *) all_hazards;

static bool hazards_try_take(struct hazards *hazards)
{
	/* relaxed: most are taken. acquire: after what the thread that ended has done with them;
	 * pairs with hazards_give_back(). */
	return !atomic_load_explicit(&hazards->is_taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&hazards->is_taken, true, memory_order_acquire);
}

struct hazards *hazards_take(void)
{
	/* acquire: pairs with the exchange below, as all loads of it. */
	struct hazards *first = atomic_load_explicit(&all_hazards, memory_order_acquire);
	struct hazards *hazards = first;

	while (hazards && !hazards_try_take(hazards))
		hazards = hazards->next;
	if (!hazards) {
		hazards = aligned_alloc(_Alignof(struct hazards), sizeof(*hazards));
		if (!hazards)
			return NULL;
		memset(hazards, 0, sizeof(*hazards));
		atomic_init(&hazards->is_taken, true);
		do
			hazards->next = first;
		/* release: they are whole; pairs with hazards_look(). acquire: so are those that
		 * are there. */
		while (!atomic_compare_exchange_weak_explicit(
			&all_hazards, &first, hazards, memory_order_release, memory_order_acquire));
	}
	own_hazards = hazards;
	return hazards;
}

void hazards_give_back(void)
{
	/* release: pairs with hazards_try_take(). */
	if (own_hazards)
		atomic_store_explicit(&own_hazards->is_taken, false, memory_order_release);
	own_hazards = NULL;
}

void hazards_free(void)
{
	/* acquire, release: as everywhere; the caller's lock keeps all others away. */
	struct hazards *hazards = atomic_load_explicit(&all_hazards, memory_order_acquire);
	struct hazards *kept = NULL;

	while (hazards) {
		struct hazards *next = hazards->next;

		/* acquire: after the thread's last look at it; pairs with hazards_give_back(). */
		if (atomic_load_explicit(&hazards->is_taken, memory_order_acquire)) {
			hazards->next = kept;
			kept = hazards;
		} else {
			free(hazards);
		}
		hazards = next;
	}
	atomic_store_explicit(&all_hazards, kept, memory_order_release);
}

/* Takes the entry out of this thread's hazards. Returns false if it is in none of them. */
static bool hazards_release(const struct tw_cache_entry *entry)
{
	struct hazards *own = own_hazards;

	for (int i = 0; own && i < HAZARDS; i++) {
		const struct tw_cache_entry *expected = entry;

		/* relaxed: only this thread puts the entry there. */
		if (atomic_load_explicit(&own->entries[i], memory_order_relaxed) != entry)
			continue;
		/* release: all of it has been read; pairs with hazards_look(). relaxed: it has just
		 * been counted; the count then orders the two. */
		if (atomic_compare_exchange_strong_explicit(&own->entries[i], &expected, NULL,
							    memory_order_release,
							    memory_order_relaxed))
			return true;
	}
	return false;
}

const struct tw_cache_entry *tw_cache_entry_pin(const struct tw_cache_entry *entry)
{
	entry_pin(entry);
	return entry;
}

void tw_cache_entry_release(const struct tw_cache_entry *entry)
{
	if (entry && !hazards_release(entry))
		entry_unpin((struct tw_cache_entry *)entry);
}

void hazards_look(struct hazards_seen *seen)
{
	/* acquire: pairs with hazards_take(). */
	struct hazards *hazards = atomic_load_explicit(&all_hazards, memory_order_acquire);

	seen->count = 0;
	for (; hazards; hazards = hazards->next)
		for (int i = 0; i < HAZARDS && seen->count < HAZARDS_SEEN; i++) {
			/* acquire: if the hazard has changed, its thread has read all of what it
			 * named; pairs with entry_hold() and hazards_release(). */
			const struct tw_cache_entry *entry =
				atomic_load_explicit(&hazards->entries[i], memory_order_acquire);

			if (entry)
				seen->entries[seen->count++] = entry;
		}
}

static bool hazards_may_have(const struct hazards_seen *seen, const struct tw_cache_entry *entry)
{
	for (unsigned i = 0; i < seen->count; i++)
		if (seen->entries[i] == entry)
			return true;
	return seen->count == HAZARDS_SEEN;
}

void hazards_count(const struct hazards_seen *seen, struct tw_cache_entry *entry)
{
	struct hazards *hazards;

	if (!hazards_may_have(seen, entry))
		return;
	/* acquire: pairs with hazards_take(). */
	hazards = atomic_load_explicit(&all_hazards, memory_order_acquire);
	for (; hazards; hazards = hazards->next)
		for (int i = 0; i < HAZARDS; i++) {
			const struct tw_cache_entry *expected = entry;

			/* acquire: as in hazards_look(). */
			if (atomic_load_explicit(&hazards->entries[i], memory_order_acquire) !=
			    entry)
				continue;
			/* This counts first: a release that finds no hazard finds the count. */
			entry_pin(entry);
			/* release: the count is there; pairs with hazards_release(). acquire, also
			 * where it fails: the thread has released it, as in hazards_look(). */
			if (!atomic_compare_exchange_strong_explicit(
				    &hazards->entries[i], &expected, NULL, memory_order_acq_rel,
				    memory_order_acquire))
				entry_unpin(entry);
		}
}
