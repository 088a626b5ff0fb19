/* SPDX-License-Identifier: MIT */
/* This is the classic cascading wheel in a storm; its timers are an array of the trial. */
#include "fates.h"
#include "process.h"
#include "storm.h"

#include <stdlib.h>

static void on_run(void *argument)
{
	(void)argument;
	fates_add(FATE_RAN);
}

static void set_heart(struct heart *heart)
{
	cascading_wheel_set(heart->trial->cascading, &heart->cascading, heart->beats.deadline);
}

static void on_beat(void *argument)
{
	struct heart *heart = argument;

	heartbeat_beat(&heart->beats);
	heartbeat_advance(&heart->beats);
	set_heart(heart);
}

static void cascading_start_heart(struct heart *heart)
{
	heart->cascading.run = on_beat;
	heart->cascading.argument = heart;
	set_heart(heart);
}

static void cascading_stop_heart(struct heart *heart)
{
	/* During a beat it is not set, and is set again after. */
	while (!cascading_wheel_stop(heart->trial->cascading, &heart->cascading))
		;
}

static void on_drained(void *argument)
{
	(void)argument;
	fates_add(FATE_DRAINED);
}

static void on_stopped(void *argument)
{
	(void)argument;
	fates_add(FATE_STOPPED);
}

static void cascading_create(struct storm_trial *trial)
{
	const struct storm_plan *plan = trial->plan;

	trial->timers = process_allocate((size_t)plan->count * sizeof(*trial->timers));
	for (int64_t i = 0; i < plan->count; i++)
		trial->timers[i].run = on_run;
	trial->cascading = cascading_wheel_create(plan->interval, (size_t)plan->slots);
	trial->origin = cascading_wheel_origin(trial->cascading);
}

static void cascading_destroy(struct storm_trial *trial)
{
	cascading_wheel_destroy(trial->cascading);
	free(trial->timers);
}

static void cascading_age(struct storm_trial *trial)
{
	/* Its memory is the caller's array, which is accessed in random order. */
	(void)trial;
}

static void cascading_set(struct storm_trial *trial, size_t i, int64_t deadline)
{
	cascading_wheel_set(trial->cascading, &trial->timers[i], deadline);
}

static void cascading_flush(struct storm_trial *trial)
{
	(void)trial;
}

static void cascading_drain(struct storm_trial *trial)
{
	cascading_wheel_drain(trial->cascading, on_drained);
}

static void cascading_stop_one(struct storm_trial *trial, size_t i)
{
	if (cascading_wheel_stop(trial->cascading, &trial->timers[i]))
		fates_add(FATE_STOPPED);
}

static void cascading_stop(struct storm_trial *trial)
{
	cascading_wheel_drain(trial->cascading, on_stopped);
}

static bool cascading_has_stopped_all(struct storm_trial *trial)
{
	(void)trial;
	return true;
}

const struct storm_rival storm_cascading = {
	.name = "cascading",
	.title = "cascading wheel",
	.create = cascading_create,
	.destroy = cascading_destroy,
	.age = cascading_age,
	.set = cascading_set,
	.flush = cascading_flush,
	.start_heart = cascading_start_heart,
	.stop_heart = cascading_stop_heart,
	.drain = cascading_drain,
	.stop_one = cascading_stop_one,
	.stop = cascading_stop,
	.has_stopped_all = cascading_has_stopped_all,
};
