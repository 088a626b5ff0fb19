/* SPDX-License-Identifier: MIT */
/*
 * Two workers and a client are processes whose clocks differ by hours: nothing depends on them. The
 * program is linked so that our code's calls for the time of day come through here.
 */
#include "support/fixture.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>

enum { COUNT = 300 };

/* This process's clock is off by this many seconds. It is set before any thread starts. */
static time_t offset;

struct shared {
	_Atomic unsigned asked; /* how often our code asked for the time of day */
	_Atomic unsigned early;
	_Atomic unsigned runs[COUNT];
	_Atomic unsigned by_worker[2];
};
static struct shared *shared;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_gettimeofday(struct timeval *time, void *zone);
int __wrap_gettimeofday(struct timeval *now, void *zone);
time_t __real_time(time_t *time);
time_t __wrap_time(time_t *now);

static void note_question(void)
{
	/* relaxed: a count, read after all have ended */
	if (shared)
		atomic_fetch_add_explicit(&shared->asked, 1, memory_order_relaxed);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = __real_clock_gettime(clock, now);

	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
		note_question();
		now->tv_sec += offset;
	}
	return result;
}

int __wrap_gettimeofday(struct timeval *now, void *zone)
{
	int result = __real_gettimeofday(now, zone);

	note_question();
	now->tv_sec += offset;
	return result;
}

time_t __wrap_time(time_t *now)
{
	time_t seconds = __real_time(NULL) + offset;

	note_question();
	if (now)
		*now = seconds;
	return seconds;
}

/* All atomics are relaxed: counts that are read by polling. */
static enum tw_redis_outcome run(void *context, const struct tw_redis_job *job,
				 struct tw_redis_verdict *verdict)
{
	unsigned long number = strtoul((const char *)job->key + 5, NULL, 10);

	atomic_fetch_add_explicit(&shared->runs[number], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&shared->by_worker[*(int *)context], 1, memory_order_relaxed);
	if (job->lateness < 0)
		atomic_fetch_add_explicit(&shared->early, 1, memory_order_relaxed);
	/* Each worker has a part. */
	while (!atomic_load_explicit(&shared->by_worker[0], memory_order_relaxed) ||
	       !atomic_load_explicit(&shared->by_worker[1], memory_order_relaxed))
		wait_for(TW_MILLISECOND);
	return TW_REDIS_DONE;
}

static pid_t worker_start(const struct fixture *fixture, int number)
{
	struct tw_redis_worker_options options = {.handler = run, .context = &number};
	struct tw_redis_worker *worker;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	offset = number ? 3600 : -3600;
	if (tw_redis_worker_start(&worker, &fixture->options, &options, NULL) != TW_OK)
		_exit(1);
	for (;;)
		pause();
}

STORED(fixture, clocks_that_differ_by_hours_change_nothing)
{
	pid_t workers[2];
	int64_t added;
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
	for (int i = 0; i < 2; i++)
		workers[i] = worker_start(fixture, i);
	offset = 5 * 3600;
	added = wall_clock();
	add_tasks(fixture->redis, COUNT, TW_SECOND, 0);
	wait_for(added + 900 * TW_MILLISECOND - wall_clock());
	if (wall_clock() - added < TW_SECOND)
		assert_int_equal(stats_of(fixture->redis).started, 0);
	WAIT_UNTIL(stats_of(fixture->redis).tasks == 0);
	for (int i = 0; i < 2; i++) {
		kill(workers[i], SIGKILL);
		assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
	}
	offset = 0;
	/* relaxed: the workers have ended */
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(atomic_load_explicit(&shared->runs[i], memory_order_relaxed), 1);
	assert_int_equal(atomic_load_explicit(&shared->early, memory_order_relaxed), 0);
	assert_int_equal(atomic_load_explicit(&shared->asked, memory_order_relaxed), 0);
	munmap(shared, sizeof(*shared));
	shared = NULL;
}

FIXTURE_FILE
