/* SPDX-License-Identifier: MIT */
/* The search for the next time that matches an expression in a zone. Any thread. */
#ifndef CRON_SEARCH_H
#define CRON_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cron_fields.h"
#include "zone.h"

/* Sets *next to the first matching time after `after` and before `limit`, all in seconds UTC.
 * Returns false if there is none. */
bool cron_search(const struct cron_fields *fields, const struct zone *zone, int64_t after,
		 int64_t limit, int64_t *next);

#endif
