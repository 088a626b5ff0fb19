/* SPDX-License-Identifier: MIT */
/* What becomes of a worker's runs, from the claim to the report. Main thread only. */
#ifndef REDIS_WORKER_WORKER_RUNS_H
#define REDIS_WORKER_WORKER_RUNS_H

#include "worker.h"

/* The end of a run that was put off: counted, and not reported, for it comes again soon. */
#define END_PUT_OFF ((enum tw_redis_end)(TW_REDIS_END_SNOOZED + 1))

/* Hands a claimed run to its runner, or ends it at once if there is none. */
void worker_take_run(struct tw_redis_worker *worker, struct run *run);
/* The runner has ended it, or gives it back: it goes to the list of what Redis is to be told. */
void worker_end_run(struct tw_redis_worker *worker, struct run *run);
/* Redis has been told, or can't be: tells the hook, and frees it. */
void worker_report(struct tw_redis_worker *worker, struct run *run, enum tw_redis_end end);

/* Its lease is to be made longer in the next turn; at a third of it. */
void run_extend(struct run *run);
void run_extend_later(struct run *run);

#endif
