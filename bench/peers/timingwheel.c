/* SPDX-License-Identifier: MIT */
/*
 * This is our library: timers by handle, by key, and alarms. Tasks run on the owner's thread, as
 * the timers of an event loop run on its thread.
 */
#include "peers/timers.h"

#include "support/expect.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <stdio.h>

static struct tw_wheel *wheel;
static struct tw_timer *handles;
static struct tw_alarm *alarms;
static struct random_key *keys;

static void run_key(void *context, const struct tw_task *task)
{
	(void)context;
	timers_ran((size_t)task->value);
}

static void run_number(void *number)
{
	timers_ran((size_t)number);
}

static void open_wheel(void)
{
	const struct tw_options options = {.workers = TW_WORKERS_INLINE};

	expect_ok(tw_create(&wheel, TW_MILLISECOND, 512, run_key, &options), "tw_create");
}

static void settle(void)
{
	expect_ok(tw_flush(wheel), "tw_flush");
}

static void turn(void)
{
	stopwatch_sleep(TW_MILLISECOND);
}

/* --- By handle -------------------------------------------------------------------------------- */

static void open_handles(size_t count, bool many)
{
	(void)many;
	open_wheel();
	handles = process_allocate(count * sizeof(*handles));
}

static void handle_start(size_t i, int64_t delay)
{
	expect_ok(tw_after_func(wheel, delay * TW_MILLISECOND, run_number, (void *)i, &handles[i]),
		  "tw_after_func");
}

static void handle_restart(size_t i, int64_t delay)
{
	expect_ok(tw_timer_reset(wheel, handles[i], delay * TW_MILLISECOND), "tw_timer_reset");
}

static void handle_cancel(size_t i, int64_t delay)
{
	(void)delay;
	expect_ok(tw_timer_stop(wheel, handles[i]), "tw_timer_stop");
}

/* --- By key ----------------------------------------------------------------------------------- */

static void open_keys(size_t count, bool many)
{
	(void)many;
	open_wheel();
	keys = keys_create(count, 1);
}

static void key_start(size_t i, int64_t delay)
{
	expect_ok(tw_set_timer(wheel, &keys[i], sizeof(keys[i]), (void *)i, delay * TW_MILLISECOND),
		  "tw_set_timer");
}

static void key_restart(size_t i, int64_t delay)
{
	expect_ok(tw_move_timer(wheel, &keys[i], sizeof(keys[i]), delay * TW_MILLISECOND),
		  "tw_move_timer");
}

static void key_cancel(size_t i, int64_t delay)
{
	(void)delay;
	expect_ok(tw_remove_timer(wheel, &keys[i], sizeof(keys[i])), "tw_remove_timer");
}

/* --- Alarms ----------------------------------------------------------------------------------- */

static void open_alarms(size_t count, bool many)
{
	(void)many;
	open_wheel();
	alarms = process_allocate(count * sizeof(*alarms));
	for (size_t i = 0; i < count; i++)
		expect_ok(tw_alarm_init(wheel, &alarms[i], run_number, (void *)i), "tw_alarm_init");
}

static void alarm_start(size_t i, int64_t delay)
{
	expect_ok(tw_alarm_set(&alarms[i], delay * TW_MILLISECOND), "tw_alarm_set");
}

static void alarm_cancel(size_t i, int64_t delay)
{
	(void)delay;
	expect_ok(tw_alarm_stop(&alarms[i]), "tw_alarm_stop");
}

int main(int argc, char **argv)
{
	const struct timers_peer kinds[] = {
		{"timingwheel by handle", true, open_handles, handle_start, handle_restart,
		 handle_cancel, settle, NULL, turn},
		{"timingwheel by key", true, open_keys, key_start, key_restart, key_cancel, settle,
		 NULL, turn},
		{"timingwheel alarms", true, open_alarms, alarm_start, alarm_start, alarm_cancel,
		 settle, NULL, turn},
	};
	int status = 0;

	printf("# %s\n", machine_description());
	for (int i = 0; i < 3; i++)
		status |= timers_ask(&kinds[i], argv[argc - 1]);
	return status;
}
