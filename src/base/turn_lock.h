/* SPDX-License-Identifier: MIT */
/*
 * A lock for work that some callers do in steps, with the lock let go in between. A mutex is
 * anyone's then: the thread that lets it go takes it again before those that wait are awake, as
 * often as it has steps. So they are counted, and between two steps the thread gives way to them.
 */
#ifndef TURN_LOCK_H
#define TURN_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A thread that finds it taken tries for a moment before it sleeps: it is let go sooner. */
#ifndef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#define PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP PTHREAD_MUTEX_INITIALIZER
#endif

struct turn_lock {
	pthread_mutex_t mutex;
	atomic_uint waiting; /* threads; a hint */
};

static inline void turn_lock_init(struct turn_lock *lock)
{
	lock->mutex = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
	atomic_init(&lock->waiting, 0);
}

static inline void turn_lock_destroy(struct turn_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static inline bool turn_lock_try(struct turn_lock *lock)
{
	return pthread_mutex_trylock(&lock->mutex) == 0;
}

static inline void turn_lock_take(struct turn_lock *lock)
{
	if (turn_lock_try(lock))
		return;
	/* relaxed, here and below: a hint, which orders nothing. */
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&lock->mutex);
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
}

static inline void turn_lock_let_go(struct turn_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

/* Before the next step: those that wait have their turn, if they come soon. */
static inline void turn_lock_give_way(struct turn_lock *lock)
{
	enum { YIELDS = 256 };

	/* relaxed: see turn_lock_take(). */
	for (int i = 0;
	     i < YIELDS && atomic_load_explicit(&lock->waiting, memory_order_relaxed) > 0; i++)
		sched_yield();
}

#endif
