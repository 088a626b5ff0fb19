/* SPDX-License-Identifier: MIT */
/* A worker tells each of its namespaces that it is there, for tw_redis_get_workers(). */
#ifndef REDIS_WORKER_WORKER_PRESENT_H
#define REDIS_WORKER_WORKER_PRESENT_H

#include "worker.h"

/* How long it is good for. */
#define PRESENT_TIME (30 * TW_SECOND)

/* Whether it is to be told in a turn that is made anyway. */
bool present_is_due(const struct source *source);
void present_write(struct source *source, struct eval *eval);

#endif
