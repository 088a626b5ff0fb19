/* SPDX-License-Identifier: MIT */
/* The figures as JSON, for the page and for twr top. */
#ifndef TIMINGWHEEL_REDIS_PROGRAM_STATUS_PAGE_H
#define TIMINGWHEEL_REDIS_PROGRAM_STATUS_PAGE_H

#include <jansson.h>

#include "board.h"

/* The tasks alone, as Redis counts them; the caller's. */
json_t *status_page_tasks(const struct figures *figures);
/* One object, in ASCII, with a NUL behind it; the caller's. `name` is what the worker is called.
 * NULL: out of memory. */
char *status_page_write(const struct figures *figures, const char *name);

#endif
