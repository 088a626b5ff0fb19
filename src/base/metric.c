/* SPDX-License-Identifier: MIT */
#include "metric.h"

#include <inttypes.h>
#include <stdarg.h>
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

void metrics_give(struct metrics *metrics)
{
	metrics->write(metrics->context, metrics->text, metrics->size);
	metrics->size = 0;
}

void metrics_print(struct metrics *metrics, const char *format, ...)
{
	va_list arguments;
	int size;

	if (METRICS_PAGE_SIZE - metrics->size < METRICS_LINE_MOST)
		metrics_give(metrics);
	va_start(arguments, format);
	size = vsnprintf(metrics->text + metrics->size, METRICS_PAGE_SIZE - metrics->size, format,
			 arguments);
	va_end(arguments);
	metrics->size += size > 0 ? (size_t)size : 0;
}

void metrics_print_head(struct metrics *metrics, const char *name, const char *type,
			const char *help)
{
	metrics_print(metrics, "# HELP %s_%s %s\n# TYPE %s_%s %s\n", metrics->prefix, name, help,
		      metrics->prefix, name, type);
}

/* Prints nanoseconds as seconds, with a decimal point in every locale. */
static void metrics_print_seconds(struct metrics *metrics, const char *name, const char *what,
				  tw_duration time)
{
	metrics_print(metrics, "%s_%s%s %" PRId64 ".%09" PRId64 "\n", metrics->prefix, name, what,
		      time / TW_SECOND, time % TW_SECOND);
}

void metrics_print_list(struct metrics *metrics, const struct metric *list, size_t count,
			const void *stats)
{
	for (const struct metric *metric = list; metric < list + count; metric++) {
		bool is_count = metric->kind == METRIC_COUNT || metric->kind == METRIC_SUM;
		char name[METRICS_LINE_MOST / 8];
		uint64_t value;

		memcpy(&value, (const char *)stats + metric->offset, sizeof(value));
		snprintf(name, sizeof(name), "%s%s", metric->name, is_count ? "_total" : "");
		metrics_print_head(metrics, name, is_count ? "counter" : "gauge", metric->help);
		if (metric->kind == METRIC_TIME || metric->kind == METRIC_SUM)
			metrics_print_seconds(metrics, name, "", (tw_duration)value);
		else
			metrics_print(metrics, "%s_%s %" PRIu64 "\n", metrics->prefix, name, value);
	}
}

void metrics_print_summary(struct metrics *metrics, const char *name, const char *help,
			   const struct tw_percentiles *times)
{
	metrics_print_head(metrics, name, "summary", help);
	metrics_print_seconds(metrics, name, "{quantile=\"0.5\"}", times->p50);
	metrics_print_seconds(metrics, name, "{quantile=\"0.9\"}", times->p90);
	metrics_print_seconds(metrics, name, "{quantile=\"0.99\"}", times->p99);
	metrics_print_seconds(metrics, name, "{quantile=\"1\"}", times->max);
	metrics_print(metrics, "%s_%s_count %" PRIu64 "\n", metrics->prefix, name, times->count);
}
