/* SPDX-License-Identifier: MIT */
/*
 * A namespace's limits: a worker may claim as many tasks as it has permits for, where there are
 * limits. Main thread only.
 */
#ifndef TIMINGWHEEL_REDIS_WORKER_PERMITS_H
#define TIMINGWHEEL_REDIS_WORKER_PERMITS_H

#include "worker.h"

void permits_init(struct tw_redis_worker *worker);

/* Whether Redis is to be asked or told, before anything is claimed; `wanted`: how many the worker
 * would claim. */
bool permits_are_due(const struct tw_redis_worker *worker, size_t wanted);
void permits_write(struct tw_redis_worker *worker, struct command *command, size_t wanted);
void permits_read(struct tw_redis_worker *worker, const struct command *command);

/* How many of those wanted may be claimed. */
size_t permits_of(const struct tw_redis_worker *worker, size_t wanted);
/* A claim for so many is sent, and so many of them were not there. */
void permits_take(struct tw_redis_worker *worker, size_t count);
void permits_give_back(struct tw_redis_worker *worker, size_t count);

/* The worker ends: what it had is free. */
void permits_leave(struct tw_redis_worker *worker);

#endif
