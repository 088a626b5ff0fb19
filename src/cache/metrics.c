/* SPDX-License-Identifier: MIT */
/* The statistics as text for Prometheus. */
#include <inttypes.h>
#include <stdio.h>

#include "base/metric.h"
#include "cache.h"

/* X(name, field, help): counts that only grow. */
#define COUNTERS(X)                                                                 \
	X("hits", hits, "Keys asked for that were there.")                          \
	X("misses", misses, "Keys asked for that were not there, or had expired.")  \
	X("absent", absent, "Keys asked for that were known to be absent.")         \
	X("loads", loads, "Loaders called.")                                        \
	X("refreshes", refreshes, "Loads of keys whose value could still be read.") \
	X("load_errors", load_errors, "Loads that gave no value.")                  \
	X("load_waits", load_waits, "Takes that waited for a load of another.")     \
	X("wait_timeouts", wait_timeouts, "Takes that gave up waiting for a load.") \
	X("stale", stale, "Takes given an expired value because the load failed.")  \
	X("inserts", inserts, "Entries that came in.")                              \
	X("notified", notified, "Removals that the listener was told of.")          \
	X("refused", refused, "Values refused because too many removals were queued.")

/* Likewise: states. */
#define GAUGES(X)                                                                     \
	X("entries", entries, "Entries that are there.")                              \
	X("bytes", bytes, "Sum of the weights of the entries.")                       \
	X("queued_removals", queued_removals, "Removals that wait for the listener.") \
	X("memory_bytes", memory, "Memory that the cache has of the system.")         \
	X("memory_in_use_bytes", memory_in_use, "Memory in use by what is there.")    \
	X("memory_retired_bytes", memory_retired,                                     \
	  "Memory of what has left, and may still be looked at.")                     \
	X("memory_pinned_bytes", memory_pinned, "Memory of what has left, and is pinned.")

#define CACHE_METRIC(name, field, help) METRIC(tw_cache_stats, name, field, help),
static const struct metric counters[] = {COUNTERS(CACHE_METRIC)};
static const struct metric gauges[] = {GAUGES(CACHE_METRIC)};

static void print_removed(struct metrics *metrics, const struct tw_cache_stats *stats)
{
	static const char *const causes[TW_CACHE_CAUSES] = {
		[TW_CAUSE_EXPLICIT] = "explicit", [TW_CAUSE_REPLACED] = "replaced",
		[TW_CAUSE_SIZE] = "size",         [TW_CAUSE_EXPIRED] = "expired",
		[TW_CAUSE_SHUTDOWN] = "shutdown",
	};

	metrics_print_head(metrics, "removed_total", "counter", "Entries that left, by cause.");
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
	metrics_print_counters(&metrics, counters, sizeof(counters) / sizeof(counters[0]), &stats);
	print_removed(&metrics, &stats);
	metrics_print_gauges(&metrics, gauges, sizeof(gauges) / sizeof(gauges[0]), &stats);
	metrics_print_summary(&metrics, "load_seconds", "How long loads took.", &stats.load_time,
			      &stats.load_time_total);
	text_page_give(&metrics.page);
	return TW_OK;
}
