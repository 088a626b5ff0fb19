/* SPDX-License-Identifier: MIT */
/*
 * The consumer trims the ring beside producers, at LOOKS looks, and takes what it finds; the ring
 * has been used for a lap before. What it gives back is written to here, as the kernel does.
 *
 * No cell is given back that a producer has (it would be a race), each one's commands come in their
 * order, and none is lost. Nobody is refused who finds room in the rest of the ring. WAITS: the
 * producers wait for room instead, and none sleeps for ever.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.c"
#include "runtime/command_queue.c"

#include "proof_queue.h"

#ifndef TRIM
#define TRIM 1 /* cells a step */
#endif
#ifndef USED
#define USED CAPACITY /* cells, before the producers begin */
#endif

bool pages_release(void *memory, size_t size)
{
	struct command_cell *cell = memory;

	for (size_t i = 0; i < size / sizeof(*cell); i++) {
		cell[i].command.time = 0;
		/* relaxed: the kernel orders nothing. */
		atomic_store_explicit(&cell[i].turn, 0, memory_order_relaxed);
	}
	return true;
}

static struct command_cell *producer_claim(uint64_t *position)
{
	struct command_cell *cell = command_queue_claim(&queue, position);

#ifdef WAITS
	if (!cell)
		cell = command_queue_wait(&queue, position);
	assert(cell);
#else
	assert(cell || ALL_GIVEN > CAPACITY - TRIM);
#endif
	return cell;
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	for (int i = 0; i < producer_gives(producer); i++) {
		uint64_t position;
		struct command_cell *cell = producer_claim(&position);

		if (!cell)
			break;
		producer_fill(producer, cell);
		command_queue_publish(cell, position);
	}
	return NULL;
}

/* As after so many commands. */
static void queue_use(uint64_t count)
{
	/* relaxed: no thread has begun. */
	atomic_store_explicit(&queue.tail, count, memory_order_relaxed);
	atomic_store_explicit(&queue.head, count, memory_order_relaxed);
	atomic_store_explicit(&queue.head_seen, count, memory_order_relaxed);
}

int main(void)
{
	int taken = 0;

	queue_open(CAPACITY);
	queue.trim_cells = TRIM;
	queue_use(USED);
	producers_start(producer_run);
	for (int look = 0; look < LOOKS; look++) {
		(void)command_queue_trim(&queue);
		taken += (int)consumer_take(MOST);
	}
#ifdef WAITS
	while (taken < ALL_GIVEN) {
		consumer_await();
		taken += (int)consumer_take(MOST);
	}
#endif
	producers_join();
	(void)consumer_take(CAPACITY);
	consumer_check_all();
	return 0;
}
