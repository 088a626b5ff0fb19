/* SPDX-License-Identifier: MIT */
/*
 * In this harness producers give commands to one consumer. Each producer's commands arrive once, in
 * its order, and the fields of a cell and the memory that it points at are written before they are
 * read (else GenMC reports a race). SHOWS says what a producer does that finds the ring full:
 *
 * ORDER: it ends. A claim is refused only if at least as many cells as the ring has were claimed
 * before; the consumer takes at LOOKS looks, and at the end. TAKEN: a producer waits until each
 * command of its own is taken, so that none is refused.
 *
 * ROOM: it waits for room, while the consumer takes all commands. None sleeps for ever: either a
 * producer's second look sees the room, or the consumer sees that the producer waits. FIRST:
 * producer 0 claims before the waiting ones, like the thread that they wait for. FULL: the ring is
 * full at the start, so that all wait. NUDGES: a wait may end spuriously.
 *
 * CLOSE: it waits for room, and the queue is closed meanwhile. The consumer takes at LOOKS looks,
 * then no more until all have ended: each command is either there to be taken, or its producer got
 * the refusal.
 *
 * SLEEP: it wakes the owner, and waits for room. Producers publish and notify as wheel_publish()
 * does, and the owner takes, announces its sleep, looks at the queue's count and sleeps, as
 * owner_sleep() does. The owner gets every command: the exchange of the tail and the announcement
 * can't miss each other. NAPS: the owner naps through up to half a ring of commands; no command
 * ends the nap, but a producer that finds the ring full does. The nap's time comes only when all
 * producers have ended, so that one that is never served is found. TIMER: the owner sleeps on the
 * timer's descriptor.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.c"
#include "base/event_count.c"
#include "runtime/command_queue.c"

#ifndef SHOWS
#define SHOWS ORDER
#endif
#ifndef FIRST
#define FIRST 0
#endif
#ifndef FULL
#define FULL 0
#endif
#ifndef TAKEN
#define TAKEN 0
#endif
#include "proof_queue.h"
#include "proof_sleep.h"

enum shows { ORDER, ROOM, CLOSE, SLEEP };

/* Claims a cell as SHOWS says. Returns NULL where the producer is to end. */
static struct command_cell *producer_claim(const struct producer *producer, uint64_t *position)
{
	struct command_cell *cell = FIRST && producer->number == 0
					    ? command_queue_claim_first(&queue, position)
					    : command_queue_claim(&queue, position);

	if (cell || SHOWS == ORDER)
		return cell;
	if (SHOWS == SLEEP)
		event_count_notify(&event, EVENT_COUNT_NAPPING);
	return command_queue_wait(&queue, position);
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	for (int i = 0; i < producer_gives(producer); i++) {
		uint64_t position;
		struct command_cell *cell = producer_claim(producer, &position);

		if (!cell) {
			assert(SHOWS == CLOSE || (SHOWS == ORDER && !TAKEN &&
						  command_queue_tail(&queue) >= CAPACITY));
			break;
		}
		producer_fill(producer, cell);
		command_queue_publish(cell, position);
		if (SHOWS == SLEEP)
			event_count_notify(&event, EVENT_COUNT_SLEEPING);
		while (TAKEN && command_queue_head(&queue) <= position)
			continue;
	}
	return NULL;
}

static void *closer_run(void *argument)
{
	command_queue_close(&queue);
	return argument;
}

static bool owner_must_stay_awake(void)
{
	size_t tolerated = STATE == EVENT_COUNT_NAPPING ? CAPACITY / 2 : 0;

	return command_queue_count(&queue) > tolerated;
}

static void *owner_run(void *argument)
{
	size_t taken = 0;

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
	return argument;
}

static void consumer_take_all(void)
{
	for (int left = ALL_GIVEN + (FULL ? CAPACITY : 0); left > 0;) {
		consumer_await();
		left -= (int)consumer_take(MOST);
	}
}

int main(void)
{
	pthread_t other;

	queue_open(CAPACITY);
	if (FULL)
		queue_fill();
	if (SHOWS == SLEEP)
		event_open();
	if (SHOWS == SLEEP || SHOWS == CLOSE)
		pthread_create(&other, NULL, SHOWS == SLEEP ? owner_run : closer_run, NULL);
	producers_start(producer_run);
	proof_start_nudger();
	for (int look = 0; look < LOOKS && (SHOWS == ORDER || SHOWS == CLOSE); look++)
		(void)consumer_take(MOST);
	if (SHOWS == ROOM || TAKEN)
		consumer_take_all();
	producers_join();
#ifdef NAPS
	proof_pass_time(UNTIL);
#endif
	if (SHOWS == SLEEP || SHOWS == CLOSE)
		pthread_join(other, NULL);
	(void)consumer_take(CAPACITY);
	consumer_check_all();
	/* relaxed: all threads have ended. */
	assert(atomic_load_explicit(&queue.waiting, memory_order_relaxed) == 0);
	return 0;
}
