/* SPDX-License-Identifier: MIT */
/* calls are the calls of many threads on one router. A call is begun, given evals, run, and
 * ended. */
#ifndef REDIS_CLIENT_CALL_H
#define REDIS_CLIENT_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "base/fork_guard.h"
#include "redis/wire/buffer.h"
#include "redis/wire/eval.h"
#include "redis/wire/router.h"

struct call {
	struct eval eval;   /* for calls that need one */
	struct eval *evals; /* for those that need many, or NULL */
	size_t eval_count;
	struct buffer record;        /* for adding */
	struct tw_redis_error error; /* what went wrong */

	struct call *next_idle; /* call.c alone uses it */
};

struct calls {
	struct router *router;   /* constant */
	struct fork_guard guard; /* a fork's child may not use the calls */

	pthread_mutex_t lock; /* guards all below */
	struct call *idle;    /* kept for their memory */
	size_t idle_count;
	struct tw_redis_error error; /* why the last call failed that did */
};

/* Returns false if out of memory. */
bool calls_init(struct calls *calls, struct router *router);
/* Frees the calls. None may run, and the router must still be open. */
void calls_destroy(struct calls *calls);
/* Returns false in a fork's child. There every call ends with TW_INVALID and this text. */
bool calls_are_own(const struct calls *calls);
#define CALLS_INHERITED "the handle belongs to the parent process"
/* Returns whether no call runs. In a fork's child: whether none ran when the process forked. */
bool calls_are_quiet(struct calls *calls);

/* Notes an error outside of a call. */
void calls_note(struct calls *calls, enum tw_status status, const char *text);

/* Returns a call, or NULL without memory. */
struct call *call_begin(struct calls *calls);
/* Returns a call with this number of fresh evals, or NULL without memory. */
struct call *call_begin_many(struct calls *calls, size_t count);
/* Runs the evals. Each then has its status and reply. Tries for the patience of the settings. */
void call_run(struct calls *calls, struct call *call, struct eval *evals, size_t count);
/* Notes the call's error, if it has one, and frees the call. Returns the status. */
enum tw_status call_end(struct calls *calls, struct call *call, enum tw_status status);

#endif
