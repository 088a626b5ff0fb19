/* SPDX-License-Identifier: MIT */
#include "domain.h"

static const tw_duration granule_least = TW_MICROSECOND;

/* The coarse clock lags by one step; more where the processor that drives it is kept from
 * running. */
static const tw_duration margin_least = 50 * TW_MILLISECOND;

void domain_init_clock(struct domain *domain)
{
	struct timespec step;
	tw_duration interval = tw_interval_of(domain->wheel);

	domain->granule = interval > granule_least ? interval : granule_least;
	if (tw_clock_of(domain->wheel) != TW_CLOCK_MONOTONIC ||
	    clock_getres(CLOCK_MONOTONIC_COARSE, &step) != 0)
		return;
	domain->has_coarse_clock = true;
	domain->coarse_step = (tw_duration)step.tv_sec * TW_SECOND + step.tv_nsec;
	domain->coarse_margin = 8 * domain->coarse_step;
	if (domain->coarse_margin < margin_least)
		domain->coarse_margin = margin_least;
}

/* With which sums don't overflow. */
static uint64_t usable_limit(uint64_t limit)
{
	return limit <= INT64_MAX ? limit : INT64_MAX;
}

void domain_set_limits(struct domain *domain, uint64_t max_entries, uint64_t max_bytes)
{
	/* relaxed: numbers by themselves; a thread that adds looks at them afterwards. */
	atomic_store_explicit(&domain->max_entries, usable_limit(max_entries),
			      memory_order_relaxed);
	/* relaxed: as above. */
	atomic_store_explicit(&domain->max_bytes, usable_limit(max_bytes), memory_order_relaxed);
}

void domain_ask_maintenance(struct domain *domain)
{
	/* seq_cst: after this thread came into the list of readers; pairs with the store in
	 * cache_maintain(). relaxed: of those that ask at once one sets it, nothing else. */
	if (atomic_load_explicit(&domain->maintenance_is_set, memory_order_seq_cst) ||
	    atomic_exchange_explicit(&domain->maintenance_is_set, true, memory_order_relaxed))
		return;
	(void)tw_alarm_set(domain->maintenance, domain->granule);
}
