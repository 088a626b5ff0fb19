/* SPDX-License-Identifier: MIT */
/*
 * The outbox hands timers that left the wheel to the pool, or to the lists of inline jobs, or frees
 * them where there is no function to call. It is the owner's, except what any thread may touch.
 */
#ifndef OUTBOX_H
#define OUTBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "alarm.h"
#include "base/counter.h"
#include "base/list.h"
#include "handle.h"
#include "job.h"
#include "wheel/timer.h"
#include "worker_pool.h"

/* X(name, help): what became of timers, and then how many were set: in this order nobody reads more
 * of the former than of the latter. */
#define TIMER_COUNTS(X)                                                             \
	X(fired, "Timers handed over to run.")                                      \
	X(drained, "Timers handed to drain functions.")                             \
	X(stopped, "Timers pending, or tasks not begun, at the stop of the wheel.") \
	X(removed, "Timers removed by key, or stopped by handle.")                  \
	X(replaced, "Values replaced under an existing key.")                       \
	X(moved, "Moves that found their key.")                                     \
	X(set, "Timers armed under a new key, or by handle.")

/* Written by the owner, read by any thread, ordered (base/counter.h). */
struct timer_counts {
#define TIMER_COUNT(name, help) _Atomic uint64_t name;
	TIMER_COUNTS(TIMER_COUNT)
};

struct outbox {
	/* Constant after outbox_init. */
	struct worker_pool *pool; /* NULL if tasks run where the wheel is driven */
	/* Any thread. */
	struct job_target target;
	struct timer_store store;
	struct handle_table handles;
	struct alarm_table alarms;
	/* max_pending limits the timers that were set and whose values have not come back. */
	_Alignas(CACHE_LINE) struct limit places;
	/* The owner's, except that any thread reads the counts. */
	_Alignas(CACHE_LINE) struct timer_counts counts;
	struct timer_bin bin;
	struct job_batches batches[JOB_LANES]; /* to be submitted to the pool */
	struct list jobs;                      /* to be run inline, in the order of events */
	struct list *jobs_end;                 /* `jobs`, or what comes after a drain's: drains.c */
	struct job_thread thread;              /* for inline tasks */
};

/* Needs the target's clock, guard and owner. Returns TW_OK, TW_NO_MEMORY, or TW_SYSTEM (errno). */
enum tw_status outbox_init(struct outbox *outbox, tw_execute_fn *execute,
			   const struct tw_options *options);
/* Waits until all jobs are done, and ends the pool's threads. Nothing may be submitted any more. */
void outbox_end_threads(struct outbox *outbox);
void outbox_destroy(struct outbox *outbox);

/* Leaves a timer that is due to the pool, or to the inline jobs. */
void outbox_run(struct outbox *outbox, struct timer *timer, enum job_lane lane);
/* Frees a keyed timer whose value has come back, and gives back its place. */
void outbox_free(struct outbox *outbox, struct keyed_timer *timer);
/* Hands back a keyed timer that will not run. */
void outbox_release(struct outbox *outbox, struct timer *timer, enum tw_reason reason);
/* Leaves the function that a close of an alarm was given to the pool, or to the inline
 * jobs; the timer is freed there. */
void outbox_close(struct outbox *outbox, struct timer *timer);
/* Hands on what a drain took, or a stop (`drain` is NULL): a timer with a key, or a handle that was
 * taken; inline, to a list of jobs. */
void outbox_retire(struct outbox *outbox, struct timer *timer, struct drain *drain,
		   struct list *inline_jobs);
/* Submits what was gathered for the pool. */
void outbox_submit(struct outbox *outbox);

#endif
