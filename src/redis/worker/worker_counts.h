/* SPDX-License-Identifier: MIT */
/* What a worker's statistics say of its runs: times by their lengths, answers by host. */
#ifndef REDIS_WORKER_WORKER_COUNTS_H
#define REDIS_WORKER_WORKER_COUNTS_H

#include "worker.h"

/* Before any thread of the worker. */
void worker_counts_init(struct tw_redis_worker *worker);
/* A run that began has come to an end by itself. Main thread only. */
void worker_count_run(struct tw_redis_worker *worker, const struct run *run);
/* What there is is shown from now on. Main thread only. */
void worker_counts_show(struct tw_redis_worker *worker);

#endif
