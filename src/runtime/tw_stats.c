/* SPDX-License-Identifier: MIT */
/* The wheel's statistics, as a struct, and as text for Prometheus. Any thread may call these, and
 * stops none. */
#include <string.h>

#include "ask.h"
#include "base/metric.h"

/* Sets `sums` to the statistics of the jobs that the workers and the owner did. */
static void wheel_sum_jobs(const struct tw_wheel *wheel, struct job_sums *sums)
{
	if (wheel->owner.out.pool)
		worker_pool_sum(wheel->owner.out.pool, sums);
	else
		memset(sums, 0, sizeof(*sums));
	job_sums_add(sums, &wheel->owner.out.thread);
}

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
	stats->running = counts[JOB_RUNNING] + sums->runs;
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

	memset(stats, 0, sizeof(*stats));
	stats->pending = counter_read(&wheel->owner.pending_count);
	stats->refused = counter_read(&wheel->refused);
	if (wheel->owner.out.pool)
		worker_pool_count(wheel->owner.out.pool, stats);
	stats_read_memory(stats, &wheel->owner);
#define READ_COUNT(name, help) stats->name = counter_read_ordered(&counts->name);
	TIMER_COUNTS(READ_COUNT)
}

enum tw_status tw_get_stats(struct tw_wheel *wheel, struct tw_stats *stats)
{
	struct job_sums sums;

	if (!wheel || !stats)
		return TW_INVALID;
	if (fork_guard_is_left_behind(&wheel->guard))
		return TW_CLOSED;
	/* They are read before the owner's counts, which they are part of. */
	wheel_sum_jobs(wheel, &sums);
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
	metrics_print_summary(&metrics, "lateness_seconds", "Lateness of tasks.", &stats.lateness,
			      NULL);
	metrics_print_summary(&metrics, "task_seconds", "Duration of tasks.", &stats.task_duration,
			      NULL);
	metrics_give(&metrics);
	return TW_OK;
}
