/* SPDX-License-Identifier: MIT */
#include "ways.h"

#include "expect.h"
#include "fates.h"
#include "keys.h"
#include "process.h"
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

void timers_destroy(struct timers *timers)
{
	tw_destroy(timers->wheel);
	free(timers->names);
	free(timers->alarms);
}

void timers_flush(struct timers *timers)
{
	expect_ok(tw_flush(timers->wheel), "tw_flush");
}

static int64_t pending(struct timers *timers)
{
	return (int64_t)expect_stats(timers->wheel).pending;
}

int64_t timers_set_together(struct timers *timers)
{
	/* This is far enough ahead for a slow machine: 2 us a timer. */
	int64_t due = stopwatch_now() + NANOSECONDS_PER_SECOND / 2 + (int64_t)timers->count * 2000;

	for (size_t i = 0; i < timers->count; i++)
		timers->way->set(timers, name_at(timers, i), due - stopwatch_now());
	timers_flush(timers);
	if (stopwatch_now() >= due)
		process_fail("the machine is too slow to set all timers before they are due");
	return due;
}

void timers_wait_fired(struct timers *timers)
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

const struct way way_key = {
	.name = "key",
	.name_size = sizeof(struct random_key),
	.prepare = prepare_keys,
	.create = create,
	.set = key_set,
	.set_again = key_set,
	.move = key_move,
	.stop = key_remove,
	.pending = pending,
};

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

const struct way way_handle = {
	.name = "handle",
	.name_size = sizeof(struct tw_timer),
	.prepare = prepare_handles,
	.create = create,
	.set = handle_set,
	.move = handle_move,
	.stop = handle_stop,
	.pending = pending,
};

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

const struct way way_alarm = {
	.name = "alarm",
	.name_size = sizeof(struct tw_alarm *),
	.own_bytes = sizeof(struct tw_alarm),
	.prepare = prepare_alarms,
	.create = create_alarms,
	.set = alarm_set,
	.move = alarm_set,
	.stop = alarm_stop,
};
