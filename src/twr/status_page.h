/* SPDX-License-Identifier: MIT */
/* The figures as JSON, for the page and for twr top. */
#ifndef TWR_STATUS_PAGE_H
#define TWR_STATUS_PAGE_H

#include <jansson.h>

#include "board.h"

/* Tasks as Redis counts them; the caller's. */
json_t *status_page_tasks(const struct tw_redis_stats *tasks);
/* One object, in ASCII, with a NUL behind it; the caller's. `name` is what the worker is called.
 * NULL: out of memory; a member that there was no memory for is missing. */
char *status_page_write(const struct figures *figures, const char *name);

#endif
