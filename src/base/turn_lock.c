/* SPDX-License-Identifier: MIT */
/*
 * A thread that is about to sleep marks the lock as wanted, under the mutex, and the holder that
 * finds the mark wakes one thread under the same mutex: so the wake-up cannot come between the mark
 * and the sleep. A thread that has slept leaves the mark when it takes the lock, for there may be
 * others that sleep. This is the mutex of Drepper's "Futexes are tricky" (2011), with a condition
 * variable instead of the futex.
 */
#include "turn_lock.h"

#include "thread.h"

#ifndef TURN_LOCK_SPINS
#define TURN_LOCK_SPINS 100
#endif

void turn_lock_init(struct turn_lock *lock, struct turn_lock_sleep *sleep)
{
	atomic_init(&lock->state, TURN_LOCK_FREE);
	atomic_init(&lock->waiting, 0);
	lock->sleep = sleep;
	pthread_mutex_init(&sleep->mutex, NULL);
	condition_init(&sleep->wake);
}

void turn_lock_destroy(struct turn_lock *lock)
{
	pthread_cond_destroy(&lock->sleep->wake);
	pthread_mutex_destroy(&lock->sleep->mutex);
}

/* Says to the processor that this is a loop that waits. */
static void turn_lock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

/* Returns whether it has taken the lock within a moment. */
static bool turn_lock_spin(struct turn_lock *lock) TRIES(*lock)
{
	for (int i = 0; i < TURN_LOCK_SPINS; i++) {
		/* relaxed: a hint, before the exchange that takes the cache line. */
		if (atomic_load_explicit(&lock->state, memory_order_relaxed) == TURN_LOCK_FREE &&
		    turn_lock_try(lock))
			return true;
		turn_lock_pause();
	}
	return false;
}

static void turn_lock_sleep(struct turn_lock *lock) TAKES(*lock) IS_NOT_FOLLOWED
{
	pthread_mutex_lock(&lock->sleep->mutex);
	/* acquire: sees what the last holder did; pairs with turn_lock_let_go(). */
	while (atomic_exchange_explicit(&lock->state, TURN_LOCK_WANTED, memory_order_acquire) !=
	       TURN_LOCK_FREE)
		(void)condition_wait(&lock->sleep->wake, &lock->sleep->mutex, TW_FOREVER);
	pthread_mutex_unlock(&lock->sleep->mutex);
}

void turn_lock_wait(struct turn_lock *lock)
{
	/* relaxed, here and below: a hint, orders nothing. */
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	if (!turn_lock_spin(lock))
		turn_lock_sleep(lock);
	/* relaxed: see above. */
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
}

/* The wait begins before the lock is let go, for those that broadcast under the lock. */
bool turn_lock_wait_for(struct turn_lock *lock, pthread_cond_t *condition,
			tw_duration until) IS_NOT_FOLLOWED
{
	bool in_time;

	pthread_mutex_lock(&lock->sleep->mutex);
	/* release: as in turn_lock_let_go(), whose wake-up would take the mutex. */
	if (atomic_exchange_explicit(&lock->state, TURN_LOCK_FREE, memory_order_release) ==
	    TURN_LOCK_WANTED)
		pthread_cond_signal(&lock->sleep->wake);
	in_time = condition_wait(condition, &lock->sleep->mutex, until);
	pthread_mutex_unlock(&lock->sleep->mutex);
	turn_lock_take(lock);
	return in_time;
}

void turn_lock_broadcast(struct turn_lock *lock, pthread_cond_t *condition)
{
	pthread_mutex_lock(&lock->sleep->mutex);
	pthread_cond_broadcast(condition);
	pthread_mutex_unlock(&lock->sleep->mutex);
}

void turn_lock_wake(struct turn_lock *lock)
{
	pthread_mutex_lock(&lock->sleep->mutex);
	pthread_cond_signal(&lock->sleep->wake);
	pthread_mutex_unlock(&lock->sleep->mutex);
}
