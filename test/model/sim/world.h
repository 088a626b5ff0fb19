/* SPDX-License-Identifier: MIT */
/* A world is a case: its random options, its threads, and its checks. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "scheduler.h"

/* This is the first thread of the case; it starts the others, and joins them. */
void wheel_world_run(void *argument);
void wheel_world_idle(void *argument, int64_t now, int64_t next);
/* Prints the options in a line. */
void wheel_world_describe(void);
void cache_world_run(void *argument);
void cache_world_describe(void);
void cache_world_idle(void *argument, int64_t now, int64_t next);

/* This is the nap of an owner that has been busy, before it looks for alarms and stops again: all
 * threads sleep then, though there is something to do. */
#define WORLD_NAP (50 * TW_MICROSECOND)

/* Draws a number from `least` to `most`. */
static inline int64_t draw_between(int64_t least, int64_t most)
{
	return least + (int64_t)sim_draw((uint64_t)(most - least) + 1);
}

/* Draws one of the numbers. */
#define DRAW_ONE_OF(...)     \
	(((const int64_t[]){ \
		__VA_ARGS__})[sim_draw(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

#endif
