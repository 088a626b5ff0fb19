/* SPDX-License-Identifier: MIT */
/* The calls that make and end a wheel, and those that read a field of it, or its statistics, as a
 * struct and as text for Prometheus. Any thread may read them, and stops none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/metric.h"
#include "base/status.h"
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

/* ---- Statistics ---- */

/* `now` is in real time. */
static void stats_add_jobs(struct tw_stats *stats, const struct job_sums *sums, tw_duration now)
{
	const uint64_t *counts = sums->counts;
	uint64_t unbegun = counts[JOB_UNBEGUN_STOPPED] + counts[JOB_UNBEGUN_REMOVED] +
			   counts[JOB_UNBEGUN_RESET];

	/* They were handed over before they were found so, but may be seen in another order. */
	stats->fired = stats->fired > unbegun ? stats->fired - unbegun : 0;
	stats->removed += counts[JOB_UNBEGUN_REMOVED];
	stats->stopped += counts[JOB_UNBEGUN_STOPPED];
	stats->running = sums->runs;
	stats->lateness = histogram_percentiles(&sums->lateness);
	stats->task_duration = histogram_percentiles(&sums->duration);
	stats->longest_running = sums->longest;
	if (sums->began != 0)
		stats->longest_running.took = time_since(now, sums->began);
}

static void stats_add_slab(struct tw_stats *stats, const struct slab *slab)
{
	struct slab_use use = slab_use(slab);

	stats->memory += use.held;
	stats->memory_in_use += use.in_use;
}

static void stats_read_memory(struct tw_stats *stats, struct owner *owner)
{
	stats->memory = counter_read(&owner->index_memory) + command_queue_memory(&owner->queue);
	for (int i = 0; i < TIMER_SIZE_CLASSES; i++)
		stats_add_slab(stats, &owner->out.store.slabs[i]);
	stats_add_slab(stats, &owner->out.handles.slab);
}

static void stats_read_owner(struct tw_stats *stats, struct tw_wheel *wheel)
{
	const struct timer_counts *counts = &wheel->owner.out.counts;

	stats->pending = counter_read(&wheel->owner.pending_count);
	stats->refused = counter_read(&wheel->refused);
	stats_read_memory(stats, &wheel->owner);
#define READ_COUNT(name, help) stats->name = counter_read_ordered(&counts->name);
	TIMER_COUNTS(READ_COUNT)
}

enum tw_status tw_get_stats(struct tw_wheel *wheel, struct tw_stats *stats)
{
	struct job_sums sums = {0};

	if (!wheel || !stats)
		return TW_INVALID;
	if (fork_guard_is_left_behind(&wheel->guard))
		return TW_CLOSED;
	*stats = (struct tw_stats){0};
	/* Jobs are read before the owner's counts, which they are part of. */
	if (wheel->owner.out.pool)
		worker_pool_read(wheel->owner.out.pool, stats, &sums);
	job_sums_add(&sums, &wheel->owner.out.thread);
	stats_read_owner(stats, wheel);
	stats_add_jobs(stats, &sums, clock_read_real(wheel->owner.clock.id));
	return TW_OK;
}

/* ---- As text ---- */

#define WHEEL_METRIC(kind, name, field, help) METRIC(METRIC_##kind, tw_stats, name, field, help)
#define WHEEL_COUNT(name, help) WHEEL_METRIC(COUNT, #name, name, help),

static const struct metric wheel_metrics[] = {
	WHEEL_METRIC(COUNT, "refused", refused, "Calls that returned TW_FULL."),
	WHEEL_METRIC(STATE, "pending", pending, "Timers armed and not yet handed over."),
	WHEEL_METRIC(STATE, "unfinished", unfinished,
		     "Unfinished tasks, releases and drain calls in the pool."),
	WHEEL_METRIC(STATE, "running", running, "Tasks, releases and drain functions running now."),
	WHEEL_METRIC(STATE, "workers", workers, "Threads that run tasks."),
	WHEEL_METRIC(STATE, "memory_bytes", memory, "Memory that the wheel has from the system."),
	WHEEL_METRIC(STATE, "memory_in_use_bytes", memory_in_use, "Memory in use by timers."),
	WHEEL_METRIC(TIME, "longest_running_seconds", longest_running.took,
		     "Time so far of the longest task."),
	TIMER_COUNTS(WHEEL_COUNT) /* with its own commas */
};

enum tw_status tw_write_metrics(struct tw_wheel *wheel, tw_write_fn *write, void *context,
				const char *prefix)
{
	struct metrics metrics = {
		.prefix = prefix ? prefix : "tw_wheel", .write = write, .context = context};
	struct tw_stats stats;
	enum tw_status status;

	if (!write || !metrics_prefix_is_valid(metrics.prefix))
		return TW_INVALID;
	status = tw_get_stats(wheel, &stats);
	if (status != TW_OK)
		return status;
	metrics_print_list(&metrics, wheel_metrics,
			   sizeof(wheel_metrics) / sizeof(wheel_metrics[0]), &stats);
	metrics_print_summary(&metrics, "lateness_seconds", "Lateness of tasks.", &stats.lateness);
	metrics_print_summary(&metrics, "task_seconds", "Duration of tasks.", &stats.task_duration);
	metrics_give(&metrics);
	return TW_OK;
}
