/* SPDX-License-Identifier: MIT */
/*
 * An inbox passes links from any thread to one owner. It is a lock-free stack that the owner takes
 * as a whole. It has no limit and allocates nothing.
 *
 * Invariants:
 *   a link is in one inbox at most
 *   a link in the inbox is in the list of `newest`, of `taken` or of `unturned`, in one of them
 *   `unturned` is empty if `taken` is
 *
 * Which calls may run together (x), and which may not (-):
 *
 *                         add   take, take_oldest   is_empty, has_some
 *   add                   x     x                   x
 *   take, take_oldest     x     -                   -
 *   is_empty, has_some    x     -                   -
 *
 * Only the owner may call those of the last two lines.
 * Linearization: add at its exchange; take at its exchange, or at its change of `taken`.
 */
#ifndef INBOX_H
#define INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slab.h"

/* Links that inbox_take_oldest() reverses in a call, at most. */
#ifndef INBOX_STEP
#define INBOX_STEP 256
#endif

struct inbox_link {
	struct inbox_link *next;
};

/* A zeroed inbox is empty. */
struct inbox {
	/* Any thread adds here; the owner takes all. */
	_Alignas(CACHE_LINE) _Atomic(struct inbox_link *) newest;
	/* Only the owner's. */
	_Alignas(CACHE_LINE) struct inbox_link *taken;
	struct inbox_link *unturned; /* the newer ones of `taken`, in the other order */
	uint64_t takes;              /* how often it took all */
};

/* Adds a link. Any thread. */
static inline void inbox_add(struct inbox *inbox, struct inbox_link *link)
{
	/* relaxed: the exchange below decides. */
	link->next = atomic_load_explicit(&inbox->newest, memory_order_relaxed);
	/* seq_cst: publishes the link before the caller looks for a sleeping owner; pairs with
	 * inbox_take() and inbox_has_some(). */
	while (!atomic_compare_exchange_weak_explicit(&inbox->newest, &link->next, link,
						      memory_order_seq_cst, memory_order_relaxed))
		continue;
}

/* Returns 0 if inbox_take() would find no link. Only the owner may call this; before it sleeps it
 * must call inbox_has_some(). */
static inline uintptr_t inbox_contents(const struct inbox *inbox)
{
	/* relaxed: the owner looks for later links before it sleeps. */
	return (uintptr_t)inbox->taken |
	       (uintptr_t)atomic_load_explicit(&inbox->newest, memory_order_relaxed);
}

/* Returns whether inbox_contents() is 0. */
static inline bool inbox_is_empty(const struct inbox *inbox)
{
	return inbox_contents(inbox) == 0;
}

/* Takes a link, the newest of those taken together, or returns NULL if there is none. Only the
 * owner may call this. */
static inline struct inbox_link *inbox_take(struct inbox *inbox)
{
	struct inbox_link *link = inbox->taken;

	if (!link) {
		/* relaxed: the owner looks for later links before it sleeps. */
		if (!atomic_load_explicit(&inbox->newest, memory_order_relaxed))
			return NULL;
		/* acquire: sees what was done before the links were added; pairs with
		 * inbox_add(). */
		link = atomic_exchange_explicit(&inbox->newest, NULL, memory_order_acquire);
		inbox->takes++;
	}
	inbox->taken = link->next;
	return link;
}

/*
 * Takes a link, the oldest of those taken together, or returns NULL if there is none, or if
 * inbox_is_turning() then: they are reversed before the first is taken, INBOX_STEP links a call.
 * Only the owner may call this, and never mixed with inbox_take().
 */
static inline struct inbox_link *inbox_take_oldest(struct inbox *inbox)
{
	struct inbox_link *link;
	unsigned steps = 0;

	if (!inbox->taken) {
		link = inbox_take(inbox);
		/* One alone needs no turn. */
		if (!link || !inbox->taken)
			return link;
		inbox->unturned = inbox->taken;
		inbox->taken = link;
		link->next = NULL;
	}
	for (; inbox->unturned && steps < INBOX_STEP; steps++) {
		link = inbox->unturned;
		inbox->unturned = link->next;
		link->next = inbox->taken;
		inbox->taken = link;
	}
	if (inbox->unturned)
		return NULL;
	link = inbox->taken;
	inbox->taken = link->next;
	return link;
}

/* Returns whether links that were taken together are still being reversed. */
static inline bool inbox_is_turning(const struct inbox *inbox)
{
	return inbox->unturned;
}

/* Returns a mark behind the links that are there now. Only the owner may call this. */
static inline uint64_t inbox_mark(const struct inbox *inbox)
{
	/* relaxed: a link that the caller knows of was added before. */
	bool has_newest = atomic_load_explicit(&inbox->newest, memory_order_relaxed);

	return inbox->takes + has_newest;
}

/* Returns whether all links before the mark were taken. Only the owner may call this. */
static inline bool inbox_is_past(const struct inbox *inbox, uint64_t mark)
{
	return inbox->takes > mark || (inbox->takes == mark && !inbox->taken);
}

/* Returns whether there is a link: the owner's second look before it sleeps. */
static inline bool inbox_has_some(const struct inbox *inbox)
{
	/* seq_cst: follows the owner's announcement; pairs with the exchange in inbox_add(). */
	return inbox->taken || atomic_load_explicit(&inbox->newest, memory_order_seq_cst);
}

#endif
