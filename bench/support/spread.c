/* SPDX-License-Identifier: MIT */
#include "spread.h"

#include <assert.h>
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

struct spread spread_of(double *values, size_t count)
{
	size_t middle = count / 2;

	assert(count > 0);
	qsort(values, count, sizeof(*values), compare);
	return (struct spread){
		.least = values[0],
		.median = count % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2,
		.most = values[count - 1],
	};
}
