/* SPDX-License-Identifier: MIT */
/*
 * call.c keeps the memory of calls, and the last error. A fork's child can make no call with the
 * calls of its parent. It leaves their locks and their connections alone.
 */
#include "call.h"

#include <stdlib.h>
#include <string.h>

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
	return true;
}

static void call_free(struct call *call)
{
	eval_free(&call->eval);
	buffer_free(&call->record);
	free(call);
}

bool calls_are_quiet(struct calls *calls)
{
	struct router *router = calls->router;
	bool quiet = false;

	if (pthread_mutex_trylock(&calls->lock))
		return false;
	if (!pthread_mutex_trylock(&router->lock)) {
		quiet = !router->callers;
		pthread_mutex_unlock(&router->lock);
	}
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

	if (!call)
		call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->error.status = TW_OK;
	*call->error.text = '\0';
	return call;
}

struct call *call_begin_many(struct calls *calls, size_t count)
{
	struct eval *evals = calloc(count + !count, sizeof(*evals));
	struct call *call = evals ? call_begin(calls) : NULL;

	if (!call) {
		free(evals);
		return NULL;
	}
	call->evals = evals;
	call->eval_count = count;
	return call;
}

void call_run(struct calls *calls, struct call *call, struct eval *evals, size_t count)
{
	bool own = calls_are_own(calls);
	int state;

	if (!own)
		error_set(&call->error, TW_INVALID, CALLS_INHERITED);
	for (size_t i = 0; i < count; i++) {
		evals[i].error = &call->error;
		evals[i].status = TW_INVALID;
	}
	if (!own || !count)
		return;
	/* A leader that is cancelled in a round trip would never hand over. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	router_run(calls->router, evals, count);
	pthread_setcancelstate(state, &state);
}

enum tw_status call_end(struct calls *calls, struct call *call, enum tw_status status)
{
	if (call->evals) {
		for (size_t i = 0; i < call->eval_count; i++)
			eval_free(&call->evals[i]);
		free(call->evals);
		call->evals = NULL;
	}
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
