/* SPDX-License-Identifier: MIT */
/*
 * The shared state of a cache is what all its parts use: the wheel, the clock, the limits and the
 * counts for them, the epochs, and the alarm of the maintenance. Any thread may call these
 * functions.
 */
#ifndef CACHE_SHARED_H
#define CACHE_SHARED_H

#include <timingwheel/cache.h>

#include "base/clock.h"
#include "base/key_hash.h"
#include "epoch.h"

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
	struct reader *nobody; /* shared by threads that have no memory for one */

	unsigned shards;  /* number of shards; constant */
	tw_duration tick; /* the wheel's, but not less than a microsecond; constant */
	/* Read by all, seldom written. */
	_Alignas(64) _Atomic uint64_t max_entries;
	_Atomic uint64_t max_bytes;
	atomic_bool is_closed;
	atomic_bool maintenance_is_set;
	struct epochs epochs;

	/* Any thread that sets. */
	_Alignas(64) _Atomic uint64_t entries;
	_Atomic uint64_t bytes;

	_Alignas(64) struct tw_alarm maintenance;
	char name[16]; /* the options'; constant */
};

/* Initializes the clock and the ticks, after `wheel` is set. */
void shared_init_clock(struct shared_state *shared);
/* Sets the limits; 0 means no limit. */
void shared_set_limits(struct shared_state *shared, uint64_t max_entries, uint64_t max_bytes);
/* Sets the alarm of the maintenance, unless another thread does. */
void shared_set_maintenance(struct shared_state *shared);

/* Schedules maintenance in a tick, because something is left to be freed. */
static inline void shared_ask_maintenance(struct shared_state *shared)
{
	/* seq_cst: after this thread came into the list of readers; pairs with the store in
	 * cache_maintain(). */
	if (!atomic_load_explicit(&shared->maintenance_is_set, memory_order_seq_cst))
		shared_set_maintenance(shared);
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

/* Adds to the counts of entries and bytes; negative numbers subtract. A thread that exceeds a limit
 * enforces it after its own addition. */
static inline void shared_count(struct shared_state *shared, int64_t entries, int64_t bytes)
{
	if (entries != 0)
		counter_add_shared(&shared->entries, entries);
	if (bytes != 0)
		counter_add_shared(&shared->bytes, bytes);
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
