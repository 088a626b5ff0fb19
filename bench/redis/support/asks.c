/* SPDX-License-Identifier: MIT */
#include "asks.h"

#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void expect_done(struct tw_redis *redis, enum tw_status status)
{
	struct tw_redis_error error = {0};

	if (status == TW_OK)
		return;
	if (redis)
		tw_redis_last_error(redis, &error);
	process_fail("%s: %s", tw_status_text(status), error.text);
}

struct tw_redis *open_client(const struct redis_server *server, int name_space, int64_t shards)
{
	char name[32];
	const struct tw_redis_options options = {
		.url = server->url, .name_space = name, .shards = (unsigned)shards};
	struct tw_redis *redis;

	snprintf(name, sizeof(name), "bench-%d", name_space);
	expect_done(NULL, tw_redis_open(&redis, &options, NULL));
	return redis;
}

void add_load(struct tw_redis *redis, const struct load *load)
{
	static const char body[TW_REDIS_BODY_MAX];
	struct tw_redis_task tasks[BATCH];
	char keys[BATCH][48], groups[BATCH][48];
	int64_t count = load->end - load->first;

	for (int64_t first = 0; first < count; first += BATCH) {
		size_t size = 0;

		for (; size < BATCH && first + (int64_t)size < count; size++) {
			int64_t i = first + (int64_t)size;
			int64_t group = load->group_first + (load->groups ? i % load->groups : 0);
			int length = snprintf(keys[size], sizeof(keys[size]),
					      "%" PRId64 "-%" PRId64, group, load->first + i);

			snprintf(groups[size], sizeof(groups[size]), "%s%" PRId64,
				 load->group ? load->group : "", group);
			tasks[size] = (struct tw_redis_task){
				.key = keys[size],
				.key_size = (size_t)length,
				.group = load->group ? groups[size] : NULL,
				.delay = load->at_ms ? 0 : load->delay,
				.at_ms =
					load->at_ms ? load->at_ms + i * load->spread_ms / count : 0,
				.url = load->url,
				.body = load->url ? "{}" : body,
				.body_size = load->url ? 2 : (size_t)load->body};
		}
		expect_done(redis, tw_redis_add(redis, tasks, size, NULL));
	}
}

int64_t group_of_key(const char *key)
{
	return strtoll(key, NULL, 10);
}

int64_t number_of_key(const char *key)
{
	return strtoll(strchr(key, '-') + 1, NULL, 10);
}

struct tw_redis_worker *start_worker(const struct redis_server *server, int64_t shards,
				     tw_redis_handler_fn *handler)
{
	const struct tw_redis_options options = {
		.url = server->url, .name_space = "bench-0", .shards = (unsigned)shards};
	const struct tw_redis_worker_options worker_options = {.handler = handler,
							       .callbacks_per_host = 64};
	struct tw_redis_worker *worker;

	expect_done(NULL, tw_redis_worker_start(&worker, &options, &worker_options, NULL));
	return worker;
}

void end_worker(struct tw_redis_worker *worker)
{
	tw_redis_worker_stop(worker, TW_FOREVER);
	tw_redis_worker_destroy(worker);
}

int64_t time_of_day(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NANOSECONDS_PER_SECOND + now.tv_nsec;
}

int64_t time_after_adding(int64_t tasks)
{
	return time_of_day() / TW_MILLISECOND + 1000 + tasks * 30 / 1000;
}

struct figures *run_trials(const char *name, const char *title, const struct measure *measures,
			   void (*trial)(const void *plan, double *result), const void *plan,
			   int64_t runs)
{
	struct progress progress = progress_start(stderr, false);
	struct figures *figures = figures_create(name, title, measures);

	for (int64_t run = 1; run <= runs; run++) {
		progress_show(&progress, "%s: run %" PRId64 " of %" PRId64, name, run, runs);
		figures_run(figures, trial, plan);
	}
	progress_wipe(&progress);
	return figures;
}
