/* SPDX-License-Identifier: MIT */
/*
 * How many tasks a second does one Redis take, and give out again?
 *
 * One client adds tasks that are due in an hour, 100 to a round trip; then it claims 100 and
 * acknowledges them, in two round trips. The server has an append-only file with fsync each second.
 * The baselines are the bare commands, without scripts or guarantees: ZADD and HSET, 100 of each to
 * a round trip; ZPOPMIN of 100, then HMGET and HDEL. Tasks are also added one at a time, by one
 * thread and by 16 that share a client, and last the tasks take turns among 1, 1,000 and 100,000
 * groups, as ratios to those without groups in the same run.
 */
#include "asks.h"

#include "support/process.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 16, SIZES = 3 };

static const int64_t sizes[SIZES] = {1, 1000, 100000};

enum { ADDED, CLAIMED, KEPT, TAKEN, BY_ONE, BY_MANY, ADDED_TO, CLAIMED_FROM = ADDED_TO + SIZES };

static const struct measure measures[] = {
	{"added", "tasks added by 100: million a second", 1e-6, 3},
	{"claimed", "tasks claimed and acknowledged by 100: million a second", 1e-6, 3},
	{"kept", "a bare ZADD and HSET by 100: million a second", 1e-6, 3},
	{"taken", "a bare ZPOPMIN, HMGET and HDEL by 100: million a second", 1e-6, 3},
	{"by_one", "tasks added one at a time, 1 thread: million a second", 1e-6, 3},
	{"by_many", "the same, 16 threads with one client: million a second", 1e-6, 3},
	{"added_1", "adding by 100 to 1 group, against none", 1, 2},
	{"added_1000", "to 1,000 groups", 1, 2},
	{"added_100000", "to 100,000 groups", 1, 2},
	{"claimed_1", "claiming and acknowledging by 100 from 1 group, against none", 1, 2},
	{"claimed_1000", "from 1,000 groups", 1, 2},
	{"claimed_100000", "from 100,000 groups", 1, 2},
	{0},
};

static struct redis_server server;

/* A work is done by one client, or by threads that share it. */
struct work {
	const struct settings *settings;
	struct tw_redis *redis;
	struct load load;
};

static void add(const struct work *work)
{
	add_load(work->redis, &work->load);
}

/* Claims and acknowledges all due tasks. */
static void claim(const struct work *work)
{
	for (unsigned shard = 0; shard < tw_redis_shard_count(work->redis);) {
		struct tw_redis_batch *batch = NULL;
		size_t size;

		expect_done(work->redis,
			    tw_redis_claim(work->redis, shard, BATCH, TW_MINUTE, &batch, NULL));
		size = batch->count;
		expect_done(work->redis, tw_redis_finish(work->redis, batch->jobs, size,
							 TW_REDIS_DONE, NULL, NULL));
		tw_redis_batch_free(batch);
		shard += size < BATCH;
	}
}

static void *add_singly(void *argument)
{
	const struct work *work = argument;

	for (int64_t i = work->load.first; i < work->load.end; i++) {
		struct load one = work->load;

		one.first = i;
		one.end = i + 1;
		add_load(work->redis, &one);
	}
	return NULL;
}

static void add_by_threads(const struct work *work, int64_t number)
{
	struct work shares[THREADS];
	pthread_t threads[THREADS];

	for (int64_t i = 0; i < number; i++) {
		shares[i] = *work;
		shares[i].load.first = work->load.end * i / number;
		shares[i].load.end = work->load.end * (i + 1) / number;
		if (pthread_create(&threads[i], NULL, add_singly, &shares[i]))
			process_fail("a thread could not be started");
	}
	for (int64_t i = 0; i < number; i++)
		pthread_join(threads[i], NULL);
}

static void add_by_one(const struct work *work)
{
	add_by_threads(work, 1);
}

static void add_by_many(const struct work *work)
{
	add_by_threads(work, THREADS);
}

/* --- The bare commands ------------------------------------------------------------------------ */

static void read_replies(redisContext *context, int64_t count)
{
	void *reply;

	while (count-- > 0) {
		if (redisGetReply(context, &reply) != REDIS_OK)
			process_fail("no reply: %s", context->errstr);
		freeReplyObject(reply);
	}
}

/* Writes the same data to a set and a hash. */
static void keep(const struct work *work)
{
	static const char body[TW_REDIS_BODY_MAX];
	redisContext *context = redisConnect("127.0.0.1", server.port);
	int64_t count = work->load.end;

	for (int64_t first = 0; first < count; first += BATCH) {
		int64_t end = first + BATCH < count ? first + BATCH : count;

		for (int64_t i = first; i < end; i++) {
			redisAppendCommand(context, "ZADD kept-due 5000000000000 task-%lld",
					   (long long)i);
			redisAppendCommand(context, "HSET kept-body task-%lld %b", (long long)i,
					   body, (size_t)work->settings->body);
		}
		read_replies(context, 2 * (end - first));
	}
	redisFree(context);
}

/* Takes the data back. */
static void take(const struct work *work)
{
	redisContext *context = redisConnect("127.0.0.1", server.port);
	int size;

	(void)work;
	do {
		const char *words[BATCH + 2] = {NULL, "kept-body"};
		redisReply *taken = redisCommand(context, "ZPOPMIN kept-due %d", (int)BATCH);

		if (!taken)
			process_fail("no reply: %s", context->errstr);
		size = 2;
		for (size_t i = 0; i < taken->elements; i += 2)
			words[size++] = taken->element[i]->str;
		if (size > 2) {
			words[0] = "HMGET";
			redisAppendCommandArgv(context, size, words, NULL);
			words[0] = "HDEL";
			redisAppendCommandArgv(context, size, words, NULL);
			read_replies(context, 2);
		}
		freeReplyObject(taken);
	} while (size == BATCH + 2);
	redisFree(context);
}

/* --- One run ---------------------------------------------------------------------------------- */

/* Does the work with a client on the namespace. Returns the tasks a second. */
static double rate_of(void (*run)(const struct work *work), const struct settings *settings,
		      int name_space, struct load load)
{
	struct work work = {settings, open_client(&server, name_space, settings->shards), load};
	int64_t start = stopwatch_now();
	int64_t took;

	run(&work);
	took = stopwatch_now() - start;
	tw_redis_close(work.redis);
	return (double)load.end / seconds_of(took);
}

static void run_trial(const void *plan, double *result)
{
	const struct settings *settings = plan;
	const struct load later = {
		.end = settings->count, .delay = TW_HOUR, .body = settings->body};
	struct load now = later, tenth = later;
	double due_now;

	now.delay = 0;
	tenth.end /= 10;
	redis_server_start(&server, &(struct redis_server_options){.append_only = true});
	result[KEPT] = rate_of(keep, settings, 0, later);
	result[TAKEN] = rate_of(take, settings, 0, later);
	result[ADDED] = rate_of(add, settings, 0, later);
	due_now = rate_of(add, settings, 1, now);
	result[CLAIMED] = rate_of(claim, settings, 1, now);
	now.group = "group-";
	for (int i = 0; i < SIZES; i++) {
		now.groups = sizes[i];
		result[ADDED_TO + i] = rate_of(add, settings, 2 + i, now) / due_now;
		result[CLAIMED_FROM + i] = rate_of(claim, settings, 2 + i, now) / result[CLAIMED];
	}
	result[BY_ONE] = rate_of(add_by_one, settings, 5, tenth);
	result[BY_MANY] = rate_of(add_by_many, settings, 6, later);
	redis_server_stop(&server);
}

void ask_rates(const struct settings *settings)
{
	struct figures *figures =
		run_trials("rates", "", measures, run_trial, settings, settings->runs);

	figures_print_columns("One Redis beside one client, fsync each second", &figures, 1);
	figures_destroy(figures);
}
