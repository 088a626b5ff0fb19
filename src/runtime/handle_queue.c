/* SPDX-License-Identifier: MIT */
/*
 * Vyukov's intrusive queue of many producers and one consumer, with a stub
 * (https://www.1024cores.net/home/lock-free-algorithms/queues/intrusive-mpsc-node-based-queue):
 * a producer exchanges the newest, and then links the one before to its own. Between the two the
 * consumer sees the queue end there, and must come again.
 *
 * The consumer keeps one of the links behind, so that there is always a newest; when that is the
 * last one, the stub is added to take its place.
 *
 * Which calls may run together: add with anything; take and has_some are the owner's.
 * Linearization: add at its exchange; take at its move of `oldest`.
 */
#include "handle_queue.h"

void handle_queue_init(struct handle_queue *queue)
{
	atomic_init(&queue->stub.next, NULL);
	atomic_init(&queue->newest, &queue->stub);
	queue->oldest = &queue->stub;
}

void handle_queue_add(struct handle_queue *queue, struct handle_link *link)
{
	struct handle_link *before;

	/* relaxed: published by the exchange. */
	atomic_store_explicit(&link->next, NULL, memory_order_relaxed);
	/* seq_cst: before the look for a sleeping owner; publishes the link; pairs with
	 * handle_queue_has_some(). */
	before = atomic_exchange_explicit(&queue->newest, link, memory_order_seq_cst);
	/* release: pairs with the acquire in handle_queue_next(). */
	atomic_store_explicit(&before->next, link, memory_order_release);
}

bool handle_queue_has_some(struct handle_queue *queue)
{
	/* seq_cst: the second look of an owner that goes to sleep; pairs with the exchange in
	 * handle_queue_add(). */
	return atomic_load_explicit(&queue->newest, memory_order_seq_cst) != &queue->stub ||
	       queue->oldest != &queue->stub;
}

/* acquire: sees what was written before the add; pairs with the release in handle_queue_add(). */
static struct handle_link *handle_queue_next(struct handle_link *link)
{
	return atomic_load_explicit(&link->next, memory_order_acquire);
}

struct handle_link *handle_queue_take(struct handle_queue *queue)
{
	struct handle_link *oldest = queue->oldest;
	struct handle_link *next = handle_queue_next(oldest);

	if (oldest == &queue->stub) {
		if (!next)
			return NULL;
		queue->oldest = oldest = next;
		next = handle_queue_next(oldest);
	}
	if (!next) {
		/* The last one, unless somebody is about to link another behind it. */
		/* relaxed: only a look; the link is waited for. */
		if (atomic_load_explicit(&queue->newest, memory_order_relaxed) == oldest)
			handle_queue_add(queue, &queue->stub);
		next = handle_queue_next(oldest);
		if (!next)
			return NULL;
	}
	queue->oldest = next;
	return oldest;
}
