/* SPDX-License-Identifier: MIT */
/*
 * call.c keeps the memory of calls, and the last error. A fork's child can make no call with the
 * access of its parent. It leaves its locks and its connections alone.
 */
#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "redis/wire/tls.h"

enum { IDLE_MAX = 16 };
static const size_t record_kept_max = 65536;

struct access *access_create(void)
{
	struct access *access = calloc(1, sizeof(*access));

	if (!access || !fork_guard_open(&access->guard)) {
		free(access);
		return NULL;
	}
	atomic_init(&access->handles, 1);
	router_init(&access->router, &access->settings);
	pthread_mutex_init(&access->lock, NULL);
	return access;
}

enum tw_status access_open(struct access *access, const struct tw_redis_options *options,
			   struct tw_redis_error *error)
{
	enum tw_status status = settings_read(&access->settings, options, error);
	int state;

	if (status == TW_OK)
		status = tls_context_create(&access->settings, error);
	if (status != TW_OK)
		return status;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	status = router_open(&access->router, error);
	pthread_setcancelstate(state, &state);
	access->cluster = access->router.map.cluster;
	return status;
}

bool access_is_own(const struct access *access)
{
	return fork_guard_is_open(&access->guard);
}

static void call_free(struct call *call)
{
	eval_free(&call->eval);
	buffer_free(&call->record);
	free(call);
}

/* Returns whether no call runs. In a fork's child: whether none ran when the process forked. */
static bool access_is_quiet(struct access *access)
{
	bool quiet = false;

	if (pthread_mutex_trylock(&access->lock))
		return false;
	if (!pthread_mutex_trylock(&access->router.lock)) {
		quiet = !access->router.callers;
		pthread_mutex_unlock(&access->router.lock);
	}
	pthread_mutex_unlock(&access->lock);
	return quiet;
}

void access_leave(struct access *access)
{
	struct call *call;

	/* release: publishes what this handle's calls have done; acquire: the last one sees what
	 * those of all others have; each pairs with the other here */
	if (atomic_fetch_sub_explicit(&access->handles, 1, memory_order_acq_rel) != 1 ||
	    !access_is_quiet(access))
		return;
	while ((call = access->idle)) {
		access->idle = call->next_idle;
		call_free(call);
	}
	pthread_mutex_destroy(&access->lock);
	router_close(&access->router);
	tls_context_free(&access->settings);
	settings_free(&access->settings);
	free(access);
}

void access_note(struct access *access, enum tw_status status, const char *text)
{
	if (!access_is_own(access))
		return;
	pthread_mutex_lock(&access->lock);
	error_set(&access->error, status, "%s", text);
	pthread_mutex_unlock(&access->lock);
}

/* Takes an idle call, or returns NULL. */
static struct call *idle_take(struct access *access)
{
	struct call *call;

	pthread_mutex_lock(&access->lock);
	call = access->idle;
	if (call) {
		access->idle = call->next_idle;
		access->idle_count--;
	}
	pthread_mutex_unlock(&access->lock);
	return call;
}

struct call *call_begin(struct access *access, size_t count)
{
	struct call *call = access_is_own(access) ? idle_take(access) : NULL;

	if (!call) {
		call = calloc(1, sizeof(*call));
		if (!call)
			return NULL;
		call->access = access;
		call->evals = &call->eval;
	}
	if (count > 1) {
		call->eval_count = count;
		call->evals = calloc(count, sizeof(*call->evals));
		if (!call->evals) {
			call_free(call);
			return NULL;
		}
	}
	call->error.status = TW_OK;
	*call->error.text = '\0';
	return call;
}

void call_run(struct call *call, struct eval *evals, size_t count)
{
	bool own = access_is_own(call->access);
	int state;

	if (!own)
		error_set(&call->error, TW_INVALID, ACCESS_INHERITED);
	for (size_t i = 0; i < count; i++) {
		evals[i].error = &call->error;
		evals[i].status = TW_INVALID;
	}
	if (!own || !count)
		return;
	/* A leader that is cancelled in a round trip would never hand over. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	router_run(&call->access->router, evals, count);
	pthread_setcancelstate(state, &state);
}

enum tw_status call_end(struct call *call, enum tw_status status)
{
	struct access *access = call->access;

	if (call->evals != &call->eval) {
		for (size_t i = 0; i < call->eval_count; i++)
			eval_free(&call->evals[i]);
		free(call->evals);
		call->evals = &call->eval;
	}
	if (call->record.capacity > record_kept_max)
		buffer_free(&call->record);
	if (call->eval.arguments.capacity > record_kept_max)
		eval_free(&call->eval);
	if (!access_is_own(access)) {
		call_free(call);
		return status;
	}
	pthread_mutex_lock(&access->lock);
	if (status != TW_OK) {
		access->error = call->error;
		access->error.status = status;
	}
	if (access->idle_count < IDLE_MAX) {
		call->next_idle = access->idle;
		access->idle = call;
		access->idle_count++;
		call = NULL;
	}
	pthread_mutex_unlock(&access->lock);
	if (call)
		call_free(call);
	return status;
}
