/* SPDX-License-Identifier: MIT */
/*
 * In this harness the owner sleeps over the queue: producers publish and notify as wheel_publish()
 * does, and the owner takes, announces its sleep, looks at the queue's count and sleeps, as
 * owner_sleep() does.
 *
 * The owner gets every command: the exchange of the tail and the announcement can't miss each
 * other. NAPS: the owner naps through up to half a ring of commands; no command ends the nap, but a
 * producer that finds the ring full does, and waits for room. The nap's time comes only when all
 * producers have ended, so that one that is never served is found. TIMER: the owner sleeps on the
 * timer's descriptor.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.c"
#include "base/event_count.c"
#include "runtime/command_queue.c"

#include "proof_queue.h"
#include "proof_sleep.h"

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	for (int i = 0; i < producer_gives(producer); i++) {
		uint64_t position;
		struct command_cell *cell = command_queue_claim(&queue, &position);

		if (!cell) {
			event_count_notify(&event, EVENT_COUNT_NAPPING);
			cell = command_queue_wait(&queue, &position);
		}
		producer_fill(producer, cell);
		command_queue_publish(cell, position);
		event_count_notify(&event, EVENT_COUNT_SLEEPING);
	}
	return NULL;
}

static bool owner_must_stay_awake(void)
{
	size_t tolerated = STATE == EVENT_COUNT_NAPPING ? CAPACITY / 2 : 0;

	return command_queue_count(&queue) > tolerated;
}

static void *owner_run(void *argument)
{
	size_t taken = 0;

	(void)argument;
	while (taken < ALL_GIVEN) {
		size_t count = consumer_take(MOST);

		taken += count;
		if (count > 0)
			continue;
		event_count_prepare(&event, STATE, UNTIL);
		if (owner_must_stay_awake()) {
			event_count_cancel(&event);
			/* This skips turns in which a command is claimed and not yet published. */
			consumer_await();
			continue;
		}
		event_count_wait(&event, UNTIL);
#ifdef NAPS
		/* This skips turns, too: naps end at once from now on. */
		if (proof_is_time(UNTIL))
			consumer_await();
#endif
	}
	return NULL;
}

int main(void)
{
	pthread_t owner;

	event_open();
	queue_open(CAPACITY);
	pthread_create(&owner, NULL, owner_run, NULL);
	producers_start(producer_run);
	producers_join();
#ifdef NAPS
	proof_pass_time(UNTIL);
#endif
	pthread_join(owner, NULL);
	for (int i = 0; i < PRODUCERS; i++)
		assert(producers[i].taken == producer_gives(&producers[i]));
	return 0;
}
