/* SPDX-License-Identifier: MIT */
/*
 * call.c has callers of many threads share round trips.
 *
 * Invariants:
 *  - `led` is true while calls run, except for the moment in which the next leader wakes.
 *  - Its caller alone touches an eval before call_run() and after it, the leader alone in between.
 *
 * The first caller becomes the leader. It sends the evals of all present calls in one pass of the
 * router, and wakes the callers whose evals have ended. Callers that come meanwhile are in its next
 * pass. Once its own call has ended the next caller leads. So the router has one user at a time, no
 * call waits for another's retries, or for the reply of a node that it does not need, and more
 * threads share more round trips. The caller that needs a slow step does it: one of those whose
 * evals wait for a node connects it, beside the passes, and the leader takes the connection. A
 * leader that must connect hands over first.
 *
 * A fork's child can make no call with the calls of its parent. It leaves their lock and their
 * connections alone.
 */
#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

enum { IDLE_MAX = 16 };
static const size_t record_kept_max = 65536;

bool calls_are_own(const struct calls *calls)
{
	return fork_guard_is_open(&calls->guard);
}

bool calls_init(struct calls *calls, struct router *router)
{
	*calls = (struct calls){.router = router};
	if (!fork_guard_open(&calls->guard))
		return false;
	pthread_mutex_init(&calls->lock, NULL);
	condition_init(&calls->arrived);
	list_init(&calls->running);
	return true;
}

static void call_free(struct call *call)
{
	eval_free(&call->eval);
	buffer_free(&call->record);
	pthread_cond_destroy(&call->wake);
	free(call);
}

bool calls_are_quiet(struct calls *calls)
{
	bool quiet;

	if (pthread_mutex_trylock(&calls->lock))
		return false;
	quiet = !calls->led && list_is_empty(&calls->running);
	pthread_mutex_unlock(&calls->lock);
	return quiet;
}

void calls_destroy(struct calls *calls)
{
	while (calls->idle) {
		struct call *call = calls->idle;

		calls->idle = call->next_idle;
		call_free(call);
	}
	pthread_cond_destroy(&calls->arrived);
	pthread_mutex_destroy(&calls->lock);
}

void calls_note(struct calls *calls, enum tw_status status, const char *text)
{
	if (!calls_are_own(calls))
		return;
	pthread_mutex_lock(&calls->lock);
	error_set(&calls->error, status, "%s", text);
	pthread_mutex_unlock(&calls->lock);
}

/* Takes an idle call, or returns NULL. */
static struct call *idle_take(struct calls *calls)
{
	struct call *call;

	pthread_mutex_lock(&calls->lock);
	call = calls->idle;
	if (call) {
		calls->idle = call->next_idle;
		calls->idle_count--;
	}
	pthread_mutex_unlock(&calls->lock);
	return call;
}

struct call *call_begin(struct calls *calls)
{
	struct call *call = calls_are_own(calls) ? idle_take(calls) : NULL;

	if (!call) {
		call = calloc(1, sizeof(*call));
		if (!call)
			return NULL;
		condition_init(&call->wake);
	}
	call->error.status = TW_OK;
	*call->error.text = '\0';
	return call;
}

static bool call_has_ended(const struct call *call)
{
	for (size_t i = 0; i < call->count; i++)
		if (call->evals[i].stage != EVAL_ENDED)
			return false;
	return true;
}

/* Takes what callers have connected, or failed to, and settles the evals that waited for it. */
static void connections_take(struct calls *calls)
{
	struct node_map *map = &calls->router->map;

	for (size_t i = 0; i < map->count; i++) {
		struct node *node = map->nodes[i];

		if (!node->tried)
			continue;
		node->tried = false;
		node_take_attempt(map, node, &node->attempt);
		node->attempt = (struct attempt){0};
	}
	for (struct list *at = calls->running.next; at != &calls->running; at = at->next) {
		struct call *call = list_entry(at, struct call, link);

		for (size_t i = 0; i < call->count; i++)
			if (call->evals[i].needs && !call->evals[i].needs->connecting)
				router_settle(calls->router, &call->evals[i]);
	}
}

/* Returns the evals of all calls whose time has come. *next becomes the time of the first other
 * one. */
static struct eval *evals_gather(struct calls *calls, tw_duration *next)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	struct eval *first = NULL;
	struct eval **last = &first;

	*next = TW_FOREVER;
	for (struct list *at = calls->running.next; at != &calls->running; at = at->next) {
		struct call *call = list_entry(at, struct call, link);

		for (size_t i = 0; i < call->count; i++)
			last = eval_queue(&call->evals[i], now, last, next);
	}
	return first;
}

/* Gives each node that evals wait for to one of their callers, to connect it. */
static void connecting_share(struct calls *calls)
{
	for (struct list *at = calls->running.next; at != &calls->running; at = at->next) {
		struct call *call = list_entry(at, struct call, link);

		for (size_t i = 0; i < call->count; i++) {
			struct node *node = call->evals[i].needs;

			if (!node || node->connecting || node->tried)
				continue;
			node->connecting = true;
			node->next_wanted = call->connects;
			call->connects = node;
			pthread_cond_signal(&call->wake);
		}
	}
}

/* Connects the first of the nodes that the call has been given. The lock is held, except while it
 * connects. */
static void call_connect(struct calls *calls, struct call *call)
{
	struct node *node = call->connects;
	struct attempt attempt = {.address = node->address};

	call->connects = node->next_wanted;
	call->connecting = true;
	pthread_mutex_unlock(&calls->lock);
	attempt_make(&attempt, calls->router->settings);
	pthread_mutex_lock(&calls->lock);
	call->connecting = false;
	node->attempt = attempt;
	node->tried = true;
	node->connecting = false;
	if (calls->leader_waits)
		pthread_cond_signal(&calls->arrived);
}

static void ended_tell(struct calls *calls)
{
	struct list *next;

	for (struct list *at = calls->running.next; at != &calls->running; at = next) {
		struct call *call = list_entry(at, struct call, link);

		next = at->next;
		if (!call_has_ended(call))
			continue;
		list_remove(at);
		call->ended = true;
		pthread_cond_signal(&call->wake);
	}
}

/* Hands over to a caller that connects no node. */
static void leader_hand_over(struct calls *calls)
{
	calls->led = false;
	for (struct list *at = calls->running.next; at != &calls->running; at = at->next) {
		struct call *call = list_entry(at, struct call, link);

		if (call->connects || call->connecting)
			continue;
		pthread_cond_signal(&call->wake);
		return;
	}
}

/* Sends for all until the leader's own call has ended, or has a node to connect. The lock is
 * held, except in round trips. */
static void lead(struct calls *calls, const struct call *own)
{
	calls->led = true;
	for (;;) {
		struct eval *evals;
		tw_duration next;

		connecting_share(calls);
		connections_take(calls);
		ended_tell(calls);
		if (own->ended || own->connects)
			break;
		evals = evals_gather(calls, &next);
		if (!evals && !router_is_owed(calls->router)) {
			calls->leader_waits = true;
			condition_wait(&calls->arrived, &calls->lock, next);
			calls->leader_waits = false;
			continue;
		}
		pthread_mutex_unlock(&calls->lock);
		router_pass(calls->router, evals, router_pass_end(calls->router, evals));
		pthread_mutex_lock(&calls->lock);
	}
	leader_hand_over(calls);
}

void call_run(struct calls *calls, struct call *call, struct eval *evals, size_t count)
{
	tw_duration patience = calls->router->settings->patience;
	tw_duration deadline =
		time_add(clock_read_real(CLOCK_MONOTONIC), patience > 0 ? patience : 0);
	int state;

	if (!count)
		return;
	if (!calls_are_own(calls)) {
		error_set(&call->error, TW_INVALID, CALLS_INHERITED);
		for (size_t i = 0; i < count; i++)
			eval_end(&evals[i], TW_INVALID, NULL);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		evals[i].deadline = deadline;
		evals[i].error = &call->error;
	}
	call->evals = evals;
	call->count = count;
	call->ended = false;
	/* A leader that is cancelled in a round trip would never hand over. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&calls->lock);
	list_append(&calls->running, &call->link);
	if (calls->leader_waits)
		pthread_cond_signal(&calls->arrived);
	while (!call->ended) {
		if (call->connects)
			call_connect(calls, call);
		else if (calls->led)
			pthread_cond_wait(&call->wake, &calls->lock);
		else
			lead(calls, call);
	}
	pthread_mutex_unlock(&calls->lock);
	pthread_setcancelstate(state, &state);
}

enum tw_status call_end(struct calls *calls, struct call *call, enum tw_status status)
{
	if (call->record.capacity > record_kept_max)
		buffer_free(&call->record);
	if (call->eval.arguments.capacity > record_kept_max)
		eval_free(&call->eval);
	if (!calls_are_own(calls)) {
		call_free(call);
		return status;
	}
	pthread_mutex_lock(&calls->lock);
	if (status != TW_OK) {
		calls->error = call->error;
		calls->error.status = status;
	}
	if (calls->idle_count < IDLE_MAX) {
		call->next_idle = calls->idle;
		calls->idle = call;
		calls->idle_count++;
		call = NULL;
	}
	pthread_mutex_unlock(&calls->lock);
	if (call)
		call_free(call);
	return status;
}
