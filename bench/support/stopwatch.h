/* SPDX-License-Identifier: MIT */
/* Time for the benches, in nanoseconds: the monotonic clock, CPU time, sleeping. Any thread. */
#ifndef BENCH_SUPPORT_STOPWATCH_H
#define BENCH_SUPPORT_STOPWATCH_H

#include <pthread.h>
#include <stdint.h>

#define NANOSECONDS_PER_SECOND INT64_C(1000000000)

int64_t stopwatch_now(void);

/* What two successive stopwatch_now() differ by although nothing lies between them: the median. */
int64_t stopwatch_overhead(void);

/* CPU time of the whole process so far, all threads. */
int64_t stopwatch_process_cpu(void);

/* CPU time of the calling thread so far, and of one that has not been joined. */
int64_t stopwatch_thread_cpu(void);
int64_t stopwatch_cpu_of(pthread_t thread);

void stopwatch_sleep(int64_t duration);

static inline double seconds_of(int64_t nanoseconds)
{
	return (double)nanoseconds / (double)NANOSECONDS_PER_SECOND;
}

#endif
