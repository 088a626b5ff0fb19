/* SPDX-License-Identifier: MIT */
/* These are the searches for times of an expression in a zone, and by the system's clock. */
#ifndef CRON_SEARCH_H
#define CRON_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/cron.h>

#include "base/clock.h"
#include "cron_fields.h"
#include "zone.h"

/*
 * Finds the first matching time that is > `after` and < `limit`, in seconds since 1970 UTC. Returns
 * false if there is none; *next then keeps its value. Any thread.
 */
bool cron_search(const struct cron_fields *fields, const struct zone *zone, int64_t after,
		 int64_t limit, int64_t *next);

/* Knows when a timer is to run by the system's clock. The thread that has the timer uses it. */
struct cron_follower {
	const struct tw_cron *cron; /* constant */
	const struct clock *clock;  /* the wheel's; constant */
	int64_t due_s;              /* the next time to run; INT64_MAX if there is none */
	int64_t done_s;             /* the last time that has run; INT64_MIN at first */
	/* What the two clocks showed when due_s was found. */
	int64_t seen_s;
	tw_duration seen;
};

/* Finds due_s. Returns when to look at the clock again, on the wheel's clock: later than
 * `previous`, and in a minute at most. */
tw_duration cron_follower_next(struct cron_follower *follower, tw_duration previous);
/* Returns whether the timer is to run now. If not, cron_follower_next() says when to look again. */
bool cron_follower_is_due(struct cron_follower *follower);

#endif
