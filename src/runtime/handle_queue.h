/* SPDX-License-Identifier: MIT */
/*
 * A lock-free queue of handles from any thread to the owner: unbounded, and without memory of its
 * own, for a handle is in one such queue at most.
 */
#ifndef HANDLE_QUEUE_H
#define HANDLE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/slab.h"

struct handle_link {
	_Atomic(struct handle_link *) next;
};

struct handle_queue {
	/* Any thread adds, the owner takes. */
	_Alignas(CACHE_LINE) _Atomic(struct handle_link *) newest;
	_Alignas(CACHE_LINE) struct handle_link *oldest; /* the owner's */
	struct handle_link stub;
};

void handle_queue_init(struct handle_queue *queue);
/* Any thread. */
void handle_queue_add(struct handle_queue *queue, struct handle_link *link);
/* Owner: the oldest; NULL: none, or its adding is not yet finished. */
struct handle_link *handle_queue_take(struct handle_queue *queue);
/* Owner: false only if there is none; the second look before it sleeps. */
bool handle_queue_has_some(struct handle_queue *queue);

#endif
