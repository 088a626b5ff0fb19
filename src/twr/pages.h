/* SPDX-License-Identifier: MIT */
/* pages writes what the board shows, which its reader has locked. */
#ifndef TWR_PAGES_H
#define TWR_PAGES_H

#include "board.h"

/* page.html, which embed.sh puts into the program, and the policy that names its script and its
 * style. */
extern const char page_html[];
extern const size_t page_html_size;
extern const char page_policy[];

/* Returns the metrics for Prometheus, in its text format, version 0.0.4, with a NUL, or NULL
 * without memory. The caller frees it. */
char *pages_metrics(const struct board *board);
/* Returns one JSON object in ASCII, with a NUL, which the caller frees, or NULL without memory. A
 * member is missing if it had no memory. */
char *pages_status(const struct board *board);

#endif
