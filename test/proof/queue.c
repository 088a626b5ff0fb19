/* SPDX-License-Identifier: MIT */
/*
 * In this harness producers give commands, and one consumer takes them meanwhile and at the end.
 *
 * Each producer's commands arrive once, in its order, and the fields of a cell and the memory that
 * it points at are written before they are read (else GenMC reports a race). A claim is refused
 * only if at least as many cells as the ring has were claimed before. TAKEN: a producer waits until
 * each command of its own is taken, so that there is always room; none is refused.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.c"
#include "runtime/command_queue.c"

#include "proof_queue.h"

#ifdef TAKEN
enum { IS_TAKEN = true };
#else
enum { IS_TAKEN = false };
#endif

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	for (int i = 0; i < producer_gives(producer); i++) {
		uint64_t position;
		struct command_cell *cell = command_queue_claim(&queue, &position);

		if (!cell) {
			assert(!IS_TAKEN && command_queue_tail(&queue) >= CAPACITY);
			break;
		}
		producer_fill(producer, cell);
		command_queue_publish(cell, position);
		while (IS_TAKEN && command_queue_head(&queue) <= position)
			continue;
	}
	return NULL;
}

int main(void)
{
	queue_open(CAPACITY);
	producers_start(producer_run);
	for (int look = 0; look < LOOKS; look++)
		(void)consumer_take(CAPACITY);
	for (int left = ALL_GIVEN; IS_TAKEN && left > 0;) {
		consumer_await();
		left -= (int)consumer_take(CAPACITY);
	}
	producers_join();
	(void)consumer_take(CAPACITY);
	consumer_check_all();
	return 0;
}
