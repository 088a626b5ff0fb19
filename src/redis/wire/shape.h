/* SPDX-License-Identifier: MIT */
/*
 * What a script's reply has to look like. A shape is
 *   i        an integer
 *   n        one that is not negative
 *   s        a string
 *   d        one of 1 to 18 digits
 *   a        one of letters, an answer for each task: o, g or s (ack.lua)
 *   [...]    an array of these; behind a * is what comes any number of times, at its end
 * Whatever else came from a server, a reply that fits can be read without another look at types.
 */
#ifndef REDIS_WIRE_SHAPE_H
#define REDIS_WIRE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

enum { SHAPE_SIZE = 64 };

/* `answers`: how many letters there are to be; if it is not 0, also how many elements behind *. */
bool shape_fits(const char *shape, size_t answers, const redisReply *reply);
/* Writes the shape that it has; "-": nothing, "e": an error, "+": a status; cut after a while. */
void shape_write(const redisReply *reply, char text[SHAPE_SIZE]);

#endif
