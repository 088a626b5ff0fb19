/* SPDX-License-Identifier: MIT */
/*
 * Zipf's law draws rank r (from 0) in proportion to 1 / (r + 1)^exponent, exactly and in constant
 * time (Walker's alias method). Any number of threads may draw from one.
 */
#ifndef BENCH_SUPPORT_ZIPF_H
#define BENCH_SUPPORT_ZIPF_H

#include "generator.h"

#include <stddef.h>

struct zipf;

/* Ranks are 0 … count - 1. Ends the program when memory is out. */
struct zipf *zipf_create(size_t count, double exponent);
void zipf_destroy(struct zipf *zipf);
size_t zipf_draw(const struct zipf *zipf, struct generator *generator);

#endif
