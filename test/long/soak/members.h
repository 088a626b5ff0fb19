/* SPDX-License-Identifier: MIT */
/*
 * Members are threads that come and go: a member's function runs on a thread of its own, and again
 * on another one when it has returned. One thread tends them.
 */
#ifndef SOAK_MEMBERS_H
#define SOAK_MEMBERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct member {
	void (*run)(void *argument);
	void *argument;
	/* Only the tending thread uses this. */
	pthread_t thread;
	bool is_started;
	/* Any thread may use this. */
	atomic_bool has_ended;
};

/* Joins ended members and restarts them. */
void members_tend(struct member *members, int count);
/* Waits for all of them to end. */
void members_join(struct member *members, int count);

/* Starts a thread with a small stack. Ends the program if it can't be started. */
void thread_start_or_fail(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
