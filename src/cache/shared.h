/* SPDX-License-Identifier: MIT */
/*
 * The shared state of a cache is what all its parts use: the wheel, the clock, the limits and the
 * counts for them, the callers, and the alarm of the maintenance. Any thread may call these
 * functions.
 *
 * A caller is one thread's part of a cache: its counts, which no other thread writes. Threads have
 * numbers, the least that are free, so a cache has as many callers as threads that run at once.
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

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/key.h"

struct pool;

/* ---- Callers ---- */

/* A thread has these counts, which tw_cache_get_stats() sums up. */
enum caller_count {
	COUNT_HITS,
	COUNT_MISSES,
	COUNT_ABSENT,
	COUNT_LOADS,
	COUNT_REFRESHES,
	COUNT_LOADS_ENDED,
	COUNT_LOAD_TIME, /* in nanoseconds */
	COUNT_LOAD_ERRORS,
	COUNT_LOAD_WAITS,
	COUNT_WAIT_TIMEOUTS,
	COUNT_STALE,
	CALLER_COUNTS
};

/* A caller is alone on its lines. It outlives its thread: the next one with the number goes on. */
struct caller {
	_Alignas(128) _Atomic uint64_t counts[CALLER_COUNTS]; /* read by any thread */
	uint64_t random;                                      /* 0 if not begun (change.c) */
	unsigned callbacks; /* functions of the program that the cache calls now */
};

struct callers {
	uint64_t id;        /* never used again in this process; constant */
	struct caller *all; /* by the threads' numbers; untouched memory at first */
};

/* A caller memo has a thread's caller of the cache that it used last. */
struct caller_memo {
	uint64_t id;
	struct caller *caller;
};

extern _Thread_local struct caller_memo caller_memo __attribute__((tls_model("initial-exec")));
/* The id of the callers in whose tw_cache_compute the thread calls a function, or 0. That function
 * has no caller there: its calls would wait for the lock that it runs under. */
extern _Thread_local uint64_t caller_computes __attribute__((tls_model("initial-exec")));

/* Initializes the callers. Returns false if out of memory or of thread-specific data. */
bool callers_init(struct callers *callers);
void callers_destroy(struct callers *callers);
struct caller *callers_seek(struct callers *callers);
/* Adds up the counts of all threads, also of ended ones. Returns the bytes that callers take. */
size_t callers_sum(const struct callers *callers, uint64_t sums[CALLER_COUNTS]);

/* Returns the calling thread's caller, or NULL if it computes or is out of memory. */
static inline struct caller *callers_find(struct callers *callers)
{
	return __builtin_expect(caller_memo.id == callers->id, 1) ? caller_memo.caller
								  : callers_seek(callers);
}

static inline void caller_count(struct caller *caller, enum caller_count count, uint64_t more)
{
	counter_add(&caller->counts[count], more);
}

/* ---- The state ---- */

struct shared_state {
	/* Constant after tw_cache_create; what a lookup needs is on the first cache line. */
	_Alignas(64) struct tw_wheel *wheel;
	struct key_hash_seed seed;
	/* The precise clock is asked this long before a deadline; 0 without a coarse clock. */
	tw_duration coarse_margin;
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
	/* relaxed: what is to be freed was left under the lock of a shard or the pool. The run that
	 * clears this takes that lock after it: before, and it finds it; after, and this is clear.
	 */
	if (__builtin_expect(
		    !atomic_load_explicit(&shared->maintenance_is_set, memory_order_relaxed), 0) &&
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
	if (__builtin_expect(shared->coarse_margin == 0, 0))
		return tw_now(shared->wheel);
	return clock_read_real(CLOCK_MONOTONIC_COARSE);
}

/* Returns whether the deadline has passed by now, given a coarse time. A negative one has. */
static inline bool shared_is_past(const struct shared_state *shared, tw_duration deadline,
				  tw_duration coarse)
{
	if (__builtin_expect(deadline > coarse + shared->coarse_margin, 1))
		return false;
	return deadline <= coarse || deadline <= tw_now(shared->wheel);
}

/*
 * ---- Removals (removal.c) ----
 *
 * They report entries that have left to on_remove, on the wheel's pool. Any thread.
 */

struct removals {
	/* Constant. */
	tw_cache_remove_fn *on_remove; /* NULL if none is called */
	void *context;
	struct shared_state *shared;
	/* Any thread, under the lock, which is taken inside those of shards. */
	pthread_mutex_t lock;
	pthread_cond_t progress;
	struct tw_cache_entry *first;
	struct tw_cache_entry *last;
	_Atomic uint64_t added; /* read by any thread */
	bool is_awake;          /* the alarm is set, or runs and will look again */
	uint64_t crowds;        /* crowds reported */
	struct tw_alarm alarm;
	/* Written by the thread that reports; read by any. */
	_Atomic uint64_t reported;
};

enum tw_status removals_open(struct removals *removals, struct shared_state *shared,
			     const struct tw_cache_options *options);
void removals_close(struct removals *removals);
/* Returns the number of removals that on_remove has not returned from. */
static inline uint64_t removals_waiting(const struct removals *removals)
{
	uint64_t reported = counter_read_ordered(&removals->reported);

	return counter_read(&removals->added) - reported;
}

/* Queues an entry that has left its shard, with a reference for this. Under the shard's lock. */
void removals_add(struct removals *removals, struct tw_cache_entry *entry);
/* Waits until all that were added before are reported. Returns TW_CLOSED if the wheel was stopped,
 * and nothing reports them, or TW_INVALID if the wheel can't be waited for from here. */
enum tw_status removals_wait(struct removals *removals);
/* Reports all that are left, also those that listeners make leave meanwhile. The alarm does no
 * more. */
void removals_tell_here(struct removals *removals);

#endif
