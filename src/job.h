/* SPDX-License-Identifier: MIT */
/* What becomes of a timer that left the wheel: its user's function is called, once. Any thread. */
#ifndef JOB_H
#define JOB_H

#include <stdatomic.h>
#include <stdbool.h>

#include <timingwheel/timingwheel.h>

#include "clock.h"
#include "event_count.h"
#include "handle.h"
#include "timer.h"

/* A tw_drain on its way; one reference for who hands its timers over, and one for each of them. */
struct drain {
	tw_execute_fn *each;
	void *context;
	atomic_size_t references;
};

void drain_release(struct drain *drain);

/* The user's functions. One a wheel. */
struct job_target {
	/* Constant after init. */
	const struct clock *clock;
	struct timer_store *store;
	struct handle_table *handles;
	struct event_count *owner; /* woken when a handle is to run again */
	tw_execute_fn *execute;
	tw_release_fn *release; /* or NULL */
	void *context;
	/* Any thread; written when the wheel is stopped. */
	atomic_bool stopped;       /* tasks not begun are released instead */
	_Atomic uint64_t released; /* statistic: how many were, for that reason */
};

/* Does the timer's job and frees it. `bin` is the calling thread's. */
void job_finish(struct job_target *target, struct timer *timer, struct timer_bin *bin);

/* Makes what lies in the bin available to all. */
void job_flush(struct job_target *target, struct timer_bin *bin);

#endif
