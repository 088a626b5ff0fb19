/* SPDX-License-Identifier: MIT */
/*
 * holds.h has what a function's declaration says of locks, for clang's -Wthread-safety. clang then
 * reports a call without the lock, a path on which it stays taken, and one that takes it twice. In
 * C it can't follow a struct's fields to the lock that guards them. Other compilers see nothing.
 *
 *     IS_LOCK            the struct is a lock
 *     TAKES(lock)        the caller has the lock afterwards
 *     TRIES(lock)        the caller has the lock if the result is true
 *     LETS_GO(lock)      the caller had the lock
 *     HOLDS(lock)        the caller has the lock
 *     FREE_OF(lock)      the caller does not have the lock
 *     IS_NOT_FOLLOWED    the function does more than clang can follow
 */
#ifndef HOLDS_H
#define HOLDS_H

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

#endif
