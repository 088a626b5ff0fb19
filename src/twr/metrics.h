/* SPDX-License-Identifier: MIT */
/* The figures as text for Prometheus. */
#ifndef TWR_METRICS_H
#define TWR_METRICS_H

#include "board.h"

/* Its text format, version 0.0.4, with a NUL behind it; the caller's. NULL: out of memory. */
char *metrics_write(const struct figures *figures);

#endif
