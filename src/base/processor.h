/* SPDX-License-Identifier: MIT */
/* These functions report how many processors there are, and how much of them threads had. */
#ifndef PROCESSOR_H
#define PROCESSOR_H

#include <pthread.h>
#include <stddef.h>

#include <timingwheel/timingwheel.h>

/* Returns the number of processors that the calling thread may use, at least 1. */
size_t processors_available(void);

/*
 * Returns the processor time that a thread has had, in nanoseconds. The thread must not have been
 * joined. Returns 0 if it has ended, or if the system keeps no such clock.
 */
tw_duration processor_time(pthread_t thread);

#endif
