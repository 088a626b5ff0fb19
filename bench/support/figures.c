/* SPDX-License-Identifier: MIT */
#include "figures.h"

#include "process.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct figures {
	const char *title;
	size_t runs;
	double values[FIGURES_MEASURES][FIGURES_RUNS];
};

struct figures *figures_create(const char *title)
{
	struct figures *figures = process_allocate(sizeof(*figures));

	figures->title = title;
	return figures;
}

void figures_destroy(struct figures *figures)
{
	free(figures);
}

const char *figures_title(const struct figures *figures)
{
	return figures->title;
}

void figures_run(struct figures *figures, void (*trial)(const void *argument, void *result),
		 const void *argument, void *result, size_t result_size)
{
	const double *measures = result;
	size_t count = result_size / sizeof(*measures);

	assert(count <= FIGURES_MEASURES && figures->runs < FIGURES_RUNS);
	if (!process_run_trial(trial, argument, result, result_size))
		exit(1); /* the trial has printed why */
	for (size_t i = 0; i < count; i++)
		figures->values[i][figures->runs] = measures[i];
	figures->runs++;
}

struct spread figures_spread(const struct figures *figures, size_t measure)
{
	double values[FIGURES_RUNS];

	memcpy(values, figures->values[measure], sizeof(values));
	return spread_of(values, figures->runs);
}

double figures_median(const struct figures *figures, size_t measure)
{
	return figures_spread(figures, measure).median;
}

void figures_print_head(const char *title, struct figures *const columns[2])
{
	printf("\n%-24s %28s %28s %7s\n", title, columns[0]->title, columns[1]->title, "ratio");
}

void figures_print_rate(const char *title, struct figures *const columns[2], size_t measure)
{
	printf("  %-22s", title);
	for (int i = 0; i < 2; i++) {
		struct spread rate = figures_spread(columns[i], measure);

		printf("  %9.2f (%6.2f to %6.2f)", rate.median / 1e6, rate.least / 1e6,
		       rate.most / 1e6);
	}
	printf(" %6.1fx\n",
	       figures_median(columns[0], measure) / figures_median(columns[1], measure));
}

void figures_print_cost(const char *title, struct figures *const columns[2], size_t measure,
			struct text (*format)(int64_t))
{
	printf("  %-22s", title);
	for (int i = 0; i < 2; i++) {
		int64_t median = (int64_t)(figures_median(columns[i], measure) + 0.5);

		printf(" %28s", format(median).characters);
	}
	printf(" %6.1fx\n",
	       figures_median(columns[1], measure) / figures_median(columns[0], measure));
}

void figures_print_percentiles(const char *name, struct figures *const columns[2], size_t first,
			       const double *percents, size_t count)
{
	char title[64];

	for (size_t i = 0; i < count; i++) {
		snprintf(title, sizeof(title), "%s p%g", name, percents[i]);
		figures_print_cost(title, columns, first + i, format_duration);
	}
}
