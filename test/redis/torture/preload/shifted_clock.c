/* SPDX-License-Identifier: MIT */
/*
 * This is preloaded into a redis-server (LD_PRELOAD) and shifts its clock of day by the
 * microseconds in the file $TORTURE_CLOCK; if these are 30 years or more, the clock stands there.
 * Its monotonic clock is the machine's.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

#define STANDS_US (INT64_C(30) * 365 * 24 * 3600 * 1000000)

static const _Atomic int64_t *shift;

__attribute__((constructor)) static void map_shift(void)
{
	const char *path = getenv("TORTURE_CLOCK");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map = mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, file, 0);

	if (file < 0 || map == MAP_FAILED)
		abort();
	close(file);
	shift = map;
}

PUBLIC int clock_gettime(clockid_t id, struct timespec *now)
{
	int status = (int)syscall(SYS_clock_gettime, id, now);
	int64_t by_us;
	int64_t nanoseconds;

	/* Other libraries' constructors may ask for the time before ours has run. */
	if (status || !shift || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return status;
	/* relaxed: a number alone, orders nothing */
	by_us = atomic_load_explicit(shift, memory_order_relaxed);
	nanoseconds = by_us * 1000;
	if (by_us < STANDS_US)
		nanoseconds += now->tv_sec * INT64_C(1000000000) + now->tv_nsec;
	now->tv_sec = nanoseconds / 1000000000;
	now->tv_nsec = nanoseconds % 1000000000;
	return 0;
}

PUBLIC int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	int status = clock_gettime(CLOCK_REALTIME, &precise);

	(void)zone;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return status;
}

PUBLIC time_t time(time_t *now)
{
	struct timespec precise;

	(void)clock_gettime(CLOCK_REALTIME, &precise);
	if (now)
		*now = precise.tv_sec;
	return precise.tv_sec;
}
