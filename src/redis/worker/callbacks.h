/* SPDX-License-Identifier: MIT */
/* callbacks is the runner for tasks with a callback: one thread with many HTTP requests under
 * way. */
#ifndef REDIS_WORKER_CALLBACKS_H
#define REDIS_WORKER_CALLBACKS_H

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>

#include <curl/curl.h>

#include "base/thread.h"
#include "hosts.h"
#include "run.h"
#include "targets.h"

struct http_request;

struct callbacks {
	/* These are constant after the start. */
	const struct tw_redis_worker_options *options;
	const struct targets *targets;
	struct thread thread;
	CURLM *multi;
	/* The thread's locale: curl reads names of hosts that are not ASCII by it. (locale_t)0 if
	 * the system has no such locale. */
	locale_t utf8;

	/* The thread alone uses these. */
	struct http_request *requests; /* as many as the options' `callbacks` */
	struct http_request *idle;
	unsigned busy;       /* the requests that are not idle */
	unsigned most;       /* the most that may be busy; fewer while descriptors are short */
	tw_duration starved; /* monotonic; when `most` changed, about */
	struct hosts hosts;

	struct runner runner; /* its lock guards all below */
	bool abort;           /* all running callbacks must be broken off */
	bool give_back;       /* no callback may begin */
};

/* Starts the thread. `shards` is the number of shards of the tasks. Returns TW_OK, or TW_NO_MEMORY
 * or TW_SYSTEM, and then nothing is to be stopped. */
enum tw_status callbacks_start(struct callbacks *callbacks,
			       const struct tw_redis_worker_options *options, unsigned shards,
			       const struct targets *targets, struct mailbox *mailbox);
/* Ends the thread. No run may be waiting or running. */
void callbacks_stop(struct callbacks *callbacks);

/* Hands over all runs of the list. */
void callbacks_submit(struct callbacks *callbacks, struct run_list *runs);
/* Lets no callback begin any more. Waiting runs come back soon, as given back. */
void callbacks_give_back(struct callbacks *callbacks);
/* Breaks off running callbacks. Their runs come back soon, as given back. */
void callbacks_abort(struct callbacks *callbacks);

/* Returns what the header Retry-After asks for, in seconds or as a date that is read against
 * `date`, the response's own; a day at most. Texts that are neither ask for 0. */
tw_duration answer_retry_after(const char *text, const char *date);
/* Returns what the header Tw-Snooze asks for, in seconds; TW_REDIS_DELAY_MAX at most. */
tw_duration answer_snooze(const char *text);

#endif
