/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TRIES_THAT_YIELD = 16 };

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

static int thread_number(void)
{
	return (int)syscall(SYS_gettid);
}

bool thread_is_running(const struct thread *thread)
{
	/* relaxed: the number orders nothing. */
	int number = atomic_load_explicit(&thread->number, memory_order_relaxed);
	char text[64] = "";
	const char *end;
	FILE *file;

	if (number < 0)
		return true;
	snprintf(text, sizeof(text), "/proc/self/task/%d/stat", number);
	file = fopen(text, "re");
	if (!file)
		return false;
	/* The state's letter comes after the name, which is in parentheses. */
	end = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	fclose(file);
	return end && strncmp(end, ") R", 3) == 0;
}
#else
static void thread_set_name(const char *name)
{
	(void)name;
}

static int thread_number(void)
{
	return 0;
}

bool thread_is_running(const struct thread *thread)
{
	(void)thread;
	return false;
}

void thread_be_prompt(void)
{
}
#endif

/*
 * Opens the signals that a thread's own fault raises, and the profiler's. If a thread blocks them,
 * a fault ends the process without the program's handler, and the profiler does not see it.
 */
static void mask_open_faults(sigset_t *mask)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
				     SIGTRAP, SIGSYS, SIGABRT, SIGPROF};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(mask, faults[i]);
}

void thread_setup_init(struct thread_setup *setup, const struct tw_options *options)
{
	*setup = (struct thread_setup){0};
	pthread_sigmask(SIG_BLOCK, NULL, &setup->mask);
	mask_open_faults(&setup->mask);
	if (!options)
		return;
	setup->stack_size = options->stack_size;
	setup->on_start = options->on_thread_start;
	setup->on_end = options->on_thread_end;
	setup->context = options->context;
}

void thread_begin_calls(const struct thread_setup *setup, const char *name)
{
	pthread_sigmask(SIG_SETMASK, &setup->mask, NULL);
	if (setup->on_start)
		setup->on_start(setup->context, name);
}

void thread_end_calls(const struct thread_setup *setup, const char *name)
{
	if (setup->on_end)
		setup->on_end(setup->context, name);
}

static void *thread_begin(void *argument)
{
	struct thread *thread = argument;

	thread_set_name(thread->name);
	/* relaxed: as in thread_is_running(). */
	atomic_store_explicit(&thread->number, thread_number(), memory_order_relaxed);
	return thread->run(thread->argument);
}

/* Creates the thread; `stack_size` 0 is the system's default. Returns 0 or an errno value. */
static int thread_create(struct thread *thread, size_t stack_size)
{
	pthread_attr_t attributes;
	int error;

	if (stack_size == 0)
		return pthread_create(&thread->id, NULL, thread_begin, thread);
	error = pthread_attr_init(&attributes);
	if (error != 0)
		return error;
	error = pthread_attr_setstacksize(&attributes, stack_size);
	if (error == 0)
		error = pthread_create(&thread->id, &attributes, thread_begin, thread);
	pthread_attr_destroy(&attributes);
	return error;
}

int thread_start(struct thread *thread, void *(*run)(void *), void *argument, const char *name,
		 const char *role, const struct thread_setup *setup)
{
	struct thread before = *thread;
	int end_size; /* bytes of "-ROLE" */
	sigset_t quiet;
	sigset_t mask;

	thread->run = run;
	thread->argument = argument;
	/* relaxed: the thread has not begun. */
	atomic_store_explicit(&thread->number, -1, memory_order_relaxed);
	/* The role is kept whole: it distinguishes the threads of one name. */
	end_size = snprintf(thread->name, sizeof(thread->name), "-%s", role);
	snprintf(thread->name, sizeof(thread->name), "%.*s-%s",
		 (int)sizeof(thread->name) - 1 - end_size, name, role);
	sigfillset(&quiet);
	mask_open_faults(&quiet);
	pthread_sigmask(SIG_SETMASK, &quiet, &mask);
	errno = thread_create(thread, setup ? setup->stack_size : 0);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (errno != 0)
		*thread = before;
	return errno;
}

void thread_join(const struct thread *thread)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_join(thread->id, NULL);
	pthread_setcancelstate(state, &state);
}

void thread_back_off(unsigned *tries)
{
	static const struct timespec nap = {.tv_nsec = 50000};
	int state;

	if (*tries < TRIES_THAT_YIELD) {
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
