/* SPDX-License-Identifier: MIT */
/* A job is the one call of the user's function for a timer that left the wheel. Any thread. */
#ifndef JOB_H
#define JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <timingwheel/timingwheel.h>

#include "alarm.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/event_count.h"
#include "base/fork_guard.h"
#include "base/histogram.h"
#include "base/thread.h"
#include "handle.h"
#include "wheel/timer.h"

/* A tw_drain on its way; one reference for the owner, and one for each of its timers. */
struct drain {
	tw_execute_fn *each;
	void *context;
	atomic_size_t references;
};

void drain_release(struct drain *drain);

/* The user's functions. One a wheel. */
struct job_target {
	/* Constant after init. */
	struct tw_wheel *wheel;
	char name[16]; /* the options' */
	const struct fork_guard *guard;
	const struct clock *clock;
	struct timer_store *store;
	struct handle_table *handles;
	struct alarm_table *alarms;
	struct limit *places;      /* a keyed timer or a handle has one until its value is back */
	struct event_count *owner; /* woken when a handle is to run again; NULL if it is here */
	tw_execute_fn *execute;    /* NULL if no timer has a key */
	tw_release_fn *release;    /* or NULL */
	void *context;
	/* Any thread; written when the wheel is stopped. */
	atomic_bool stopped; /* tasks not begun are released instead */
};

/* Statistics of the jobs that a thread did. */
enum job_count {
	JOB_UNBEGUN_STOPPED, /* tasks: the wheel had been stopped */
	JOB_UNBEGUN_REMOVED, /* the handle had been stopped */
	JOB_UNBEGUN_RESET,   /* the handle goes back: it was reset, or its calendar not due */
	JOB_COUNTS
};

enum { JOB_NO_TASK = -1, JOB_RUN_WORDS = TW_RUNNING_KEY_SIZE / sizeof(uint64_t) };

/*
 * A job run is the call that a thread makes, for those that look at it meanwhile. The thread clears
 * `began` at the end of a run, and sets it last at the begin of the next.
 */
struct job_run {
	/* The real time when the task began; 0 if there is no run; JOB_NO_TASK for a release, drain
	 * or close function, whose key is not shown. */
	_Atomic tw_duration began;
	_Atomic uint64_t key_size; /* bytes; 0 if it has no key */
	/* The first bytes of the key. Without a key the first word is the handle's id, or 0. */
	_Atomic uint64_t words[JOB_RUN_WORDS];
};

/* A job thread is the bin and the statistics of a thread that does jobs. Its size is 11 KiB. It is
 * zeroed before its bin is set. */
struct job_thread {
	/* The thread's own. */
	struct timer_bin *bin;
	/* Inline: what the job has left for the owner. */
	bool has_called;    /* a command, a request or a change */
	struct alarm *back; /* or NULL; it is set or closed, and in no inbox */
	/* Statistics, written by that thread and read by any. */
	_Atomic uint64_t counts[JOB_COUNTS];
	struct histogram lateness; /* the lateness of tasks begun */
	struct histogram duration; /* the duration of tasks ended */
	struct job_run run;
};

/* The sum of the statistics of several job threads. It has 11 KiB, and belongs to one thread. */
struct job_sums {
	uint64_t counts[JOB_COUNTS];
	struct histogram_sum lateness;
	struct histogram_sum duration;
	uint64_t runs; /* calls under way */
	/* The task that began first. */
	tw_duration began; /* real time, as `took` is not known here */
	struct tw_running longest;
};

/* Adds the statistics of `thread` to `sums`. Any thread. */
void job_sums_add(struct job_sums *sums, const struct job_thread *thread);

/* Does the timer's job and frees the timer. `thread` is the calling thread's. Returns how long the
 * task took, in real time, or, if it was not the one function of the program's that was called, the
 * negative of the time when the job began. */
tw_duration job_finish(struct job_target *target, struct timer *timer, struct job_thread *thread);

/* Calls `visit` for the timers until it returns 0; then returns false. */
bool job_visit(const struct job_target *target, tw_visit_fn *visit, void *context,
	       const struct tw_pending_timer *timers, size_t count);

/* Calls thread_begin_calls(), or thread_end_calls(), for a thread that does jobs. */
void job_call_for_thread(const struct job_target *target, const struct thread_setup *setup,
			 const char *name, bool begins);

/* Makes what lies in the bin available to all. */
void job_flush(struct job_target *target, struct timer_bin *bin);

#endif
