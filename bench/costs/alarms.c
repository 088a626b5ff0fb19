/* SPDX-License-Identifier: MIT */
/* What do alarms cost, on a wheel that the caller drives, with inline runs? */
#include "costs.h"

static struct tw_alarm **alarms; /* 2 × costs_n */
static tw_duration least_delay;

static void init_resident(unsigned i)
{
	MUST(tw_alarm_init(wheel, alarms[i], count_run, NULL));
}

static void init_one(unsigned i)
{
	init_resident(costs_n + i);
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
	MUST(tw_alarm_destroy(alarms[costs_n + shuffled(i)]));
	drive(i);
}

/* The owner has them. */
static void destroy_set(unsigned i)
{
	MUST(tw_alarm_destroy(alarms[shuffled(i)]));
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
	struct tw_alarm *memory;

	costs_init();
	memory = calloc(2 * (size_t)costs_n, sizeof(*memory));
	alarms = calloc(2 * (size_t)costs_n, sizeof(*alarms));
	expect(memory != NULL && alarms != NULL, "calloc");
	memset(memory, 1, 2 * (size_t)costs_n * sizeof(*memory));
	for (unsigned i = 0; i < 2 * costs_n; i++)
		alarms[i] = &memory[i];
	MUST(tw_create(&wheel, TW_MILLISECOND, 512, count_task, &options));
	MUST(tw_advance(wheel, TW_SECOND));
	for (unsigned i = 0; i < costs_n; i++)
		init_resident(i);
	least_delay = 3600 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_resident(i);
	MUST(tw_advance(wheel, 0));

	measure("alarms.init", costs_n, init_one);
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
	measure("alarms.destroy_set", costs_n, destroy_set);
	MUST(tw_advance(wheel, 0));
	tw_destroy(wheel);
	free(alarms);
	free(memory);
	return 0;
}
