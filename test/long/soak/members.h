/* SPDX-License-Identifier: MIT */
/*
 * Threads that come and go: a member's function runs on a thread of its own, and again on another
 * one when it has returned. One thread tends them.
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
	/* The tending thread's. */
	pthread_t thread;
	bool is_started;
	/* Any thread. */
	atomic_bool has_ended;
};

/* Joins those that have ended and starts them anew. Returns how many it started. */
uint64_t members_tend(struct member *members, int count);
/* Waits for all of them to end. */
void members_join(struct member *members, int count);

/* A thread with a small stack. Ends the program where it can't be started. */
void thread_start_or_fail(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
