/* SPDX-License-Identifier: MIT */
/*
 * Producer 0 claims GROUP cells together, EACH + EXTRA times, if there is room; the others one.
 *
 * Nothing is lost, each one's commands come in their order, and a group lies side by side: no cell
 * is claimed by two, and none is left out.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.c"
#include "runtime/command_queue.c"

#include "proof_queue.h"

#ifndef GROUP
#define GROUP 2
#endif
#ifndef LOOKS
#define LOOKS 2
#endif

static void *group_run(void *argument)
{
	struct producer *producer = argument;
	uint64_t first;

	for (int i = 0; i < producer_gives(producer); i++) {
		if (!command_queue_claim_many(&queue, GROUP, &first))
			break;
		for (uint64_t k = 0; k < GROUP; k++) {
			struct command_cell *cell = command_queue_cell(&queue, first + k);

			producer_fill(producer, cell);
			command_queue_publish(cell, first + k);
		}
		producer->positions[i] = first;
	}
	return NULL;
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	for (int i = 0; i < EACH; i++) {
		uint64_t position;
		struct command_cell *cell = command_queue_claim(&queue, &position);

		if (!cell)
			break;
		producer_fill(producer, cell);
		command_queue_publish(cell, position);
		producer->positions[i] = position;
	}
	return NULL;
}

/* No position was claimed by two. */
static void check_positions(void)
{
	uint64_t claimed = 0;

	for (int i = 0; i < PRODUCERS; i++) {
		int width = i == 0 ? GROUP : 1;

		for (int k = 0; k < producers[i].given / width; k++) {
			uint64_t set = ((1U << width) - 1) << producers[i].positions[k];

			assert((claimed & set) == 0);
			claimed |= set;
		}
	}
	/* No gap either. */
	assert((claimed & (claimed + 1)) == 0);
}

int main(void)
{
	pthread_t threads[PRODUCERS];

	queue_open(CAPACITY);
	for (int i = 0; i < PRODUCERS; i++) {
		producers[i].number = i;
		pthread_create(&threads[i], NULL, i == 0 ? group_run : producer_run, &producers[i]);
	}
	for (int look = 0; look < LOOKS; look++)
		(void)consumer_take(MOST);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	(void)consumer_take(CAPACITY);
	for (int i = 0; i < PRODUCERS; i++)
		assert(producers[i].taken == producers[i].given);
	check_positions();
	return 0;
}
