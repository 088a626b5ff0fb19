/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

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

/* Names the calling thread. Another thread's name is set through /proc, which may be missing. */
static void thread_set_name(const char *name)
{
	(void)prctl(PR_SET_NAME, name, 0UL, 0UL, 0UL);
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
static void thread_set_name(const char *name)
{
	(void)name;
}

void thread_be_prompt(void)
{
}
#endif

static void *thread_begin(void *argument)
{
	struct thread *thread = argument;

	thread_set_name(thread->name);
	return thread->run(thread->argument);
}

int thread_start(struct thread *thread, void *(*run)(void *), void *argument, const char *name,
		 const char *role)
{
	struct thread before = *thread;
	int end_size; /* bytes of "-ROLE" */
	sigset_t all;
	sigset_t mask;

	thread->run = run;
	thread->argument = argument;
	/* The role is kept whole: it distinguishes the threads of one name. */
	end_size = snprintf(thread->name, sizeof(thread->name), "-%s", role);
	snprintf(thread->name, sizeof(thread->name), "%.*s-%s",
		 (int)sizeof(thread->name) - 1 - end_size, name, role);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	errno = pthread_create(&thread->id, NULL, thread_begin, thread);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (errno != 0)
		*thread = before;
	return errno;
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

void thread_restore_cancel(const int *state)
{
	int before;

	pthread_setcancelstate(*state, &before);
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
