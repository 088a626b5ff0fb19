/* SPDX-License-Identifier: MIT */
/*
 * A hint is a message of a script: a shard is due earlier than others may know. Hints may be lost,
 * so a listener looks without one now and then.
 */
#ifndef REDIS_WORKER_HINTS_H
#define REDIS_WORKER_HINTS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/thread.h"
#include "redis/client/client.h"
#include "redis/wire/connection.h"
#include "run.h"

enum { HINTS_MAX = 64 };

struct hint {
	size_t place; /* the namespace's place among all */
	unsigned shard;
	tw_duration wait; /* until the shard is to be looked at */
};

/* What the thread has heard since the last hints_take(). */
struct heard {
	bool any;
	bool connected; /* hints come */
	bool missed;    /* hints may have been lost, so every shard is to be looked at */
	struct tw_redis_error refusal; /* why we may not subscribe, if that is news */
	size_t count;
	struct hint hints[HINTS_MAX];
};

struct hints {
	/* These are constant. The namespaces have the same connections, and are the caller's. */
	struct tw_redis *const *spaces;
	size_t count;
	struct mailbox *mailbox; /* rings when something has been heard */
	struct thread thread;

	/* The thread alone uses these. */
	struct connection connection;
	size_t node;  /* the map's node to try next */
	bool refused; /* the last request to subscribe was */

	pthread_mutex_t lock;
	struct heard heard; /* the lock guards it */
};

/* Starts the thread. `spaces`, `count` and `mailbox` are set. Returns false if it can't. */
bool hints_begin(struct hints *hints);
/* Waits for the thread, after a stop of its connections (settings.h). */
void hints_end(struct hints *hints);
/* Takes what has been heard. Returns false if that is nothing. */
bool hints_take(struct hints *hints, struct heard *heard);

#endif
