/* SPDX-License-Identifier: MIT */
#include "ways.h"

#include "expect.h"
#include "fates.h"
#include "keys.h"
#include "process.h"
#include "simple_wheel.h"
#include "stopwatch.h"

#include <stdlib.h>

/* --- The library ------------------------------------------------------------------------------ */

static void run_task(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	fates_add(FATE_RAN);
}

static void run_function(void *argument)
{
	(void)argument;
	fates_add(FATE_RAN);
}

static void prepare_keys(struct timers *timers)
{
	timers->names = (char *)keys_create(timers->count, timers->seed);
}

static void create(struct timers *timers)
{
	const struct tw_options options = {.max_workers = 2};

	expect_ok(tw_create(&timers->wheel, timers->interval, timers->slots, run_task, &options),
		  "tw_create");
}

static void destroy(struct timers *timers)
{
	tw_destroy(timers->wheel);
	free(timers->names);
	free(timers->alarms);
}

static void flush(struct timers *timers)
{
	expect_ok(tw_flush(timers->wheel), "tw_flush");
}

static int64_t pending(struct timers *timers)
{
	return (int64_t)expect_stats(timers->wheel).pending;
}

static int64_t set_together(struct timers *timers)
{
	/* This is far enough ahead for a slow machine: 2 us a timer. */
	int64_t due = stopwatch_now() + NANOSECONDS_PER_SECOND / 2 + (int64_t)timers->count * 2000;

	for (size_t i = 0; i < timers->count; i++)
		timers->way->set(timers, name_at(timers, i), due - stopwatch_now());
	flush(timers);
	if (stopwatch_now() >= due)
		process_fail("the machine is too slow to set all timers before they are due");
	return due;
}

static void wait_fired(struct timers *timers)
{
	while (fates_counted(FATE_RAN) < (int64_t)timers->count)
		expect_ok(tw_wait_idle(timers->wheel), "tw_wait_idle");
}

/* --- By key ----------------------------------------------------------------------------------- */

static void key_set(struct timers *timers, void *name, int64_t delay)
{
	expect_ok(tw_set_timer(timers->wheel, name, sizeof(struct random_key), NULL, delay),
		  "tw_set_timer");
}

static void key_move(struct timers *timers, void *name, int64_t delay)
{
	expect_ok(tw_move_timer(timers->wheel, name, sizeof(struct random_key), delay),
		  "tw_move_timer");
}

static void key_remove(struct timers *timers, void *name)
{
	expect_ok(tw_remove_timer(timers->wheel, name, sizeof(struct random_key)),
		  "tw_remove_timer");
}

const struct way way_key = {"key",
			    sizeof(struct random_key),
			    0,
			    prepare_keys,
			    create,
			    destroy,
			    key_set,
			    key_set,
			    key_move,
			    key_remove,
			    flush,
			    pending,
			    set_together,
			    wait_fired};

/* --- By handle -------------------------------------------------------------------------------- */

static void prepare_handles(struct timers *timers)
{
	timers->names = process_allocate(timers->count * sizeof(struct tw_timer));
}

static void handle_set(struct timers *timers, void *name, int64_t delay)
{
	expect_ok(tw_after_func(timers->wheel, delay, run_function, NULL, name), "tw_after_func");
}

static void handle_move(struct timers *timers, void *name, int64_t delay)
{
	expect_ok(tw_timer_reset(timers->wheel, *(struct tw_timer *)name, delay), "tw_timer_reset");
}

static void handle_stop(struct timers *timers, void *name)
{
	expect_ok(tw_timer_stop(timers->wheel, *(struct tw_timer *)name), "tw_timer_stop");
}

const struct way way_handle = {"handle",
			       sizeof(struct tw_timer),
			       0,
			       prepare_handles,
			       create,
			       destroy,
			       handle_set,
			       NULL,
			       handle_move,
			       handle_stop,
			       flush,
			       pending,
			       set_together,
			       wait_fired};

/* --- Alarms ----------------------------------------------------------------------------------- */

static void prepare_alarms(struct timers *timers)
{
	timers->alarms = process_allocate(timers->count * sizeof(*timers->alarms));
	timers->names = process_allocate(timers->count * sizeof(struct tw_alarm *));
	for (size_t i = 0; i < timers->count; i++)
		*(struct tw_alarm **)name_at(timers, i) = &timers->alarms[i];
}

static void create_alarms(struct timers *timers)
{
	create(timers);
	for (size_t i = 0; i < timers->count; i++)
		expect_ok(tw_alarm_init(timers->wheel, &timers->alarms[i], run_function, NULL),
			  "tw_alarm_init");
}

static void alarm_set(struct timers *timers, void *name, int64_t delay)
{
	(void)timers;
	expect_ok(tw_alarm_set(*(struct tw_alarm **)name, delay), "tw_alarm_set");
}

static void alarm_stop(struct timers *timers, void *name)
{
	(void)timers;
	expect_ok(tw_alarm_stop(*(struct tw_alarm **)name), "tw_alarm_stop");
}

const struct way way_alarm = {"alarm",
			      sizeof(struct tw_alarm *),
			      sizeof(struct tw_alarm),
			      prepare_alarms,
			      create_alarms,
			      destroy,
			      alarm_set,
			      NULL,
			      alarm_set,
			      alarm_stop,
			      flush,
			      NULL,
			      set_together,
			      wait_fired};

/* --- go-zero's design ------------------------------------------------------------------------- */

/* These ticks pass from the start to the tick in which the timers are due together. */
enum { TICKS_TOGETHER = 100 };

static void simple_create(struct timers *timers)
{
	timers->simple = simple_wheel_create(timers->interval, timers->slots);
}

static void simple_destroy(struct timers *timers)
{
	simple_wheel_destroy(timers->simple);
	free(timers->names);
}

static void simple_set(struct timers *timers, void *name, int64_t delay)
{
	simple_wheel_set(timers->simple, name, delay);
}

static void simple_move(struct timers *timers, void *name, int64_t delay)
{
	simple_wheel_move(timers->simple, name, delay);
}

static void simple_stop(struct timers *timers, void *name)
{
	simple_wheel_remove(timers->simple, name);
}

static void simple_flush(struct timers *timers)
{
	simple_wheel_flush(timers->simple);
}

static int64_t simple_pending(struct timers *timers)
{
	return simple_wheel_pending(timers->simple);
}

/* Its timers count from the tick of their set: all are set in one, then the time starts. */
static int64_t simple_set_together(struct timers *timers)
{
	int64_t delay = TICKS_TOGETHER * timers->interval;

	for (size_t i = 0; i < timers->count; i++)
		simple_set(timers, name_at(timers, i), delay);
	simple_flush(timers);
	return simple_wheel_start(timers->simple) + delay;
}

static void simple_wait_fired(struct timers *timers)
{
	simple_wheel_wait_fired(timers->simple, (int64_t)timers->count);
}

const struct way way_go_zero = {"go-zero",
				sizeof(struct random_key),
				0,
				prepare_keys,
				simple_create,
				simple_destroy,
				simple_set,
				simple_set,
				simple_move,
				simple_stop,
				simple_flush,
				simple_pending,
				simple_set_together,
				simple_wait_fired};
