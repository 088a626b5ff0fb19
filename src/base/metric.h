/* SPDX-License-Identifier: MIT */
/* Statistics as text for Prometheus: metrics by lists, each with its help and its type. */
#ifndef METRIC_H
#define METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "text_page.h"

/* What is written, and how its names begin. */
struct metrics {
	const char *prefix;
	struct text_page page;
};

/* A number of 64 bits in a struct of statistics. */
struct metric {
	const char *name;
	size_t offset;
	const char *help;
};

/* An element of a list of metrics: a field of the struct. */
#define METRIC(type, name, field, help)                  \
	{                                                \
		name, offsetof(struct type, field), help \
	}

/* As names of metrics may begin, and of TW_METRICS_PREFIX_MAX bytes at most. */
bool metrics_prefix_is_valid(const char *prefix);

void metrics_print_head(struct metrics *metrics, const char *name, const char *kind,
			const char *help);
/* Counts that only grow: _total. */
void metrics_print_counters(struct metrics *metrics, const struct metric *list, size_t count,
			    const void *stats);
/* States. */
void metrics_print_gauges(struct metrics *metrics, const struct metric *list, size_t count,
			  const void *stats);
/* The same, of lengths of time, in seconds. */
void metrics_print_times(struct metrics *metrics, const struct metric *list, size_t count,
			 const void *stats);
/* A summary, in seconds; its sum where it is known, else NULL. */
void metrics_print_summary(struct metrics *metrics, const char *name, const char *help,
			   const struct tw_percentiles *times, const tw_duration *sum);

#endif
