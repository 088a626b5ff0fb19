/* SPDX-License-Identifier: MIT */
/* The namespaces that a worker serves: opened as it starts, and closed as it ends. */
#ifndef REDIS_WORKER_WORKER_SOURCES_H
#define REDIS_WORKER_WORKER_SOURCES_H

#include "worker.h"

/* Opens all that the options name, over the same connections. Statuses as tw_redis_open; whatever
 * is returned, sources_close() frees what there is. */
enum tw_status sources_open(struct tw_redis_worker *worker,
			    const struct tw_redis_options *redis_options,
			    struct tw_redis_error *error);
void sources_close(struct tw_redis_worker *worker);

#endif
