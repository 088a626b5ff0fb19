/* SPDX-License-Identifier: MIT */
/*
 * What does it cost to have each add on the disk before the call returns?
 *
 * Threads that share a client add tasks, ten to a call, due in an hour, for some seconds. They do
 * so without durability at fsync each second, with durability=disk at appendfsync always, and,
 * where the server has WAITAOF (7.2 or later), with durability=disk at fsync each second. The
 * baseline, in the same run, is the disk itself: one thread that repeatedly appends 4 KiB to a file
 * in the server's folder and syncs it. The figures are medians of several runs.
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

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 10, THREADS_MAX = 64, RUNS_MAX = 33 };

static int64_t threads = 16, runs = 5, body_size = 64, duration = 2 * NANOSECONDS_PER_SECOND;
static const char *csv_path;

static const struct trial {
	const char *name;
	const char *title;
	bool fsync_always;
	const char *setting; /* the query of the URL */
} trials[] = {
	{"server", "no durability, fsync each second", false, ""},
	{"disk", "durability=disk, appendfsync always", true, "?durability=disk"},
	{"disk_everysec", "durability=disk, fsync each second", false, "?durability=disk"},
};

enum { TRIALS = sizeof(trials) / sizeof(*trials), SAMPLES_MAX = TRIALS * RUNS_MAX };

struct result {
	double rates[SAMPLES_MAX]; /* tasks, or fsyncs, a second */
	double p50s[SAMPLES_MAX];  /* a call, or an fsync, in nanoseconds */
	double p99s[SAMPLES_MAX];
	double fsyncs[SAMPLES_MAX]; /* p99s divided by the run's median fsync */
	int runs;                   /* 0 means that the server can't do it */
};

struct adder {
	struct tw_redis *redis;
	int number;
	int64_t end;
	int64_t added;
	struct percentiles *calls;
};

static void give_up(const char *what, enum tw_status status, const struct tw_redis_error *error)
{
	fprintf(stderr, "%s: %s: %s\n", what, tw_status_text(status), error->text);
	exit(1);
}

static void *add(void *argument)
{
	static char body[TW_REDIS_BODY_MAX];
	struct adder *adder = argument;
	struct tw_redis_task tasks[BATCH];
	char keys[BATCH][40];

	for (int64_t begin = stopwatch_now(); begin < adder->end;) {
		struct tw_redis_error error = {0};
		enum tw_status status;
		int64_t now;

		for (int i = 0; i < BATCH; i++) {
			int length = snprintf(keys[i], sizeof(keys[i]), "task-%d-%" PRId64,
					      adder->number, adder->added + i);

			tasks[i] = (struct tw_redis_task){.key = keys[i],
							  .key_size = (size_t)length,
							  .delay = TW_HOUR,
							  .body = body,
							  .body_size = (size_t)body_size};
		}
		status = tw_redis_add(adder->redis, tasks, BATCH, NULL);
		now = stopwatch_now();
		if (status != TW_OK) {
			tw_redis_last_error(adder->redis, &error);
			give_up("add", status, &error);
		}
		percentiles_record(adder->calls, now - begin);
		adder->added += BATCH;
		begin = now;
	}
	return NULL;
}

static void note(struct result *result, double rate, const struct percentiles *times, double fsync)
{
	int run = result->runs++;

	result->rates[run] = rate;
	result->p50s[run] = (double)percentiles_at(times, 50);
	result->p99s[run] = (double)percentiles_at(times, 99);
	result->fsyncs[run] = result->p99s[run] / fsync;
}

static void add_by_threads(struct tw_redis *redis, struct result *result, double fsync)
{
	struct adder adders[THREADS_MAX];
	pthread_t ids[THREADS_MAX];
	struct percentiles *calls = percentiles_create();
	int64_t start = stopwatch_now();
	int64_t added = 0;
	double took;

	for (int i = 0; i < threads; i++) {
		adders[i] = (struct adder){.redis = redis,
					   .number = i,
					   .end = start + duration,
					   .calls = percentiles_create()};
		if (pthread_create(&ids[i], NULL, add, &adders[i]))
			give_up("pthread_create", TW_SYSTEM, &(struct tw_redis_error){0});
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		percentiles_merge(calls, adders[i].calls);
		percentiles_destroy(adders[i].calls);
		added += adders[i].added;
	}
	took = seconds_of(stopwatch_now() - start);
	note(result, (double)added / took, calls, fsync);
	percentiles_destroy(calls);
}

/* Appends to a file in the folder and syncs it, for a quarter of the duration. Returns the median
 * fsync in nanoseconds. */
static double sync_by_itself(const char *folder, struct result *result)
{
	static const char block[4096];
	struct percentiles *times = percentiles_create();
	int64_t start = stopwatch_now();
	int64_t count = 0;
	int64_t now = start;
	double median;
	char path[300];
	int file;

	snprintf(path, sizeof(path), "%s/fsyncs", folder);
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	for (; now < start + duration / 4; count++) {
		int64_t begin = now;

		if (write(file, block, sizeof(block)) != sizeof(block) || fdatasync(file)) {
			perror(path);
			exit(1);
		}
		now = stopwatch_now();
		percentiles_record(times, now - begin);
	}
	close(file);
	unlink(path);
	median = (double)percentiles_at(times, 50);
	note(result, (double)count / seconds_of(now - start), times, median);
	percentiles_destroy(times);
	return median;
}

/* Runs the trial on a redis-server of its own. */
static void run_trial(const struct trial *trial, struct result *result, struct result *disk)
{
	const struct redis_server_options server_options = {.append_only = true,
							    .fsync_always = trial->fsync_always};
	static struct redis_server server;
	struct tw_redis_options options = {0};
	struct tw_redis_error error;
	struct tw_redis *redis;
	enum tw_status status;
	char url[128];
	double fsync;

	redis_server_start(&server, &server_options);
	snprintf(url, sizeof(url), "%s%s", server.url, trial->setting);
	options.url = url;
	status = tw_redis_open(&redis, &options, &error);
	if (status == TW_OK) {
		fsync = sync_by_itself(server.folder, disk);
		add_by_threads(redis, result, fsync);
		tw_redis_close(redis);
	} else if (status != TW_REDIS_UNFIT) {
		give_up("open", status, &error);
	}
	redis_server_stop(&server);
}

static void print_result(struct csv csv, const char *name, const char *title, struct result *result)
{
	struct spread rate;
	double p50;
	double p99;
	double fsyncs;

	if (!result->runs) {
		printf("%-38s this server can't do it\n", title);
		return;
	}
	rate = spread_of(result->rates, (size_t)result->runs);
	p50 = spread_of(result->p50s, (size_t)result->runs).median;
	p99 = spread_of(result->p99s, (size_t)result->runs).median;
	fsyncs = spread_of(result->fsyncs, (size_t)result->runs).median;
	printf("%-38s %10s %10s %10s %8.1f\n", title, format_rate(rate.median).characters,
	       format_duration((int64_t)p50).characters, format_duration((int64_t)p99).characters,
	       fsyncs);
	csv_row(csv, "%s,%.0f,%.0f,%.0f,%.0f,%.0f,%.2f", name, rate.median, rate.least, rate.most,
		p50, p99, fsyncs);
}

int main(int argc, char **argv)
{
	const struct program_option options[] = {
		{"threads", OPTION_COUNT, &threads, 1, THREADS_MAX, .help = "that share a client"},
		{"runs", OPTION_COUNT, &runs, 1, RUNS_MAX, .help = "their medians are printed"},
		{"duration", OPTION_SECONDS, &duration, TW_SECOND, TW_HOUR, .help = "of a run"},
		{"body", OPTION_COUNT, &body_size, 0, TW_REDIS_BODY_MAX, .help = "bytes of a task"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the table to this file"},
		{0},
	};
	static struct result results[TRIALS];
	static struct result disk;
	struct progress progress = progress_start(stderr, false);
	struct csv csv;

	options_parse(argc, argv, "What does it cost to have each add on the disk?", options);
	csv = csv_open(csv_path, "what,median,least,most,p50_ns,p99_ns,p99_fsyncs");
	csv_row(csv, "machine,\"%s\"", machine_description());
	printf("%s\ntasks of %" PRId64 " bytes, %d to a call, %" PRId64
	       " threads, one connection; medians of %" PRId64 "\n\n",
	       machine_description(), body_size, (int)BATCH, threads, runs);
	for (int run = 0; run < runs; run++) {
		progress_show(&progress, "run %d of %d", run + 1, (int)runs);
		for (int i = 0; i < TRIALS; i++)
			run_trial(&trials[i], &results[i], &disk);
	}
	progress_wipe(&progress);
	printf("%-38s %10s %10s %10s %8s\n", "", "a second", "p50", "p99", "fsyncs");
	print_result(csv, "fsync", "the disk alone: 4 KiB and fdatasync", &disk);
	for (int i = 0; i < TRIALS; i++)
		print_result(csv, trials[i].name, trials[i].title, &results[i]);
	csv_close(csv);
	return 0;
}
