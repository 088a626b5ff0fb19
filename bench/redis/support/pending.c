/* SPDX-License-Identifier: MIT */
/*
 * What do ten million pending tasks cost?
 *
 * They are due within the ten hours that begin in an hour, in a redis-server without a file, whose
 * memory is measured for each. Then other tasks, due now, are claimed and acknowledged 100 at a
 * time with one round trip each, and claims beside the pending tasks are measured. Last the script
 * calls of an idle worker are counted. It needs some 300 bytes for each task.
 */
#include "asks.h"

#include "support/format.h"
#include "support/percentiles.h"
#include "support/stopwatch.h"

#include <stdio.h>

enum { HOURS = 10 };

enum { BYTES, CLAIM_P50, CLAIM_P99, ACK_P50, ACK_P99, IDLE_CALLS };

static const struct measure measures[] = {
	{"bytes", "the server's bytes for each", 1, 0},
	{"claim_p50_ns", "claiming 100 of them, p50: ms", 1e-6, 2},
	{"claim_p99_ns", "its p99: ms", 1e-6, 2},
	{"ack_p50_ns", "acknowledging 100, p50: ms", 1e-6, 2},
	{"ack_p99_ns", "its p99: ms", 1e-6, 2},
	{"idle_calls", "script calls of an idle worker: a second", 1, 2},
	{0},
};

static struct redis_server server;

static int64_t memory(void)
{
	return redis_server_figure(&server, "INFO memory", "used_memory:");
}

static int64_t script_calls(void)
{
	return redis_server_figure(&server, "INFO commandstats", "cmdstat_evalsha:calls=");
}

/* Claims and acknowledges all due tasks. Records how long each full batch took. */
static void take(struct tw_redis *redis, struct percentiles *claims, struct percentiles *acks)
{
	for (unsigned shard = 0; shard < tw_redis_shard_count(redis);) {
		struct tw_redis_batch *batch = NULL;
		int64_t start = stopwatch_now(), claimed;
		size_t size;

		expect_done(redis, tw_redis_claim(redis, shard, BATCH, TW_MINUTE, &batch, NULL));
		claimed = stopwatch_now();
		size = batch->count;
		expect_done(redis,
			    tw_redis_finish(redis, batch->jobs, size, TW_REDIS_DONE, NULL, NULL));
		if (size == BATCH) {
			percentiles_record(claims, claimed - start);
			percentiles_record(acks, stopwatch_now() - claimed);
		}
		tw_redis_batch_free(batch);
		shard += size < BATCH;
	}
}

static enum tw_redis_outcome run_handler(void *context, const struct tw_redis_job *job,
					 struct tw_redis_verdict *verdict)
{
	(void)context;
	(void)job;
	(void)verdict;
	return TW_REDIS_DONE;
}

static double idle_calls(const struct settings *settings)
{
	struct tw_redis_worker *worker = start_worker(&server, settings->shards, run_handler);
	int64_t before, duration = 4 * settings->seconds;

	stopwatch_sleep(2 * NANOSECONDS_PER_SECOND);
	before = script_calls();
	stopwatch_sleep(duration);
	before = script_calls() - before;
	end_worker(worker);
	return (double)before / seconds_of(duration);
}

static void run_trial(const void *plan, double *result)
{
	const struct settings *settings = plan;
	struct load pending = {.end = settings->pending,
			       .spread_ms = HOURS * TW_HOUR / TW_MILLISECOND,
			       .body = settings->body};
	struct percentiles *claims = percentiles_create(), *acks = percentiles_create();
	struct tw_redis *redis;
	int64_t before;

	redis_server_start(&server, NULL);
	redis = open_client(&server, 0, settings->shards);
	before = memory();
	pending.at_ms = (time_of_day() + TW_HOUR) / TW_MILLISECOND;
	add_load(redis, &pending);
	result[BYTES] = (double)(memory() - before) / (double)settings->pending;
	add_load(redis,
		 &(struct load){.end = settings->count, .group_first = 1, .body = settings->body});
	take(redis, claims, acks);
	result[CLAIM_P50] = (double)percentiles_at(claims, 50);
	result[CLAIM_P99] = (double)percentiles_at(claims, 99);
	result[ACK_P50] = (double)percentiles_at(acks, 50);
	result[ACK_P99] = (double)percentiles_at(acks, 99);
	result[IDLE_CALLS] = idle_calls(settings);
	tw_redis_close(redis);
	redis_server_stop(&server);
}

void ask_pending(const struct settings *settings)
{
	struct figures *figures = run_trials("pending", "", measures, run_trial, settings, 1);
	char head[80];

	snprintf(head, sizeof(head), "%s pending tasks, no file",
		 format_count(settings->pending).characters);
	figures_print_columns(head, &figures, 1);
	figures_destroy(figures);
}
