/* SPDX-License-Identifier: MIT */
/*
 * Timerfd timers are the baseline of precision.c: one thread that has no tick, a binary heap of
 * deadlines with one lock, and a timerfd for the earliest of them. The thread runs due timers
 * itself. Calls end the program when a system call fails. Any thread may call them.
 */
#ifndef BENCH_SUPPORT_TIMERFD_TIMERS_H
#define BENCH_SUPPORT_TIMERFD_TIMERS_H

#include <stddef.h>
#include <stdint.h>

struct timerfd_timers;

/* Starts the thread, for timers 0 to count - 1. It calls run(argument, timer) for each due one. */
struct timerfd_timers *timerfd_timers_create(size_t count, void (*run)(void *argument, size_t),
					     void *argument);
/* Ends the thread and drops pending timers. No other call may be running. */
void timerfd_timers_destroy(struct timerfd_timers *timers);
/* Arms the timer, or moves it. `deadline` is on the stopwatch, above 0. */
void timerfd_timers_set(struct timerfd_timers *timers, size_t timer, int64_t deadline);

#endif
