/* SPDX-License-Identifier: MIT */
/*
 * The runner is the baseline's one thread that runs tasks. Any thread may give it some; it frees
 * all of them before it stops; they do nothing.
 */
#ifndef BENCH_SUPPORT_SIMPLE_RUNNER_H
#define BENCH_SUPPORT_SIMPLE_RUNNER_H

#include "simple_timers.h"

struct runner {
	/* This is constant. */
	pthread_t thread;
	/* These are under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t done;
	struct slot tasks;
	int64_t ran;
	bool stopping;
};

/* Ends the program when the thread can't be started. */
void runner_start(struct runner *runner);
void runner_stop(struct runner *runner);

/* Gives at least one task to the runner, which then owns them. */
void runner_give(struct runner *runner, struct slot *tasks);

/* Waits until `count` tasks have run since the start. */
void runner_wait_ran(struct runner *runner, int64_t count);

#endif
