/* SPDX-License-Identifier: MIT */
#include "metric.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool metrics_prefix_is_valid(const char *prefix)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
	static const char later[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:"
				    "0123456789";
	size_t size = strspn(prefix, later);

	return size > 0 && prefix[size] == '\0' && size <= TW_METRICS_PREFIX_MAX &&
	       strchr(first, prefix[0]);
}

static uint64_t metric_value(const struct metric *metric, const void *stats)
{
	uint64_t value;

	memcpy(&value, (const char *)stats + metric->offset, sizeof(value));
	return value;
}

void metrics_print_head(struct metrics *metrics, const char *name, const char *kind,
			const char *help)
{
	text_page_print(&metrics->page, "# HELP %s_%s %s\n# TYPE %s_%s %s\n", metrics->prefix, name,
			help, metrics->prefix, name, kind);
}

void metrics_print_counters(struct metrics *metrics, const struct metric *list, size_t count,
			    const void *stats)
{
	for (size_t i = 0; i < count; i++) {
		char name[TEXT_LINE_MOST / 8];

		snprintf(name, sizeof(name), "%s_total", list[i].name);
		metrics_print_head(metrics, name, "counter", list[i].help);
		text_page_print(&metrics->page, "%s_%s %" PRIu64 "\n", metrics->prefix, name,
				metric_value(&list[i], stats));
	}
}

void metrics_print_gauges(struct metrics *metrics, const struct metric *list, size_t count,
			  const void *stats)
{
	for (size_t i = 0; i < count; i++) {
		metrics_print_head(metrics, list[i].name, "gauge", list[i].help);
		text_page_print(&metrics->page, "%s_%s %" PRIu64 "\n", metrics->prefix,
				list[i].name, metric_value(&list[i], stats));
	}
}

/* Prints nanoseconds as seconds, with a decimal point in every locale. */
static void metrics_print_seconds(struct metrics *metrics, const char *name, const char *what,
				  tw_duration time)
{
	text_page_print(&metrics->page, "%s_%s%s %" PRId64 ".%09" PRId64 "\n", metrics->prefix,
			name, what, time / TW_SECOND, time % TW_SECOND);
}

void metrics_print_times(struct metrics *metrics, const struct metric *list, size_t count,
			 const void *stats)
{
	for (size_t i = 0; i < count; i++) {
		metrics_print_head(metrics, list[i].name, "gauge", list[i].help);
		metrics_print_seconds(metrics, list[i].name, "",
				      (tw_duration)metric_value(&list[i], stats));
	}
}

void metrics_print_summary(struct metrics *metrics, const char *name, const char *help,
			   const struct tw_percentiles *times, const tw_duration *sum)
{
	metrics_print_head(metrics, name, "summary", help);
	metrics_print_seconds(metrics, name, "{quantile=\"0.5\"}", times->p50);
	metrics_print_seconds(metrics, name, "{quantile=\"0.9\"}", times->p90);
	metrics_print_seconds(metrics, name, "{quantile=\"0.99\"}", times->p99);
	metrics_print_seconds(metrics, name, "{quantile=\"1\"}", times->max);
	if (sum)
		metrics_print_seconds(metrics, name, "_sum", *sum);
	text_page_print(&metrics->page, "%s_%s_count %" PRIu64 "\n", metrics->prefix, name,
			times->count);
}
