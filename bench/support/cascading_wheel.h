/* SPDX-License-Identifier: MIT */
/*
 * The cascading wheel is the baseline of storms.c: the classic hierarchical wheel, as in Linux
 * before 4.8 and in wahern/timeout. The level of a timer follows from its distance; when the first
 * tick of a coarse slot arrives, all its timers are re-filed at once (the cascade), and all timers
 * due in a tick run in one go.
 *
 * One thread works behind one mutex and visits each tick. As in Linux the mutex is released around
 * each timer's function, which runs on the wheel's thread. Timers are the caller's memory.
 */
#ifndef BENCH_SUPPORT_CASCADING_WHEEL_H
#define BENCH_SUPPORT_CASCADING_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cascading_link {
	struct cascading_link *next;
	struct cascading_link *previous;
};

/* The caller fills in run and argument. */
struct cascading_timer {
	struct cascading_link link; /* next is NULL if it is not set */
	uint64_t expiry;            /* a tick */
	void (*run)(void *argument);
	void *argument;
};

struct cascading_wheel;

/* Creates a wheel with `slots` a level, rounded up to a power of two, or ends the program. */
struct cascading_wheel *cascading_wheel_create(int64_t interval, size_t slots);

/* Drops pending timers. No other call may be running. */
void cascading_wheel_destroy(struct cascading_wheel *wheel);

/* Returns the time of tick 0 on the stopwatch. */
int64_t cascading_wheel_origin(const struct cascading_wheel *wheel);

/* Sets a timer. Any thread may call it, also a timer's function. `deadline` is on the stopwatch,
 * rounded up to a tick. */
void cascading_wheel_set(struct cascading_wheel *wheel, struct cascading_timer *timer,
			 int64_t deadline);
/* Stops a timer, from any thread. Returns whether it was pending; then it will not run. */
bool cascading_wheel_stop(struct cascading_wheel *wheel, struct cascading_timer *timer);

/* Removes all timers. Any thread may call it once; at its next tick the wheel's thread passes each
 * to `each`. */
void cascading_wheel_drain(struct cascading_wheel *wheel, void (*each)(void *argument));

#endif
