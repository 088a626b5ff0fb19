/* SPDX-License-Identifier: MIT */
/* The runner for tasks with a callback: one thread that has many HTTP requests under way. */
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
	/* Constant after the start. */
	const struct tw_redis_worker_options *options;
	const struct targets *targets;
	struct thread thread;
	CURLM *multi;
	/* The thread's locale: curl reads names of hosts that are not ASCII by it. (locale_t)0 if
	 * the system has no such locale. */
	locale_t utf8;

	/* The thread's own. */
	struct http_request *requests; /* the options' `callbacks` of them */
	struct http_request *idle;
	unsigned busy;       /* those that are not idle */
	unsigned most;       /* may be busy; fewer than there are while descriptors are short */
	tw_duration starved; /* monotonic: when `most` changed, about */
	struct hosts hosts;

	struct runner runner; /* its lock is for all below */
	bool abort;           /* break off all that run */
	bool give_back;       /* begin nothing any more */
};

/* `shards` is how many the tasks come from. Returns TW_OK, TW_NO_MEMORY or TW_SYSTEM; on failure
 * nothing is to be stopped. */
enum tw_status callbacks_start(struct callbacks *callbacks,
			       const struct tw_redis_worker_options *options, unsigned shards,
			       const struct targets *targets, struct mailbox *mailbox);
/* Ends the thread; nothing may be waiting or running. */
void callbacks_stop(struct callbacks *callbacks);

/* Hands over all of the list. */
void callbacks_submit(struct callbacks *callbacks, struct run_list *runs);
/* From now on none begins: those that wait come back soon, as given back. */
void callbacks_give_back(struct callbacks *callbacks);
/* Breaks off those that run: they come back soon, as given back. */
void callbacks_abort(struct callbacks *callbacks);

/* Returns what the header Retry-After asks for, in seconds or as a date that is read against
 * `date`, the response's own; a day at most. Texts that are neither ask for 0. */
tw_duration answer_retry_after(const char *text, const char *date);
/* Returns what the header Tw-Snooze asks for, in seconds; TW_REDIS_DELAY_MAX at most. */
tw_duration answer_snooze(const char *text);

#endif
