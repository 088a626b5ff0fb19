/* SPDX-License-Identifier: MIT */
/* The stopwatch has monotonic time, CPU time and sleeps, in nanoseconds. Any thread. */
#ifndef BENCH_SUPPORT_STOPWATCH_H
#define BENCH_SUPPORT_STOPWATCH_H

#include <stdint.h>

#define NANOSECONDS_PER_SECOND INT64_C(1000000000)

int64_t stopwatch_now(void);

/* Returns the median difference of two successive stopwatch_now(). */
int64_t stopwatch_overhead(void);

/* Returns the CPU time of all threads so far. */
int64_t stopwatch_process_cpu(void);

/* Returns the CPU time so far of the calling thread. */
int64_t stopwatch_thread_cpu(void);

void stopwatch_sleep(int64_t duration);

static inline double seconds_of(int64_t nanoseconds)
{
	return (double)nanoseconds / (double)NANOSECONDS_PER_SECOND;
}

#endif
