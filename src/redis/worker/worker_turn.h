/* SPDX-License-Identifier: MIT */
#ifndef REDIS_WORKER_WORKER_TURN_H
#define REDIS_WORKER_WORKER_TURN_H

#include "worker.h"

/* One round trip with all that there is to say to Redis. False: there was nothing. Main thread. */
bool worker_turn(struct tw_redis_worker *worker);

#endif
