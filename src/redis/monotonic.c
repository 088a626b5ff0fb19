/* SPDX-License-Identifier: MIT */
/* A wheel has a clock too, but a client has no wheel. */
#include "monotonic.h"

#include <errno.h>
#include <time.h>

tw_duration monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * TW_SECOND + now.tv_nsec;
}

tw_duration monotonic_after(tw_duration time)
{
	tw_duration now = monotonic_now();

	return time < TW_FOREVER - now ? now + time : TW_FOREVER;
}

void monotonic_wait(tw_duration time)
{
	struct timespec left = {time / TW_SECOND, time % TW_SECOND};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}
