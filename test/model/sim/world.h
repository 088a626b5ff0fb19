/* SPDX-License-Identifier: MIT */
/* A case's life: what is drawn for it, what runs in it, and what is checked. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "scheduler.h"

/* The first thread of the case; it starts the others, and joins them. */
void wheel_world_run(void *argument);
void wheel_world_idle(void *argument, int64_t now, int64_t next);
/* What was drawn, in a line. */
void wheel_world_describe(void);
void cache_world_run(void *argument);
void cache_world_describe(void);
void cache_world_idle(void *argument, int64_t now, int64_t next);

/* So long an owner that has been busy naps before it looks for alarms and stops again: all threads
 * sleep then, but not because nothing is to be done. */
#define WORLD_NAP (50 * TW_MICROSECOND)

/* Between `least` and `most`. */
static inline int64_t draw_between(int64_t least, int64_t most)
{
	return least + (int64_t)sim_draw((uint64_t)(most - least) + 1);
}

/* One of the numbers. */
#define DRAW_ONE_OF(...)     \
	(((const int64_t[]){ \
		__VA_ARGS__})[sim_draw(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

#endif
