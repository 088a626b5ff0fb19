/* SPDX-License-Identifier: MIT */
/* status_page writes the figures as JSON, for the page and for twr top. */
#ifndef TWR_STATUS_PAGE_H
#define TWR_STATUS_PAGE_H

#include <jansson.h>

#include "board.h"

/* Returns Redis's counts of tasks, which the caller frees. */
json_t *status_page_tasks(const struct tw_redis_stats *tasks);
/* Returns one object in ASCII, with a NUL, which the caller frees, or NULL without memory. A member
 * is missing if it had no memory. `name` is the worker's name. */
char *status_page_write(const struct figures *figures, const char *name);

#endif
