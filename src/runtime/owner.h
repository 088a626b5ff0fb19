/* SPDX-License-Identifier: MIT */
/*
 * The owner: the one at a time who may touch the pending timers. A thread of its own
 * (TW_DRIVE_THREAD), or the thread that holds the drive lock (TW_DRIVE_CALLER).
 */
#ifndef OWNER_H
#define OWNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "alarm.h"
#include "base/clock.h"
#include "base/counter.h"
#include "command_queue.h"
#include "base/event_count.h"
#include "handle.h"
#include "job.h"
#include "base/list.h"
#include "request.h"
#include "shelf.h"
#include "wheel/timer.h"
#include "worker_pool.h"

/* Drains at a time: their shelves' numbers tell them apart, and what is still to be emptied is
 * bounded. */
enum { DRAINS_MOST = 64 };

/* A shelf taken away, whose timers are handed over bit by bit. */
struct retirement {
	struct list link;
	struct shelf shelf;
	struct drain *drain; /* or NULL: they are released, TW_STOPPED */
	struct list after;   /* inline jobs that come after all of the shelf's */
};

/* tw_drain's request, with all the memory it needs. */
struct drain_request {
	struct request request;
	struct retirement retirement; /* its shelf is the new one until it is exchanged */
};

/* Counts that the owner alone writes and any thread reads. */
struct owner_counts {
	_Atomic uint64_t set;
	_Atomic uint64_t replaced;
	_Atomic uint64_t moved;
	_Atomic uint64_t removed;
	_Atomic uint64_t fired;
	_Atomic uint64_t drained;
	_Atomic uint64_t stopped;
	_Atomic uint64_t turns;
	_Atomic uint64_t wakeups;
	_Atomic uint64_t longest_turn; /* nanoseconds of work */
	_Atomic uint64_t longest_turn_wall;
	_Atomic uint64_t pending;
	_Atomic uint64_t held_back;
};

struct owner {
	/* Constant after owner_init. */
	struct shelf_plan plan;
	struct worker_pool *pool; /* NULL: tasks run where the wheel is driven */
	size_t max_pending;       /* 0: no limit */
	bool pool_is_limited;     /* timers are due in the wheel until there is room in the pool */
	bool has_thread;
	pthread_t thread;
	/* Any thread. */
	struct clock clock;
	struct job_target target;
	struct timer_store store;
	struct handle_table handles;
	struct alarm_table alarms;
	struct command_queue queue;
	struct requests requests;
	struct event_count event;
	pthread_mutex_t drive;    /* its holder is the owner; not with a thread */
	int cancel_state;         /* of that thread before; under the lock */
	_Atomic uintptr_t driver; /* the owner's thread now; 0: none */
	atomic_bool ending;
	/* With max_pending: timers pending, sets in the queue that may add one, and parked sets.
	 * Any thread. */
	_Alignas(CACHE_LINE) atomic_size_t reserved;
	atomic_size_t drains; /* asked for, and not yet handed over. Any thread */
	/* Owner only, but for the reading of the counts. */
	_Alignas(CACHE_LINE) struct owner_counts counts;
	struct shelf shelf;
	struct timer_bin bin;
	struct job_batches batches[JOB_LANES]; /* to be submitted to the pool */
	struct list round;                     /* being run inline, in the order of events */
	struct list jobs;                      /* to be run inline, after those */
	struct list next_jobs;                 /* the same, in the next turn */
	struct list next_timers; /* handles and alarms that inline tasks set for now: next turn */
	struct list retirements;
	struct list advances; /* REQUEST_ADVANCE, the first one under way */
	struct list idlers;   /* REQUEST_IDLE, until nothing is due */
	struct list parked;   /* REQUEST_SET, until there is a place */
	size_t parked_count;
	struct request stop_request;
	struct retirement stop_retirement;
	struct job_seat seat;  /* of inline tasks */
	tw_duration task_time; /* of this turn's inline tasks */
	/* See owner_inline.c. */
	size_t jobs_run;    /* in this turn */
	int rounds;         /* of jobs that jobs have caused, in this tick */
	int settle_rounds;  /* of jobs that were put off, in this tick */
	bool in_dispatch;   /* inline jobs are being run */
	bool task_called;   /* the inline task has left a command or a request */
	bool is_crowded;    /* this turn has done enough */
	bool resumed;       /* it goes on with what a crowded one has left */
	bool commands_wait; /* and so it leaves the queue alone */
	bool held_back;     /* timers are due, and the pool has no room for them */
	size_t room;        /* in the pool, for this turn's timers */
	bool is_stopped;
	size_t applied; /* commands, in this turn */
	unsigned tries; /* to sleep, in a row, while a producer had a command half written */
};

/* What owner_init needs to know; the rest comes from the options. */
struct owner_settings {
	tw_duration interval;
	size_t slots;
	tw_execute_fn *execute;
	const struct tw_options *options;
};

/* TW_OK, TW_NO_MEMORY, or TW_SYSTEM: errno tells. Starts no owner thread yet. */
enum tw_status owner_init(struct owner *owner, const struct owner_settings *settings);
/* Everything must have been handed over. */
void owner_destroy(struct owner *owner);
/* Starts the owner's thread; 0 or an errno value. */
int owner_start(struct owner *owner, const char *name);
/* Ends and joins it. */
void owner_end(struct owner *owner);

/* Any thread, with max_pending: takes a place, if one is free at a glance; gives some back. */
bool owner_reserve(struct owner *owner);
void owner_unreserve(struct owner *owner, size_t count);

/* Any thread: whether it is the owner at the moment, which is to say, in an inline task. */
bool owner_is_here(struct owner *owner);

/* Any thread, having left a command or a request: where it is an inline task, the owner knows. */
static inline void owner_note_call(struct owner *owner)
{
	if (!owner->pool && owner_is_here(owner))
		owner->task_called = true;
}

/* Owner only, from here on. */

/*
 * One turn of the loop: a bounded number of commands, due timers and timers of retired shelves.
 * True: there is more to do at once.
 */
bool owner_turn(struct owner *owner);
/* Whether timers are due or retired, or jobs begun, that the last turn had to leave. */
bool owner_is_busy(struct owner *owner);
/* Whether inline tasks wait for the next turn. */
bool owner_has_next_jobs(struct owner *owner);
/* The time of the next turn that is known of; TW_FOREVER: none, or it waits for room. */
tw_duration owner_next_time(struct owner *owner);
/*
 * For a caller that drives the wheel and sleeps in poll() or epoll; -1: errno tells.
 * Before it sleeps, owner_begin_sleep(), which is told whether there is more to do at once; when it
 * is back, owner_end_sleep().
 */
int owner_descriptor(struct owner *owner);
void owner_begin_sleep(struct owner *owner, bool more);
void owner_end_sleep(struct owner *owner);
/* Applies up to `most` commands and requests; runs nothing. True: there may be more. */
bool owner_apply(struct owner *owner, size_t most);
/* Arms the request's timer or answers TW_FULL or TW_CLOSED. */
enum tw_status owner_set_within_limit(struct owner *owner, struct timer *timer);
/* Hands on a timer that a drain or a stop took. */
void owner_retire_timer(struct owner *owner, struct timer *timer, struct drain *drain);
/* Sets that wait for a place, in their order, while there are places. */
void owner_answer_parked(struct owner *owner);
/* A handle's set command; in_task: given by an inline task. */
void owner_set_handle(struct owner *owner, struct handle *handle, bool in_task);
/* A handle's reset command. */
void owner_reset_handle(struct owner *owner, const struct command *command);
/* Sees to handles that come back to run again, and to up to `most` stopped ones. True: to all. */
bool owner_see_handles(struct owner *owner, size_t most);
/* Sees to up to `most` alarms that were set sooner or destroyed; returns how many. */
size_t owner_see_alarms(struct owner *owner, size_t most);
/* Puts a handle or an alarm into the wheel by its expiry; what an inline task wants at once is put
 * off. */
void owner_place(struct owner *owner, struct timer *timer, bool in_task);
/* Takes it out of where it waits. */
void owner_unplace(struct owner *owner, struct timer *timer);
/* Of an alarm that has left the wheel. False: it is not to run, and was filed anew if need be. */
bool owner_claim_alarm(struct owner *owner, struct tw_alarm *alarm);
/* Of an alarm on a retired shelf: it goes to the one in use. */
void owner_retire_alarm(struct owner *owner, struct tw_alarm *alarm);
/* The handles and alarms that were put off until the next turn are due now. */
void owner_begin_next_turn(struct owner *owner);
/* Hands on some timers of the oldest retired shelf, of which there must be one, or takes some of it
 * down. */
void owner_retire_some(struct owner *owner);

/* Inline. True: this turn goes on with what a crowded one has left, and leaves the queue alone. */
bool owner_resume_turn(struct owner *owner);
/* As many rounds are allowed again: another tick begins, another timer has expired. */
void owner_begin_rounds(struct owner *owner);
/* Runs the inline jobs, and those that they cause. */
void owner_run_jobs(struct owner *owner);
/* Does what the tasks of this tick have left behind. */
void owner_settle(struct owner *owner);
bool owner_has_jobs(const struct owner *owner);

/* Makes the number of pending timers known to all. */
void owner_publish_pending(struct owner *owner);
/* The drain has handed over all its timers, or was too late. */
void owner_end_drain(struct owner *owner, struct retirement *retirement);
/* Leaves a timer to the pool, or to this turn's inline jobs. */
void owner_hand_over(struct owner *owner, struct timer *timer, enum timer_job job);
/* Hands back a timer that will not run. */
void owner_release(struct owner *owner, struct timer *timer, enum tw_reason reason);

#endif
