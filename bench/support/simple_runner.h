/* SPDX-License-Identifier: MIT */
/*
 * The baseline's one thread that runs tasks. Any thread may give it some; it runs all that it was
 * given before it stops.
 */
#ifndef BENCH_SUPPORT_SIMPLE_RUNNER_H
#define BENCH_SUPPORT_SIMPLE_RUNNER_H

#include "simple_timers.h"

typedef void simple_execute_fn(const struct random_key *key, void *value);

struct runner {
	/* Constant. */
	pthread_t thread;
	simple_execute_fn *execute;
	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t done;
	struct slot tasks;
	int64_t ran;
	bool stopping;
};

/* Ends the program when the thread can't be had. */
void runner_start(struct runner *runner, simple_execute_fn *execute);
void runner_stop(struct runner *runner);

/* At least one task; they are the runner's from here on. */
void runner_give(struct runner *runner, struct slot *tasks);

/* Waits until `count` tasks have run since the start; returns how many have. */
int64_t runner_wait_ran(struct runner *runner, int64_t count);

#endif
