/* SPDX-License-Identifier: MIT */
/*
 * What all parts of one cache share: the wheel, the clock, the limits and what counts for them, the
 * epochs, and the alarm of the maintenance. Any thread.
 */
#ifndef CACHE_DOMAIN_H
#define CACHE_DOMAIN_H

#include <pthread.h>

#include <timingwheel/cache.h>

#include "base/clock.h"
#include "base/key_hash.h"
#include "epoch.h"

struct pool;

struct domain {
	/* Constant after tw_cache_create; what a lookup needs is on the first cache line. */
	_Alignas(64) struct tw_wheel *wheel;
	struct key_hash_seed seed;
	tw_duration coarse_margin; /* so much before a deadline the precise clock is asked */
	bool has_coarse_clock;
	tw_duration coarse_step; /* the coarse clock's resolution; 0 without one */
	tw_duration stale;       /* so long values stay after their deadline; 0: not */
	tw_duration granule;     /* ticks by which keys are filed (expiry.c) */
	struct pool *pool;
	struct reader *nobody; /* for threads that have no memory for one */

	/* Read by all, seldom written. */
	_Alignas(64) _Atomic uint64_t max_entries;
	_Atomic uint64_t max_bytes;
	atomic_bool counts_uses; /* for a limit: once there is one, for ever */
	atomic_bool is_closed;
	atomic_bool maintenance_is_set;
	struct tw_alarm *maintenance;
	struct epochs epochs;

	/* Any thread that sets. */
	_Alignas(64) _Atomic uint64_t entries;
	_Atomic uint64_t bytes;

	/* For struct reader.waits_for and struct tw_cache_loading.is_over. */
	_Alignas(64) pthread_mutex_t waits_lock;
};

/* The wheel is known. */
void domain_init_clock(struct domain *domain);
/* 0: no limit. */
void domain_set_limits(struct domain *domain, uint64_t max_entries, uint64_t max_bytes);
/* Something is left to be freed: looks again in a tick. */
void domain_ask_maintenance(struct domain *domain);

/* By how much a count, with `more`, exceeds its limit. */
static inline uint64_t domain_excess(const _Atomic uint64_t *count, int64_t more,
				     const _Atomic uint64_t *limit)
{
	uint64_t most = counter_read(limit);
	uint64_t present;

	if (most == 0)
		return 0;
	present = counter_read(count) + (uint64_t)more;
	return present > most ? present - most : 0;
}

/* Whether a limit is exceeded once so much more is counted. */
static inline bool domain_will_exceed(const struct domain *domain, int64_t entries, int64_t bytes)
{
	return domain_excess(&domain->entries, entries, &domain->max_entries) > 0 ||
	       domain_excess(&domain->bytes, bytes, &domain->max_bytes) > 0;
}

static inline bool domain_is_over_limit(const struct domain *domain)
{
	return domain_will_exceed(domain, 0, 0);
}

static inline bool domain_is_closed(const struct domain *domain)
{
	/* acquire: pairs with the exchange in tw_cache_stop(). */
	return atomic_load_explicit(&((struct domain *)domain)->is_closed, memory_order_acquire);
}

/* What came in; negative: went out. */
static inline void domain_count(struct domain *domain, int64_t entries, int64_t bytes)
{
	/* relaxed: limits are kept by the thread that goes over them, after its own addition. */
	if (entries != 0)
		atomic_fetch_add_explicit(&domain->entries, (uint64_t)entries,
					  memory_order_relaxed);
	if (bytes != 0)
		atomic_fetch_add_explicit(&domain->bytes, (uint64_t)bytes, memory_order_relaxed);
}

static inline bool domain_counts_uses(const struct domain *domain)
{
	/* relaxed: uses that come before it is seen are lost. */
	return atomic_load_explicit(&((struct domain *)domain)->counts_uses, memory_order_relaxed);
}

/* Not later than the wheel's clock, and seldom more than a few milliseconds earlier. */
static inline tw_duration domain_coarse_now(const struct domain *domain)
{
	if (__builtin_expect(!domain->has_coarse_clock, 0))
		return tw_now(domain->wheel);
	return clock_read_real(CLOCK_MONOTONIC_COARSE);
}

/* Whether the deadline has passed at this moment, given a coarse time; a negative one has. */
static inline bool domain_is_past(const struct domain *domain, tw_duration deadline,
				  tw_duration coarse)
{
	if (__builtin_expect(deadline > coarse + domain->coarse_margin, 1))
		return false;
	return deadline <= coarse ||
	       (domain->has_coarse_clock && deadline <= tw_now(domain->wheel));
}

#endif
