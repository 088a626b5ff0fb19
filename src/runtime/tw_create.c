/* SPDX-License-Identifier: MIT */
/* Making and ending a wheel, and the calls that read a field of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/reserved.h"
#include "base/thread.h"

enum { DEFAULT_QUEUE_CAPACITY = 8192, DEFAULT_WORKERS = 2, DEFAULT_MAX_WORKERS = 64 };

/* With the defaults filled in. */
static bool workers_are_valid(const struct tw_options *options)
{
	if (options->workers == TW_WORKERS_INLINE)
		return options->max_workers == 0;
	return options->workers > 0 && options->max_workers >= options->workers &&
	       options->max_workers <= TW_WORKERS_MAX;
}

static bool options_are_valid(const struct tw_options *options)
{
	return options->layout <= TW_LAYOUT_ROUNDS && options->clock <= TW_CLOCK_MANUAL &&
	       options->drive <= TW_DRIVE_CALLER && options->when_full <= TW_WHEN_FULL_FAIL &&
	       workers_are_valid(options) && options->patience_for_worker >= 0 &&
	       options->queue_capacity <= TW_QUEUE_CAPACITY_MAX &&
	       (options->stack_size == 0 || options->stack_size >= TW_STACK_SIZE_MIN) &&
	       reserved_are_0(options->reserved);
}

static void options_fill_in(struct tw_options *options)
{
	if (options->queue_capacity == 0)
		options->queue_capacity = DEFAULT_QUEUE_CAPACITY;
	if (options->workers == 0)
		options->workers = DEFAULT_WORKERS;
	if (options->max_workers == 0 && options->workers != TW_WORKERS_INLINE)
		options->max_workers = options->workers > DEFAULT_MAX_WORKERS ? options->workers
									      : DEFAULT_MAX_WORKERS;
	if (options->patience_for_worker == 0)
		options->patience_for_worker = 5 * TW_MILLISECOND;
	if (!options->name)
		options->name = "tw";
}

/* Copies what the program gave and fills in the defaults. Returns whether the options are valid. */
static bool options_read(struct tw_options *options, const struct tw_options *given)
{
	*options = given ? *given : (struct tw_options){0};
	options_fill_in(options);
	return options_are_valid(options);
}

/* The rest of tw_create, with its memory there. */
static enum tw_status wheel_open(struct tw_wheel *wheel, tw_duration interval, size_t slots,
				 tw_execute_fn *execute, const struct tw_options *options)
{
	enum tw_status status;

	wheel->drive = options->drive;
	if (!fork_guard_open(&wheel->guard))
		return TW_NO_MEMORY;
	key_hash_seed_init(&wheel->seed);
	wheel->waits_when_full = options->when_full == TW_WHEN_FULL_WAIT;
	wheel->owner.out.target.guard = &wheel->guard;
	wheel->owner.out.target.wheel = wheel;
	status = owner_init(&wheel->owner, interval, slots, execute, options);
	if (status != TW_OK)
		return status;
	wheel->wake_mask = wheel->owner.queue.capacity / 2 - 1;
	if (!wheel->owner.has_thread || owner_start(&wheel->owner, options->name) == 0)
		return TW_OK;
	owner_destroy(&wheel->owner);
	return TW_SYSTEM;
}

enum tw_status tw_create(struct tw_wheel **result, tw_duration interval, size_t slots,
			 tw_execute_fn *execute, const struct tw_options *given)
{
	struct tw_options options;
	struct tw_wheel *wheel;
	enum tw_status status;
	int error;

	if (!result)
		return TW_INVALID;
	*result = NULL;
	if (interval <= 0 || slots == 0 || slots > TW_SLOTS_MAX || !options_read(&options, given))
		return TW_INVALID;
	wheel = aligned_alloc(CACHE_LINE, sizeof(*wheel));
	if (!wheel)
		return TW_NO_MEMORY;
	memset(wheel, 0, sizeof(*wheel));
	status = wheel_open(wheel, interval, slots, execute, &options);
	if (status == TW_OK) {
		*result = wheel;
		return TW_OK;
	}
	error = errno;
	free(wheel);
	errno = error;
	return status;
}

/* What a task has left behind is done in the second wait. A close's function may close another
 * alarm. */
static void wheel_settle(struct tw_wheel *wheel)
{
	(void)wheel_wait_idle(wheel, TW_FOREVER);
	do
		(void)wheel_wait_idle(wheel, TW_FOREVER);
	while (alarm_table_is_closing(&wheel->owner.out.alarms));
}

enum tw_status tw_destroy(struct tw_wheel *wheel)
{
	enum tw_status status = wheel ? wheel_presence(wheel) : TW_OK;

	if (!wheel || status != TW_OK)
		return status;
	if (wheel_is_in_task(wheel))
		return TW_INVALID;
	(void)tw_stop(wheel);
	wheel_settle(wheel);
	outbox_end_threads(&wheel->owner.out);
	owner_end(&wheel->owner);
	owner_destroy(&wheel->owner);
	free(wheel);
	return TW_OK;
}

size_t tw_pending(struct tw_wheel *wheel)
{
	return wheel ? (size_t)counter_read(&wheel->owner.pending_count) : 0;
}

tw_duration tw_now(struct tw_wheel *wheel)
{
	return wheel ? clock_now(&wheel->owner.clock) : 0;
}

enum tw_drive tw_drive_of(const struct tw_wheel *wheel)
{
	return wheel ? wheel->drive : TW_DRIVE_THREAD;
}

enum tw_clock tw_clock_of(const struct tw_wheel *wheel)
{
	return wheel ? wheel->owner.clock.kind : TW_CLOCK_MONOTONIC;
}

tw_duration tw_interval_of(const struct tw_wheel *wheel)
{
	return wheel ? wheel->owner.clock.ticks.interval : 0;
}
