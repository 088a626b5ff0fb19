/* SPDX-License-Identifier: MIT */
#include "stopwatch.h"

#include "percentiles.h"
#include "process.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define OVERHEAD_SAMPLES 20001

static int64_t clock_nanoseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NANOSECONDS_PER_SECOND + now.tv_nsec;
}

int64_t stopwatch_now(void)
{
	return clock_nanoseconds(CLOCK_MONOTONIC);
}

int64_t stopwatch_process_cpu(void)
{
	return clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t stopwatch_thread_cpu(void)
{
	return clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

int64_t stopwatch_overhead(void)
{
	struct percentiles *differences = percentiles_create();
	int64_t median;

	for (int i = 0; i < OVERHEAD_SAMPLES; i++) {
		int64_t start = stopwatch_now();

		percentiles_record(differences, stopwatch_now() - start);
	}
	median = percentiles_at(differences, 50);
	percentiles_destroy(differences);
	return median;
}

void stopwatch_sleep(int64_t duration)
{
	struct timespec rest = {
		.tv_sec = (time_t)(duration / NANOSECONDS_PER_SECOND),
		.tv_nsec = (long)(duration % NANOSECONDS_PER_SECOND),
	};

	if (duration <= 0)
		return;
	while (nanosleep(&rest, &rest) == -1 && errno == EINTR)
		;
}
