/* SPDX-License-Identifier: MIT */
/*
 * In this harness there are requests among commands: producer 0 gives a command, adds a request,
 * gives another command, and waits for the answer. The owner applies and serves in the order that
 * owner_apply() does.
 *
 * The request is served between the two commands, and sees what its maker wrote; the maker sees the
 * answer. SLEEP: the owner sleeps over the queue and the requests, as owner_sleep() does, and gets
 * them all. LAST: the maker gives no command after the request. POLLS: the maker looks for the
 * answer without the lock. Other producers give one command each.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.c"
#include "base/thread.c"
#include "base/event_count.c"
#include "runtime/command_queue.c"
#include "runtime/request.c"

#define EACH 1
#ifdef LAST
#define EXTRA 0
#else
#define EXTRA 1
#endif
#define CAPACITY 4
#include "proof_queue.h"
#include "proof_sleep.h"

enum { QUESTION = 7, ANSWER = 8 };

static struct requests requests;

static void producer_give(struct producer *producer)
{
	uint64_t position;
	struct command_cell *cell = command_queue_claim(&queue, &position);

	assert(cell);
	producer_fill(producer, cell);
	command_queue_publish(cell, position);
#ifdef SLEEP
	event_count_notify(&event, EVENT_COUNT_SLEEPING);
#endif
}

static void asker_run(struct producer *producer)
{
	static struct request request;

	producer_give(producer);
	request.kind = REQUEST_CONTAINS;
	request.deadline = QUESTION;
	requests_add(&requests, &request, &queue.tail);
#ifdef SLEEP
	event_count_notify(&event, EVENT_COUNT_NAPPING);
#endif
#ifndef LAST
	producer_give(producer);
#endif
#ifdef POLLS
	while (!request_is_answered(&request))
		continue;
#else
	assert(requests_wait(&requests, &request) == TW_OK);
#endif
	assert(request.deadline == ANSWER);
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	if (producer->number == 0)
		asker_run(producer);
	else
		producer_give(producer);
	return NULL;
}

static void owner_serve(struct request *request)
{
	assert(producers[0].taken == 1);
	assert(request->kind == REQUEST_CONTAINS && request->deadline == QUESTION);
	request->deadline = ANSWER;
	requests_answer(&requests, request, TW_OK);
}

/* Does one step of owner_apply(). Returns whether there was something to do. */
static bool owner_step(int *served)
{
	size_t count = command_queue_peek(&queue, MOST);
	uint64_t head = command_queue_head(&queue);
	uint64_t position = requests_first_position(&requests);

	if (position <= head) {
		owner_serve(requests_take(&requests));
		++*served;
		return true;
	}
	if (position - head < count)
		count = (size_t)(position - head);
	return count > 0 && consumer_take(count) > 0;
}

/* Waits until there is something to do. */
static void owner_await(void)
{
	uint64_t head = command_queue_head(&queue);

	/* relaxed: owner_step() looks itself. */
	while (atomic_load_explicit(&command_queue_cell(&queue, head)->turn,
				    memory_order_relaxed) != head + 1 &&
	       atomic_load_explicit(&requests.first_position, memory_order_relaxed) > head)
		continue;
}

static void owner_sleep(void)
{
#ifdef SLEEP
	event_count_prepare(&event, EVENT_COUNT_SLEEPING, TW_FOREVER);
	if (requests_first_position(&requests) == REQUESTS_NONE &&
	    command_queue_count(&queue) == 0) {
		event_count_wait(&event, TW_FOREVER);
		return;
	}
	event_count_cancel(&event);
#endif
	owner_await();
}

int main(void)
{
	int served = 0;

	event_open();
	queue_open(CAPACITY);
	requests_init(&requests);
	producers_start(producer_run);
	for (int taken = 0; taken < ALL_GIVEN || served == 0;) {
		if (!owner_step(&served))
			owner_sleep();
		taken = 0;
		for (int i = 0; i < PRODUCERS; i++)
			taken += producers[i].taken;
	}
	producers_join();
	assert(served == 1);
	return 0;
}
