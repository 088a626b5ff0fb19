/* SPDX-License-Identifier: MIT */
/* callbacks is the runner for tasks with a callback: one thread with many HTTP requests under
 * way. */
#ifndef REDIS_WORKER_CALLBACKS_H
#define REDIS_WORKER_CALLBACKS_H

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <curl/curl.h>

#include "base/thread.h"
#include "hosts.h"
#include "run.h"
#include "targets.h"

struct http_request;

/* An order ends more than those before it. */
enum callbacks_order {
	CALLBACKS_RUN,
	CALLBACKS_GIVE_BACK, /* no callback begins, and waiting runs come back as given back */
	CALLBACKS_ABORT,     /* running callbacks are broken off, and come back as given back */
	CALLBACKS_STOP       /* the thread ends */
};

struct callbacks {
	/* These are constant after the start. */
	const struct tw_redis_worker_options *options;
	const struct targets *targets;
	struct thread thread;
	CURLM *multi;
	/* The thread's locale: curl reads names of hosts that are not ASCII by it. (locale_t)0 if
	 * the system has no such locale. */
	locale_t utf8;
	char *ca_file; /* NULL means curl's own */
	char *ca_path;

	/* The thread alone uses these. */
	struct http_request *requests;
	struct http_request *idle;
	unsigned most;       /* the number of requests */
	unsigned sent;       /* the requests under way */
	unsigned aside;      /* those of them that have given their places away */
	tw_duration look_at; /* monotonic; when the requests under way are looked at */
	struct hosts hosts;

	/* Runs that hold up no other: requests without a place, and runs that wait for hosts that
	 * are away. Any thread may read it; a statistic, relaxed everywhere, orders nothing. */
	atomic_size_t aside_shown;

	struct runner runner; /* its lock guards all below */
	enum callbacks_order order;
};

/* Starts the thread. `random` is not 0. Returns TW_OK, or TW_NO_MEMORY or TW_SYSTEM, and then
 * nothing is to be stopped. */
enum tw_status callbacks_start(struct callbacks *callbacks,
			       const struct tw_redis_worker_options *options,
			       const struct targets *targets, uint64_t random,
			       struct mailbox *mailbox);
/* Ends the thread. No run may be waiting or running. */
void callbacks_stop(struct callbacks *callbacks);

/* Hands over all runs of the list. */
void callbacks_submit(struct callbacks *callbacks, struct run_list *runs);
/* Gives an order, which the thread follows soon. */
void callbacks_order(struct callbacks *callbacks, enum callbacks_order order);

/* Returns what the header Retry-After asks for, in seconds or as a date that is read against
 * `date`, the response's own, or else this machine's: from a tenth of a second to a day. Texts that
 * are neither ask for 0. */
tw_duration answer_retry_after(const char *text, const char *date);
/* Returns what the header Tw-Snooze asks for, in seconds; TW_REDIS_DELAY_MAX at most. */
tw_duration answer_snooze(const char *text);

#endif
