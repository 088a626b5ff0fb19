/* SPDX-License-Identifier: MIT */
/* An access is the connections to a Redis, and the calls of many threads over them. A call is
 * begun, given evals, run, and ended. */
#ifndef REDIS_CLIENT_CALL_H
#define REDIS_CLIENT_CALL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "base/fork_guard.h"
#include "redis/wire/buffer.h"
#include "redis/wire/eval.h"
#include "redis/wire/router.h"
#include "redis/wire/settings.h"

struct call {
	struct access *access;
	struct eval eval;   /* for calls that need one */
	struct eval *evals; /* those of the call: its own one, or an array */
	size_t eval_count;
	struct buffer record;        /* for adding */
	struct tw_redis_error error; /* what went wrong */

	struct call *next_idle; /* call.c alone uses it */
};

/* A handle shares its access with those opened beside it. */
struct access {
	/* These are constant after opening. */
	struct settings settings; /* the first handle's; their namespace is its own alone */
	bool cluster;             /* the server was one when it was opened */
	struct fork_guard guard;  /* a fork's child may not make calls */

	atomic_uint handles; /* the last one frees it */

	struct router router;

	pthread_mutex_t lock; /* guards all below */
	struct call *idle;    /* kept for their memory */
	size_t idle_count;
	struct tw_redis_error error; /* why the last call failed that did */
};

/* Returns an access for one handle, not connected, or NULL without memory. */
struct access *access_create(void);
/* Connects, as tw_redis_open() does. */
enum tw_status access_open(struct access *access, const struct tw_redis_options *options,
			   struct tw_redis_error *error);
/* Takes a handle from the access. The last one frees it, unless this is a fork's child and a call
 * ran when the process forked. */
void access_leave(struct access *access);
/* Returns false in a fork's child. There every call ends with TW_INVALID and this text. */
bool access_is_own(const struct access *access);
#define ACCESS_INHERITED "the handle belongs to the parent process"
/* Notes an error outside of a call. */
void access_note(struct access *access, enum tw_status status, const char *text);

/* Returns a call with this number of evals, which eval_begin() makes fresh, or NULL without
 * memory. */
struct call *call_begin(struct access *access, size_t count);
/* Runs the evals. Each then has its status and reply. Tries for the patience of the settings. */
void call_run(struct call *call, struct eval *evals, size_t count);
/* Runs the call's own eval. Returns its status. */
static inline enum tw_status call_ask(struct call *call)
{
	call_run(call, &call->eval, 1);
	return call->eval.status;
}
/* Notes the call's error, if it has one, and frees the call. Returns the status. */
enum tw_status call_end(struct call *call, enum tw_status status);

#endif
