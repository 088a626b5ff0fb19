/* SPDX-License-Identifier: MIT */
/* This file prints the statistics as text for Prometheus. */
#include <inttypes.h>
#include <stdio.h>

#include "base/metric.h"
#include "cache.h"

#define CACHE_METRIC(kind, name, field, help) \
	METRIC(METRIC_##kind, tw_cache_stats, name, field, help)

static const struct metric cache_metrics[] = {
	CACHE_METRIC(COUNT, "hits", hits, "Lookups that found their key."),
	CACHE_METRIC(COUNT, "misses", misses, "Lookups whose key was missing or had expired."),
	CACHE_METRIC(COUNT, "absent", absent, "Lookups that found a stored absence."),
	CACHE_METRIC(COUNT, "loads", loads, "Keys for which a loader was called."),
	CACHE_METRIC(COUNT, "refreshes", refreshes, "Loads of keys that still had a value."),
	CACHE_METRIC(COUNT, "load_errors", load_errors, "Loads that supplied no value."),
	CACHE_METRIC(COUNT, "load_waits", load_waits, "Takes that waited for another take's load."),
	CACHE_METRIC(COUNT, "wait_timeouts", wait_timeouts,
		     "Takes that timed out while a load was running."),
	CACHE_METRIC(COUNT, "stale", stale,
		     "Takes that returned an expired value after a failed load."),
	CACHE_METRIC(COUNT, "inserts", inserts, "Entries inserted."),
	CACHE_METRIC(COUNT, "notified", notified, "Removals reported to the listener."),
	CACHE_METRIC(COUNT, "refused", refused,
		     "Values that were not stored, as each alone weighed more than the limit."),
	CACHE_METRIC(STATE, "entries", entries, "Entries in the cache."),
	CACHE_METRIC(STATE, "bytes", bytes, "Sum of the entries' weights."),
	CACHE_METRIC(STATE, "queued_removals", queued_removals,
		     "Removals that wait for the listener."),
	CACHE_METRIC(STATE, "loads_waiting", loads_waiting,
		     "Loads that wait for the wheel's pool."),
	CACHE_METRIC(STATE, "loads_running", loads_running, "Loads that run or are kept."),
	CACHE_METRIC(STATE, "memory_bytes", memory, "Memory that the cache has from the system."),
	CACHE_METRIC(STATE, "memory_in_use_bytes", memory_in_use,
		     "Memory in use by entries and tables."),
	CACHE_METRIC(STATE, "memory_pinned_bytes", memory_pinned,
		     "Memory of removed entries that are pinned."),
	CACHE_METRIC(TIME, "oldest_load_seconds", oldest_load,
		     "How long ago the oldest load was asked for."),
};

static void print_removed(struct metrics *metrics, const struct tw_cache_stats *stats)
{
	static const char *const causes[TW_CACHE_CAUSES] = {
		[TW_CAUSE_EXPLICIT] = "explicit", [TW_CAUSE_REPLACED] = "replaced",
		[TW_CAUSE_SIZE] = "size",         [TW_CAUSE_EXPIRED] = "expired",
		[TW_CAUSE_SHUTDOWN] = "shutdown",
	};

	metrics_print_head(metrics, "removed_total", "counter", "Entries removed, by cause.");
	for (int i = 0; i < TW_CACHE_CAUSES; i++)
		metrics_print(metrics, "%s_removed_total{cause=\"%s\"} %" PRIu64 "\n",
			      metrics->prefix, causes[i], stats->removed[i]);
}

enum tw_status tw_cache_write_metrics(struct tw_cache *cache, tw_write_fn *write, void *context,
				      const char *prefix)
{
	struct metrics metrics = {
		.prefix = prefix ? prefix : "tw_cache", .write = write, .context = context};
	struct tw_cache_stats stats;

	if (!cache || !write || !metrics_prefix_is_valid(metrics.prefix))
		return TW_INVALID;
	(void)tw_cache_get_stats(cache, &stats);
	metrics_print_list(&metrics, cache_metrics,
			   sizeof(cache_metrics) / sizeof(cache_metrics[0]), &stats);
	print_removed(&metrics, &stats);
	metrics_print_summary(&metrics, "load_seconds", "Durations of loads.", &stats.load_time,
			      &stats.load_time_total);
	metrics_give(&metrics);
	return TW_OK;
}
