/* SPDX-License-Identifier: MIT */
/*
 * A hint is a message of a script: a shard is due earlier than others may know. Hints may be lost,
 * so a listener looks without one now and then. The main thread alone uses hints. A zeroed struct
 * is not connected.
 */
#ifndef REDIS_WORKER_HINTS_H
#define REDIS_WORKER_HINTS_H

#include <stdbool.h>

#include "dial.h"
#include "redis/client/client.h"
#include "redis/wire/connection.h"

struct hints {
	/* These are the namespaces, which have the same connections; constant, the caller's. */
	struct tw_redis *const *spaces;
	size_t count;

	struct connection connection;
	struct dial dial;                            /* the next connection */
	const char *words[1 + TW_REDIS_SOURCES_MAX]; /* the request to subscribe */
	size_t place;                                /* the last hint's namespace */
	size_t node;                                 /* the map's node to try next */
	bool refused;                                /* the last request to subscribe was */
	tw_duration retry_at;                        /* monotonic; the next attempt is not before */
};

/* Goes on with connecting to a node of the router, and with subscribing to hints of the namespaces.
 * Returns a new refusal, or NULL. */
const struct tw_redis_error *hints_tend(struct hints *hints, struct mailbox *mailbox,
					tw_duration now);
bool hints_are_connected(const struct hints *hints);
/* Returns a descriptor to sleep on, or -1 while not connected. */
int hints_descriptor(const struct hints *hints);
/* Returns when hints_tend() has something to do, unless the mailbox rings before. */
tw_duration hints_due_at(const struct hints *hints);
/* Ends the dial and closes the connection. */
void hints_end(struct hints *hints);

/* Takes the next hint, to look at the shard after *wait. Returns false if there is none. */
bool hints_next(struct hints *hints, unsigned *shard, tw_duration *wait);

#endif
