/* SPDX-License-Identifier: MIT */
/* The statistics as text for Prometheus: a list of metrics, and a page of text, given on when it is
 * full. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cache.h"

enum { PAGE = 4096, LINE_MOST = 512 };

struct page {
	tw_write_fn *write;
	void *context;
	const char *prefix;
	size_t size;
	char text[PAGE];
};

static void page_give(struct page *page)
{
	if (page->size > 0)
		page->write(page->context, page->text, page->size);
	page->size = 0;
}

/* A line or a few, of LINE_MOST bytes at most, whole. */
static __attribute__((format(printf, 2, 3))) void page_print(struct page *page, const char *format,
							     ...)
{
	va_list arguments;
	int size;

	if (PAGE - page->size < LINE_MOST)
		page_give(page);
	va_start(arguments, format);
	size = vsnprintf(page->text + page->size, PAGE - page->size, format, arguments);
	va_end(arguments);
	page->size += size > 0 ? (size_t)size : 0;
}

/* ---- The metrics ---- */

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

struct metric {
	const char *name;
	size_t offset; /* of the count, in the statistics */
	const char *help;
};

#define METRIC(name, field, help) {name, offsetof(struct tw_cache_stats, field), help},
static const struct metric counters[] = {COUNTERS(METRIC)};
static const struct metric gauges[] = {GAUGES(METRIC)};

static uint64_t metric_value(const struct metric *metric, const struct tw_cache_stats *stats)
{
	uint64_t value;

	memcpy(&value, (const char *)stats + metric->offset, sizeof(value));
	return value;
}

static void page_print_head(struct page *page, const char *name, const char *kind, const char *help)
{
	page_print(page, "# HELP %s_%s %s\n# TYPE %s_%s %s\n", page->prefix, name, help,
		   page->prefix, name, kind);
}

static void page_print_counter(struct page *page, const struct metric *metric,
			       const struct tw_cache_stats *stats)
{
	char name[LINE_MOST / 8];

	snprintf(name, sizeof(name), "%s_total", metric->name);
	page_print_head(page, name, "counter", metric->help);
	page_print(page, "%s_%s %" PRIu64 "\n", page->prefix, name, metric_value(metric, stats));
}

static void page_print_gauge(struct page *page, const struct metric *metric,
			     const struct tw_cache_stats *stats)
{
	page_print_head(page, metric->name, "gauge", metric->help);
	page_print(page, "%s_%s %" PRIu64 "\n", page->prefix, metric->name,
		   metric_value(metric, stats));
}

static void page_print_removed(struct page *page, const struct tw_cache_stats *stats)
{
	static const char *const causes[TW_CACHE_CAUSES] = {
		[TW_CAUSE_EXPLICIT] = "explicit", [TW_CAUSE_REPLACED] = "replaced",
		[TW_CAUSE_SIZE] = "size",         [TW_CAUSE_EXPIRED] = "expired",
		[TW_CAUSE_SHUTDOWN] = "shutdown",
	};

	page_print_head(page, "removed_total", "counter", "Entries that left, by cause.");
	for (int i = 0; i < TW_CACHE_CAUSES; i++)
		page_print(page, "%s_removed_total{cause=\"%s\"} %" PRIu64 "\n", page->prefix,
			   causes[i], stats->removed[i]);
}

/* Nanoseconds as seconds, whatever the locale says of decimal points. */
static void page_print_seconds(struct page *page, const char *what, tw_duration time)
{
	page_print(page, "%s_load_seconds%s %" PRId64 ".%09" PRId64 "\n", page->prefix, what,
		   time / TW_SECOND, time % TW_SECOND);
}

static void page_print_load_time(struct page *page, const struct tw_cache_stats *stats)
{
	page_print_head(page, "load_seconds", "summary", "How long loads took.");
	page_print_seconds(page, "{quantile=\"0.5\"}", stats->load_time.p50);
	page_print_seconds(page, "{quantile=\"0.9\"}", stats->load_time.p90);
	page_print_seconds(page, "{quantile=\"0.99\"}", stats->load_time.p99);
	page_print_seconds(page, "{quantile=\"1\"}", stats->load_time.max);
	page_print_seconds(page, "_sum", stats->load_time_total);
	page_print(page, "%s_load_seconds_count %" PRIu64 "\n", page->prefix,
		   stats->load_time.count);
}

/* ---- The call ---- */

static bool prefix_is_valid(const char *prefix)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
	static const char later[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:"
				    "0123456789";
	size_t size = strspn(prefix, later);

	return size > 0 && prefix[size] == '\0' && size <= TW_METRICS_PREFIX_MAX &&
	       strchr(first, prefix[0]);
}

enum tw_status tw_cache_write_metrics(struct tw_cache *cache, tw_write_fn *write, void *context,
				      const char *prefix)
{
	struct page page = {
		.write = write, .context = context, .prefix = prefix ? prefix : "tw_cache"};
	struct tw_cache_stats stats;

	if (!cache || !write || !prefix_is_valid(page.prefix))
		return TW_INVALID;
	(void)tw_cache_get_stats(cache, &stats);
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		page_print_counter(&page, &counters[i], &stats);
	page_print_removed(&page, &stats);
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		page_print_gauge(&page, &gauges[i], &stats);
	page_print_load_time(&page, &stats);
	page_give(&page);
	return TW_OK;
}
