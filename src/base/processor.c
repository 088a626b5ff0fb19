/* SPDX-License-Identifier: MIT */
#include "processor.h"

#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>

size_t processors_available(void)
{
	cpu_set_t processors;

	CPU_ZERO(&processors);
	/* It fails where there are over 1024 processors: then these are as good as endless. */
	if (sched_getaffinity(0, sizeof(processors), &processors) != 0)
		return CPU_SETSIZE;
	return CPU_COUNT(&processors) > 0 ? (size_t)CPU_COUNT(&processors) : 1;
}
#else
size_t processors_available(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 0 ? (size_t)count : 1;
}
#endif

tw_duration processor_time(pthread_t thread)
{
	struct timespec time;
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return 0;
	return (tw_duration)time.tv_sec * TW_SECOND + time.tv_nsec;
}
