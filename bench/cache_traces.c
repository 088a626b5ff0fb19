/* SPDX-License-Identifier: MIT */
/*
 * What is the hit ratio on traces of real programs, compared with simulated policies?
 *
 * One thread replays every trace of a folder (--folder, see support/traces.h) and sets the keys
 * that it misses. The limits are 0.1, 1, 10 and 30 % of the distinct keys, where that is at least
 * 20 entries, and these shares of the sum of their sizes, where the trace has sizes. Without a
 * folder three traces are generated: Zipf's law with exponent 0.99, without and with scans, and a
 * loop of 1.05 times the entries that fit.
 *
 * Only the library's columns vary from run to run, as its hash has a random seed; the others are
 * exact. "rules" are the library's own rules in one shard with all ghosts known: the columns after
 * it show what the table of ghosts and the shards change.
 */
#include "support/csv.h"
#include "support/expect.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/policies.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/traces.h"
#include "support/zipf.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZIPF_EXPONENT 0.99

enum { LEAST_ENTRIES = 20 };

/* Shares of the keys that fit, in thousandths. */
static const unsigned shares[] = {1, 10, 100, 300};

static const struct column {
	const char *name;                                  /* in the CSV file */
	const char *title;                                 /* in the table */
	uint64_t (*simulate)(const struct replay *replay); /* NULL for the library */
	bool by_entries_only;
	/* These two are for the library. */
	enum tw_cache_policy policy;
	unsigned shards;
} columns[] = {
	{"optimum", "best", .simulate = simulate_optimum, .by_entries_only = true},
	{"lru", "LRU", .simulate = simulate_lru},
	{"clock3", "CLOCK", .simulate = simulate_clock},
	{"s3fifo", "S3", .simulate = simulate_s3fifo},
	{"arc", "ARC", .simulate = simulate_arc, .by_entries_only = true},
	{"rules", "rules", .simulate = simulate_library},
	{"library_lru_1", "LRU/1", .policy = TW_POLICY_LRU, .shards = 1},
	{"library_1", "S3/1", .policy = TW_POLICY_S3FIFO, .shards = 1},
	{"library_8", "S3/8", .policy = TW_POLICY_S3FIFO, .shards = 8},
	{"library_64", "S3/64", .policy = TW_POLICY_S3FIFO, .shards = 64},
};

enum { COLUMNS = sizeof(columns) / sizeof(*columns), COLUMN_LRU = 1 };

/* Sums are of the rows so far, by entries or by weight, in percent of the lookups. */
struct sums {
	unsigned rows;
	double sum[COLUMNS];
	double loss[COLUMNS]; /* the largest, to exact LRU, or 0 */
};

struct bench {
	struct tw_wheel *wheel;
	struct progress progress;
	struct csv csv;
	struct sums sums[2]; /* by entries, by weight */
};

/* ---- The library ---- */

static void execute(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

/* Nothing expires, so the wheel needs no driver. */
static struct tw_wheel *open_wheel(void)
{
	const struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct tw_wheel *wheel;

	expect_ok(tw_create(&wheel, TW_SECOND, 300, execute, &options), "tw_create");
	return wheel;
}

static uint64_t value_weight(void *context, const void *key, size_t key_size, const void *value,
			     size_t value_size)
{
	uint32_t weight;

	(void)context;
	(void)key;
	(void)key_size;
	memcpy(&weight, value, value_size);
	return weight;
}

static struct tw_cache *open_cache(const struct bench *bench, const struct replay *replay,
				   const struct column *column)
{
	struct tw_cache_options options = {
		.wheel = bench->wheel, .policy = column->policy, .shards = column->shards};
	struct tw_cache *cache;

	if (replay->by_weight) {
		options.max_bytes = replay->limit;
		options.weigh = value_weight;
	} else {
		options.max_entries = replay->limit;
	}
	expect_ok(tw_cache_create(&cache, TW_FOREVER, &options), "tw_cache_create");
	return cache;
}

/* Returns whether the key was there, and sets it if not. Its value is the weight. */
static bool request(struct tw_cache *cache, uint32_t key, uint32_t weight)
{
	enum tw_status status = tw_cache_get(cache, &key, sizeof(key), NULL, 0, NULL);

	if (status == TW_TRUNCATED)
		return true;
	if (status != TW_NOT_FOUND)
		process_fail("tw_cache_get answered %s", tw_status_name(status));
	status = tw_cache_set(cache, &key, sizeof(key), &weight, sizeof(weight));
	/* A value that is larger than the limit is refused. */
	if (status != TW_FULL)
		expect_ok(status, "tw_cache_set");
	return false;
}

static uint64_t replay_library(const struct bench *bench, const struct replay *replay,
			       const struct column *column)
{
	const struct trace *trace = replay->trace;
	struct tw_cache *cache = open_cache(bench, replay, column);
	uint64_t hits = 0;

	for (size_t i = 0; i < trace->length; i++)
		hits += request(cache, trace->key[i], replay_weight(replay, i));
	tw_cache_destroy(cache);
	return hits;
}

/* ---- Rows ---- */

static bool has_column(size_t column, bool by_weight)
{
	return !by_weight || !columns[column].by_entries_only;
}

static struct text limit_text(const struct replay *replay)
{
	return replay->by_weight ? format_bytes((int64_t)replay->limit)
				 : format_count((int64_t)replay->limit);
}

static void print_row(const char *name, const char *limit, const double *figures, bool by_weight)
{
	printf("%-16s %9s", name, limit);
	for (size_t i = 0; i < COLUMNS; i++)
		if (has_column(i, by_weight))
			printf(" %5.2f", figures[i]);
		else
			printf(" %5s", "-");
	putchar('\n');
	fflush(stdout);
}

static void print_head(void)
{
	printf("\nhits, percent; the library's columns name the policy and the shards\n\n"
	       "%-16s %9s %-35s %s\n%-16s %9s",
	       "", "", "simulated", "the library", "trace", "room");
	for (size_t i = 0; i < COLUMNS; i++)
		printf(" %5s", columns[i].title);
	putchar('\n');
}

static void write_row(struct csv csv, const struct replay *replay, const double *hits)
{
	char cells[COLUMNS * 16] = "";
	size_t length = 0;

	for (size_t i = 0; i < COLUMNS; i++)
		length += (size_t)(has_column(i, replay->by_weight)
					   ? sprintf(cells + length, ",%.3f", hits[i])
					   : sprintf(cells + length, ","));
	csv_row(csv, "%s,%s,%" PRIu64 "%s", replay->trace->name,
		replay->by_weight ? "weight" : "entries", replay->limit, cells);
}

/* Writes the names of the CSV file's columns to `head`. */
static void compose_csv_head(char *head, size_t size)
{
	size_t length = (size_t)snprintf(head, size, "trace,limit_by,limit");

	for (size_t i = 0; i < COLUMNS; i++)
		length += (size_t)snprintf(head + length, size - length, ",%s", columns[i].name);
}

static void add_row(struct sums *sums, const double *hits)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		double loss = hits[COLUMN_LRU] - hits[i];

		sums->sum[i] += hits[i];
		if (loss > sums->loss[i])
			sums->loss[i] = loss;
	}
	sums->rows++;
}

static void run_row(struct bench *bench, const struct replay *replay)
{
	const struct trace *trace = replay->trace;
	double hits[COLUMNS] = {0};

	for (size_t i = 0; i < COLUMNS; i++) {
		const struct column *column = &columns[i];
		uint64_t count;

		if (!has_column(i, replay->by_weight))
			continue;
		if (progress_is_due(&bench->progress))
			progress_show(&bench->progress, "%s, room for %s: %s", trace->name,
				      limit_text(replay).characters, column->name);
		count = column->simulate ? column->simulate(replay)
					 : replay_library(bench, replay, column);
		hits[i] = 100 * (double)count / (double)trace->length;
	}
	progress_wipe(&bench->progress);
	print_row(trace->name, limit_text(replay).characters, hits, replay->by_weight);
	write_row(bench->csv, replay, hits);
	add_row(&bench->sums[replay->by_weight], hits);
}

static void print_sums(const struct sums *sums, bool by_weight)
{
	const char *kind = by_weight ? "by weight" : "by number";
	double means[COLUMNS];

	if (sums->rows == 0)
		return;
	for (size_t i = 0; i < COLUMNS; i++)
		means[i] = sums->sum[i] / sums->rows;
	printf("\n%u rows\n", sums->rows);
	print_row("mean", kind, means, by_weight);
	print_row("most behind LRU", kind, sums->loss, by_weight);
}

/* ---- Traces ---- */

static void run_trace(struct bench *bench, const struct trace *trace)
{
	for (int by_weight = 0; by_weight <= (trace->size != NULL); by_weight++)
		for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
			uint64_t all = by_weight ? trace->weight : trace->keys;
			struct replay replay = {trace, all * shares[i] / 1000, by_weight};

			if ((uint64_t)trace->keys * shares[i] / 1000 >= LEAST_ENTRIES)
				run_row(bench, &replay);
		}
}

static void run_folder(struct bench *bench, const char *folder)
{
	char **names;
	size_t count = traces_find(folder, &names);

	if (count == 0)
		options_refuse("%s has no traces", folder);
	for (size_t i = 0; i < count; i++) {
		struct trace *trace = trace_read(folder, names[i]);

		run_trace(bench, trace);
		trace_destroy(trace);
		free(names[i]);
	}
	free(names);
}

/* With `has_scans`, the last 30 % of each `keys` requests are for keys that never come again. */
static void run_zipf(struct bench *bench, int64_t keys, int64_t requests, bool has_scans)
{
	struct zipf *zipf = zipf_create((size_t)keys, ZIPF_EXPONENT);
	uint32_t *accesses = process_allocate((size_t)requests * sizeof(*accesses));
	struct generator generator = {1};
	struct trace *trace;

	for (int64_t i = 0; i < requests; i++)
		accesses[i] = has_scans && i % keys >= keys / 100 * 70
				      ? (uint32_t)(keys + i)
				      : (uint32_t)zipf_draw(zipf, &generator);
	zipf_destroy(zipf);
	trace = trace_make(has_scans ? "zipf and scans" : "zipf", accesses, (size_t)requests, true);
	run_trace(bench, trace);
	trace_destroy(trace);
}

static void run_loop(struct bench *bench, int64_t keys, int64_t requests)
{
	int64_t room = keys / 10;
	uint32_t *accesses = process_allocate((size_t)requests * sizeof(*accesses));
	struct replay replay = {.limit = (uint64_t)room};
	struct trace *trace;

	for (int64_t i = 0; i < requests; i++)
		accesses[i] = (uint32_t)(i % (room + room / 20));
	trace = trace_make("loop", accesses, (size_t)requests, false);
	replay.trace = trace;
	run_row(bench, &replay);
	trace_destroy(trace);
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	int64_t keys = 100000;
	int64_t requests = 1000000;
	const char *folder = NULL;
	const char *csv_path = NULL;
	const struct program_option options[] = {
		{"folder", OPTION_TEXT, &folder,
		 .help = "folder of traces, NAME.u32 and NAME.size"},
		{"keys", OPTION_COUNT, &keys, 1000, 10000000,
		 .help = "keys of the generated traces"},
		{"requests", OPTION_COUNT, &requests, 1000, 100000000,
		 .help = "requests of each generated trace"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the figures to this file"},
		{0},
	};
	char head[COLUMNS * 32];

	options_parse(argc, argv, "How many lookups of real programs hit?", options);
	compose_csv_head(head, sizeof(head));
	bench.csv = csv_open(csv_path, head);
	bench.wheel = open_wheel();
	machine_print();
	print_head();
	bench.progress = progress_start(stderr, false);
	if (folder) {
		run_folder(&bench, folder);
	} else {
		run_zipf(&bench, keys, requests, false);
		run_zipf(&bench, keys, requests, true);
		run_loop(&bench, keys, requests);
	}
	for (int by_weight = 0; by_weight <= 1; by_weight++)
		print_sums(&bench.sums[by_weight], by_weight);
	csv_close(bench.csv);
	tw_destroy(bench.wheel);
	return 0;
}
