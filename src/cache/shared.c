/* SPDX-License-Identifier: MIT */
#include "shared.h"

enum { GRANULES_A_TICK = 32 };

static const tw_duration granule_least = TW_MICROSECOND;

/* The coarse clock lags by one step, and by more if the processor that drives it is kept from
 * running. */
static const tw_duration margin_least = 50 * TW_MILLISECOND;

void shared_init_clock(struct shared_state *shared)
{
	struct timespec step;
	tw_duration interval = tw_interval_of(shared->wheel);
	tw_duration granule = interval / GRANULES_A_TICK;

	shared->tick = interval > granule_least ? interval : granule_least;
	shared->granule = granule > granule_least ? granule : granule_least;
	if (tw_clock_of(shared->wheel) != TW_CLOCK_MONOTONIC ||
	    clock_getres(CLOCK_MONOTONIC_COARSE, &step) != 0)
		return;
	shared->has_coarse_clock = true;
	shared->coarse_step = (tw_duration)step.tv_sec * TW_SECOND + step.tv_nsec;
	shared->coarse_margin = 8 * shared->coarse_step;
	if (shared->coarse_margin < margin_least)
		shared->coarse_margin = margin_least;
}

/* Returns the limit, or less, so that sums don't overflow. */
static uint64_t usable_limit(uint64_t limit)
{
	return limit <= INT64_MAX ? limit : INT64_MAX;
}

void shared_set_limits(struct shared_state *shared, uint64_t max_entries, uint64_t max_bytes)
{
	counter_set(&shared->max_entries, usable_limit(max_entries));
	counter_set(&shared->max_bytes, usable_limit(max_bytes));
}

void shared_set_maintenance(struct shared_state *shared)
{
	/* relaxed: one of the threads that ask at once sets it, nothing else. */
	if (atomic_exchange_explicit(&shared->maintenance_is_set, true, memory_order_relaxed))
		return;
	(void)tw_alarm_set(&shared->maintenance, shared->tick);
}
