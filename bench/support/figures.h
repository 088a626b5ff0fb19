/* SPDX-License-Identifier: MIT */
/*
 * Figures are the results of several runs of one contender, and tables that compare two contenders.
 *
 * A run's result is a struct of doubles only, one measure each, and a measure is identified by its
 * place:
 *
 *     struct result { double per_second[2]; double bytes; };
 *     struct figures *columns[2] = {figures_create("ours"), figures_create("theirs")};
 *     figures_run(columns[0], run_trial, &plan, &result, sizeof(result));      (once a run)
 *     figures_print_rate("set", columns, FIGURE(struct result, per_second[0]));
 *
 * Ratios above 1 mean that the first column is better. Only one thread may call.
 */
#ifndef BENCH_SUPPORT_FIGURES_H
#define BENCH_SUPPORT_FIGURES_H

#include "format.h"
#include "options.h"
#include "spread.h"

#include <stddef.h>

enum { FIGURES_RUNS = 99, FIGURES_MEASURES = 64 };

/* A measure is the place of `field` among the doubles of `type`. */
#define FIGURE(type, field) (offsetof(type, field) / sizeof(double))

/* These are rows of a bench's options: the number of runs, and where the figures of each go. */
#define FIGURES_OPTIONS(runs, least, csv_path)                                                  \
	{"runs", OPTION_COUNT, runs, least, FIGURES_RUNS, .help = "runs; medians are printed"}, \
	{                                                                                       \
		"csv", OPTION_TEXT, csv_path, .help = "every run's figures to this file"        \
	}

struct figures;

/* Creates a column with this title, which is not copied. Ends the program when memory is out. */
struct figures *figures_create(const char *title);
void figures_destroy(struct figures *figures);
const char *figures_title(const struct figures *figures);

/*
 * Runs a trial in a process of its own (process_run_trial), keeps its result's measures, and leaves
 * the result in `result` too. Ends the program if the trial fails.
 */
void figures_run(struct figures *figures, void (*trial)(const void *argument, void *result),
		 const void *argument, void *result, size_t result_size);

/* Sums up the runs so far, at least one. */
struct spread figures_spread(const struct figures *figures, size_t measure);
double figures_median(const struct figures *figures, size_t measure);

/* Prints the table's head: `title` is above its first column. */
void figures_print_head(const char *title, struct figures *const columns[2]);

/* Prints a rate a second, in millions, with its spread. More is better. */
void figures_print_rate(const char *title, struct figures *const columns[2], size_t measure);

/* Prints a cost, in words. Less is better. */
void figures_print_cost(const char *title, struct figures *const columns[2], size_t measure,
			struct text (*format)(int64_t));

/* Prints costs of successive measures from `first` on as durations: "NAME p50" and so on. */
void figures_print_percentiles(const char *name, struct figures *const columns[2], size_t first,
			       const double *percents, size_t count);

#endif
