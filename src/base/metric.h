/* SPDX-License-Identifier: MIT */
/*
 * Metrics are statistics printed as text for Prometheus. Lists give their names and help texts. The
 * text is passed on a page at a time, and nothing is allocated.
 */
#ifndef METRIC_H
#define METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

enum { METRICS_PAGE_SIZE = 4096, METRICS_LINE_MOST = 512 };

/* The text being written. The user sets the first three fields and zeroes the others. */
struct metrics {
	const char *prefix; /* names begin with it; see metrics_prefix_is_valid() */
	tw_write_fn *write;
	void *context;
	size_t size;
	char text[METRICS_PAGE_SIZE];
};

enum metric_kind {
	METRIC_COUNT, /* it only grows; its name is printed with _total */
	METRIC_STATE, /* it goes up and down */
	METRIC_TIME,  /* so does a length of time, in nanoseconds; it is printed in seconds */
	METRIC_SUM    /* a length of time that only grows; with _total */
};

/* A field of 64 bits in a struct of statistics, and its name and help text. */
struct metric {
	enum metric_kind kind;
	const char *name;
	size_t offset;
	const char *help;
};

/* Initializes an element of a list of metrics for `field` of `struct type`. */
#define METRIC(kind, type, name, field, help)                  \
	{                                                      \
		kind, name, offsetof(struct type, field), help \
	}

/* Returns whether names of metrics may begin with `prefix`, and whether it has 1 to
 * TW_METRICS_PREFIX_MAX bytes. */
bool metrics_prefix_is_valid(const char *prefix);

/* Prints whole lines of at most METRICS_LINE_MOST bytes together. */
__attribute__((format(printf, 2, 3))) void metrics_print(struct metrics *metrics,
							 const char *format, ...);
/* Prints the lines HELP and TYPE; `type` is Prometheus's. */
void metrics_print_head(struct metrics *metrics, const char *name, const char *type,
			const char *help);
/* Prints the metrics of a list, by their kinds. */
void metrics_print_list(struct metrics *metrics, const struct metric *list, size_t count,
			const void *stats);
/* Prints a summary of times, in seconds. */
void metrics_print_summary(struct metrics *metrics, const char *name, const char *help,
			   const struct tw_percentiles *times);
/* Passes on the text printed so far. */
void metrics_give(struct metrics *metrics);

#endif
