/* SPDX-License-Identifier: MIT */
/* These are the system's calls for threads, time and descriptors, by calls.h's names: same
 * arguments. */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>

#include "scheduler.h"

int sim_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
		       void *argument);
int sim_pthread_join(pthread_t thread, void **result);
_Noreturn void sim_pthread_exit(void *result);
pthread_t sim_pthread_self(void);
int sim_pthread_cancel(pthread_t thread);
void sim_pthread_testcancel(void);
int sim_pthread_setcancelstate(int state, int *before);
int sim_pthread_setname_np(pthread_t thread, const char *name);
int sim_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
int sim_pthread_once(pthread_once_t *once, void (*run)(void));
int sim_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int sim_pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int sim_pthread_setspecific(pthread_key_t key, const void *value);
int sim_sched_yield(void);

int sim_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int sim_pthread_mutex_destroy(pthread_mutex_t *mutex);
int sim_pthread_mutex_lock(pthread_mutex_t *mutex);
int sim_pthread_mutex_trylock(pthread_mutex_t *mutex);
int sim_pthread_mutex_unlock(pthread_mutex_t *mutex);
int sim_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int sim_pthread_cond_destroy(pthread_cond_t *condition);
int sim_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int sim_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
			       const struct timespec *until);
int sim_pthread_cond_signal(pthread_cond_t *condition);
int sim_pthread_cond_broadcast(pthread_cond_t *condition);

int sim_clock_gettime(clockid_t clock, struct timespec *time);
int sim_clock_getres(clockid_t clock, struct timespec *resolution);
int sim_nanosleep(const struct timespec *time, struct timespec *rest);
int sim_timerfd_create(int clock, int flags);
int sim_timerfd_settime(int descriptor, int flags, const struct itimerspec *time,
			struct itimerspec *before);
int sim_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
int sim_close(int descriptor);

/* These surround each case; nothing may be left open after it. */
void sim_threads_begin(void);
void sim_threads_end(void);

/* Between these the calling thread may not be cancelled at a wait, whatever the library does: a
 * public call is no cancellation point. They nest. */
void sim_call_begin(void);
void sim_call_end(void);

#endif
