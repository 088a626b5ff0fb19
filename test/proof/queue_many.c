/* SPDX-License-Identifier: MIT */
/*
 * In this harness producer 0 claims GROUP cells together, EACH + EXTRA times, if there is room; the
 * others claim one at a time.
 *
 * No command is lost, each producer's commands arrive in order, and a group's cells are adjacent:
 * no cell is claimed twice, and none is left out.
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

static void group_run(struct producer *producer)
{
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
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	if (producer->number == 0) {
		group_run(producer);
		return NULL;
	}
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

/* No position was claimed twice. */
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
	/* There is no gap either. */
	assert((claimed & (claimed + 1)) == 0);
}

int main(void)
{
	queue_open(CAPACITY);
	producers_start(producer_run);
	for (int look = 0; look < LOOKS; look++)
		(void)consumer_take(MOST);
	producers_join();
	(void)consumer_take(CAPACITY);
	consumer_check_all();
	check_positions();
	return 0;
}
