/* SPDX-License-Identifier: MIT */
/* This file prints the statistics as text for Prometheus. */
#include <inttypes.h>
#include <stdio.h>

#include "base/metric.h"
#include "cache.h"

#define CACHE_METRIC(name, field, help) METRIC(tw_cache_stats, name, field, help)

/* These are counts that only grow. */
static const struct metric cache_counters[] = {
	CACHE_METRIC("hits", hits, "Lookups that found their key."),
	CACHE_METRIC("misses", misses, "Lookups whose key was missing or had expired."),
	CACHE_METRIC("absent", absent, "Lookups that found a stored absence."),
	CACHE_METRIC("loads", loads, "Keys for which a loader was called."),
	CACHE_METRIC("refreshes", refreshes, "Loads of keys that still had a value."),
	CACHE_METRIC("load_errors", load_errors, "Loads that supplied no value."),
	CACHE_METRIC("load_waits", load_waits, "Takes that waited for another take's load."),
	CACHE_METRIC("wait_timeouts", wait_timeouts,
		     "Takes that timed out while a load was running."),
	CACHE_METRIC("stale", stale, "Takes that returned an expired value after a failed load."),
	CACHE_METRIC("inserts", inserts, "Entries inserted."),
	CACHE_METRIC("notified", notified, "Removals reported to the listener."),
	CACHE_METRIC("refused", refused,
		     "Values that were not stored, as each alone weighed more than the limit."),
};

/* These are states. */
static const struct metric cache_gauges[] = {
	CACHE_METRIC("entries", entries, "Entries in the cache."),
	CACHE_METRIC("bytes", bytes, "Sum of the entries' weights."),
	CACHE_METRIC("queued_removals", queued_removals, "Removals that wait for the listener."),
	CACHE_METRIC("loads_waiting", loads_waiting, "Loads that wait for the wheel's pool."),
	CACHE_METRIC("loads_running", loads_running, "Loads that run or are kept."),
	CACHE_METRIC("memory_bytes", memory, "Memory that the cache has from the system."),
	CACHE_METRIC("memory_in_use_bytes", memory_in_use, "Memory in use by entries and tables."),
	CACHE_METRIC("memory_retired_bytes", memory_retired,
		     "Memory of removed entries that readers may still use."),
	CACHE_METRIC("memory_pinned_bytes", memory_pinned,
		     "Memory of removed entries that are pinned."),
};

static const struct metric cache_times[] = {CACHE_METRIC(
	"oldest_load_seconds", oldest_load, "How long ago the oldest load was asked for.")};

static void print_removed(struct metrics *metrics, const struct tw_cache_stats *stats)
{
	static const char *const causes[TW_CACHE_CAUSES] = {
		[TW_CAUSE_EXPLICIT] = "explicit", [TW_CAUSE_REPLACED] = "replaced",
		[TW_CAUSE_SIZE] = "size",         [TW_CAUSE_EXPIRED] = "expired",
		[TW_CAUSE_SHUTDOWN] = "shutdown",
	};

	metrics_print_head(metrics, "removed_total", "counter", "Entries removed, by cause.");
	for (int i = 0; i < TW_CACHE_CAUSES; i++)
		text_page_print(&metrics->page, "%s_removed_total{cause=\"%s\"} %" PRIu64 "\n",
				metrics->prefix, causes[i], stats->removed[i]);
}

enum tw_status tw_cache_write_metrics(struct tw_cache *cache, tw_write_fn *write, void *context,
				      const char *prefix)
{
	struct metrics metrics = {.prefix = prefix ? prefix : "tw_cache",
				  .page = {.write = write, .context = context}};
	struct tw_cache_stats stats;

	if (!cache || !write || !metrics_prefix_is_valid(metrics.prefix))
		return TW_INVALID;
	(void)tw_cache_get_stats(cache, &stats);
	metrics_print_counters(&metrics, cache_counters,
			       sizeof(cache_counters) / sizeof(cache_counters[0]), &stats);
	print_removed(&metrics, &stats);
	metrics_print_gauges(&metrics, cache_gauges, sizeof(cache_gauges) / sizeof(cache_gauges[0]),
			     &stats);
	metrics_print_times(&metrics, cache_times, sizeof(cache_times) / sizeof(cache_times[0]),
			    &stats);
	metrics_print_summary(&metrics, "load_seconds", "Durations of loads.", &stats.load_time,
			      &stats.load_time_total);
	text_page_give(&metrics.page);
	return TW_OK;
}
