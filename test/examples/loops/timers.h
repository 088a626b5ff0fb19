/* SPDX-License-Identifier: MIT */
/*
 * The programs in this folder differ in their event loops alone. Each drives a wheel without
 * threads in two ways:
 *
 *  - wait_at_descriptor: any thread gives the wheel commands. tw_fd is readable when a command has
 *    come or a timer is due, and the loop then calls tw_poll.
 *  - sleep_until_deadlines: only the loop's thread gives the wheel commands. The loop calls tw_poll
 *    before it sleeps, and sleeps for as long as that says.
 *
 * This file has what they share: the wheel and its timers. The loop's first event sets them.
 */
#ifndef LOOPS_TIMERS_H
#define LOOPS_TIMERS_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <timingwheel/timingwheel.h>
#include <unistd.h>

static struct tw_wheel *wheel;
static bool has_worker; /* another thread gives commands, too */
static pthread_t worker;
static bool is_done; /* all timers have run */

static void check(bool is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

static void open_wheel(bool with_worker)
{
	static struct tw_options options; /* zeros are the defaults, in C and in C++ */

	has_worker = with_worker;
	options.drive = TW_DRIVE_CALLER;
	options.workers = TW_WORKERS_INLINE;
	check(tw_create(&wheel, TW_MILLISECOND, 512, NULL, &options) == TW_OK, "tw_create");
	is_done = false;
}

/* The descriptor's watcher must be gone by now: tw_destroy closes the descriptor. */
static void close_wheel(void)
{
	if (has_worker)
		pthread_join(worker, NULL);
	tw_destroy(wheel);
}

static void run_timer(void *text)
{
	puts((const char *)text);
}

static void run_last_timer(void *text)
{
	run_timer(text);
	is_done = true;
}

static void set_timer(tw_duration delay, void (*run)(void *), const char *text,
		      struct tw_timer *timer)
{
	enum tw_status status = tw_after_func(wheel, delay, run, (void *)text, timer);

	check(status == TW_OK, "tw_after_func");
}

/* The worker sets the last timer. No other is left, so the loop sleeps without a limit. */
static void *work(void *text)
{
	usleep(10000);
	set_timer(0, run_last_timer, (const char *)text, NULL);
	return NULL;
}

static void run_moved_timer(void *text)
{
	void *last = (void *)"another thread's timer";

	run_timer(text);
	if (!has_worker)
		is_done = true;
	else
		check(pthread_create(&worker, NULL, work, last) == 0, "pthread_create");
}

static void set_timers(void)
{
	struct tw_timer moved;
	struct tw_timer removed;

	set_timer(TW_HOUR, run_moved_timer, "moved", &moved);
	set_timer(10 * TW_MILLISECOND, run_timer, "removed", &removed);
	set_timer(20 * TW_MILLISECOND, run_timer, "first", NULL);
	tw_timer_reset(wheel, moved, 40 * TW_MILLISECOND);
	tw_timer_stop(wheel, removed);
}

/* Returns the time as poll() takes it: rounded up, for a loop that wakes too early turns until the
 * deadline, and -1 without a limit. */
static inline int milliseconds(tw_duration time)
{
	if (time == TW_FOREVER)
		return -1;
	if (time / TW_MILLISECOND >= INT_MAX)
		return INT_MAX;
	return (int)((time + TW_MILLISECOND - 1) / TW_MILLISECOND);
}

#endif
