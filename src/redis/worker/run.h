/* SPDX-License-Identifier: MIT */
/*
 * A run is one attempt at a task that this worker has on lease. The worker's main thread makes it,
 * hands it to a runner (handlers.h, callbacks.h), gets it back through the mailbox, reports it to
 * Redis, and frees it. In between the runner alone uses it, except for marked fields.
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
	struct list link; /* a run is in one list */

	/* These are constant once it is handed over. */
	struct batch *batch;
	struct tw_redis_job *job;
	struct worker_shard *shard;
	atomic_uint *running; /* the running tasks of its namespace; any thread */
	tw_duration claimed;  /* monotonic */
	tw_duration late_at;  /* monotonic; it must not begin later than this */
	bool by_handler;      /* if false, by a callback */

	/* The runner uses these, and then the main thread. */
	bool begun;
	enum fate fate;
	tw_duration took;
	enum tw_redis_outcome outcome;
	struct tw_redis_verdict verdict;
	tw_duration retry_least; /* Retry-After */
	int http_status;
	bool given_back;     /* it was not begun, or was broken off: neither done nor failed */
	struct host *host;   /* the callback's */
	tw_duration put_off; /* a run given back or snoozed is due again after about this */

	/* The main thread alone uses these. */
	bool unsure;           /* Redis may know its end already: a reply was lost */
	enum tw_redis_end end; /* how it ends, if Redis agrees; the ending is for Redis */
	struct ending ending;
	tw_duration wait; /* until it is due again */
};

/* A list is a queue, first in, first out. */
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

/* Returns whether the run may begin: it is not too late, which becomes its fate, and its lease has
 * not ended while the worker stood still, which puts it off. */
bool run_may_begin(struct run *run, tw_duration now);
/* Notes that the run begins, and how late. The runner's thread calls this before the task runs. */
void run_begin(struct run *run, tw_duration now);

/* Notes how the run ended, and why: the reason, whose format is printf's. */
__attribute__((format(printf, 3, 4))) void run_judge(struct run *run, enum tw_redis_outcome outcome,
						     const char *format, ...);

/* A mailbox has ended runs for the main thread, which sleeps on the descriptor. */
struct mailbox {
	pthread_mutex_t lock;
	struct run_list runs;
	int descriptor; /* an eventfd */
};

/* Returns TW_OK or TW_SYSTEM. */
enum tw_status mailbox_init(struct mailbox *mailbox);
void mailbox_destroy(struct mailbox *mailbox);
/* Wakes the main thread without bringing anything. */
void mailbox_ring(struct mailbox *mailbox);
/* Takes all runs, and makes the descriptor quiet. */
void mailbox_take(struct mailbox *mailbox, struct run_list *runs);

/* A runner is what threads share that run tasks. */
struct runner {
	struct mailbox *mailbox; /* takes ended runs; constant */

	pthread_mutex_t lock; /* guards all below, and what the runner adds to it */
	struct run_list waiting;
	bool stop;
};

void runner_init(struct runner *runner, struct mailbox *mailbox);
void runner_destroy(struct runner *runner);
/* Hands over all runs of the list. Returns their number. */
size_t runner_give(struct runner *runner, struct run_list *runs);
/* Counts the run as running, until runner_end(). */
void run_count(struct run *run);
/* Takes the next run, which then counts as running, or returns NULL. The lock is held. */
struct run *runner_take(struct runner *runner);
/* Gives back a run that has not begun. */
void runner_return(struct runner *runner, struct run *run);
/* Takes the end of a run. */
void runner_end(struct runner *runner, struct run *run);

#endif
