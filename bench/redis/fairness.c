/* SPDX-License-Identifier: MIT */
/*
 * How fair are the turns of groups?
 *
 * One worker, whose handler does nothing, runs tasks of a redis-server without a file. Two
 * questions take turns; the figures are medians of several runs.
 *
 * Flood: one group has a million due tasks, and each of 999 other groups, the trickles, gets one
 * task a second. Their lateness is the time from the due time to the handler's start. The baselines
 * are the trickles alone, and the same tasks without groups.
 * Weights: three groups have the weights 1, 2 and 4, and more due tasks than are run.
 */
#include "support/csv.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/percentiles.h"
#include "support/progress.h"
#include "support/redis_server.h"
#include "support/spread.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS_MAX = 99, BATCH = 250, WEIGHTS = 3, GROUPS_MAX = 100001 };

static int64_t flood = 1000000, trickles = 999, backlog = 100000,
	       duration = 5 * NANOSECONDS_PER_SECOND, runs = 3;
static const char *csv_path;

static struct redis_server server;

enum row {
	ALONE_P50,
	ALONE_P99,
	GROUPS_P50,
	GROUPS_P99,
	PLAIN_P50,
	PLAIN_P99,
	TRICKLES_RUN,
	FLOOD_SHARE,
	WEIGHT_1,
	WEIGHT_2,
	WEIGHT_4,
	ROWS
};
static const struct {
	const char *name;
	const char *title;
} rows[ROWS] = {
	[ALONE_P50] = {"alone_p50", "trickles alone, late: p50, ms"},
	[ALONE_P99] = {"alone_p99", "trickles alone, late: p99, ms"},
	[GROUPS_P50] = {"groups_p50", "beside the flood, late: p50, ms"},
	[GROUPS_P99] = {"groups_p99", "beside the flood, late: p99, ms"},
	[PLAIN_P50] = {"plain_p50", "the same without groups, late: p50, ms"},
	[PLAIN_P99] = {"plain_p99", "the same without groups, late: p99, ms"},
	[TRICKLES_RUN] = {"trickles_run", "trickles run in the time they are due, %"},
	[FLOOD_SHARE] = {"flood_share", "the flood's share of what runs then, %"},
	[WEIGHT_1] = {"weight_1", "weight 1 of 1:2:4, share / due share, %"},
	[WEIGHT_2] = {"weight_2", "weight 2 of 1:2:4, share / due share, %"},
	[WEIGHT_4] = {"weight_4", "weight 4 of 1:2:4, share / due share, %"},
};
static double figures[ROWS][RUNS_MAX];

/* This is the current trial; the lock guards all of it. Group 0 has no trickles. */
static struct {
	pthread_mutex_t lock;
	bool is_counting;
	int64_t counted;
	int64_t runs[GROUPS_MAX]; /* by group, while it is counting */
	struct percentiles *lateness;
} trial = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A load is `count` tasks that take turns among `groups` groups. */
struct load {
	const char *prefix; /* begins the groups' names, before a number; NULL means no groups */
	int64_t first;      /* the first group's number */
	int64_t groups;
	int64_t count;
	int64_t at_ms; /* when the first is due; 0 means that all are due now */
	int64_t spread_ms;
};

static void give_up(enum tw_status status, const struct tw_redis_error *error)
{
	fprintf(stderr, "%s: %s\n", tw_status_text(status), error->text);
	exit(1);
}

static void check(struct tw_redis *redis, enum tw_status status)
{
	struct tw_redis_error error = {0};

	if (status == TW_OK)
		return;
	tw_redis_last_error(redis, &error);
	give_up(status, &error);
}

static int64_t time_of_day_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / TW_MILLISECOND;
}

/* A key is the group's number, a dash and the task's number. */
static enum tw_redis_outcome run(void *context, const struct tw_redis_job *job,
				 struct tw_redis_verdict *verdict)
{
	int64_t group = 0;

	(void)context;
	(void)verdict;
	for (const char *at = job->key; *at != '-'; at++)
		group = 10 * group + (*at - '0');
	pthread_mutex_lock(&trial.lock);
	trial.runs[group] += trial.is_counting;
	trial.counted += trial.is_counting;
	if (group)
		percentiles_record(trial.lateness, job->lateness);
	pthread_mutex_unlock(&trial.lock);
	return TW_REDIS_DONE;
}

static void add(struct tw_redis *redis, const struct load *load)
{
	struct tw_redis_task tasks[BATCH];
	char keys[BATCH][48];
	char groups[BATCH][48];

	for (int64_t first = 0; first < load->count; first += BATCH) {
		size_t size = 0;

		for (; size < BATCH && first + (int64_t)size < load->count; size++) {
			int64_t i = first + (int64_t)size;
			int64_t group = load->first + i % load->groups;

			snprintf(keys[size], sizeof(keys[size]), "%" PRId64 "-%" PRId64, group, i);
			snprintf(groups[size], sizeof(groups[size]), "%s%" PRId64,
				 load->prefix ? load->prefix : "", group);
			tasks[size] = (struct tw_redis_task){
				.key = keys[size],
				.key_size = strlen(keys[size]),
				.group = load->prefix ? groups[size] : NULL,
				.at_ms = load->at_ms
						 ? load->at_ms + i * load->spread_ms / load->count
						 : 0};
		}
		check(redis, tw_redis_add(redis, tasks, size, NULL));
	}
}

static void set_weight(struct tw_redis *redis, const char *group, unsigned weight)
{
	const struct tw_redis_limits limits = {.weight = weight};

	check(redis, tw_redis_set_limits(redis, group, &limits));
}

static struct tw_redis *trial_begin(void)
{
	const struct tw_redis_options options = {.url = server.url};
	struct tw_redis_error error;
	struct tw_redis *redis;
	enum tw_status status;

	redis_server_start(&server, NULL);
	status = tw_redis_open(&redis, &options, &error);
	if (status != TW_OK)
		give_up(status, &error);
	trial.is_counting = false;
	trial.counted = 0;
	memset(trial.runs, 0, sizeof(trial.runs));
	trial.lateness = percentiles_create();
	return redis;
}

static void trial_end(struct tw_redis *redis)
{
	percentiles_destroy(trial.lateness);
	tw_redis_close(redis);
	redis_server_stop(&server);
}

static struct tw_redis_worker *worker_start(void)
{
	const struct tw_redis_options options = {.url = server.url};
	const struct tw_redis_worker_options worker_options = {.handler = run};
	struct tw_redis_error error;
	struct tw_redis_worker *worker;
	enum tw_status status = tw_redis_worker_start(&worker, &options, &worker_options, &error);

	if (status != TW_OK)
		give_up(status, &error);
	return worker;
}

static void worker_end(struct tw_redis_worker *worker)
{
	tw_redis_worker_stop(worker, TW_FOREVER);
	tw_redis_worker_destroy(worker);
}

static void count(bool is_counting)
{
	pthread_mutex_lock(&trial.lock);
	trial.is_counting = is_counting;
	pthread_mutex_unlock(&trial.lock);
}

/* Waits until at least that many tasks have been counted, or have been late. */
static void wait_for(int64_t counted, int64_t late)
{
	bool is_over = false;

	while (!is_over) {
		stopwatch_sleep(NANOSECONDS_PER_SECOND / 500);
		pthread_mutex_lock(&trial.lock);
		is_over = trial.counted >= counted &&
			  (int64_t)percentiles_count(trial.lateness) >= late;
		pthread_mutex_unlock(&trial.lock);
	}
}

/* Runs trickles beside a flood of that size. Writes the lateness to two rows from `first` on. */
static void try_flood(int run, enum row first, int64_t flood_size, bool has_groups)
{
	struct tw_redis *redis = trial_begin();
	const struct load flooding = {
		.prefix = has_groups ? "flood" : NULL, .groups = 1, .count = flood_size};
	struct load trickling = {.prefix = has_groups ? "trickle" : NULL,
				 .first = 1,
				 .groups = trickles,
				 .count = (int64_t)((double)trickles * seconds_of(duration)),
				 .spread_ms = duration / TW_MILLISECOND};
	struct tw_redis_worker *worker;

	add(redis, &flooding);
	/* Adding a task takes less than 30 us, also where that is slow. */
	trickling.at_ms = time_of_day_ms() + 1000 + trickling.count * 30 / 1000;
	add(redis, &trickling);
	worker = worker_start();
	stopwatch_sleep((trickling.at_ms - time_of_day_ms()) * TW_MILLISECOND);
	count(true);
	stopwatch_sleep(duration);
	count(false);
	wait_for(0, trickling.count);
	worker_end(worker);
	figures[first][run] = (double)percentiles_at(trial.lateness, 50) / TW_MILLISECOND;
	figures[first + 1][run] = (double)percentiles_at(trial.lateness, 99) / TW_MILLISECOND;
	if (has_groups && flood_size) {
		int64_t others = trial.counted - trial.runs[0];

		figures[TRICKLES_RUN][run] = 100 * (double)others / (double)trickling.count;
		figures[FLOOD_SHARE][run] = 100 * (double)trial.runs[0] / (double)trial.counted;
	}
	trial_end(redis);
}

/* Runs the worker until it has counted that many tasks. */
static void count_runs(int64_t counted)
{
	struct tw_redis_worker *worker;

	count(true);
	worker = worker_start();
	wait_for(counted, 0);
	count(false);
	worker_end(worker);
}

/* Half of the heaviest group's tasks are left when it ends. */
static void try_weights(int run)
{
	struct tw_redis *redis = trial_begin();
	const struct load load = {
		.prefix = "weight", .groups = WEIGHTS, .count = WEIGHTS * backlog};

	for (int i = 0; i < WEIGHTS; i++) {
		char group[16];

		snprintf(group, sizeof(group), "weight%d", i);
		set_weight(redis, group, 1u << i);
	}
	add(redis, &load);
	count_runs(backlog * 7 / 8);
	for (int i = 0; i < WEIGHTS; i++)
		figures[WEIGHT_1 + i][run] =
			100 * (double)trial.runs[i] / (double)trial.counted / ((1 << i) / 7.0);
	trial_end(redis);
}

static void print_row(struct csv csv)
{
	printf("%-42s %10s %10s %10s\n", "", "median", "least", "most");
	for (enum row row = 0; row < ROWS; row++) {
		struct spread spread = spread_of(figures[row], (size_t)runs);

		printf("%-42s %10.2f %10.2f %10.2f\n", rows[row].title, spread.median, spread.least,
		       spread.most);
		csv_row(csv, "%s,%.3f,%.3f,%.3f", rows[row].name, spread.median, spread.least,
			spread.most);
	}
}

static void parse(int argc, char **argv)
{
	const struct program_option options[] = {
		{"flood", OPTION_COUNT, &flood, BATCH, 100000000, .help = "tasks of the flood"},
		{"trickles", OPTION_COUNT, &trickles, 1, GROUPS_MAX - 1,
		 .help = "groups beside it, with a task a second each"},
		{"seconds", OPTION_SECONDS, &duration, NANOSECONDS_PER_SECOND / 10,
		 600 * NANOSECONDS_PER_SECOND, .help = "how long these have tasks"},
		{"backlog", OPTION_COUNT, &backlog, 64, 10000000,
		 .help = "due tasks of each group with a weight"},
		{"runs", OPTION_COUNT, &runs, 1, RUNS_MAX, .help = "their medians are printed"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the table to this file"},
		{0},
	};

	options_parse(argc, argv, "How fair are the turns of groups?", options);
}

int main(int argc, char **argv)
{
	struct progress progress = progress_start(stderr, false);
	struct csv csv;

	parse(argc, argv);
	csv = csv_open(csv_path, "what,median,least,most");
	printf("%s\na flood of %s beside %" PRId64 " groups, one worker; medians of %" PRId64
	       "\n\n",
	       machine_description(), format_count(flood).characters, trickles, runs);
	for (int run = 0; run < runs; run++) {
		progress_show(&progress, "run %d of %d", run + 1, (int)runs);
		try_flood(run, ALONE_P50, 0, true);
		try_flood(run, GROUPS_P50, flood, true);
		try_flood(run, PLAIN_P50, flood, false);
		try_weights(run);
	}
	progress_wipe(&progress);
	print_row(csv);
	csv_close(csv);
	return 0;
}
