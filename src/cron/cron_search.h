/* SPDX-License-Identifier: MIT */
/* cron_search is the search for the next time of an expression in a zone. Any thread. */
#ifndef CRON_SEARCH_H
#define CRON_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cron_fields.h"
#include "zone.h"

/*
 * Finds the first matching time that is > `after` and < `limit`, in seconds since 1970 UTC. Returns
 * false if there is none; *next then keeps its value.
 */
bool cron_search(const struct cron_fields *fields, const struct zone *zone, int64_t after,
		 int64_t limit, int64_t *next);

#endif
