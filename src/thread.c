/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

enum { NAME_SIZE = 16, ROLE_SIZE = 7 }; /* Linux keeps 15 characters of a thread's name */

#ifdef __linux__
#include <sys/prctl.h>

static void thread_set_name(pthread_t thread, const char *name)
{
	(void)pthread_setname_np(thread, name);
}

void thread_sleep_exactly(void)
{
	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
}
#else
static void thread_set_name(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
}

void thread_sleep_exactly(void)
{
}
#endif

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument, const char *name,
		 const char *role)
{
	char full_name[NAME_SIZE];
	sigset_t all;
	sigset_t before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errno != 0)
		return errno;
	snprintf(full_name, sizeof(full_name), "%.*s-%.*s", NAME_SIZE - ROLE_SIZE - 1, name,
		 ROLE_SIZE - 1, role);
	thread_set_name(*thread, full_name);
	return 0;
}
