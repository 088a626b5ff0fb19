/* SPDX-License-Identifier: MIT */
/*
 * How fair are the turns of groups?
 *
 * One worker, whose handler does nothing, runs tasks of a redis-server without a file.
 *
 * Flood: one group has a million due tasks, and each of 999 other groups, the trickles, gets one
 * task a second. Their lateness is the time from the due time to the handler's start. The baselines
 * are the trickles alone, and the same tasks without groups.
 * Weights: three groups have the weights 1, 2 and 4, and more due tasks than are run.
 */
#include "asks.h"

#include "support/percentiles.h"
#include "support/stopwatch.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WEIGHTS = 3, TRICKLES = 999 };

enum { ALONE, GROUPS = 2, PLAIN = 4, TRICKLES_RUN = 6, FLOOD_SHARE, WEIGHT_1 };

static const struct measure measures[] = {
	{"alone_p50_ns", "999 groups with a task a second alone, late p50: ms", 1e-6, 1},
	{"alone_p99_ns", "its p99: ms", 1e-6, 1},
	{"groups_p50_ns", "beside one with a million due tasks, late p50: ms", 1e-6, 1},
	{"groups_p99_ns", "its p99: ms", 1e-6, 1},
	{"plain_p50_ns", "the same tasks without groups, late p50: ms", 1e-6, 1},
	{"plain_p99_ns", "its p99: ms", 1e-6, 1},
	{"trickles_run", "the 999 groups' tasks run in the time they are due: %", 1, 1},
	{"flood_share", "the large group's share of what runs then: %", 1, 1},
	{"weight_1", "weights 1, 2 and 4: the first's share for what is due to it: %", 1, 1},
	{"weight_2", "the second's", 1, 1},
	{"weight_4", "the third's", 1, 1},
	{0},
};

static struct redis_server server;

/* This is the current part of a trial; the lock guards all of it. Group 0 has no trickles. */
static struct {
	pthread_mutex_t lock;
	bool is_counting;
	int64_t counted;
	int64_t runs[TRICKLES + 1]; /* by group, while it is counting */
	struct percentiles *lateness;
} part = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum tw_redis_outcome run(void *context, const struct tw_redis_job *job,
				 struct tw_redis_verdict *verdict)
{
	int64_t group = group_of_key(job->key);

	(void)context;
	(void)verdict;
	pthread_mutex_lock(&part.lock);
	part.runs[group] += part.is_counting;
	part.counted += part.is_counting;
	if (group)
		percentiles_record(part.lateness, job->lateness);
	pthread_mutex_unlock(&part.lock);
	return TW_REDIS_DONE;
}

static struct tw_redis *part_begin(void)
{
	redis_server_start(&server, NULL);
	part.is_counting = false;
	part.counted = 0;
	memset(part.runs, 0, sizeof(part.runs));
	part.lateness = percentiles_create();
	return open_client(&server, 0, 0);
}

static void part_end(struct tw_redis *redis)
{
	percentiles_destroy(part.lateness);
	tw_redis_close(redis);
	redis_server_stop(&server);
}

static void count(bool is_counting)
{
	pthread_mutex_lock(&part.lock);
	part.is_counting = is_counting;
	pthread_mutex_unlock(&part.lock);
}

/* Waits until at least that many tasks have been counted, or have been late. */
static void wait_for(int64_t counted, int64_t late)
{
	bool is_over = false;

	while (!is_over) {
		stopwatch_sleep(NANOSECONDS_PER_SECOND / 500);
		pthread_mutex_lock(&part.lock);
		is_over = part.counted >= counted &&
			  (int64_t)percentiles_count(part.lateness) >= late;
		pthread_mutex_unlock(&part.lock);
	}
}

/* Runs trickles beside a flood of that size. Writes p50 and p99 of their lateness. */
static void try_flood(const struct settings *settings, int64_t flood, bool has_groups, double *late,
		      double *result)
{
	struct tw_redis *redis = part_begin();
	const struct load flooding = {.group = has_groups ? "flood" : NULL, .end = flood};
	struct load trickling = {.group = has_groups ? "trickle" : NULL,
				 .group_first = 1,
				 .groups = TRICKLES,
				 .end = (int64_t)(TRICKLES * seconds_of(settings->seconds)),
				 .spread_ms = settings->seconds / TW_MILLISECOND};
	struct tw_redis_worker *worker;

	add_load(redis, &flooding);
	trickling.at_ms = time_after_adding(trickling.end);
	add_load(redis, &trickling);
	worker = start_worker(&server, 0, run);
	stopwatch_sleep(trickling.at_ms * TW_MILLISECOND - time_of_day());
	count(true);
	stopwatch_sleep(settings->seconds);
	count(false);
	wait_for(0, trickling.end);
	end_worker(worker);
	late[0] = (double)percentiles_at(part.lateness, 50);
	late[1] = (double)percentiles_at(part.lateness, 99);
	if (has_groups && flood) {
		result[TRICKLES_RUN] =
			100 * (double)(part.counted - part.runs[0]) / (double)trickling.end;
		result[FLOOD_SHARE] = 100 * (double)part.runs[0] / (double)part.counted;
	}
	part_end(redis);
}

/* Half of the heaviest group's tasks are left when it ends. */
static void try_weights(const struct settings *settings, double *result)
{
	struct tw_redis *redis = part_begin();
	struct tw_redis_worker *worker;

	for (int i = 0; i < WEIGHTS; i++) {
		const struct tw_redis_limits limits = {.weight = 1u << i};
		char group[16];

		snprintf(group, sizeof(group), "weight%d", i);
		expect_done(redis, tw_redis_set_limits(redis, group, &limits));
	}
	add_load(redis, &(struct load){.group = "weight",
				       .groups = WEIGHTS,
				       .end = WEIGHTS * settings->count});
	count(true);
	worker = start_worker(&server, 0, run);
	wait_for(settings->count * 7 / 8, 0);
	count(false);
	end_worker(worker);
	for (int i = 0; i < WEIGHTS; i++)
		result[WEIGHT_1 + i] =
			100 * (double)part.runs[i] / (double)part.counted / ((1 << i) / 7.0);
	part_end(redis);
}

static void run_trial(const void *plan, double *result)
{
	const struct settings *settings = plan;

	try_flood(settings, 0, true, result + ALONE, result);
	try_flood(settings, settings->flood, true, result + GROUPS, result);
	try_flood(settings, settings->flood, false, result + PLAIN, result);
	try_weights(settings, result);
}

void ask_fairness(const struct settings *settings)
{
	struct figures *figures =
		run_trials("fairness", "", measures, run_trial, settings, settings->runs);

	figures_print_columns("Groups, one Redis, one worker", &figures, 1);
	figures_destroy(figures);
}
