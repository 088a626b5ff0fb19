/* SPDX-License-Identifier: MIT */
/*
 * A turn lock is for work that some callers do in steps, letting the lock go between two steps.
 * With a plain mutex such a thread takes the lock again before a waiting thread wakes, at each
 * step. Here waiting threads are counted, and the thread yields to them between two steps.
 *
 * A free lock is taken by one compare-and-swap and let go by one exchange, where a mutex takes four
 * times the instructions. A thread that finds it taken spins for a moment, because steps are short,
 * and then sleeps.
 *
 * Which calls may run together (x), and which may not (-):
 *
 *                       take   try   let_go, wait_for,   give_way
 *                                    broadcast
 *   take                x      x     x                   x
 *   try                 x      x     x                   x
 *   let_go, wait_for,   x      x     -                   x
 *   broadcast
 *   give_way            x      x     x                   x
 *
 * Only a thread that does not hold the lock may call take, try and give_way.
 */
#ifndef TURN_LOCK_H
#define TURN_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <timingwheel/timingwheel.h>

/*
 * These macros are what a function's declaration says of locks, for clang's -Wthread-safety. clang
 * then reports a call without the lock, a path on which it stays taken, and one that takes it
 * twice. In C it can't follow a struct's fields to the lock that guards them. Other compilers see
 * nothing.
 *
 *     IS_LOCK            the struct is a lock
 *     TAKES(lock)        the caller has the lock afterwards
 *     TRIES(lock)        the caller has the lock if the result is true
 *     LETS_GO(lock)      the caller had the lock
 *     HOLDS(lock)        the caller has the lock
 *     FREE_OF(lock)      the caller does not have the lock
 *     IS_NOT_FOLLOWED    the function does more than clang can follow
 */
#if defined(__clang__)
#define IS_LOCK __attribute__((capability("lock")))
#define TAKES(lock) __attribute__((acquire_capability(lock)))
#define TRIES(lock) __attribute__((try_acquire_capability(1, lock)))
#define LETS_GO(lock) __attribute__((release_capability(lock)))
#define HOLDS(lock) __attribute__((requires_capability(lock)))
#define FREE_OF(lock) __attribute__((locks_excluded(lock)))
#define IS_NOT_FOLLOWED __attribute__((no_thread_safety_analysis))
#else
#define IS_LOCK
#define TAKES(lock)
#define TRIES(lock)
#define LETS_GO(lock)
#define HOLDS(lock)
#define FREE_OF(lock)
#define IS_NOT_FOLLOWED
#endif

enum turn_lock_state {
	TURN_LOCK_FREE,
	TURN_LOCK_TAKEN,
	TURN_LOCK_WANTED /* taken, and a thread may sleep until it is let go */
};

/* Threads sleep here. It is seldom used, so it can lie away from the lock. */
struct turn_lock_sleep {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
};

struct IS_LOCK turn_lock {
	atomic_uint state;   /* enum turn_lock_state */
	atomic_uint waiting; /* threads in turn_lock_wait(); a hint */
	struct turn_lock_sleep *sleep;
};

/* Initializes the lock. `sleep` is the lock's until turn_lock_destroy(). */
void turn_lock_init(struct turn_lock *lock, struct turn_lock_sleep *sleep);
void turn_lock_destroy(struct turn_lock *lock);
/* Takes the lock, which was taken a moment ago. It is no cancellation point. */
void turn_lock_wait(struct turn_lock *lock) TAKES(*lock);
/* Wakes a thread that sleeps until the lock is let go. */
void turn_lock_wake(struct turn_lock *lock);
/*
 * Lets the lock go, waits until the condition is broadcast, or until `until`, which may be
 * TW_FOREVER, and takes the lock again. Returns false on timeout. It may return for nothing, and is
 * no cancellation point. Only the holder may call it.
 */
bool turn_lock_wait_for(struct turn_lock *lock, pthread_cond_t *condition, tw_duration until)
	HOLDS(*lock);
/* Ends all waits for the condition. Only the holder may call it. */
void turn_lock_broadcast(struct turn_lock *lock, pthread_cond_t *condition) HOLDS(*lock);

static inline bool turn_lock_try(struct turn_lock *lock) TRIES(*lock) IS_NOT_FOLLOWED
{
	unsigned state = TURN_LOCK_FREE;

	/* acquire: sees what the last holder did; pairs with turn_lock_let_go(). relaxed: it sees
	 * nothing then. */
	return atomic_compare_exchange_strong_explicit(&lock->state, &state, TURN_LOCK_TAKEN,
						       memory_order_acquire, memory_order_relaxed);
}

static inline void turn_lock_take(struct turn_lock *lock) TAKES(*lock)
{
	if (__builtin_expect(!turn_lock_try(lock), 0))
		turn_lock_wait(lock);
}

static inline void turn_lock_let_go(struct turn_lock *lock) LETS_GO(*lock) IS_NOT_FOLLOWED
{
	/* release: publishes what the holder did; pairs with turn_lock_try(). */
	if (__builtin_expect(atomic_exchange_explicit(&lock->state, TURN_LOCK_FREE,
						      memory_order_release) == TURN_LOCK_WANTED,
			     0))
		turn_lock_wake(lock);
}

/* Yields while other threads wait, up to 256 times. Called between two steps. */
static inline void turn_lock_give_way(struct turn_lock *lock) FREE_OF(*lock)
{
	enum { YIELDS = 256 };

	/* relaxed: a hint, orders nothing. */
	for (int i = 0;
	     i < YIELDS && atomic_load_explicit(&lock->waiting, memory_order_relaxed) > 0; i++)
		sched_yield();
}

#endif
