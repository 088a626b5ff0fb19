/* SPDX-License-Identifier: MIT */
/*
 * A namespace's limits: a worker may claim as many tasks as it has permits for, where there are
 * limits. Main thread only.
 */
#ifndef REDIS_WORKER_WORKER_PERMITS_H
#define REDIS_WORKER_WORKER_PERMITS_H

#include "worker.h"

void permits_init(struct source *source);

/* Whether Redis is to be asked or told, before anything is claimed; `wanted`: how many would
 * be claimed. */
bool permits_are_due(const struct source *source, size_t wanted);
void permits_write(struct source *source, struct eval *eval, size_t wanted);
void permits_read(struct source *source, const struct eval *eval);

/* More is neither to be asked for now nor to be claimed. */
size_t permits_most(const struct source *source);
/* A claim for so many is sent, and so many of them were not there. */
void permits_take(struct source *source, size_t count);
void permits_give_back(struct source *source, size_t count);

/* The worker ends: what it had is free. */
void permits_leave(struct source *source);

#endif
