/* SPDX-License-Identifier: MIT */
#include "contender.h"

#include "expect.h"
#include "process.h"
#include "simple_wheel.h"
#include "stopwatch.h"

#include "runtime/ask.h" /* the owner's thread, for its clock */

#include <stdlib.h>

#define CHANNEL_CAPACITY 1024
/* This is a variant of the library beside its layouts. */
#define VARIANT_INLINE (-1)
/* These ticks pass from the start to the tick in which the baseline's timers are due together. */
#define TICKS_TOGETHER 100

/* --- The library ------------------------------------------------------------------------------ */

static void library_execute(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

static void *library_create(int variant, int64_t interval, size_t slots)
{
	struct tw_options inline_options = {.workers = TW_WORKERS_INLINE, .drive = TW_DRIVE_CALLER};
	struct tw_options options = {.layout = (enum tw_layout)variant, .max_workers = 2};
	struct tw_wheel *wheel;

	if (variant == VARIANT_INLINE)
		options = inline_options;
	expect_ok(tw_create(&wheel, interval, slots, library_execute, &options), "tw_create");
	return wheel;
}

static void library_start(void *wheel)
{
	(void)wheel;
}

static void library_destroy(void *wheel)
{
	tw_destroy(wheel);
}

static void library_set(void *wheel, const struct random_key *key, int64_t delay)
{
	expect_ok(tw_set_timer(wheel, key, sizeof(*key), NULL, delay), "tw_set_timer");
}

static void library_move(void *wheel, const struct random_key *key, int64_t delay)
{
	expect_ok(tw_move_timer(wheel, key, sizeof(*key), delay), "tw_move_timer");
}

static void library_remove(void *wheel, const struct random_key *key)
{
	expect_ok(tw_remove_timer(wheel, key, sizeof(*key)), "tw_remove_timer");
}

static bool library_has_owner(void *wheel)
{
	return ((struct tw_wheel *)wheel)->owner.has_thread;
}

static void library_poll(void *wheel)
{
	if (!library_has_owner(wheel))
		expect_ok(tw_poll(wheel, NULL), "tw_poll");
}

static void library_flush(void *wheel)
{
	expect_ok(tw_flush(wheel), "tw_flush");
}

static int64_t library_owner_cpu(void *wheel)
{
	if (!library_has_owner(wheel))
		return 0;
	return stopwatch_cpu_of(((struct tw_wheel *)wheel)->owner.thread.id);
}

static struct contender_state library_state(void *wheel)
{
	struct tw_stats stats = expect_stats(wheel);

	return (struct contender_state){
		.pending = (int64_t)stats.pending,
		.fired = (int64_t)stats.fired,
	};
}

static int64_t library_set_together(void *wheel, const struct random_key *keys, size_t count)
{
	/* This is far enough ahead for a slow machine: 2 us a timer. */
	int64_t wait = NANOSECONDS_PER_SECOND / 2 + (int64_t)count * 2000;
	int64_t due = stopwatch_now() + wait;
	tw_duration deadline = tw_now(wheel) + wait;

	for (size_t i = 0; i < count; i++)
		expect_ok(tw_set_timer(wheel, &keys[i], sizeof(keys[i]), NULL,
				       deadline - tw_now(wheel)),
			  "tw_set_timer");
	library_flush(wheel);
	if (stopwatch_now() >= due)
		process_fail("the machine is too slow to set %zu timers before they are due",
			     count);
	return due;
}

static void library_wait_fired(void *wheel, size_t count)
{
	struct tw_stats stats;

	do {
		expect_ok(tw_wait_idle(wheel), "tw_wait_idle");
		stats = expect_stats(wheel);
	} while (stats.fired < count || stats.unfinished > 0);
}

static const struct contender_calls library_calls = {
	.create = library_create,
	.start = library_start,
	.destroy = library_destroy,
	.set = library_set,
	.move = library_move,
	.remove = library_remove,
	.poll = library_poll,
	.flush = library_flush,
	.owner_cpu = library_owner_cpu,
	.state = library_state,
	.set_together = library_set_together,
	.wait_fired = library_wait_fired,
};

const struct contender contender_levels = {
	.name = "levels",
	.title = "timingwheel",
	.calls = &library_calls,
	.variant = TW_LAYOUT_LEVELS,
};

const struct contender contender_rounds = {
	.name = "rounds",
	.title = "timingwheel, rounds",
	.calls = &library_calls,
	.variant = TW_LAYOUT_ROUNDS,
};

const struct contender contender_inline = {
	.name = "inline",
	.title = "timingwheel, inline",
	.calls = &library_calls,
	.variant = VARIANT_INLINE,
};

/* --- go-zero's design ------------------------------------------------------------------------- */

struct baseline {
	struct simple_wheel *wheel;
	int64_t interval;
};

static void baseline_execute(const struct random_key *key, void *value)
{
	(void)key;
	(void)value;
}

static void *baseline_create(int channel_capacity, int64_t interval, size_t slots)
{
	struct baseline *baseline = process_allocate(sizeof(*baseline));

	baseline->interval = interval;
	baseline->wheel =
		simple_wheel_create(interval, slots, (size_t)channel_capacity, baseline_execute);
	return baseline;
}

static void baseline_start(void *wheel)
{
	simple_wheel_start(((struct baseline *)wheel)->wheel);
}

static void baseline_destroy(void *wheel)
{
	simple_wheel_destroy(((struct baseline *)wheel)->wheel);
	free(wheel);
}

static void baseline_set(void *wheel, const struct random_key *key, int64_t delay)
{
	simple_wheel_set(((struct baseline *)wheel)->wheel, key, NULL, delay);
}

static void baseline_move(void *wheel, const struct random_key *key, int64_t delay)
{
	simple_wheel_move(((struct baseline *)wheel)->wheel, key, delay);
}

static void baseline_remove(void *wheel, const struct random_key *key)
{
	simple_wheel_remove(((struct baseline *)wheel)->wheel, key);
}

static void baseline_poll(void *wheel)
{
	(void)wheel;
}

static int64_t baseline_owner_cpu(void *wheel)
{
	return simple_wheel_owner_cpu(((struct baseline *)wheel)->wheel);
}

static void baseline_flush(void *wheel)
{
	simple_wheel_flush(((struct baseline *)wheel)->wheel);
}

static struct contender_state baseline_state(void *wheel)
{
	struct simple_wheel_state state = simple_wheel_state(((struct baseline *)wheel)->wheel);

	return (struct contender_state){
		.pending = state.pending,
		.fired = state.fired,
	};
}

/* The baseline's timers count from the tick of their set: set all in one, then let time pass. */
static int64_t baseline_set_together(void *wheel, const struct random_key *keys, size_t count)
{
	struct baseline *baseline = wheel;
	int64_t delay = TICKS_TOGETHER * baseline->interval;

	for (size_t i = 0; i < count; i++)
		simple_wheel_set(baseline->wheel, &keys[i], NULL, delay);
	simple_wheel_flush(baseline->wheel);
	return simple_wheel_start(baseline->wheel) + delay;
}

static void baseline_wait_fired(void *wheel, size_t count)
{
	simple_wheel_wait_fired(((struct baseline *)wheel)->wheel, (int64_t)count);
}

static const struct contender_calls baseline_calls = {
	.create = baseline_create,
	.start = baseline_start,
	.destroy = baseline_destroy,
	.set = baseline_set,
	.move = baseline_move,
	.remove = baseline_remove,
	.poll = baseline_poll,
	.flush = baseline_flush,
	.owner_cpu = baseline_owner_cpu,
	.state = baseline_state,
	.set_together = baseline_set_together,
	.wait_fired = baseline_wait_fired,
};

const struct contender contender_buffered = {
	.name = "go-zero",
	.title = "go-zero's design",
	.calls = &baseline_calls,
	.variant = CHANNEL_CAPACITY,
};

const struct contender contender_unbuffered = {
	.name = "go-zero-unbuffered",
	.title = "go-zero's, unbuffered",
	.calls = &baseline_calls,
	.variant = 0,
};
