/* SPDX-License-Identifier: MIT */
/*
 * In this harness the queue is closed while producers give commands and wait for room. The consumer
 * takes what it finds at LOOKS looks, then no more until all have ended.
 *
 * No producer sleeps for ever; each command is either there to be taken, or its producer got the
 * refusal.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.c"
#include "runtime/command_queue.c"

#include "proof_queue.h"

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	for (int i = 0; i < producer_gives(producer); i++) {
		uint64_t position;
		struct command_cell *cell = command_queue_claim(&queue, &position);

		if (!cell)
			cell = command_queue_wait(&queue, &position);
		if (!cell)
			break;
		producer_fill(producer, cell);
		command_queue_publish(cell, position);
	}
	return NULL;
}

static void *closer_run(void *argument)
{
	(void)argument;
	command_queue_close(&queue);
	return NULL;
}

int main(void)
{
	pthread_t closer;

	queue_open(CAPACITY);
	producers_start(producer_run);
	pthread_create(&closer, NULL, closer_run, NULL);
	for (int look = 0; look < LOOKS; look++)
		(void)consumer_take(MOST);
	producers_join();
	pthread_join(closer, NULL);
	(void)consumer_take(CAPACITY);
	consumer_check_all();
	/* relaxed: all threads have ended. */
	assert(atomic_load_explicit(&queue.waiting, memory_order_relaxed) == 0);
	return 0;
}
