/* SPDX-License-Identifier: MIT */
#include "figures.h"

#include "csv.h"
#include "process.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct figures {
	const char *name;
	const char *title;
	const struct measure *measures;
	size_t measure_count;
	size_t runs;
	double values[FIGURES_MEASURES][FIGURES_RUNS];
};

/* It is that of all figures of the process, or has no file. */
static struct csv csv;

void figures_open(const char *path)
{
	csv = csv_open(path, "contender,run,measure,value");
}

void figures_close(void)
{
	csv_close(csv);
}

struct figures *figures_create(const char *name, const char *title, const struct measure *measures)
{
	struct figures *figures = process_allocate(sizeof(*figures));

	figures->name = name;
	figures->title = title;
	figures->measures = measures;
	while (measures[figures->measure_count].name)
		figures->measure_count++;
	assert(figures->measure_count <= FIGURES_MEASURES);
	return figures;
}

void figures_destroy(struct figures *figures)
{
	free(figures);
}

void figures_add(struct figures *figures, const double *result)
{
	assert(figures->runs < FIGURES_RUNS);
	for (size_t i = 0; i < figures->measure_count; i++) {
		figures->values[i][figures->runs] = result[i];
		if (!isnan(result[i]))
			csv_row(csv, "%s,%zu,%s,%.10g", figures->name, figures->runs + 1,
				figures->measures[i].name, result[i]);
	}
	figures->runs++;
}

struct trial {
	void (*run)(const void *plan, double *result);
	const void *plan;
};

static void run_trial(const void *argument, void *result)
{
	const struct trial *trial = argument;

	for (size_t i = 0; i < FIGURES_MEASURES; i++)
		((double *)result)[i] = NAN;
	trial->run(trial->plan, result);
}

void figures_run(struct figures *figures, void (*trial)(const void *plan, double *result),
		 const void *plan)
{
	double result[FIGURES_MEASURES];

	if (!process_run_trial(run_trial, &(struct trial){trial, plan}, result, sizeof(result)))
		exit(1); /* the trial has printed why */
	figures_add(figures, result);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median_of(const struct figures *figures, size_t measure)
{
	double values[FIGURES_RUNS];
	size_t count = 0;

	for (size_t run = 0; run < figures->runs; run++) {
		if (!isnan(figures->values[measure][run]))
			values[count++] = figures->values[measure][run];
	}
	if (count == 0)
		return NAN;
	qsort(values, count, sizeof(*values), compare);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void print_cell(const struct figures *figures, size_t measure)
{
	const struct measure *how = &figures->measures[measure];
	double median = median_of(figures, measure);

	if (isnan(median))
		printf(" |");
	else
		printf(" %.*f |", how->decimals, median * how->factor);
}

static void print_rule(size_t columns)
{
	printf("\n|---|");
	while (columns-- > 0)
		printf("--:|");
	putchar('\n');
}

static bool was_measured(struct figures *const *all, size_t count, size_t measure)
{
	for (size_t i = 0; i < count; i++) {
		if (!isnan(median_of(all[i], measure)))
			return true;
	}
	return false;
}

void figures_print_columns(const char *head, struct figures *const *all, size_t count)
{
	printf("\n| %s |", head);
	for (size_t i = 0; i < count; i++)
		printf(" %s |", all[i]->title);
	print_rule(count);
	for (size_t measure = 0; measure < all[0]->measure_count; measure++) {
		if (!was_measured(all, count, measure))
			continue;
		printf("| %s |", all[0]->measures[measure].title);
		for (size_t i = 0; i < count; i++)
			print_cell(all[i], measure);
		putchar('\n');
	}
	fflush(stdout);
}

void figures_print_rows(const char *head, struct figures *const *all, size_t count)
{
	size_t shown = 0;

	printf("\n| %s |", head);
	for (size_t measure = 0; measure < all[0]->measure_count; measure++) {
		if (was_measured(all, count, measure)) {
			printf(" %s |", all[0]->measures[measure].title);
			shown++;
		}
	}
	print_rule(shown);
	for (size_t i = 0; i < count; i++) {
		printf("| %s |", all[i]->title);
		for (size_t measure = 0; measure < all[i]->measure_count; measure++) {
			if (was_measured(all, count, measure))
				print_cell(all[i], measure);
		}
		putchar('\n');
	}
	fflush(stdout);
}
