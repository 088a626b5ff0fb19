/* SPDX-License-Identifier: MIT */
/*
 * The baseline of storms.c: the classic hierarchical wheel, as in Linux before 4.8 and in
 * wahern/timeout. The level of a timer is told by how far away it is; when the first tick of a
 * coarse slot arrives, all its timers are re-filed at once (the cascade), and all that is due in a
 * tick runs in one go.
 *
 * One thread behind one mutex, with a look at each tick. As in Linux the mutex is released around
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
	struct cascading_link link; /* next is NULL: not set */
	uint64_t expiry;            /* a tick */
	void (*run)(void *argument);
	void *argument;
};

struct cascading_wheel;

/* `slots` a level, rounded up to a power of two. Ends the program when something can't be had. */
struct cascading_wheel *cascading_wheel_create(int64_t interval, size_t slots);

/* Pending timers are dropped. No other call may be running. */
void cascading_wheel_destroy(struct cascading_wheel *wheel);

/* When tick 0 was, on the stopwatch. */
int64_t cascading_wheel_origin(const struct cascading_wheel *wheel);

/* Any thread, also in a timer's function. `deadline` is on the stopwatch, rounded up to a tick. */
void cascading_wheel_set(struct cascading_wheel *wheel, struct cascading_timer *timer,
			 int64_t deadline);
/* Any thread. True: it has not run and will not. */
bool cascading_wheel_stop(struct cascading_wheel *wheel, struct cascading_timer *timer);

/* Any thread, once. Takes all timers out; at its next tick the thread gives each to `each`. */
void cascading_wheel_drain(struct cascading_wheel *wheel, void (*each)(void *argument));

/* The longest turn, nanoseconds: processor time of its thread, and by the clock. */
struct cascading_turns {
	int64_t work;
	int64_t wall;
};

/*
 * A turn lasts from the moment that the thread woke, or went on at once, until it had done all that
 * it found to do; waiting for the mutex is in it, and so are the timers' functions.
 */
struct cascading_turns cascading_wheel_longest_turns(struct cascading_wheel *wheel);

#endif
