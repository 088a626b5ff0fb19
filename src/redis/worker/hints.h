/* SPDX-License-Identifier: MIT */
/*
 * Hints are what scripts publish when a shard is to be looked at earlier than others may know. They
 * may be lost: a listener looks now and then without one. Main thread only. A zeroed struct is not
 * connected.
 */
#ifndef REDIS_WORKER_HINTS_H
#define REDIS_WORKER_HINTS_H

#include <stdbool.h>

#include "dial.h"
#include "redis/client/client.h"
#include "redis/wire/connection.h"

struct hints {
	/* More namespaces, over the same connection; constant, the caller's. */
	struct tw_redis *const *beside;
	size_t beside_count;

	struct tw_redis *redis; /* the first namespace's */
	struct connection connection;
	struct dial dial;                            /* the next connection */
	const char *words[1 + TW_REDIS_SOURCES_MAX]; /* the request to subscribe */
	size_t place; /* the last hint's namespace: 0 is the first, 1 the first beside it */
	size_t node;  /* which of the map's to ask next */
	bool refused; /* the last request to subscribe was */
	/* Monotonic times. */
	tw_duration retry_at; /* not to be connected before */
	tw_duration ping_at;  /* the other side is to show that it is there */
	tw_duration pinged_at;
	tw_duration pong_by; /* it must have shown that; 0 means that it has */
};

/* Goes on with connecting to a node that the router is connected to, and subscribing to hints of
 * `redis` and of those beside it; and with looking whether the other side is there. Returns a
 * refusal that is news; otherwise NULL. */
const struct tw_redis_error *hints_tend(struct hints *hints, struct tw_redis *redis,
					struct mailbox *mailbox, tw_duration now);
/* Has the other side show soon that it is there: a hint may have been missed. */
void hints_doubt(struct hints *hints, tw_duration now);
bool hints_are_connected(const struct hints *hints);
/* Returns a descriptor to sleep on, or -1 while not connected. */
int hints_descriptor(const struct hints *hints);
/* Returns when hints_tend() has something to do, unless the mailbox rings before. */
tw_duration hints_due_at(const struct hints *hints);
/* Closes all there is. */
void hints_end(struct hints *hints);

/* Takes the next hint that has come: the shard is to be looked at after *wait. Returns false if
 * there is none. */
bool hints_next(struct hints *hints, unsigned *shard, tw_duration *wait, tw_duration now);

#endif
