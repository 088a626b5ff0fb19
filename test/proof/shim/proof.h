/* SPDX-License-Identifier: MIT */
/*
 * Harnesses and shims share the model's clock and its spurious wake-ups.
 *
 * GenMC tries all orders of the threads' operations, and has no other source of chance. So an event
 * that may happen at any time is a thread of the harness: one that calls proof_pass_time() or
 * proof_nudge().
 */
#ifndef PROOF_H
#define PROOF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* Every clock shows this time, in nanoseconds. It starts at 1: 0 is "never" for a timer. */
static atomic_long proof_now = 1;
/* This is the ticket, plus one, of the wait that may end spuriously. */
static atomic_uint proof_nudged;

static inline long proof_time(const struct timespec *time)
{
	return (long)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* relaxed, here and below: a clock orders nothing. */
static inline void proof_pass_time(long now)
{
	atomic_store_explicit(&proof_now, now, memory_order_relaxed);
}

/* Says whether `end` has come; an `end` of 0 never comes. */
static inline bool proof_is_time(long end)
{
	return end != 0 && atomic_load_explicit(&proof_now, memory_order_relaxed) >= end;
}

/* The wait with this ticket, of every condition variable, may end spuriously from now on. */
static inline void proof_nudge(unsigned ticket)
{
	atomic_store_explicit(&proof_nudged, ticket + 1, memory_order_relaxed);
}

static inline bool proof_is_nudged(unsigned ticket)
{
#ifdef NUDGES
	return atomic_load_explicit(&proof_nudged, memory_order_relaxed) == ticket + 1;
#else
	(void)ticket;
	return false;
#endif
}

#endif
