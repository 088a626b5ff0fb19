/* SPDX-License-Identifier: MIT */
/*
 * Links from any thread to one owner: a stack that the owner takes whole. Unbounded, and without
 * memory of its own; a link is in one inbox at most.
 *
 * Which calls may run together: add with anything; take and has_some are the owner's.
 * Linearization: add at its exchange; take at its own, or at its move of `taken`.
 */
#ifndef INBOX_H
#define INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "slab.h"

struct inbox_link {
	struct inbox_link *next;
};

/* Zeroed: empty. */
struct inbox {
	/* Any thread adds, the owner takes. */
	_Alignas(CACHE_LINE) _Atomic(struct inbox_link *) newest;
	_Alignas(CACHE_LINE) struct inbox_link *taken; /* the owner's */
};

/* Any thread: links that their `next` joins, together; the first of them counts as the newest. */
static inline void inbox_add_chain(struct inbox *inbox, struct inbox_link *first,
				   struct inbox_link *last)
{
	/* relaxed: the exchange below decides. */
	last->next = atomic_load_explicit(&inbox->newest, memory_order_relaxed);
	/* seq_cst: publishes the links, before the look for a sleeping owner; pairs with
	 * inbox_take() and inbox_has_some(). */
	while (!atomic_compare_exchange_weak_explicit(&inbox->newest, &last->next, first,
						      memory_order_seq_cst, memory_order_relaxed))
		continue;
}

/* Any thread. */
static inline void inbox_add(struct inbox *inbox, struct inbox_link *link)
{
	inbox_add_chain(inbox, link, link);
}

/* Owner: whether inbox_take() would find none; what is added later is looked for before sleep. */
static inline bool inbox_is_empty(const struct inbox *inbox)
{
	/* relaxed: as in inbox_take(). */
	return !inbox->taken && !atomic_load_explicit(&inbox->newest, memory_order_relaxed);
}

/* Owner: the last one added first. NULL: there is none. */
static inline struct inbox_link *inbox_take(struct inbox *inbox)
{
	struct inbox_link *link = inbox->taken;

	if (!link) {
		/* relaxed: what is added later is looked for before sleep. */
		if (!atomic_load_explicit(&inbox->newest, memory_order_relaxed))
			return NULL;
		/* acquire: what was done before the links were added; pairs with
		 * inbox_add_chain(). */
		link = atomic_exchange_explicit(&inbox->newest, NULL, memory_order_acquire);
	}
	inbox->taken = link->next;
	return link;
}

/* The same, but the first one added comes first: all that has come is turned round at once. */
static inline struct inbox_link *inbox_take_oldest(struct inbox *inbox)
{
	bool is_turned = inbox->taken;
	struct inbox_link *link = inbox_take(inbox);
	struct inbox_link *oldest = NULL;

	while (link && !is_turned) {
		struct inbox_link *next = link->next;

		link->next = oldest;
		oldest = link;
		link = next;
	}
	if (oldest)
		inbox->taken = oldest->next;
	return is_turned ? link : oldest;
}

/* Owner: the second look before it sleeps. */
static inline bool inbox_has_some(const struct inbox *inbox)
{
	/* seq_cst: after the announcement; pairs with the exchange in inbox_add_chain(). */
	return inbox->taken || atomic_load_explicit(&inbox->newest, memory_order_seq_cst);
}

#endif
