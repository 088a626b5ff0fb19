/* SPDX-License-Identifier: MIT */
/* The next time that an expression names in a zone. Any thread. */
#ifndef CRON_SEARCH_H
#define CRON_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cron_fields.h"
#include "zone.h"

/* The first time later than `after` and before `limit`, in seconds UTC; false: there is none. */
bool cron_search(const struct cron_fields *fields, const struct zone *zone, int64_t after,
		 int64_t limit, int64_t *next);

#endif
