/* SPDX-License-Identifier: MIT */
/*
 * Order. A request notes the queue's tail: the commands before that position come first. The owner,
 * when it sees some commands, looks for the first request's position before it applies them, and
 * stops there. A thread that adds a request and then pushes a command can't be overtaken by itself:
 * an owner that sees the command, published later, sees the request's position too.
 *
 * Invariants: `waiting` is in the order of positions, and first_position is that of its first. A
 * request is the owner's from requests_take() to requests_answer(), its maker's before and after. A
 * maker that waits no more leaves it to whoever answers it.
 */
#include "request.h"

#include <stdlib.h>

#include "base/thread.h"

void requests_init(struct requests *requests)
{
	pthread_mutex_init(&requests->lock, NULL);
	condition_init(&requests->answer);
	list_init(&requests->waiting);
	atomic_init(&requests->first_position, REQUESTS_NONE);
}

void requests_destroy(struct requests *requests)
{
	pthread_cond_destroy(&requests->answer);
	pthread_mutex_destroy(&requests->lock);
}

/* Under the lock. */
static void requests_publish_first(struct requests *requests)
{
	uint64_t position = REQUESTS_NONE;

	if (!list_is_empty(&requests->waiting))
		position = list_entry(requests->waiting.next, struct request, link)->position;
	/* seq_cst: published before the look for a sleeping owner; pairs with the load in
	 * requests_first_position(). */
	atomic_store_explicit(&requests->first_position, position, memory_order_seq_cst);
}

void requests_add(struct requests *requests, struct request *request, _Atomic uint64_t *tail)
{
	/* relaxed: the maker's own until it is published under the lock. */
	atomic_store_explicit(&request->answered, false, memory_order_relaxed);
	pthread_mutex_lock(&requests->lock);
	/* seq_cst: not before the commands that were claimed by now. For this thread's own, and
	 * those that happen before this, any order does; it stays for those that the thread learnt
	 * of by other means, as a pipe. */
	request->position = atomic_load_explicit(tail, memory_order_seq_cst);
	list_append(&requests->waiting, &request->link);
	requests_publish_first(requests);
	pthread_mutex_unlock(&requests->lock);
}

struct request *requests_take(struct requests *requests)
{
	struct request *request;

	pthread_mutex_lock(&requests->lock);
	request = list_entry(list_take_first(&requests->waiting), struct request, link);
	requests_publish_first(requests);
	pthread_mutex_unlock(&requests->lock);
	return request;
}

void requests_answer(struct requests *requests, struct request *request, enum tw_status status)
{
	bool abandoned;

	if (request->is_here) {
		request->status = status;
		return;
	}
	pthread_mutex_lock(&requests->lock);
	abandoned = request->abandoned;
	request->status = status;
	/* release: publishes the answer; pairs with the acquire in request_is_answered(). */
	atomic_store_explicit(&request->answered, true, memory_order_release);
	pthread_cond_broadcast(&requests->answer);
	pthread_mutex_unlock(&requests->lock);
	if (abandoned)
		free(request);
}

bool request_is_answered(struct request *request)
{
	/* acquire: sees the answer; pairs with the release in requests_answer(). */
	return atomic_load_explicit(&request->answered, memory_order_acquire);
}

enum tw_status requests_wait(struct requests *requests, struct request *request)
{
	pthread_mutex_lock(&requests->lock);
	while (!request_is_answered(request))
		condition_wait(&requests->answer, &requests->lock, TW_FOREVER);
	pthread_mutex_unlock(&requests->lock);
	return request->status;
}

enum tw_status requests_wait_until(struct requests *requests, struct request *request,
				   const struct clock *clock, tw_duration deadline)
{
	enum tw_status status = TW_TIMED_OUT;

	pthread_mutex_lock(&requests->lock);
	while (!request_is_answered(request))
		if (!clock_wait(clock, &requests->answer, &requests->lock, deadline))
			break;
	if (request_is_answered(request))
		status = request->status;
	else
		request->abandoned = true;
	pthread_mutex_unlock(&requests->lock);
	return status;
}
