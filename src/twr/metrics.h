/* SPDX-License-Identifier: MIT */
/* metrics writes the figures as text for Prometheus. */
#ifndef TWR_METRICS_H
#define TWR_METRICS_H

#include "board.h"

/* Returns the figures in its text format, version 0.0.4, with a NUL, or NULL without memory. The
 * caller frees it. */
char *metrics_write(const struct figures *figures);

#endif
