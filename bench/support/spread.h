/* SPDX-License-Identifier: MIT */
/* A spread sums up a few runs of one case. */
#ifndef BENCH_SUPPORT_SPREAD_H
#define BENCH_SUPPORT_SPREAD_H

#include <stddef.h>

struct spread {
	double least;
	double median;
	double most;
};

/* Sorts `values`; there must be at least one. */
struct spread spread_of(double *values, size_t count);

#endif
