/* SPDX-License-Identifier: MIT */
/* What do calls cost where one thread makes them all (TW_DRIVE_LOOP)? */
#include "costs.h"

static struct tw_alarm *alarms;
static struct tw_timer *timers;
static tw_duration least_delay;

static void set_alarm(unsigned i)
{
	MUST(tw_alarm_set(&alarms[shuffled(i)], draw_delay(least_delay)));
}

static void stop_alarm(unsigned i)
{
	MUST(tw_alarm_stop(&alarms[shuffled(i)]));
}

static void set_key(unsigned i)
{
	MUST(tw_set_timer(wheel, keys[shuffled(i)], KEY_SIZE, NULL, draw_delay(least_delay)));
}

static void move_key(unsigned i)
{
	MUST(tw_move_timer(wheel, keys[shuffled(i)], KEY_SIZE, draw_delay(least_delay)));
}

static void ask_for_key(unsigned i)
{
	MUST(tw_contains(wheel, keys[shuffled(i)], KEY_SIZE, NULL));
}

static void remove_key(unsigned i)
{
	MUST(tw_remove_timer(wheel, keys[shuffled(i)], KEY_SIZE));
}

static void set_handle(unsigned i)
{
	MUST(tw_after_func(wheel, draw_delay(least_delay), count_run, NULL, &timers[shuffled(i)]));
}

static void reset_handle(unsigned i)
{
	MUST(tw_timer_reset(wheel, timers[shuffled(i)], draw_delay(least_delay)));
}

static void stop_handle(unsigned i)
{
	MUST(tw_timer_stop(wheel, timers[shuffled(i)]));
}

static void poll_once(unsigned i)
{
	(void)i;
	MUST(tw_poll(wheel, NULL));
}

/* Runs in one poll all timers that were set with a delay of 2 to 22 s. */
static void expire(const char *name)
{
	tasks_ran = 0;
	MUST(tw_advance(wheel, 23 * TW_SECOND));
	phase_begin();
	MUST(tw_poll(wheel, NULL));
	phase_end(name, costs_n);
	expect(tasks_ran == costs_n, "all have expired");
}

static void measure_from(tw_duration least, const char *name, void (*one)(unsigned i))
{
	least_delay = least;
	measure(name, costs_n, one);
}

static void measure_alarms(void)
{
	for (unsigned i = 0; i < costs_n; i++)
		MUST(tw_alarm_init(wheel, &alarms[i], count_run, NULL));
	measure_from(40 * TW_SECOND, "loop.alarm_set", set_alarm);
	measure_from(90 * TW_SECOND, "loop.alarm_later", set_alarm);
	measure_from(30 * TW_SECOND, "loop.alarm_sooner", set_alarm);
	measure("loop.alarm_stop", costs_n, stop_alarm);
	MUST(tw_advance(wheel, 200 * TW_SECOND));
	MUST(tw_poll(wheel, NULL));
	least_delay = 2 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_alarm(i);
	expire("loop.alarm_expire");
}

static void measure_keys(void)
{
	measure_from(40 * TW_SECOND, "loop.set_new", set_key);
	measure_from(40 * TW_SECOND, "loop.set_existing", set_key);
	measure_from(90 * TW_SECOND, "loop.move_later", move_key);
	measure_from(30 * TW_SECOND, "loop.move_sooner", move_key);
	measure("loop.contains", costs_n, ask_for_key);
	measure("loop.remove", costs_n, remove_key);
	measure("loop.poll_idle", costs_n, poll_once);
	least_delay = 2 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_key(i);
	expire("loop.expire");
}

static void measure_handles(void)
{
	measure_from(40 * TW_SECOND, "loop.handle_set", set_handle);
	measure_from(90 * TW_SECOND, "loop.handle_later", reset_handle);
	measure_from(30 * TW_SECOND, "loop.handle_sooner", reset_handle);
	measure("loop.handle_stop", costs_n, stop_handle);
	least_delay = 2 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_handle(i);
	expire("loop.handle_expire");
}

int main(void)
{
	const struct tw_options options = {.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_LOOP};

	costs_init();
	alarms = calloc(costs_n, sizeof(*alarms));
	timers = calloc(costs_n, sizeof(*timers));
	expect(alarms && timers, "calloc");
	MUST(tw_create(&wheel, TW_MILLISECOND, 512, count_task, &options));
	MUST(tw_advance(wheel, TW_SECOND));
	measure_alarms();
	measure_keys();
	measure_handles();
	tw_destroy(wheel);
	free(timers);
	free(alarms);
	return 0;
}
