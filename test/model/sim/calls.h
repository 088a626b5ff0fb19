/* SPDX-License-Identifier: MIT */
/*
 * This is included before every simulated file of src/: it includes the system's headers, and then
 * gives the system's calls their simulated names. The headers come first, so that their
 * declarations keep the system's names.
 */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "threads.h"

/* These are for threads. */
#define pthread_create sim_pthread_create
#define pthread_join sim_pthread_join
#define pthread_exit sim_pthread_exit
#define pthread_self sim_pthread_self
#define pthread_setcancelstate sim_pthread_setcancelstate
#define pthread_setname_np sim_pthread_setname_np
#define pthread_sigmask sim_pthread_sigmask
#define pthread_once sim_pthread_once
#define pthread_atfork sim_pthread_atfork
#define pthread_key_create sim_pthread_key_create
#define pthread_setspecific sim_pthread_setspecific
#define sched_yield sim_sched_yield

/* These are for waiting. */
#define pthread_mutex_init sim_pthread_mutex_init
#define pthread_mutex_destroy sim_pthread_mutex_destroy
#define pthread_mutex_lock sim_pthread_mutex_lock
#define pthread_mutex_trylock sim_pthread_mutex_trylock
#define pthread_mutex_unlock sim_pthread_mutex_unlock
#define pthread_cond_init sim_pthread_cond_init
#define pthread_cond_destroy sim_pthread_cond_destroy
#define pthread_cond_wait sim_pthread_cond_wait
#define pthread_cond_timedwait sim_pthread_cond_timedwait
#define pthread_cond_signal sim_pthread_cond_signal
#define pthread_cond_broadcast sim_pthread_cond_broadcast

/* These are for time and descriptors. */
#define clock_gettime sim_clock_gettime
#define clock_getres sim_clock_getres
#define nanosleep sim_nanosleep
#define timerfd_create sim_timerfd_create
#define timerfd_settime sim_timerfd_settime
#define poll sim_poll
#define close sim_close

/* These are for memory and chance. */
#define malloc sim_malloc
#define calloc sim_calloc
#define realloc sim_realloc
#define aligned_alloc sim_aligned_alloc
#define free sim_free
#define mmap sim_mmap
#define munmap sim_munmap
#define madvise sim_madvise
#define getrandom sim_getrandom

/* Simulated threads ignore these. */
#define prctl(...) 0
#define getpriority(...) 0
#define sched_getscheduler(...) SCHED_OTHER
#define sched_getaffinity(...) 0
#define syscall(...) ((void)(__VA_ARGS__), 0L)

#endif
