/* SPDX-License-Identifier: MIT */
/* Starting a thread of the library. */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>

/*
 * Starts a thread called NAME-ROLE (the system may cut that short). It takes no signals: those are
 * the program's. Answers 0 or an errno value, which is also left in errno.
 */
int thread_start(pthread_t *thread, void *(*run)(void *), void *argument, const char *name,
		 const char *role);

/* Lets the calling thread's sleeps end on time: at most a microsecond after their deadline. */
void thread_sleep_exactly(void);

#endif
