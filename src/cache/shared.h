/* SPDX-License-Identifier: MIT */
/*
 * The shared state of a cache is what all its parts use: the wheel, the clock, the limits and the
 * counts for them, the callers, and the alarm of the maintenance. Any thread may call these
 * functions.
 *
 * A callback is a scope in which functions of the program are called, and return. An exception,
 * pthread_exit() or a cancellation that leaves one unwinds to the scope's end, which ends the
 * process. So nothing else has to be undone. free_value alone has none: a pin may outlive the
 * cache.
 *
 *     struct callback callback __attribute__((cleanup(callback_end))) = callback_begin(shared);
 *
 *     function(context);
 *     callback.has_returned = true;
 *
 * A file that does this is compiled with -fexceptions (Makefile).
 */
#ifndef CACHE_SHARED_H
#define CACHE_SHARED_H

#include <timingwheel/cache.h>

#include "base/clock.h"
#include "base/key_hash.h"
#include "caller.h"

struct pool;

struct shared_state {
	/* Constant after tw_cache_create; what a lookup needs is on the first cache line. */
	_Alignas(64) struct tw_wheel *wheel;
	struct key_hash_seed seed;
	tw_duration coarse_margin; /* the precise clock is asked this long before a deadline */
	bool has_coarse_clock;
	tw_duration coarse_step; /* the coarse clock's resolution; 0 without one */
	tw_duration stale;       /* how long values stay after their deadline, or 0 */
	tw_duration granule;     /* a 32nd of a tick: the unit in which keys are filed */
	struct pool *pool;

	unsigned shards;  /* number of shards; constant */
	tw_duration tick; /* the wheel's, but not less than a microsecond; constant */
	/* Read by all, seldom written. */
	_Alignas(64) _Atomic uint64_t max_entries;
	_Atomic uint64_t max_bytes;
	atomic_bool is_closed;
	atomic_bool maintenance_is_set;
	struct callers callers;

	/* Any thread that sets. */
	_Alignas(64) _Atomic uint64_t entries;
	_Atomic uint64_t bytes;

	_Alignas(64) struct tw_alarm maintenance;
	char name[16]; /* the options'; constant */
};

struct callback {
	const struct shared_state *shared;
	struct caller *caller; /* counts the callbacks that its thread is inside of, or NULL */
	bool has_returned;     /* constant in each of the two copies of callback_end() */
};

/* Ends the process, because a function of the program has not returned. */
_Noreturn void callback_break(const struct shared_state *shared);

/* Begins a callback that may call the cache: tw_cache_flush and tw_cache_destroy learn from the
 * thread's caller, if there is memory for one, where they are called from. */
static inline struct callback callback_begin(struct shared_state *shared)
{
	struct callback callback = {.shared = shared, .caller = callers_find(&shared->callers)};

	if (callback.caller)
		callback.caller->callbacks++;
	return callback;
}

static inline __attribute__((always_inline)) void callback_end(const struct callback *callback)
{
	if (!callback->has_returned)
		callback_break(callback->shared);
	if (callback->caller)
		callback->caller->callbacks--;
}

/* Schedules maintenance in a tick, because something is left to be freed. */
static inline void shared_ask_maintenance(struct shared_state *shared)
{
	/* seq_cst: after what is to be freed was left, under a shard's lock or to the orphans;
	 * pairs with the store in cache_maintain(). */
	if (__builtin_expect(
		    !atomic_load_explicit(&shared->maintenance_is_set, memory_order_seq_cst), 0) &&
	    /* relaxed: one of the threads that ask at once sets it, nothing else. */
	    !atomic_exchange_explicit(&shared->maintenance_is_set, true, memory_order_relaxed))
		(void)tw_alarm_set(&shared->maintenance, shared->tick);
}

/* Returns by how much a count, with `more`, exceeds its limit. */
static inline uint64_t shared_excess(const _Atomic uint64_t *count, int64_t more,
				     const _Atomic uint64_t *limit)
{
	uint64_t most = counter_read(limit);
	uint64_t present;

	if (most == 0)
		return 0;
	present = counter_read(count) + (uint64_t)more;
	return present > most ? present - most : 0;
}

static inline bool shared_is_over_limit(const struct shared_state *shared)
{
	return shared_excess(&shared->entries, 0, &shared->max_entries) > 0 ||
	       shared_excess(&shared->bytes, 0, &shared->max_bytes) > 0;
}

static inline bool shared_is_closed(const struct shared_state *shared)
{
	/* acquire: pairs with the exchange in tw_cache_stop(). */
	return atomic_load_explicit(&((struct shared_state *)shared)->is_closed,
				    memory_order_acquire);
}

/* Returns a time not later than the wheel's clock, and seldom more than a few ms earlier. */
static inline tw_duration shared_coarse_now(const struct shared_state *shared)
{
	if (__builtin_expect(!shared->has_coarse_clock, 0))
		return tw_now(shared->wheel);
	return clock_read_real(CLOCK_MONOTONIC_COARSE);
}

/* Returns whether the deadline has passed by now, given a coarse time. A negative one has. */
static inline bool shared_is_past(const struct shared_state *shared, tw_duration deadline,
				  tw_duration coarse)
{
	if (__builtin_expect(deadline > coarse + shared->coarse_margin, 1))
		return false;
	return deadline <= coarse ||
	       (shared->has_coarse_clock && deadline <= tw_now(shared->wheel));
}

#endif
