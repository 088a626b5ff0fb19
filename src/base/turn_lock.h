/* SPDX-License-Identifier: MIT */
/*
 * A turn lock is for work that some callers do in steps, letting the lock go between two steps.
 * With a plain mutex such a thread takes the lock again before a waiting thread wakes, at each
 * step. Here waiting threads are counted, and the thread yields to them between two steps.
 *
 * Which calls may run together (x), and which may not (-):
 *
 *               take   try   let_go   give_way
 *   take        x      x     x        x
 *   try         x      x     x        x
 *   let_go      x      x     -        x
 *   give_way    x      x     x        x
 *
 * Only the holder may call let_go. Only a thread that does not hold the lock may call the others.
 */
#ifndef TURN_LOCK_H
#define TURN_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A thread that finds the lock taken spins for a moment before it sleeps: steps are short. */
#ifndef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#define PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP PTHREAD_MUTEX_INITIALIZER
#endif

struct turn_lock {
	pthread_mutex_t mutex;
	atomic_uint waiting; /* threads in turn_lock_take(); a hint */
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
	/* relaxed, here and below: a hint, orders nothing. */
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&lock->mutex);
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
}

static inline void turn_lock_let_go(struct turn_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

/* Yields while other threads wait, up to 256 times. Called between two steps. */
static inline void turn_lock_give_way(struct turn_lock *lock)
{
	enum { YIELDS = 256 };

	/* relaxed: see turn_lock_take(). */
	for (int i = 0;
	     i < YIELDS && atomic_load_explicit(&lock->waiting, memory_order_relaxed) > 0; i++)
		sched_yield();
}

#endif
