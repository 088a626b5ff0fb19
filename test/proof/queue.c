/* SPDX-License-Identifier: MIT */
/*
 * Producers give commands; one consumer takes them while they do, and what is left at the end.
 *
 * Each producer's commands come in its order, none is lost, none comes twice, and what a cell says
 * and what it points at has been written before it is read (else GenMC reports a race). A claim is
 * refused only where the ring can be full.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.c"
#include "runtime/command_queue.c"

#include "proof_queue.h"

#ifndef LOOKS
#define LOOKS 2
#endif

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	for (int i = 0; i < producer_gives(producer); i++) {
		uint64_t position;
		struct command_cell *cell = command_queue_claim(&queue, &position);

		if (!cell) {
			assert(ALL_GIVEN > CAPACITY);
			break;
		}
		producer_fill(producer, cell);
		command_queue_publish(cell, position);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[PRODUCERS];

	queue_open(CAPACITY);
	for (int i = 0; i < PRODUCERS; i++) {
		producers[i].number = i;
		pthread_create(&threads[i], NULL, producer_run, &producers[i]);
	}
	for (int look = 0; look < LOOKS; look++)
		(void)consumer_take(CAPACITY);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	(void)consumer_take(CAPACITY);
	for (int i = 0; i < PRODUCERS; i++)
		assert(producers[i].taken == producers[i].given);
	return 0;
}
