/* SPDX-License-Identifier: MIT */
/*
 * Door 2: threads that do the jobs of timers that left the wheel. Submitting never allocates and
 * never waits for a task. The owner submits; any thread may wait or ask; the pool's creator
 * destroys.
 */
#ifndef WORKER_POOL_H
#define WORKER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job.h"
#include "base/list.h"
#include "wheel/timer.h"

struct worker_pool;

enum { WORKER_BATCH = 32 };

/* A crowd of jobs must not hold up the few that are due after it. */
enum job_lane {
	JOB_LANE_PROMPT, /* timers that have just become due, releases of single commands */
	JOB_LANE_BULK,   /* what is left of earlier ticks, drains and stops */
	JOB_LANES
};

/* Jobs on their way to the pool, gathered into batches. The submitter's own. */
struct job_batches {
	struct timer *first; /* the first timer of the first batch, or NULL; see worker_pool.c */
	struct timer *last;  /* the first timer of the last batch */
	struct timer *newest;
	size_t count; /* jobs */
};

/* Adds a job behind all others. */
void job_batches_add(struct job_batches *batches, struct timer *timer);

/*
 * Makes a pool by the options, which are complete: no 0 stands for a default. The threads are named
 * NAME-0 and so on, and NAME-watch where the pool may grow. Returns NULL and sets errno on failure.
 */
struct worker_pool *worker_pool_create(const struct tw_options *options, struct job_target *target);
/* Waits until all jobs are done, and ends and joins the threads. Until worker_pool_destroy() the
 * destructors of their specific data may make all calls. A second call does nothing. */
void worker_pool_end_threads(struct worker_pool *pool);
/* Ends the threads, if there are any left, and frees the pool. No other call may be under way. */
void worker_pool_destroy(struct worker_pool *pool);

/* Hands all batches over and leaves `batches` empty. */
void worker_pool_submit(struct worker_pool *pool, enum job_lane lane, struct job_batches *batches);
/* Waits until every job submitted before has been done, or until `deadline` of the target's clock.
 * During another wait it waits also for those submitted until that ends. Returns false on timeout.
 * Not in a job. */
bool worker_pool_wait_until(struct worker_pool *pool, tw_duration deadline);
/* Whether the calling thread is one of the pool's. */
bool worker_pool_is_here(const struct worker_pool *pool);
/* Sets `sums` to the statistics of the workers, those that have ended too, and fills in `workers`
 * and `unfinished` of `stats`, which is zeroed. */
void worker_pool_read(struct worker_pool *pool, struct tw_stats *stats, struct job_sums *sums);

#endif
