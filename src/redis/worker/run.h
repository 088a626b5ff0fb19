/* SPDX-License-Identifier: MIT */
/*
 * A run is one attempt at a task that this worker has on lease. The worker's main thread makes it,
 * hands it to a runner (handlers.h, callbacks.h), gets it back through the mailbox, notifies Redis,
 * and frees it. In between it is the runner's alone, except for what is marked.
 */
#ifndef REDIS_WORKER_RUN_H
#define REDIS_WORKER_RUN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "base/list.h"
#include "redis/client/jobs.h"

struct host;
struct worker_shard;

struct run {
	struct list link; /* in the one list where it is */

	/* Constant: set before it is handed over. */
	struct tw_redis_batch *batch;
	struct tw_redis_job *job;
	struct worker_shard *shard;
	atomic_uint *running; /* how many of its namespace are being run; any thread */
	tw_duration claimed;  /* monotonic */
	bool by_handler;      /* else a callback */

	/* The runner's, then the main thread's. */
	bool begun;
	tw_duration took;
	enum tw_redis_outcome outcome;
	struct tw_redis_verdict verdict;
	tw_duration retry_least; /* Retry-After */
	int http_status;
	bool given_back;     /* it was not begun, or was broken off: neither done nor failed */
	struct host *host;   /* the callback's */
	tw_duration put_off; /* given back or snoozed: due again after about that */

	/* The main thread's all the time. */
	struct list lease;         /* among those that are to be extended */
	struct tw_timer extension; /* when it will be among them */
	bool extending;            /* it is */
	size_t place;              /* in the step that extends it */
	bool unsure;               /* Redis may know of its end already: the reply was lost */
	tw_duration wait;          /* until it is due again; < 0: a dead letter */
};

/* First in, first out. */
struct run_list {
	struct list runs;
	size_t count;
};

void run_list_init(struct run_list *list);
void run_list_add(struct run_list *list, struct run *run);
/* Takes the first run, or returns NULL. */
struct run *run_list_take(struct run_list *list);
/* Moves all of `from` to the end of `to`. */
void run_list_move(struct run_list *to, struct run_list *from);

/* Notes that it begins, and how late it is: before the task is run, on the runner's thread. */
void run_begin(struct run *run, tw_duration now);

/* Runs that have come to an end, on their way to the main thread, which sleeps on the
 * descriptor. */
struct mailbox {
	pthread_mutex_t lock;
	struct run_list runs;
	int descriptor; /* an eventfd */
};

/* TW_OK or TW_SYSTEM. */
enum tw_status mailbox_init(struct mailbox *mailbox);
void mailbox_destroy(struct mailbox *mailbox);
/* Wakes the main thread without bringing anything. */
void mailbox_ring(struct mailbox *mailbox);
/* Takes all, and makes the descriptor quiet. */
void mailbox_take(struct mailbox *mailbox, struct run_list *runs);

/* What one of the two runners has to do. */
struct runner {
	struct mailbox *mailbox; /* where ended runs go; constant */

	pthread_mutex_t lock; /* for all below, and for what the runner adds to it */
	struct run_list waiting;
	bool stop;
};

void runner_init(struct runner *runner, struct mailbox *mailbox);
void runner_destroy(struct runner *runner);
/* It counts as running from now on, until runner_end. */
void run_count(struct run *run);
/* Takes a run that has not begun, which then counts as running, or returns NULL. Lock held. */
struct run *runner_take(struct runner *runner);
/* It is given back, without having begun. Lock held. */
void runner_return(struct runner *runner, struct run *run);
/* It has ended. Lock held. */
void runner_end(struct runner *runner, struct run *run);
/* Takes back those that have not begun. */
void runner_take_back(struct runner *runner, struct run_list *runs);

#endif
