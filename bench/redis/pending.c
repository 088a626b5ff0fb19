/* SPDX-License-Identifier: MIT */
/*
 * What do ten million pending tasks cost?
 *
 * The bench adds them, due within the ten hours that begin in an hour, to a redis-server of its own
 * without a file, and measures the server's memory for each. Then it claims and acknowledges other
 * tasks, due now, 100 at a time with one round trip each, and measures a claim beside the pending
 * tasks. Last it counts the script calls a second of an idle worker. It needs some
 * 300 bytes for each task, and two minutes.
 */
#include "support/csv.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/percentiles.h"
#include "support/progress.h"
#include "support/redis_server.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 250, CLAIM = 100, HOURS = 10 };

static struct redis_server server;
static struct progress progress;
static int64_t count = 10000000, due_now = 100000, body_size = 64,
	       idle = 20 * NANOSECONDS_PER_SECOND;
static const char *csv_path;

static void give_up(struct tw_redis *redis, enum tw_status status)
{
	struct tw_redis_error error = {0};

	tw_redis_last_error(redis, &error);
	fprintf(stderr, "%s: %s\n", tw_status_text(status), error.text);
	exit(1);
}

/* Returns the number behind the name in the reply to INFO, or 0 if the name is not there. */
static int64_t server_info(const char *section, const char *name)
{
	redisReply *reply = redis_server_ask(&server, "INFO %s", section);
	const char *at = strstr(reply->str, name);
	int64_t number = at ? strtoll(at + strlen(name), NULL, 10) : 0;

	freeReplyObject(reply);
	return number;
}

/* Adds tasks, due evenly over `spread` from `delay` on. Returns the rate a second. */
static double add(struct tw_redis *redis, const char *name, int64_t tasks, tw_duration delay,
		  double spread)
{
	static char body[TW_REDIS_BODY_MAX];
	struct tw_redis_task batch[BATCH];
	char keys[BATCH][32];
	int64_t start = stopwatch_now();

	for (int64_t first = 0; first < tasks; first += BATCH) {
		size_t size = 0;
		enum tw_status status;

		for (; size < BATCH && first + (int64_t)size < tasks; size++) {
			int64_t i = first + (int64_t)size;
			double part = (double)i / (double)tasks;

			batch[size] = (struct tw_redis_task){
				.key = keys[size],
				.key_size = (size_t)snprintf(keys[size], sizeof(keys[size]),
							     "%s-%" PRId64, name, i),
				.delay = delay + (tw_duration)(spread * part),
				.body = body,
				.body_size = (size_t)body_size};
		}
		status = tw_redis_add(redis, batch, size, NULL);
		if (status != TW_OK)
			give_up(redis, status);
		progress_show(&progress, "%" PRId64 " added", first + (int64_t)size);
	}
	return (double)tasks / seconds_of(stopwatch_now() - start);
}

/* Claims and acknowledges all due tasks. Records how long each full batch took. */
static void take(struct tw_redis *redis, struct percentiles *claims, struct percentiles *acks)
{
	for (unsigned shard = 0; shard < tw_redis_shard_count(redis);) {
		struct tw_redis_batch *batch = NULL;
		int64_t start = stopwatch_now();
		int64_t claimed;
		enum tw_status status =
			tw_redis_claim(redis, shard, CLAIM, TW_MINUTE, &batch, NULL);
		size_t size = status == TW_OK ? batch->count : 0;

		claimed = stopwatch_now();
		if (status == TW_OK)
			status = tw_redis_finish(redis, batch->jobs, size, TW_REDIS_DONE, NULL,
						 NULL);
		if (status != TW_OK)
			give_up(redis, status);
		if (size == CLAIM) {
			percentiles_record(claims, claimed - start);
			percentiles_record(acks, stopwatch_now() - claimed);
		}
		tw_redis_batch_free(batch);
		shard += size < CLAIM;
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

/* Returns the script calls a second of an idle worker. */
static double idle_calls(struct tw_redis *redis)
{
	const struct tw_redis_options options = {.url = server.url};
	struct tw_redis_worker *worker;
	int64_t before;
	enum tw_status status = tw_redis_worker_start(
		&worker, &options, &(struct tw_redis_worker_options){.handler = run_handler}, NULL);

	if (status != TW_OK)
		give_up(redis, status);
	stopwatch_sleep(2 * NANOSECONDS_PER_SECOND);
	before = server_info("commandstats", "cmdstat_evalsha:calls=");
	stopwatch_sleep(idle);
	before = server_info("commandstats", "cmdstat_evalsha:calls=") - before;
	tw_redis_worker_stop(worker, TW_FOREVER);
	tw_redis_worker_destroy(worker);
	return (double)before / seconds_of(idle);
}

static void parse(int argc, char **argv)
{
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &count, BATCH, 100000000, .help = "pending tasks"},
		{"due", OPTION_COUNT, &due_now, CLAIM, 10000000, .help = "tasks to claim"},
		{"body", OPTION_COUNT, &body_size, 0, TW_REDIS_BODY_MAX, .help = "bytes of a task"},
		{"idle", OPTION_SECONDS, &idle, NANOSECONDS_PER_SECOND,
		 600 * NANOSECONDS_PER_SECOND, .help = "how long a worker has nothing to do"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the table to this file"},
		{0},
	};

	options_parse(argc, argv, "What do ten million pending tasks cost?", options);
}

static double us_at(const struct percentiles *times, double percent)
{
	return (double)percentiles_at(times, percent) / TW_MICROSECOND;
}

int main(int argc, char **argv)
{
	struct percentiles *claims = percentiles_create();
	struct percentiles *acks = percentiles_create();
	struct tw_redis *redis;
	struct csv csv;
	int64_t memory;
	double added;
	double bytes;
	double calls;

	parse(argc, argv);
	csv = csv_open(csv_path, "count,bytes,added,claim_p50_us,claim_p99_us,ack_p50_us,"
				 "ack_p99_us,idle_calls");
	progress = progress_start(stderr, false);
	redis_server_start(&server, NULL);
	if (tw_redis_open(&redis, &(struct tw_redis_options){.url = server.url}, NULL) != TW_OK) {
		fputs("no Redis\n", stderr);
		return 1;
	}
	memory = server_info("memory", "used_memory:");
	added = add(redis, "task", count, TW_HOUR, (double)HOURS * TW_HOUR);
	bytes = (double)(server_info("memory", "used_memory:") - memory) / (double)count;
	add(redis, "now", due_now, 0, 0);
	take(redis, claims, acks);
	progress_show(&progress, "an idle worker");
	calls = idle_calls(redis);
	progress_wipe(&progress);
	printf("%s\n%s pending tasks of %" PRId64 " bytes, one client, no file\n\n",
	       machine_description(), format_count(count).characters, body_size);
	printf("server's memory a task, bytes      %8.0f\n", bytes);
	printf("added by %d, a second             %8s\n", BATCH, format_rate(added).characters);
	printf("claim of %d, p50 / p99, us       %8.0f / %.0f\n", CLAIM, us_at(claims, 50),
	       us_at(claims, 99));
	printf("acknowledge %d, p50 / p99, us    %8.0f / %.0f\n", CLAIM, us_at(acks, 50),
	       us_at(acks, 99));
	printf("script calls of an idle worker, a second: %.2f   1 (%s)\n", calls,
	       calls < 1 ? "met" : "not met");
	csv_row(csv, "%" PRId64 ",%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.3f", count, bytes, added,
		us_at(claims, 50), us_at(claims, 99), us_at(acks, 50), us_at(acks, 99), calls);
	csv_close(csv);
	percentiles_destroy(claims);
	percentiles_destroy(acks);
	tw_redis_close(redis);
	redis_server_stop(&server);
	return 0;
}
