/* SPDX-License-Identifier: MIT */
/* A blocked call is made by another thread, which sleeps until something lets it continue. */
#ifndef SUPPORT_BLOCKED_CALL_H
#define SUPPORT_BLOCKED_CALL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct blocked_call {
	void (*make)(void *argument);
	void *argument;
	pthread_t thread;
	atomic_int id; /* the thread's id in the system */
	atomic_bool has_returned;
};

void blocked_call_start(struct blocked_call *call, void (*make)(void *argument), void *argument);
bool blocked_call_is_asleep(struct blocked_call *call);
/* Waits until it sleeps where it waits, and not for a moment. */
void blocked_call_falls_asleep(struct blocked_call *call);
bool blocked_call_has_returned(struct blocked_call *call);
/* Waits until it returns, also where the thread is cancelled; the test fails if it does not. */
void blocked_call_end(struct blocked_call *call);

#endif
