/* SPDX-License-Identifier: MIT */
/*
 * Calls of many threads on one router. A call is begun, given evals, run, and ended; calls that
 * run at the same time share round trips.
 */
#ifndef REDIS_CLIENT_CALL_H
#define REDIS_CLIENT_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "base/list.h"
#include "redis/wire/buffer.h"
#include "redis/wire/eval.h"
#include "redis/wire/router.h"

struct call {
	/* The caller's. */
	struct eval eval;            /* for calls that need one */
	struct buffer record;        /* for adding */
	struct tw_redis_error error; /* what went wrong */

	/* From here on that of call.c. */
	struct list link; /* among those that run */
	struct call *next_idle;
	struct eval *evals; /* what it runs */
	size_t count;
	pthread_cond_t wake;
	/* Under the lock. */
	struct node *connects; /* nodes that its caller is to connect, before all else */
	bool connecting;       /* its caller does */
	bool ended;
};

struct calls {
	struct router *router; /* constant; the leader's alone */
	struct list open;      /* among all of the process; under the lock of those */

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t arrived;
	struct list running;
	bool led;          /* one of those that run sends for all */
	bool leader_waits; /* until an eval's next try, or another call arrives */
	bool inherited;    /* from the parent of this process, and not used here yet */
	bool torn;         /* so, while a call of the parent was under way */
	struct call *idle; /* kept for their memory */
	size_t idle_count;
	struct tw_redis_error error; /* why the last call failed that did */
};

void calls_init(struct calls *calls, struct router *router);
/* None may run. Before the router is closed. */
void calls_destroy(struct calls *calls);

/* Notes what went wrong outside of a call. */
void calls_note(struct calls *calls, enum tw_status status, const char *text);

/* NULL without memory. */
struct call *call_begin(struct calls *calls);
/* Runs the evals; each has its status and reply then. Tries for as long as the thread's patience
 * (tw_redis_set_patience). */
void call_run(struct calls *calls, struct call *call, struct eval *evals, size_t count);
/* Notes what went wrong, if anything has, and frees the call. Returns the status. */
enum tw_status call_end(struct calls *calls, struct call *call, enum tw_status status);

#endif
