/* SPDX-License-Identifier: MIT */
#ifndef TIMINGWHEEL_REDIS_WORKER_LOOP_H
#define TIMINGWHEEL_REDIS_WORKER_LOOP_H

#include "worker.h"

/* A worker's main thread, from its start to the end of a stop. */
void *worker_thread(void *worker);

#endif
