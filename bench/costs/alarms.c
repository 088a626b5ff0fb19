/* SPDX-License-Identifier: MIT */
/* What do alarms cost, on a wheel that the caller drives, with inline runs? */
#include "costs.h"

static struct tw_alarm **alarms; /* 2 × costs_n */
static tw_duration least_delay;

static void create_resident(unsigned i)
{
	MUST(tw_alarm_create(wheel, count_run, NULL, &alarms[i]));
}

static void create_one(unsigned i)
{
	create_resident(costs_n + i);
}

static void set_resident(unsigned i)
{
	MUST(tw_alarm_set(alarms[shuffled(i)], draw_delay(least_delay)));
	drive(i);
}

static void set_one(unsigned i)
{
	MUST(tw_alarm_set(alarms[costs_n + shuffled(i)], draw_delay(least_delay)));
	drive(i);
}

static void stop_one(unsigned i)
{
	MUST(tw_alarm_stop(alarms[costs_n + shuffled(i)]));
	drive(i);
}

static void destroy_one(unsigned i)
{
	tw_alarm_destroy(alarms[costs_n + shuffled(i)]);
	drive(i);
}

static void expire(void)
{
	least_delay = 2 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_one(i);
	MUST(tw_advance(wheel, 0));
	tasks_ran = 0;
	phase_begin();
	MUST(tw_advance(wheel, 23 * TW_SECOND));
	phase_end("alarms.expire", costs_n);
	expect(tasks_ran == costs_n, "all have expired");
}

int main(void)
{
	const struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	int64_t memory;

	costs_init();
	alarms = calloc(2 * (size_t)costs_n, sizeof(struct tw_alarm *));
	expect(alarms != NULL, "calloc");
	memset(alarms, 1, 2 * (size_t)costs_n * sizeof(struct tw_alarm *));
	MUST(tw_create(&wheel, TW_MILLISECOND, 512, count_task, &options));
	MUST(tw_advance(wheel, TW_SECOND));
	memory = memory_begin();
	for (unsigned i = 0; i < costs_n; i++)
		create_resident(i);
	least_delay = 3600 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_resident(i);
	MUST(tw_advance(wheel, 0));
	memory_end("alarms", memory, costs_n);

	measure("alarms.create", costs_n, create_one);
	least_delay = 40 * TW_SECOND;
	measure("alarms.set", costs_n, set_one);
	least_delay = 90 * TW_SECOND;
	measure("alarms.later", costs_n, set_one);
	least_delay = 30 * TW_SECOND;
	measure("alarms.sooner", costs_n, set_one);
	measure("alarms.stop", costs_n, stop_one);
	MUST(tw_advance(wheel, 200 * TW_SECOND));
	expire();
	measure("alarms.destroy", costs_n, destroy_one);
	for (unsigned i = 0; i < costs_n; i++)
		tw_alarm_destroy(alarms[i]);
	MUST(tw_advance(wheel, 0));
	tw_destroy(wheel);
	free(alarms);
	return 0;
}
