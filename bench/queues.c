/* SPDX-License-Identifier: MIT */
/*
 * Which queue of many producers and one consumer should carry the commands?
 *
 * Producers push commands as fast as they can, and a run ends when the consumer has read all of
 * them. It reads batches, and checks that each producer's commands come in order, and the sum of
 * all payloads. After a short batch it polls on, pauses for a few microseconds, or naps as the
 * owner does. Then one producer pushes a million a second, and the time of its calls is sampled.
 * Every run is a process of its own, and the queues take turns, so that a noisy time affects all.
 *
 * Most depends on the distance of the cores, and a virtual machine's cores may move. Threads are
 * therefore pinned: the consumer to the first core, the producers from the second on, round robin.
 * Each run measures before and after how long a cache line takes from the first core to the second
 * and back. Near and far runs have tables of their own.
 *
 * Producers that claim at the same time may fail and retry: for designs with retries, the retries a
 * claim are counted. Many producers on few cores mostly take turns; only as many cores show their
 * contention.
 *
 * The designs are in support/queue_designs.c; the baseline is a mutex.
 */
#include "support/csv.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/queue_trial.h"
#include "support/spread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_RUNS 99
#define MAX_DESIGNS 16
#define ATTEMPTS 5 /* at a run in which the cores don't move */
#define PACED_COMMANDS 200000

/* A table has three settings. */
enum { SETTINGS_A_TABLE = 3, TABLES = 5, PACED = TABLES * SETTINGS_A_TABLE, SETTINGS };

static const struct queue_setting settings[SETTINGS] = {
	{"polls_1", REST_NONE, 1, false},   {"polls_2", REST_NONE, 2, false},
	{"polls_4", REST_NONE, 4, false},   {"pauses_1", REST_PAUSE, 1, false},
	{"pauses_2", REST_PAUSE, 2, false}, {"pauses_4", REST_PAUSE, 4, false},
	{"naps_1", REST_NAP, 1, false},     {"naps_2", REST_NAP, 2, false},
	{"naps_4", REST_NAP, 4, false},     {"polls_8", REST_NONE, 8, false},
	{"polls_16", REST_NONE, 16, false}, {"polls_64", REST_NONE, 64, false},
	{"naps_8", REST_NAP, 8, false},     {"naps_16", REST_NAP, 16, false},
	{"naps_64", REST_NAP, 64, false},   [PACED] = {"paced", REST_NAP, 1, true},
};

static const char *const measure_names[MEASURES] = {"ns_per_command", "retries_per_claim",
						    "call_p50_ns",    "call_p99_ns",
						    "call_p999_ns",   "line_round_trip_ns"};

/* --- All runs --------------------------------------------------------------------------------- */

struct options {
	int64_t count;
	int64_t runs;
	int64_t capacity;
	const char *csv_path;
};

/* These are all runs of each design in each setting. */
static struct queue_result results[MAX_DESIGNS][SETTINGS][MAX_RUNS];

static struct queue_plan plan_of(const struct options *options, const struct queue_design *design,
				 const struct queue_setting *setting)
{
	size_t all = setting->is_paced ? PACED_COMMANDS : (size_t)options->count;
	size_t each = all / setting->producers;

	return (struct queue_plan){.design = design,
				   .setting = setting,
				   .capacity = (size_t)options->capacity,
				   .count = each};
}

static bool is_measured(const struct queue_plan *plan, enum queue_measure measure)
{
	if (measure == MEASURE_TRIP)
		return true;
	if (measure == MEASURE_RETRIES && !plan->design->retries)
		return false;
	return (measure == MEASURE_COMMAND || measure == MEASURE_RETRIES) !=
	       plan->setting->is_paced;
}

static void write_run(struct csv csv, const struct queue_plan *plan, int run,
		      const struct queue_result *result)
{
	static const char *const distances[] = {"near", "far", "unsettled"};

	for (enum queue_measure i = 0; i < MEASURES; i++) {
		if (is_measured(plan, i))
			csv_row(csv, "%s,%s,%s,%d,%s,%.4g", plan->design->name, plan->setting->name,
				distances[result->distance], run + 1, measure_names[i],
				result->values[i]);
	}
}

static struct queue_result run_settled(const struct queue_plan *plan)
{
	struct queue_result result = {.distance = DISTANCE_UNSETTLED};

	for (int i = 0; i < ATTEMPTS && result.distance == DISTANCE_UNSETTLED; i++) {
		if (!process_run_trial(queue_trial_run, plan, &result, sizeof(result)))
			exit(1);
	}
	return result;
}

static size_t count_designs(void)
{
	size_t count = 0;

	while (queue_designs[count].name)
		count++;
	return count;
}

/* Each run begins with another design: the first of a row may find the machine in another state. */
static void run_designs(const struct options *options, const struct queue_setting *setting, int run,
			struct csv csv)
{
	size_t count = count_designs();

	for (size_t i = 0; i < count; i++) {
		size_t design = (i + (size_t)run) % count;
		struct queue_plan plan = plan_of(options, &queue_designs[design], setting);
		struct queue_result *result = &results[design][setting - settings][run];

		*result = run_settled(&plan);
		write_run(csv, &plan, run, result);
	}
}

static void run_all(const struct options *options)
{
	struct csv csv = csv_open(options->csv_path, "design,setting,cores,run,measure,value");
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < (int)options->runs; run++) {
		for (size_t i = 0; i < SETTINGS; i++) {
			if (progress_is_due(&progress))
				progress_show(&progress, "run %d of %" PRId64 ": %s", run + 1,
					      options->runs, settings[i].name);
			run_designs(options, &settings[i], run, csv);
		}
	}
	progress_wipe(&progress);
	csv_close(csv);
}

/* --- The tables ------------------------------------------------------------------------------- */

/* A selection is the runs that a table shows. */
struct selection {
	int64_t runs;
	enum queue_distance distance;
};

/* Sums up the runs at the selection's distance. Returns false if there are none. */
static bool spread_over_runs(const struct selection *selection, size_t design, size_t setting,
			     enum queue_measure measure, struct spread *spread)
{
	double values[MAX_RUNS];
	size_t count = 0;

	for (int64_t run = 0; run < selection->runs; run++) {
		const struct queue_result *result = &results[design][setting][run];

		if (result->distance == selection->distance)
			values[count++] = result->values[measure];
	}
	if (count > 0)
		*spread = spread_of(values, count);
	return count > 0;
}

static size_t baseline(void)
{
	return (size_t)(queue_baseline - queue_designs);
}

/* The baseline has runs in this setting. */
static void print_rate(const struct selection *selection, size_t design, size_t setting)
{
	struct spread own, other;

	if (!spread_over_runs(selection, design, setting, MEASURE_COMMAND, &own)) {
		printf(" %23s", "-");
		return;
	}
	(void)spread_over_runs(selection, baseline(), setting, MEASURE_COMMAND, &other);
	printf(" %4.0f (%3.0f to %4.0f) %4.1fx", own.median, own.least, own.most,
	       other.median / own.median);
}

/* A table without its baseline is useless, and is left out. */
static bool has_baseline(const struct selection *selection, size_t first, size_t end)
{
	struct spread spread;

	for (size_t i = first; i < end; i++) {
		if (!spread_over_runs(selection, baseline(), i, MEASURE_TRIP, &spread))
			return false;
	}
	return true;
}

static void print_head(const char *title, size_t first)
{
	printf("\n%-27s", title);
	for (size_t i = first; i < first + SETTINGS_A_TABLE; i++)
		printf(" %13zu producer%s", settings[i].producers,
		       settings[i].producers == 1 ? " " : "s");
	printf("\n");
}

static void print_rates(const struct selection *selection, size_t first)
{
	static const char *const titles[] = {[REST_NONE] = "ns a command, polling",
					     [REST_PAUSE] = "ns a command, pausing",
					     [REST_NAP] = "ns a command, napping"};

	print_head(titles[settings[first].rest], first);
	for (size_t design = 0; queue_designs[design].name; design++) {
		printf("  %-25s", queue_designs[design].title);
		for (size_t i = first; i < first + SETTINGS_A_TABLE; i++)
			print_rate(selection, design, i);
		printf("\n");
	}
}

static void print_retries(const struct selection *selection, size_t first)
{
	print_head("  retries a claim", first);
	for (size_t design = 0; queue_designs[design].name; design++) {
		if (!queue_designs[design].retries)
			continue;
		printf("  %-25s", queue_designs[design].title);
		for (size_t i = first; i < first + SETTINGS_A_TABLE; i++) {
			struct spread own;

			if (spread_over_runs(selection, design, i, MEASURE_RETRIES, &own))
				printf(" %7.4f (%6.4f-%6.4f)", own.median, own.least, own.most);
			else
				printf(" %23s", "-");
		}
		printf("\n");
	}
}

static void print_calls(const struct selection *selection)
{
	if (!has_baseline(selection, PACED, SETTINGS))
		return;
	printf("\n%-27s %23s %23s %23s\n", "caller's ns, 1 million/s", "p50", "p99", "p99.9");
	for (size_t design = 0; queue_designs[design].name; design++) {
		printf("  %-25s", queue_designs[design].title);
		for (enum queue_measure i = MEASURE_P50; i <= MEASURE_P999; i++) {
			struct spread own;

			if (spread_over_runs(selection, design, PACED, i, &own))
				printf(" %6.0f (%4.0f to %6.0f)", own.median, own.least, own.most);
			else
				printf(" %23s", "-");
		}
		printf("\n");
	}
}

/* Returns the number of runs; *trip becomes the median of their trips. */
static size_t count_runs(const struct selection *selection, double *trip)
{
	static double values[MAX_DESIGNS * SETTINGS * MAX_RUNS];
	const struct queue_result *all = &results[0][0][0];
	size_t count = 0;

	for (size_t i = 0; i < sizeof(results) / sizeof(*all); i++) {
		const struct queue_result *result = &all[i];

		if (result->values[MEASURE_TRIP] > 0 && result->distance == selection->distance)
			values[count++] = result->values[MEASURE_TRIP];
	}
	*trip = count > 0 ? spread_of(values, count).median : 0;
	return count;
}

static void print_tables(const struct selection *selection)
{
	const char *place = selection->distance == DISTANCE_NEAR ? "near" : "far";
	double trip;
	size_t count = count_runs(selection, &trip);

	if (count == 0)
		return;
	printf("\n== %s cores: a line's round trip takes %.0f ns; "
	       "%zu runs, complete tables only ==\n",
	       place, trip, count);
	for (size_t first = 0; first < PACED; first += SETTINGS_A_TABLE) {
		if (has_baseline(selection, first, first + SETTINGS_A_TABLE)) {
			print_rates(selection, first);
			print_retries(selection, first);
		}
	}
	print_calls(selection);
}

int main(int argc, char **argv)
{
	struct options options = {.count = 1000000, .runs = 5, .capacity = 8192};
	const struct program_option table[] = {
		{"count", OPTION_COUNT, &options.count, QUEUE_PRODUCERS, 1000000000,
		 .help = "commands a run"},
		{"runs", OPTION_COUNT, &options.runs, 1, MAX_RUNS,
		 .help = "runs; medians are printed"},
		{"capacity", OPTION_COUNT, &options.capacity, QUEUE_CAPACITY, 1 << 26,
		 .help = "commands that a queue holds, a power of two"},
		{"csv", OPTION_TEXT, &options.csv_path, .help = "every run's figures to this file"},
		{0},
	};

	options_parse(argc, argv, "Which queue should carry the commands?", table);
	if (options.capacity & (options.capacity - 1))
		options_refuse("--capacity=%" PRId64 ": not a power of two", options.capacity);
	printf("%s\n%s commands, capacity %s; medians of %" PRId64
	       " runs, least to most in brackets, x: as fast as the mutex\n",
	       machine_description(), format_count(options.count).characters,
	       format_count(options.capacity).characters, options.runs);
	run_all(&options);
	print_tables(&(struct selection){options.runs, DISTANCE_NEAR});
	print_tables(&(struct selection){options.runs, DISTANCE_FAR});
	return 0;
}
