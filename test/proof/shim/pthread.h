/* SPDX-License-Identifier: MIT */
/*
 * This models what GenMC's pthread.h leaves out: condition variables, and the calls that only set
 * attributes, names and signal masks, which do nothing here.
 *
 * A wait takes a ticket, gives the lock back, and blocks until a signal or a broadcast names its
 * ticket. A wait for a time also ends at that time by the model's clock (proof.h), and each wait
 * may end spuriously when the harness says so. A signal names the thread that has waited longest.
 * All is relaxed: a condition variable orders nothing that its lock does not. A signal without the
 * lock is reported as a race on `waiting`; ours are all given under it.
 *
 * A thread that is never woken stays in its loop, which --check-liveness reports: so a lost wake-up
 * is found.
 */
#ifndef PROOF_PTHREAD_H
#define PROOF_PTHREAD_H

#include_next <pthread.h>

#include <assert.h>
#include <errno.h>
#include <genmc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "proof.h"

enum { PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE };
enum { PROOF_WAITS = 31 }; /* on one condition variable in one execution */

typedef struct {
	unsigned tickets;  /* tickets taken; under the lock, as is `waiting` */
	unsigned waiting;  /* set of tickets */
	atomic_uint woken; /* set of tickets; written under the lock */
} pthread_cond_t;

typedef int pthread_condattr_t;

#undef PTHREAD_COND_INITIALIZER
#define PTHREAD_COND_INITIALIZER \
	{                        \
		0                \
	}

static inline int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
	(void)attributes;
	condition->tickets = 0;
	condition->waiting = 0;
	/* relaxed: no other thread knows it yet. */
	atomic_store_explicit(&condition->woken, 0, memory_order_relaxed);
	return 0;
}

static inline int pthread_cond_destroy(pthread_cond_t *condition)
{
	/* A thread that still waits would be undefined behaviour. */
	assert(condition->waiting == 0);
	return 0;
}

/* Waits until woken, or until `end` on the model's clock (0 means no end). */
static inline int proof_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, long end)
{
	unsigned ticket = condition->tickets++;
	unsigned set = 1U << ticket;
	bool is_over;
	bool in_time;

	assert(ticket < PROOF_WAITS);
	condition->waiting |= set;
	pthread_mutex_unlock(lock);
	/* GenMC marks a loop that waits like this; the mark also holds where GenMC's pass is
	 * switched off. */
	__VERIFIER_loop_begin();
	__VERIFIER_spin_start();
	/* relaxed: the lock orders. */
	is_over = (atomic_load_explicit(&condition->woken, memory_order_relaxed) & set) ||
		  proof_is_nudged(ticket) || proof_is_time(end);
	__VERIFIER_spin_end(is_over);
	pthread_mutex_lock(lock);
	condition->waiting &= ~set;
	/* relaxed: under the lock. */
	in_time = (atomic_load_explicit(&condition->woken, memory_order_relaxed) & set) ||
		  !proof_is_time(end);
	return in_time ? 0 : ETIMEDOUT;
}

static inline int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	return proof_condition_wait(condition, lock, 0);
}

static inline int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
					 const struct timespec *end)
{
	return proof_condition_wait(condition, lock, proof_time(end));
}

static inline int pthread_cond_broadcast(pthread_cond_t *condition)
{
	/* relaxed: the lock orders. */
	atomic_store_explicit(&condition->woken, (1U << condition->tickets) - 1,
			      memory_order_relaxed);
	return 0;
}

static inline int pthread_cond_signal(pthread_cond_t *condition)
{
	/* relaxed: the lock orders. */
	unsigned woken = atomic_load_explicit(&condition->woken, memory_order_relaxed);
	unsigned asleep = condition->waiting & ~woken;

	if (asleep != 0)
		atomic_store_explicit(&condition->woken, woken | (asleep & -asleep),
				      memory_order_relaxed);
	return 0;
}

static inline int pthread_condattr_init(pthread_condattr_t *attributes)
{
	*attributes = 0;
	return 0;
}

static inline int pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock)
{
	(void)attributes;
	(void)clock;
	return 0;
}

static inline int pthread_condattr_destroy(pthread_condattr_t *attributes)
{
	(void)attributes;
	return 0;
}

static inline int pthread_setcancelstate(int state, int *before)
{
	(void)state;
	*before = PTHREAD_CANCEL_ENABLE;
	return 0;
}

static inline int pthread_setname_np(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
	return 0;
}

static inline int pthread_equal(pthread_t one, pthread_t other)
{
	return one == other;
}

/* With NUDGES, the first wait of each condition variable, or of poll(), may end spuriously. */
static inline void *proof_nudger_run(void *argument)
{
	(void)argument;
	proof_nudge(0);
	return NULL;
}

static inline void proof_start_nudger(void)
{
#ifdef NUDGES
	pthread_t nudger;

	pthread_create(&nudger, NULL, proof_nudger_run, NULL);
#endif
}

static inline int pthread_attr_init(pthread_attr_t *attributes)
{
	(void)attributes;
	return 0;
}

static inline int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size)
{
	(void)attributes;
	(void)size;
	return 0;
}

static inline int pthread_attr_destroy(pthread_attr_t *attributes)
{
	(void)attributes;
	return 0;
}

#endif
