/* SPDX-License-Identifier: MIT */
/*
 * The owner: the one thread at a time that may touch the pending timers. A thread of its own
 * (TW_DRIVE_THREAD), or the thread that holds the drive lock (TW_DRIVE_CALLER). Its data, by the
 * files that use them, and what these do for each other.
 */
#ifndef OWNER_STATE_H
#define OWNER_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/event_count.h"
#include "base/list.h"
#include "base/thread.h"
#include "alarm.h"
#include "command_queue.h"
#include "handle.h"
#include "job.h"
#include "pending.h"
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

/*
 * The outbox hands timers that left the wheel to the pool, or to the lists of inline jobs, or frees
 * them where there is no function to call. It is the owner's, except what any thread may touch.
 */
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

/* A command waits for the changes before these, where more come than are applied: apply.c. */
struct owner_marks {
	bool are_set;
	uint64_t inboxes[ALARM_INBOXES];
};

/* Waits for idleness go by rounds: apply.c. What was due when a round began is done at its end. */
struct owner_idle {
	uint64_t asked;        /* all waits before this position of the queue have begun */
	uint64_t covered;      /* those before this one end with the round under way */
	tw_duration time;      /* when it began */
	bool is_early;         /* and jobs that waited then may wait still */
	_Atomic uint64_t done; /* those before this one have ended; read by any thread */
};

/* Inline tasks that a turn runs, if it is not to run less. */
enum { OWNER_JOBS_A_TURN = 1024 };

/* Inline tasks: inline_jobs.c. */
struct owner_inline {
	struct list batch;     /* being run, in the order of events */
	tw_duration task_time; /* what this turn's tasks took */
	size_t jobs_run;       /* in this turn */
	size_t jobs_most;      /* in a turn */
	int batches;           /* cut off since the last timer, tick or turn that had done all */
	bool is_crowded;       /* this turn has done enough */
	bool held_waits;       /* what tasks set for now waits for the next tick or turn */
	bool is_hushed;        /* a task has called tw_poll: the descriptor is unreadable */
};

struct owner {
	/* Constant after owner_init. */
	tw_duration patience;  /* what a crowd in one tick may take to be worked off */
	bool has_thread;       /* until owner_end() */
	size_t changes_a_turn; /* alarms that the beginning of a turn sees to */
	bool overtakes;        /* a tick may begin before the one before it is done */
	struct thread_setup setup;
	struct thread thread;
	/* Any thread. */
	struct clock clock;
	struct command_queue queue;
	struct event_count event;
	pthread_mutex_t drive;    /* its holder is the owner; not with a thread */
	pthread_mutex_t advances; /* tw_advance() holds it: one at a time */
	tw_duration rests_until;  /* nothing is to do before, unless somebody calls */
	_Atomic uintptr_t driver; /* the owner's thread now, or 0 */
	atomic_bool stopping;     /* the wheel stops when the queue is empty */
	atomic_bool ending;
	struct outbox out; /* also the owner's */
	/* The owner's, except that any thread reads the count. */
	_Alignas(CACHE_LINE) _Atomic uint64_t pending_count; /* a statistic, as is the next */
	_Atomic uint64_t index_memory;                       /* bytes */
	struct pending pending;
	/* While timers are stale: drains.c. */
	struct drain *drain;     /* or NULL: they are released, TW_STOPPED */
	struct list after_drain; /* inline jobs that come after all of them */
	struct owner_marks marks;
	struct question *advance; /* QUESTION_ADVANCE under way, or NULL */
	struct owner_idle idle;
	struct owner_inline in;
	tw_duration poll_began; /* tw_poll runs what is due by then; TW_FOREVER outside tw_poll */
	bool is_stopped;
	size_t applied; /* commands and changes, in this turn */
	unsigned tries; /* to sleep, in a row, while a producer had a command half written */
};

/* Any thread: whether it is the owner at the moment, which is to say, in an inline task. */
static inline bool owner_is_here(struct owner *owner)
{
	/* relaxed: only the calling thread itself can have written its own name. */
	uintptr_t driver = atomic_load_explicit(&owner->driver, memory_order_relaxed);

	return driver != 0 && driver == (uintptr_t)pthread_self();
}

/* The calling thread is the owner from here on; or, if not `is_here`, no thread is. */
static inline void owner_set_here(struct owner *owner, bool is_here)
{
	/* relaxed: matters to this thread alone. */
	atomic_store_explicit(&owner->driver, is_here ? (uintptr_t)pthread_self() : 0,
			      memory_order_relaxed);
}

/* Makes the number of pending timers, and the memory of their index, known to all. */
static inline void owner_publish_pending(struct owner *owner)
{
	counter_set(&owner->pending_count, owner->pending.count - owner->pending.stale_count);
	counter_set(&owner->index_memory, timer_index_memory(&owner->pending.index));
}

/* Returns whether the wheel is to be stopped once nothing that was given before is left. */
static inline bool owner_is_stopping(struct owner *owner)
{
	/* seq_cst: before a look at the queue, and the second look of an owner that goes to sleep;
	 * pairs with the store in tw_stop(). */
	return atomic_load_explicit(&owner->stopping, memory_order_seq_cst) && !owner->is_stopped;
}

/* Returns whether inline jobs are to be run. */
static inline bool owner_has_jobs(const struct owner *owner)
{
	return !list_is_empty(&owner->in.batch) || !list_is_empty(&owner->out.jobs);
}

/* Returns whether inline tasks wait for the next turn. */
static inline bool owner_has_next_jobs(const struct owner *owner)
{
	/* Alarms that are held as the wheel stops run no more. */
	return owner_has_jobs(owner) || (!owner->is_stopped && pending_has_held(&owner->pending));
}

/* Any thread, having left a command or a change: where it is an inline task, the owner
 * knows. */
static inline void owner_note_call(struct owner *owner)
{
	if (!owner->out.pool && owner_is_here(owner))
		owner->out.thread.has_called = true;
}

/* ---- What the owner's files do for each other. Owner only. ---- */

/* outbox.c hands timers over. */

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

/* The owner's part in an alarm's life (alarm.h) is that it learns what others have changed, and
 * files alarms in the wheel and takes them out. */

/* Applies changes of alarms that were set, stopped or closed, or whose runs have ended, and returns
 * how many: less than `most`: all; more by a few batches at the most. */
size_t owner_apply_changes(struct owner *owner, size_t most);
/* Begins the life of a handle's alarm, whose first set was a command. */
void owner_begin_alarm(struct owner *owner, struct alarm *alarm);
/* Files or ends an alarm that is in no list, and does not run: it has left the wheel, or is back
 * from a run here. */
void owner_settle_alarm(struct owner *owner, struct alarm *alarm);
/* Claims the run of an alarm that has left the wheel. Returns false if it must not run now; then it
 * was filed again if it is still set. */
bool owner_claim_alarm(struct owner *owner, struct alarm *alarm);
/* Takes an alarm that is being destroyed out of its list, unless it is on its way to the inbox. */
void owner_take_out_alarm(struct owner *owner, struct alarm *alarm);

/* drains.c makes all that is pending stale at once, and hands it over bit by bit. */

/* Begins a drain where no timer is stale. After a stop it has nothing to drain, and ends. */
void owner_drain(struct owner *owner, struct drain *drain);
/* Begins the last epoch, as a drain does. */
void owner_stop(struct owner *owner);
/* Hands over some of the stale timers, which there must be or have been. */
void owner_sweep(struct owner *owner);
/* Hands over a timer that has expired if it is stale; returns whether it is. */
bool owner_hand_over_if_stale(struct owner *owner, struct timer *timer);

/* apply.c applies commands in their order, and answers questions. */

/* Applies up to `most` commands; runs nothing. Returns whether there may be more. */
bool owner_apply(struct owner *owner, size_t most);
/* Returns whether a drain or the stop comes next, and waits for the one under way. */
bool owner_drain_waits(struct owner *owner);
/* Applies commands, `most` at a time, until the commands before position `end` are applied or,
 * unless it `sweeps`, owner_drain_waits(). It waits where a producer has one half written. */
void owner_apply_until(struct owner *owner, size_t most, uint64_t end, bool sweeps);
/* Answers a question of the owner's thread after the commands before it. */
void owner_answer_here(struct owner *owner, struct question *question);
/* Ends the round of waits for idleness if it began before tick `end`: all that was due by then is
 * done. Returns whether none is under way. */
bool owner_end_idle(struct owner *owner, uint64_t end);
/* Returns the time up to which things are due: an advance's end, or now. */
tw_duration owner_target_time(struct owner *owner);
/* All that is due by tick `target` is done: ends the advance under way, unless it goes on. Returns
 * false if there is none. */
bool owner_end_advance(struct owner *owner, uint64_t target);

/* inline_jobs.c runs tasks, releases and drain functions where the wheel is driven. */

/* Inline: runs the next batch of jobs. */
void owner_run_batch(struct owner *owner);
/* Inline: hands over some of the stale timers, and runs the next batch. Returns false if there is
 * none, or it has to wait. */
bool owner_settle(struct owner *owner);

/* owner.c has the loop: its turns and its sleep. */

/*
 * Does one turn of the loop: a bounded number of commands, of due timers and of stale ones.
 * Returns whether there is more to do at once.
 */
bool owner_turn(struct owner *owner);
/*
 * Applies commands, and answers `question`, which may be NULL, but runs no task: timers that are
 * due stay for the next turn. Where callers drive. Returns whether there is more to apply.
 */
bool owner_apply_turn(struct owner *owner, struct question *question);
/* Returns whether timers are due or stale, or jobs begun, that the last turn had to leave. */
bool owner_is_busy(struct owner *owner);
/* Returns the time of the next turn that is known of; TW_FOREVER: none. */
tw_duration owner_next_time(struct owner *owner);
/*
 * Returns a descriptor for a caller that drives the wheel and sleeps in poll() or epoll, or -1 and
 * sets errno. Before it sleeps, the caller calls owner_begin_sleep() with whether there is more to
 * do at once; when it is back, event_count_cancel().
 */
int owner_descriptor(struct owner *owner);
void owner_begin_sleep(struct owner *owner, bool more);

/* ---- Its life. The thread that creates or destroys the wheel. ---- */

/* Returns TW_OK, TW_NO_MEMORY, or TW_SYSTEM with errno set. Starts no owner thread yet. */
enum tw_status owner_init(struct owner *owner, tw_duration interval, size_t slots,
			  tw_execute_fn *execute, const struct tw_options *options);
/* Everything must have been handed over. */
void owner_destroy(struct owner *owner);
/* Starts the owner's thread; 0 or an errno value. */
int owner_start(struct owner *owner, const char *name);
/* Ends and joins it. From then on its callers drive the wheel. */
void owner_end(struct owner *owner);

#endif
