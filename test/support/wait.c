/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "wait.h"

#include <time.h>

int64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void wait_for(int64_t nanoseconds)
{
	struct timespec pause = {(time_t)(nanoseconds / 1000000000),
				 (long)(nanoseconds % 1000000000)};

	nanosleep(&pause, NULL);
}
