/* SPDX-License-Identifier: MIT */
#include "stopwatch.h"

#include "histogram.h"

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

int64_t stopwatch_overhead(void)
{
	struct histogram *differences = histogram_create();
	int64_t median;

	for (int i = 0; i < OVERHEAD_SAMPLES; i++) {
		int64_t start = stopwatch_now();

		histogram_record(differences, stopwatch_now() - start);
	}
	median = histogram_percentile(differences, 50);
	histogram_destroy(differences);
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
