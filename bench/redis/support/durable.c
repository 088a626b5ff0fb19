/* SPDX-License-Identifier: MIT */
/*
 * What does it cost to have each add on the disk before the call returns?
 *
 * Sixteen threads that share a client add tasks, ten to a call, due in an hour, for some seconds.
 * They do so without durability at fsync each second, with durability=disk at appendfsync always,
 * and, where the server has WAITAOF (7.2 or later), with durability=disk at fsync each second. The
 * baseline, in the same run, is the disk itself: one thread that repeatedly appends 4 KiB to a file
 * in the server's folder and syncs it.
 */
#include "asks.h"

#include "support/percentiles.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TO_A_CALL = 10, THREADS = 16, TRIALS = 3 };

enum { RATE, P50, P99, FSYNC_RATE, FSYNC_P50, FSYNC_P99 };

static const struct measure measures[] = {
	{"per_second", "tasks a second", 1, 0},
	{"p50_ns", "a call, p50: ms", 1e-6, 2},
	{"p99_ns", "p99", 1e-6, 2},
	{"fsync_per_second", "the disk alone: fsyncs a second", 1, 0},
	{"fsync_p50_ns", "an fsync, p50: ms", 1e-6, 2},
	{"fsync_p99_ns", "p99", 1e-6, 2},
	{0},
};

struct plan {
	const char *name;
	const char *title;
	bool fsync_always;
	const char *query; /* added to the URL */
	const struct settings *settings;
};

struct adder {
	const struct settings *settings;
	struct tw_redis *redis;
	int64_t number;
	int64_t end; /* the time */
	int64_t added;
	struct percentiles *calls;
};

static void *add(void *argument)
{
	struct adder *adder = argument;

	for (int64_t now, begin = stopwatch_now(); begin < adder->end; begin = now) {
		add_load(adder->redis, &(struct load){.first = adder->added,
						      .end = adder->added + TO_A_CALL,
						      .group_first = adder->number,
						      .delay = TW_HOUR,
						      .body = adder->settings->body});
		now = stopwatch_now();
		percentiles_record(adder->calls, now - begin);
		adder->added += TO_A_CALL;
	}
	return NULL;
}

static void add_by_threads(struct tw_redis *redis, const struct settings *settings, double *result)
{
	struct percentiles *calls = percentiles_create();
	int64_t start = stopwatch_now(), added = 0;
	struct adder adders[THREADS];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		adders[i] = (struct adder){.settings = settings,
					   .redis = redis,
					   .number = i,
					   .end = start + settings->seconds,
					   .calls = percentiles_create()};
		if (pthread_create(&threads[i], NULL, add, &adders[i]))
			process_fail("a thread could not be started");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		percentiles_merge(calls, adders[i].calls);
		percentiles_destroy(adders[i].calls);
		added += adders[i].added;
	}
	result[RATE] = (double)added / seconds_of(stopwatch_now() - start);
	result[P50] = (double)percentiles_at(calls, 50);
	result[P99] = (double)percentiles_at(calls, 99);
	percentiles_destroy(calls);
}

/* Appends to a file in the folder and syncs it, for a quarter of the time. */
static void sync_by_itself(const char *folder, int64_t duration, double *result)
{
	static const char block[4096];
	struct percentiles *times = percentiles_create();
	int64_t start = stopwatch_now(), now = start, count = 0;
	char path[300];
	int file;

	snprintf(path, sizeof(path), "%s/fsyncs", folder);
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	for (; now < start + duration / 4; count++) {
		int64_t begin = now;

		if (write(file, block, sizeof(block)) != sizeof(block) || fdatasync(file))
			process_fail("%s: %s", path, strerror(errno));
		now = stopwatch_now();
		percentiles_record(times, now - begin);
	}
	close(file);
	unlink(path);
	result[FSYNC_RATE] = (double)count / seconds_of(now - start);
	result[FSYNC_P50] = (double)percentiles_at(times, 50);
	result[FSYNC_P99] = (double)percentiles_at(times, 99);
	percentiles_destroy(times);
}

/* A server that can't do it leaves the tasks' figures out. */
static void run_trial(const void *argument, double *result)
{
	const struct plan *plan = argument;
	struct tw_redis_options options = {0};
	struct redis_server server = {0};
	struct tw_redis *redis;
	enum tw_status status;
	char url[128];

	redis_server_start(&server,
			   &(struct redis_server_options){.append_only = true,
							  .fsync_always = plan->fsync_always});
	snprintf(url, sizeof(url), "%s%s", server.url, plan->query);
	options.url = url;
	sync_by_itself(server.folder, plan->settings->seconds, result);
	status = tw_redis_open(&redis, &options, NULL);
	if (status == TW_OK) {
		add_by_threads(redis, plan->settings, result);
		tw_redis_close(redis);
	} else if (status != TW_REDIS_UNFIT) {
		expect_done(NULL, status);
	}
	redis_server_stop(&server);
}

void ask_durable(const struct settings *settings)
{
	const struct plan plans[TRIALS] = {
		{"server", "without durability, fsync each second", false, "", settings},
		{"disk", "durability=disk, appendfsync always", true, "?durability=disk", settings},
		{"disk_everysec", "durability=disk, fsync each second (WAITAOF)", false,
		 "?durability=disk", settings},
	};
	struct figures *rows[TRIALS];

	for (int i = 0; i < TRIALS; i++)
		rows[i] = run_trials(plans[i].name, plans[i].title, measures, run_trial, &plans[i],
				     settings->runs);
	figures_print_rows("Adds, ten to a call, 16 threads, one Redis", rows, TRIALS);
	for (int i = 0; i < TRIALS; i++)
		figures_destroy(rows[i]);
}
