/* SPDX-License-Identifier: MIT */
#ifndef REDIS_WORKER_WORKER_LOOP_H
#define REDIS_WORKER_WORKER_LOOP_H

#include "worker.h"

/* A worker's main thread, from its start to the end of a stop. */
void *worker_thread(void *worker);

#endif
