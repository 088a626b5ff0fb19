/* SPDX-License-Identifier: MIT */
/* The runner for tasks that a function in this process does: threads that take runs one by one. */
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

	struct runner runner; /* its lock is for all below */
	pthread_cond_t wake;
};

/* Without a handler no threads. TW_OK, TW_NO_MEMORY or TW_SYSTEM; else nothing is to be stopped. */
enum tw_status handlers_start(struct handlers *handlers,
			      const struct tw_redis_worker_options *options,
			      struct mailbox *mailbox);
/* Ends the threads when they have done what they run now. None may be waiting. */
void handlers_stop(struct handlers *handlers);

/* Hands over all of the list. */
void handlers_submit(struct handlers *handlers, struct run_list *runs);
/* Whether the calling thread is one of them. */
bool handlers_are_caller(const struct handlers *handlers);

#endif
