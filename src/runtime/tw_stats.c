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
	/* What became of the timers before how many were set, so that it is never more. */
	stats->fired = counter_read_ordered(&counts->fired);
	stats->drained = counter_read_ordered(&counts->drained);
	stats->stopped = counter_read_ordered(&counts->stopped);
	stats->removed = counter_read_ordered(&counts->removed);
	stats->replaced = counter_read_ordered(&counts->replaced);
	stats->moved = counter_read_ordered(&counts->moved);
	stats->set = counter_read_ordered(&counts->set);
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

/* X(name, field, help): counts that only grow. */
#define COUNTERS(X)                                                                            \
	X("set", set, "Timers armed under a new key, or by handle.")                           \
	X("replaced", replaced, "Values replaced under an existing key.")                      \
	X("moved", moved, "Moves that found their key.")                                       \
	X("removed", removed, "Timers removed by key, or stopped by handle.")                  \
	X("fired", fired, "Timers handed over to run.")                                        \
	X("drained", drained, "Timers handed to drain functions.")                             \
	X("stopped", stopped, "Timers pending, or tasks not begun, at the stop of the wheel.") \
	X("refused", refused, "Calls that returned TW_FULL.")

/* X(name, field, help): states. */
#define GAUGES(X)                                                                              \
	X("pending", pending, "Timers armed and not yet handed over.")                         \
	X("unfinished", unfinished, "Unfinished tasks, releases and drain calls in the pool.") \
	X("running", running, "Tasks, releases and drain functions running now.")              \
	X("workers", workers, "Threads that run tasks.")                                       \
	X("memory_bytes", memory, "Memory that the wheel has from the system.")                \
	X("memory_in_use_bytes", memory_in_use, "Memory in use by timers.")

/* X(name, field, help): lengths of time. */
#define TIMES(X) \
	X("longest_running_seconds", longest_running.took, "Time so far of the longest task.")

#define WHEEL_METRIC(name, field, help) METRIC(tw_stats, name, field, help),

enum tw_status tw_write_metrics(struct tw_wheel *wheel, tw_write_fn *write, void *context,
				const char *prefix)
{
	static const struct metric counters[] = {COUNTERS(WHEEL_METRIC)};
	static const struct metric gauges[] = {GAUGES(WHEEL_METRIC)};
	static const struct metric times[] = {TIMES(WHEEL_METRIC)};
	struct metrics metrics = {.prefix = prefix ? prefix : "tw_wheel",
				  .page = {.write = write, .context = context}};
	struct tw_stats stats;
	enum tw_status status;

	if (!write || !metrics_prefix_is_valid(metrics.prefix))
		return TW_INVALID;
	status = tw_get_stats(wheel, &stats);
	if (status != TW_OK)
		return status;
	metrics_print_counters(&metrics, counters, sizeof(counters) / sizeof(counters[0]), &stats);
	metrics_print_gauges(&metrics, gauges, sizeof(gauges) / sizeof(gauges[0]), &stats);
	metrics_print_times(&metrics, times, sizeof(times) / sizeof(times[0]), &stats);
	metrics_print_summary(&metrics, "lateness_seconds", "Lateness of tasks.", &stats.lateness,
			      NULL);
	metrics_print_summary(&metrics, "task_seconds", "Duration of tasks.", &stats.task_duration,
			      NULL);
	text_page_give(&metrics.page);
	return TW_OK;
}
