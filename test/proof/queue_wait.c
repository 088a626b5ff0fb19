/* SPDX-License-Identifier: MIT */
/*
 * In this harness producers that find the ring full wait for room, while the consumer takes all
 * commands.
 *
 * None sleeps for ever: either a producer's second look sees the room, or the consumer sees that
 * the producer waits. FIRST: producer 0 claims before the waiting ones, like the thread that they
 * wait for. FULL: the ring is full at the start, so that all wait. NUDGES: a wait may end
 * spuriously.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.c"
#include "runtime/command_queue.c"

#include "proof_queue.h"

static struct command_cell *producer_claim(struct producer *producer, uint64_t *position)
{
#ifdef FIRST
	if (producer->number == 0)
		return command_queue_claim_first(&queue, position);
#else
	(void)producer;
#endif
	return command_queue_claim(&queue, position);
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	for (int i = 0; i < producer_gives(producer); i++) {
		uint64_t position;
		struct command_cell *cell = producer_claim(producer, &position);

		if (!cell)
			cell = command_queue_wait(&queue, &position);
		assert(cell);
		producer_fill(producer, cell);
		command_queue_publish(cell, position);
	}
	return NULL;
}

int main(void)
{
	int taken = 0;

	queue_open(CAPACITY);
#ifdef FULL
	queue_fill();
	taken -= CAPACITY;
#endif
	producers_start(producer_run);
	proof_start_nudger();
	while (taken < ALL_GIVEN) {
		consumer_await();
		taken += (int)consumer_take(MOST);
	}
	producers_join();
	for (int i = 0; i < PRODUCERS; i++)
		assert(producers[i].taken == producer_gives(&producers[i]));
	/* relaxed: all threads have ended. */
	assert(atomic_load_explicit(&queue.waiting, memory_order_relaxed) == 0);
	return 0;
}
