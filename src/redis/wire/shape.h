/* SPDX-License-Identifier: MIT */
/*
 * A shape says what a script's reply must look like. A shape is
 *   i        an integer
 *   n        an integer ≥ 0
 *   s        a string
 *   d        a string of 1 to 18 digits
 *   a        a string with a letter for each task: o, g or s (finish.lua)
 *   [...]    an array of these; the items after a * come any number of times, at its end
 * A reply that fits can be read without another look at types.
 */
#ifndef REDIS_WIRE_SHAPE_H
#define REDIS_WIRE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

/* Returns whether the reply fits. `answers` is the number of letters of an `a` and, if it is not 0,
 * of the elements after a *. */
bool shape_fits(const char *shape, size_t answers, const redisReply *reply);

#endif
