/* SPDX-License-Identifier: MIT */
/*
 * What scripts publish when a shard is to be looked at earlier than others may know. Hints may be
 * lost: a listener looks now and then without one. Main thread only. Zeroed: not connected; what
 * is connected is closed by connection_close().
 */
#ifndef REDIS_WORKER_HINTS_H
#define REDIS_WORKER_HINTS_H

#include <stdbool.h>

#include "redis/client/client.h"
#include "redis/wire/connection.h"

struct hints {
	/* Of more namespaces, over the same connection; constant, the caller's. */
	struct tw_redis *const *beside;
	size_t beside_count;

	struct tw_redis *redis; /* of the first */
	struct connection connection;
	size_t place; /* of the last hint's namespace: 0: the first, 1: the first beside it */
	tw_duration retry_at; /* monotonic: not to be connected before */
	size_t node;          /* which of the map's to ask next */
};

/* Connects and subscribes to hints of `redis` and of those beside it, if it is not connected and
 * the time has come. */
void hints_connect(struct hints *hints, struct tw_redis *redis, tw_duration now);
bool hints_are_connected(const struct hints *hints);
/* To sleep on; -1: not connected. */
int hints_descriptor(const struct hints *hints);

/* The next hint that has come: look at the shard in so long. False: there is none. */
bool hints_next(struct hints *hints, unsigned *shard, tw_duration *wait);

#endif
