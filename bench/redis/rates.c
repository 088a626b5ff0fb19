/* SPDX-License-Identifier: MIT */
/*
 * How many tasks a second does one Redis take, and give out again?
 *
 * The bench adds tasks that are due in an hour, 100 to a round trip; then it claims 100 and
 * acknowledges them, in two round trips. It has a redis-server of its own, with appendonly, fsync
 * each second. The baselines are the bare commands, without scripts or guarantees: ZADD and HSET,
 * 100 of each to a round trip; ZPOPMIN of 100, then HMGET and HDEL. It also adds one task at a
 * time, by one thread and by 16 that share a client. Last it adds and claims tasks that take turns
 * among 1, 1,000 and 100,000 groups, as ratios to those without groups in the same run. The figures
 * are medians of several runs.
 */
#include "support/csv.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/progress.h"
#include "support/redis_server.h"
#include "support/spread.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 100, CLIENTS_MAX = 16, RUNS_MAX = 99, THREADS = 16, SIZES = 3 };
static const int64_t sizes[SIZES] = {1, 1000, 100000};

static struct redis_server server;
static int64_t count = 100000, clients = 1, runs = 5, body_size = 64, shards = 1;
static bool append_only = true;
static const char *csv_path;

/* A share is what one client does in one run: its part of the tasks, from `first` on. */
struct share {
	struct tw_redis *redis;
	int64_t first;
	int64_t end;
	unsigned shard_first;
	unsigned shard_end;
	tw_duration delay;
	int64_t groups; /* 0 means none */
};

static void give_up(struct tw_redis *redis, enum tw_status status)
{
	struct tw_redis_error error = {0};

	if (redis)
		tw_redis_last_error(redis, &error);
	fprintf(stderr, "%s: %s\n", tw_status_text(status), error.text);
	exit(1);
}

static struct tw_redis *client_open(int run)
{
	char name[32];
	const struct tw_redis_options options = {
		.url = server.url, .name_space = name, .shards = (unsigned)shards};
	struct tw_redis *redis;
	enum tw_status status;

	snprintf(name, sizeof(name), "bench-%d", run);
	status = tw_redis_open(&redis, &options, NULL);
	if (status != TW_OK)
		give_up(NULL, status);
	return redis;
}

static void *add(void *argument)
{
	static char body[TW_REDIS_BODY_MAX];
	const struct share *share = argument;
	struct tw_redis_task tasks[BATCH];
	char keys[BATCH][24];
	char groups[BATCH][32];

	for (int64_t first = share->first; first < share->end; first += BATCH) {
		size_t size = 0;
		enum tw_status status;

		for (; size < BATCH && first + (int64_t)size < share->end; size++) {
			int length = snprintf(keys[size], sizeof(keys[size]), "task-%" PRId64,
					      first + (int64_t)size);

			tasks[size] = (struct tw_redis_task){.key = keys[size],
							     .key_size = (size_t)length,
							     .delay = share->delay,
							     .body = body,
							     .body_size = (size_t)body_size};
			if (!share->groups)
				continue;
			snprintf(groups[size], sizeof(groups[size]), "group-%" PRId64,
				 (first + (int64_t)size) % share->groups);
			tasks[size].group = groups[size];
		}
		status = tw_redis_add(share->redis, tasks, size, NULL);
		if (status != TW_OK)
			give_up(share->redis, status);
	}
	return NULL;
}

/* Claims and acknowledges the tasks of the client's shards until none is left. */
static void *claim_and_ack(void *argument)
{
	const struct share *share = argument;

	for (unsigned shard = share->shard_first; shard < share->shard_end;) {
		struct tw_redis_batch *batch = NULL;
		size_t size;
		enum tw_status status =
			tw_redis_claim(share->redis, shard, BATCH, TW_MINUTE, &batch, NULL);

		if (status != TW_OK)
			give_up(share->redis, status);
		size = batch->count;
		status =
			tw_redis_finish(share->redis, batch->jobs, size, TW_REDIS_DONE, NULL, NULL);
		if (status != TW_OK)
			give_up(share->redis, status);
		tw_redis_batch_free(batch);
		shard += size < BATCH;
	}
	return NULL;
}

/* This is the baseline of adding: it writes the same data to the same number of sets and hashes. */
static void *keep(void *argument)
{
	static char body[TW_REDIS_BODY_MAX];
	const struct share *share = argument;
	redisContext *context = redisConnect("127.0.0.1", server.port);
	void *reply;

	for (int64_t first = share->first; first < share->end; first += BATCH) {
		for (int64_t i = first; i < first + BATCH && i < share->end; i++) {
			redisAppendCommand(context, "ZADD kept-due-%d 5000000000000 task-%lld",
					   (int)(i % shards), (long long)i);
			redisAppendCommand(context, "HSET kept-body-%d task-%lld %b",
					   (int)(i % shards), (long long)i, body,
					   (size_t)body_size);
		}
		for (int64_t i = first; i < first + BATCH && i < share->end; i++)
			for (int k = 0; k < 2; k++) {
				if (redisGetReply(context, &reply) != REDIS_OK)
					give_up(NULL, TW_REDIS_FAILED);
				freeReplyObject(reply);
			}
	}
	redisFree(context);
	return NULL;
}

/* This is the baseline of claiming: it takes the data back, by 100. Only the replies with keys are
 * read. */
static void *take(void *argument)
{
	const struct share *share = argument;
	redisContext *context = redisConnect("127.0.0.1", server.port);

	for (unsigned set = share->shard_first; set < share->shard_end;) {
		const char *words[BATCH + 2];
		char name[32];
		redisReply *taken =
			redisCommand(context, "ZPOPMIN kept-due-%u %d", set, (int)BATCH);
		int size = 2;
		void *reply;

		if (!taken)
			give_up(NULL, TW_REDIS_FAILED);
		snprintf(name, sizeof(name), "kept-body-%u", set);
		words[1] = name;
		for (size_t i = 0; i < taken->elements; i += 2)
			words[size++] = taken->element[i]->str;
		set += size < BATCH + 2;
		for (int i = 0; i < 2 && size > 2; i++) {
			words[0] = i ? "HDEL" : "HMGET";
			redisAppendCommandArgv(context, size, words, NULL);
		}
		for (int i = 0; i < 2 && size > 2; i++) {
			if (redisGetReply(context, &reply) != REDIS_OK)
				give_up(NULL, TW_REDIS_FAILED);
			freeReplyObject(reply);
		}
		freeReplyObject(taken);
	}
	redisFree(context);
	return NULL;
}

/* Runs the work of all clients at once, with 0 or more groups. Returns the tasks a second. */
static double rate_of(void *(*work)(void *), int run, tw_duration delay, int64_t groups)
{
	struct share shares[CLIENTS_MAX];
	pthread_t threads[CLIENTS_MAX];
	int64_t start;
	int64_t took;

	for (int64_t i = 0; i < clients; i++) {
		struct tw_redis *redis = client_open(run);
		unsigned first = (unsigned)(shards * i / clients);
		unsigned end = (unsigned)(shards * (i + 1) / clients);

		shares[i] = (struct share){.redis = redis,
					   .first = count * i / clients,
					   .end = count * (i + 1) / clients,
					   .shard_first = first,
					   .shard_end = end > first ? end : first + 1,
					   .delay = delay,
					   .groups = groups};
	}
	start = stopwatch_now();
	for (int64_t i = 0; i < clients; i++)
		if (pthread_create(&threads[i], NULL, work, &shares[i]))
			give_up(NULL, TW_SYSTEM);
	for (int64_t i = 0; i < clients; i++)
		pthread_join(threads[i], NULL);
	took = stopwatch_now() - start;
	for (int64_t i = 0; i < clients; i++)
		tw_redis_close(shares[i].redis);
	return (double)count / seconds_of(took);
}

static void *add_singly(void *argument)
{
	static char body[TW_REDIS_BODY_MAX];
	const struct share *share = argument;

	for (int64_t i = share->first; i < share->end; i++) {
		char key[24];
		const struct tw_redis_task task = {
			.key = key,
			.key_size = (size_t)snprintf(key, sizeof(key), "task-%" PRId64, i),
			.delay = share->delay,
			.body = body,
			.body_size = (size_t)body_size};
		enum tw_status status = tw_redis_add(share->redis, &task, 1, NULL);

		if (status != TW_OK)
			give_up(share->redis, status);
	}
	return NULL;
}

/* Adds tasks one at a time by threads that share a client. Returns the tasks a second. */
static double rate_of_threads(int run, int64_t number, int64_t tasks)
{
	struct tw_redis *redis = client_open(run);
	struct share shares[THREADS];
	pthread_t threads[THREADS];
	int64_t start = stopwatch_now();
	int64_t took;

	for (int64_t i = 0; i < number; i++) {
		shares[i] = (struct share){.redis = redis,
					   .first = tasks * i / number,
					   .end = tasks * (i + 1) / number,
					   .delay = TW_HOUR};
		if (pthread_create(&threads[i], NULL, add_singly, &shares[i]))
			give_up(NULL, TW_SYSTEM);
	}
	for (int64_t i = 0; i < number; i++)
		pthread_join(threads[i], NULL);
	took = stopwatch_now() - start;
	tw_redis_close(redis);
	return (double)tasks / seconds_of(took);
}

static void print_row(struct csv csv, const char *name, const char *title, double *rates,
		      double goal)
{
	struct spread spread = spread_of(rates, (size_t)runs);

	printf("%-34s %12s %12s %12s", title, format_rate(spread.median).characters,
	       format_rate(spread.least).characters, format_rate(spread.most).characters);
	if (goal > 0)
		printf("   %s (%s)", format_rate(goal).characters,
		       spread.median >= goal ? "met" : "not met");
	putchar('\n');
	csv_row(csv, "%s,%.0f,%.0f,%.0f", name, spread.median, spread.least, spread.most);
}

static void print_ratio(struct csv csv, const char *name, const char *title, int64_t groups,
			double *ratios)
{
	struct spread spread = spread_of(ratios, (size_t)runs);

	printf("%-22s %12s %12.2f %12.2f %12.2f\n", title, format_count(groups).characters,
	       spread.median, spread.least, spread.most);
	csv_row(csv, "%s_%" PRId64 ",%.3f,%.3f,%.3f", name, groups, spread.median, spread.least,
		spread.most);
}

static void parse(int argc, char **argv)
{
	bool no_file = false;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &count, BATCH, 10000000, .help = "tasks of a run"},
		{"clients", OPTION_COUNT, &clients, 1, CLIENTS_MAX, .help = "connections at once"},
		{"shards", OPTION_COUNT, &shards, 1, TW_REDIS_SHARDS_MAX,
		 .help = "of the namespace"},
		{"runs", OPTION_COUNT, &runs, 1, RUNS_MAX, .help = "their medians are printed"},
		{"body", OPTION_COUNT, &body_size, 0, TW_REDIS_BODY_MAX, .help = "bytes of a task"},
		{"no-file", OPTION_FLAG, &no_file, .help = "without an append-only file"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the table to this file"},
		{0},
	};

	options_parse(argc, argv, "How many tasks a second does one Redis take and give out?",
		      options);
	append_only = !no_file;
}

int main(int argc, char **argv)
{
	double kept[RUNS_MAX];
	double taken[RUNS_MAX];
	double added[RUNS_MAX];
	double claimed[RUNS_MAX];
	double by_one[RUNS_MAX];
	double by_many[RUNS_MAX];
	double added_ratios[SIZES][RUNS_MAX];
	double claimed_ratios[SIZES][RUNS_MAX];
	struct progress progress = progress_start(stderr, false);
	struct redis_server_options options;
	struct csv csv;

	parse(argc, argv);
	options = (struct redis_server_options){.append_only = append_only};
	csv = csv_open(csv_path, "what,median,least,most");
	csv_row(csv, "machine,\"%s\"", machine_description());
	printf("%s\n%s tasks of %" PRId64 " bytes, %" PRId64 " client%s, %s; medians of %" PRId64
	       "\n\n",
	       machine_description(), format_count(count).characters, body_size, clients,
	       clients > 1 ? "s" : "", append_only ? "fsync each second" : "no file", runs);
	for (int run = 0; run < runs; run++) {
		double due_now;

		progress_show(&progress, "run %d of %d", run + 1, (int)runs);
		redis_server_start(&server, &options);
		kept[run] = rate_of(keep, run, 0, 0);
		taken[run] = rate_of(take, run, 0, 0);
		added[run] = rate_of(add, run, TW_HOUR, 0);
		due_now = rate_of(add, RUNS_MAX + run, 0, 0);
		claimed[run] = rate_of(claim_and_ack, RUNS_MAX + run, 0, 0);
		for (int i = 0; i < SIZES; i++) {
			int number = (4 + i) * RUNS_MAX + run;

			added_ratios[i][run] = rate_of(add, number, 0, sizes[i]) / due_now;
			claimed_ratios[i][run] =
				rate_of(claim_and_ack, number, 0, 0) / claimed[run];
		}
		by_one[run] = rate_of_threads(2 * RUNS_MAX + run, 1, count / 10);
		by_many[run] = rate_of_threads(3 * RUNS_MAX + run, THREADS, count);
		redis_server_stop(&server);
	}
	progress_wipe(&progress);
	printf("%-34s %12s %12s %12s   %s\n", "a second", "median", "least", "most", "goal");
	print_row(csv, "kept", "ZADD and HSET alone, by 100", kept, 0);
	print_row(csv, "taken", "ZPOPMIN, HMGET, HDEL alone, by 100", taken, 0);
	print_row(csv, "added", "add, by 100", added, 0.85 * spread_of(kept, (size_t)runs).median);
	print_row(csv, "claimed", "claim and acknowledge, by 100", claimed,
		  0.8 * spread_of(taken, (size_t)runs).median);
	print_row(csv, "by_one", "add, one thread, one at a time", by_one, 0);
	print_row(csv, "by_many", "add, 16 threads, one connection", by_many,
		  5 * spread_of(by_one, (size_t)runs).median);
	printf("\n%-22s %12s %12s %12s %12s\n", "ratio to no groups", "groups", "median", "least",
	       "most");
	for (int i = 0; i < SIZES; i++)
		print_ratio(csv, "added", "add, by 100", sizes[i], added_ratios[i]);
	for (int i = 0; i < SIZES; i++)
		print_ratio(csv, "claimed", "claim and acknowledge", sizes[i], claimed_ratios[i]);
	csv_close(csv);
	return 0;
}
