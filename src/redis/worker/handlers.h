/* SPDX-License-Identifier: MIT */
/* handlers is the runner for tasks of the program's function: threads that take runs one by one. */
#ifndef REDIS_WORKER_HANDLERS_H
#define REDIS_WORKER_HANDLERS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/thread.h"
#include "run.h"

struct handlers {
	/* Constant after the start. */
	const struct tw_redis_worker_options *options;
	struct thread_setup setup;
	struct thread *threads;
	unsigned count;

	struct runner runner; /* its lock guards all below */
	pthread_cond_t wake;
};

/* Starts the threads, none without a handler. Returns TW_OK, or TW_NO_MEMORY or TW_SYSTEM, and then
 * nothing is to be stopped. */
enum tw_status handlers_start(struct handlers *handlers,
			      const struct tw_redis_worker_options *options,
			      struct mailbox *mailbox);
/* Ends the threads once their present runs have ended. No run may be waiting. */
void handlers_stop(struct handlers *handlers);

/* Hands over all runs of the list. */
void handlers_submit(struct handlers *handlers, struct run_list *runs);
/* Returns whether the calling thread is one of the handlers'. */
bool handlers_are_caller(const struct handlers *handlers);

#endif
