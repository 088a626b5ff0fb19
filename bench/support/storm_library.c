/* SPDX-License-Identifier: MIT */
/*
 * This is the library in a storm. Only the hearts have values, by which callbacks identify them.
 */
#include "expect.h"
#include "fates.h"
#include "process.h"
#include "storm.h"

#include "runtime/ask.h" /* the wheel's origin, to know where its slots begin */

#include <stdlib.h>

/* No run lasts until this deadline. */
#define AWAY (3600 * NANOSECONDS_PER_SECOND)

static void on_run(void *argument)
{
	(void)argument;
	fates_add(FATE_RAN);
}

/* --- The hearts ------------------------------------------------------------------------------- */

/* The key is the heart's address. */
static void set_keyed_heart(struct heart *heart)
{
	struct tw_wheel *wheel = heart->trial->wheel;
	tw_duration delay = heart->beats.deadline - tw_now(wheel);

	expect_ok(tw_set_timer(wheel, &heart, sizeof(heart), heart, delay > 0 ? delay : 1),
		  "tw_set_timer");
}

/* Only the hearts have a value. */
static void on_expiry(void *context, const struct tw_task *task)
{
	struct heart *heart = task->value;

	(void)context;
	if (!heart) {
		fates_add(FATE_RAN);
		return;
	}
	heartbeat_beat(&heart->beats);
	heartbeat_advance(&heart->beats);
	/* relaxed: stop_keyed_heart() waits for this task before it relies on it */
	if (!atomic_load_explicit(&heart->ends, memory_order_relaxed))
		set_keyed_heart(heart);
}

static void on_beat(void *argument)
{
	struct heart *heart = argument;

	heartbeat_beat(&heart->beats);
}

/* tw_schedule_func calls it once at the start, then after each beat. */
static tw_duration next_beat(void *argument, tw_duration previous)
{
	struct heart *heart = argument;

	if (previous >= heart->beats.deadline)
		heartbeat_advance(&heart->beats);
	return heart->beats.deadline;
}

static void library_start_heart(struct heart *heart)
{
	/* relaxed: the beats that read it are set afterwards, through the wheel */
	atomic_store_explicit(&heart->ends, false, memory_order_relaxed);
	if (heart->trial->plan->heartbeat)
		set_keyed_heart(heart);
	else
		expect_ok(tw_schedule_func(heart->trial->wheel, next_beat, on_beat, heart,
					   &heart->timer),
			  "tw_schedule_func");
}

static void stop_keyed_heart(struct heart *heart)
{
	struct tw_wheel *wheel = heart->trial->wheel;

	/* relaxed: once the wheel was idle, each running beat has seen it */
	atomic_store_explicit(&heart->ends, true, memory_order_relaxed);
	expect_ok(tw_wait_idle(wheel), "tw_wait_idle");
	expect_ok(tw_remove_timer(wheel, &heart, sizeof(heart)), "tw_remove_timer");
	expect_ok(tw_flush(wheel), "tw_flush");
}

static void library_stop_heart(struct heart *heart)
{
	enum tw_status status;

	if (heart->trial->plan->heartbeat) {
		stop_keyed_heart(heart);
		return;
	}
	status = tw_timer_stop_wait(heart->trial->wheel, heart->timer);
	if (status != TW_RUNNING)
		expect_ok(status, "tw_timer_stop_wait");
}

/* --- Its calls -------------------------------------------------------------------------------- */

static void on_drained(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	fates_add(FATE_DRAINED);
}

static void on_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	(void)context;
	(void)reason;
	if (!task->value)
		fates_add(FATE_STOPPED);
}

static void library_create(struct storm_trial *trial)
{
	const struct storm_plan *plan = trial->plan;
	struct tw_options options = {
		.release = on_release,
		.workers = plan->workers ? (int)plan->workers : TW_WORKERS_INLINE,
		.max_workers = (int)plan->workers,
	};

	if (plan->keyed)
		trial->keys = keys_create((size_t)plan->count, plan->seed);
	else
		trial->handles = process_allocate((size_t)plan->count * sizeof(*trial->handles));
	expect_ok(
		tw_create(&trial->wheel, plan->interval, (size_t)plan->slots, on_expiry, &options),
		"tw_create");
	trial->origin = trial->wheel->owner.clock.ticks.origin;
}

static void library_destroy(struct storm_trial *trial)
{
	tw_destroy(trial->wheel);
	free(trial->keys);
	free(trial->handles);
}

static void library_set(struct storm_trial *trial, size_t i, int64_t deadline)
{
	if (trial->keys)
		expect_ok(tw_set_timer(trial->wheel, &trial->keys[i], sizeof(trial->keys[i]), NULL,
				       deadline - tw_now(trial->wheel)),
			  "tw_set_timer");
	else
		expect_ok(tw_after_func(trial->wheel, deadline - tw_now(trial->wheel), on_run, NULL,
					&trial->handles[i]),
			  "tw_after_func");
}

static void library_flush(struct storm_trial *trial)
{
	expect_ok(tw_flush(trial->wheel), "tw_flush");
}

static void library_drain(struct storm_trial *trial)
{
	expect_ok(tw_drain(trial->wheel, on_drained, NULL), "tw_drain");
}

static void library_stop_one(struct storm_trial *trial, size_t i)
{
	if (trial->keys) {
		expect_ok(tw_remove_timer(trial->wheel, &trial->keys[i], sizeof(trial->keys[i])),
			  "tw_remove_timer");
		return;
	}
	expect_ok(tw_timer_stop(trial->wheel, trial->handles[i]), "tw_timer_stop");
	fates_add(FATE_STOPPED);
}

static void library_stop(struct storm_trial *trial)
{
	expect_ok(tw_stop(trial->wheel), "tw_stop");
}

static bool library_has_stopped_all(struct storm_trial *trial)
{
	return expect_stats(trial->wheel).removed >= (uint64_t)fates_counted(FATE_STOPPED);
}

/* Sets and stops some at a time, so that this is no storm by itself. */
static void library_age(struct storm_trial *trial)
{
	int64_t count = trial->plan->count;

	for (int64_t i = 0; i < count; i++)
		library_set(trial, (size_t)i, stopwatch_now() + AWAY);
	library_flush(trial);
	for (int64_t i = 0; i < count; i++) {
		library_stop_one(trial, trial->order[i]);
		if (i % 256 == 0)
			library_flush(trial);
	}
	do
		expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	while (!library_has_stopped_all(trial));
	trial->stopped_before = count;
}

const struct storm_rival storm_library = {
	.name = "timingwheel",
	.title = "timingwheel",
	.create = library_create,
	.destroy = library_destroy,
	.age = library_age,
	.set = library_set,
	.flush = library_flush,
	.start_heart = library_start_heart,
	.stop_heart = library_stop_heart,
	.drain = library_drain,
	.stop_one = library_stop_one,
	.stop = library_stop,
	.has_stopped_all = library_has_stopped_all,
};
