/* SPDX-License-Identifier: MIT */
/*
 * Figures are the measures of several runs of one contender, or of one case. Their medians are
 * printed as a table of Markdown, and each run's as rows of a CSV file.
 *
 *     static const struct measure measures[] = {
 *         {"set_per_second", "set: million a second", 1e-6, 2},
 *         {0},
 *     };
 *     struct figures *ours = figures_create("timingwheel", "timingwheel", measures);
 *     figures_run(ours, run_trial, &plan);      (once a run)
 *     figures_print_columns("a million timers", (struct figures *[]){ours, theirs}, 2);
 *
 * A trial writes one double for each measure; what it does not write is left out of the tables.
 * Only one thread may call.
 */
#ifndef BENCH_SUPPORT_FIGURES_H
#define BENCH_SUPPORT_FIGURES_H

#include "options.h"

#include <stddef.h>

enum { FIGURES_RUNS = 99, FIGURES_MEASURES = 64 };

struct measure {
	const char *name;  /* in the CSV file; NULL ends the list */
	const char *title; /* in the table, with the unit */
	double factor;     /* from the trial's unit to the table's */
	int decimals;
};

/* These are rows of a bench's options: the number of runs, and where the figures of each go. */
#define FIGURES_OPTIONS(runs, csv_path)                                                     \
	{"runs", OPTION_COUNT, runs, 1, FIGURES_RUNS, .help = "runs; medians are printed"}, \
	{                                                                                   \
		"csv", OPTION_TEXT, csv_path, .help = "every run's figures to this file"    \
	}

struct figures;

/* Opens the CSV file of all figures; `path` may be NULL. Ends the program with 2 if it can't. */
void figures_open(const char *path);
void figures_close(void);

/* Creates figures without a run. Nothing is copied. Ends the program when memory is out. */
struct figures *figures_create(const char *name, const char *title, const struct measure *measures);
void figures_destroy(struct figures *figures);

/* Adds a run's results, one for each measure, NaN for what was not measured. */
void figures_add(struct figures *figures, const double *result);

/*
 * Runs a trial in a process of its own (process_run_trial) and adds its results. Ends the program
 * if the trial fails.
 */
void figures_run(struct figures *figures, void (*trial)(const void *plan, double *result),
		 const void *plan);

/* Prints a table with a column for each of `all`, which have the same measures, and a row for each
 * measure. */
void figures_print_columns(const char *head, struct figures *const *all, size_t count);

/* Prints a table with a row for each of `all`, and a column for each measure. */
void figures_print_rows(const char *head, struct figures *const *all, size_t count);

#endif
