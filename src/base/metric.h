/* SPDX-License-Identifier: MIT */
/* Metrics are statistics printed as text for Prometheus. Lists give their names and help texts. */
#ifndef METRIC_H
#define METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "text_page.h"

/* The text being written, and the prefix of all names in it. */
struct metrics {
	const char *prefix;
	struct text_page page;
};

/* A field of 64 bits in a struct of statistics, and its name and help text. */
struct metric {
	const char *name;
	size_t offset;
	const char *help;
};

/* Initializes an element of a list of metrics for `field` of `struct type`. */
#define METRIC(type, name, field, help)                  \
	{                                                \
		name, offsetof(struct type, field), help \
	}

/* Returns whether names of metrics may begin with `prefix`, and whether it has 1 to
 * TW_METRICS_PREFIX_MAX bytes. */
bool metrics_prefix_is_valid(const char *prefix);

/* Prints the lines HELP and TYPE; `kind` is the type. */
void metrics_print_head(struct metrics *metrics, const char *name, const char *kind,
			const char *help);
/* Prints counts that only grow; their names end in _total. */
void metrics_print_counters(struct metrics *metrics, const struct metric *list, size_t count,
			    const void *stats);
/* Prints numbers that go up and down. */
void metrics_print_gauges(struct metrics *metrics, const struct metric *list, size_t count,
			  const void *stats);
/* Prints lengths of time that go up and down, in seconds. */
void metrics_print_times(struct metrics *metrics, const struct metric *list, size_t count,
			 const void *stats);
/* Prints a summary of times, in seconds. `sum` is their sum, or NULL if it is not known. */
void metrics_print_summary(struct metrics *metrics, const char *name, const char *help,
			   const struct tw_percentiles *times, const tw_duration *sum);

#endif
