/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { NAME_SIZE = 16 }; /* Linux keeps 15 bytes of a thread's name, and refuses longer ones */
enum { YIELDS = 16 };

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The argument of sched_setattr(2), in its first version. */
struct scheduling {
	uint32_t size;
	uint32_t policy; /* 0 is SCHED_OTHER */
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* nanoseconds; the slice, with SCHED_OTHER */
	uint64_t deadline;
	uint64_t period;
};

static void thread_set_name(pthread_t thread, const char *name)
{
	(void)pthread_setname_np(thread, name);
}

void thread_be_prompt(void)
{
	struct scheduling scheduling = {.size = sizeof(scheduling),
					.nice = getpriority(PRIO_PROCESS, 0),
					.runtime = 100000};

	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
	/* A program that gave its threads another policy keeps it. */
	if (sched_getscheduler(0) == SCHED_OTHER)
		(void)syscall(SYS_sched_setattr, 0, &scheduling, 0);
}
#else
static void thread_set_name(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
}

void thread_be_prompt(void)
{
}
#endif

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument, const char *name,
		 const char *role)
{
	char full_name[NAME_SIZE];
	int end_size; /* bytes of "-ROLE" */
	sigset_t all;
	sigset_t before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errno != 0)
		return errno;
	/* The role is kept whole: it distinguishes the threads of one name. */
	end_size = snprintf(full_name, sizeof(full_name), "-%s", role);
	snprintf(full_name, sizeof(full_name), "%.*s-%s", NAME_SIZE - 1 - end_size, name, role);
	thread_set_name(*thread, full_name);
	return 0;
}

void thread_back_off(unsigned *tries)
{
	static const struct timespec nap = {.tv_nsec = 50000};
	int state;

	if (*tries < YIELDS) {
		++*tries;
		sched_yield();
		return;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	nanosleep(&nap, NULL);
	pthread_setcancelstate(state, &state);
}

void condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, tw_duration until)
{
	tw_duration time = until < 0 ? 0 : until;
	struct timespec end = {(time_t)(time / TW_SECOND), (long)(time % TW_SECOND)};
	int state;
	int error;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (until == TW_FOREVER)
		error = pthread_cond_wait(condition, lock);
	else
		error = pthread_cond_timedwait(condition, lock, &end);
	pthread_setcancelstate(state, &state);
	return error == 0;
}
