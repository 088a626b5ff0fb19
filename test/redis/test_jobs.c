/* SPDX-License-Identifier: MIT */
/*
 * These tests claim where something is wrong, or large: a shard is not blocked by what other
 * programs have written into it, a lost reply is given back, and large data does not block Redis.
 */
#include "support/fixture.h"

#include "redis/client/jobs.h"

STORED(fixture, key_longer_than_any_of_ours_is_broken)
{
	const char *name_space = fixture->name_space;
	char key[TW_REDIS_KEY_MAX + 2] = "";
	struct tw_redis_batch *batch;

	memset(key, 'k', TW_REDIS_KEY_MAX + 1);
	redis_server_number(&fixture->server, "HSET {tw/%s/0}body %s %s", name_space, key,
			    "1 1 0\n\n");
	redis_server_number(&fixture->server, "HSET {tw/%s/0}run %s 1", name_space, key);
	redis_server_number(&fixture->server, "ZADD {tw/%s/0}due -99999999999999 %s", name_space,
			    key);
	assert_ok(fixture->redis, tw_redis_claim(fixture->redis, 0, 1, TW_MINUTE, &batch, NULL));
	assert_int_equal(only_job(batch)->lateness, TW_REDIS_DELAY_MAX);
	assert_int_equal(only_job(batch)->key_size, TW_REDIS_KEY_MAX + 1);
	assert_int_equal(((const struct batch *)batch)->fates[0], FATE_BROKEN);
	claim_end(batch);
}

STORED(fixture, claim_of_large_tasks_reads_hardly_more_than_it_takes)
{
	enum { COUNT = 100, LIMIT = 4 * 1024 * 1024 };
	static char body[TW_REDIS_BODY_MAX];
	static char key[KEY_SIZE];
	struct tw_redis_options one_shard = fixture->options;
	struct tw_redis *redis;
	struct tw_redis_batch *batch;
	tw_duration next;
	size_t claimed = 0;
	long before;

	one_shard.shards = 1;
	one_shard.name_space = "large";
	redis = client_open(&one_shard);
	memset(body, '7', sizeof(body));
	for (int i = 0; i < COUNT; i++) {
		struct tw_redis_task task = {.key = key, .body = body, .body_size = sizeof(body)};

		number_key(key, i);
		task.key_size = strlen(key);
		add_one(redis, &task);
	}
	before = redis_server_figure(&fixture->server, "INFO memory", "used_memory:");
	do {
		assert_ok(redis, tw_redis_claim(redis, 0, COUNT, TW_MINUTE, &batch, &next));
		if (!claimed)
			assert_true(redis_server_figure(&fixture->server, "INFO memory",
							"used_memory_peak:") -
					    before <
				    3L * LIMIT);
		claimed += batch->count;
		assert_in_range(batch->count, 1, LIMIT / sizeof(body) + 1);
		assert_true(next == 0 || claimed == COUNT);
		assert_ok(redis, tw_redis_finish(redis, batch->jobs, batch->count, TW_REDIS_DONE,
						 NULL, NULL));
		claim_end(batch);
	} while (claimed < COUNT);
}

/* Claims as a worker does. Returns the number of tasks, and the first one's attempt. */
static size_t claim_as(struct tw_redis *redis, const struct claim *claim, unsigned *attempt)
{
	struct call *call = call_begin(redis->access, 1);
	struct batch *batch;
	size_t count;

	claim_write(&call->eval, &redis->space, shard_of(redis, "a"), 10, TW_MINUTE, claim);
	assert_ok(redis, call_ask(call));
	assert_int_equal(claim_read(&call->eval, 0, &batch), TW_OK);
	call_end(call, TW_OK);
	count = batch->shown.count;
	*attempt = count ? batch->shown.jobs[0].attempt : 0;
	batch_free(batch);
	return count;
}

STORED(fixture, claim_whose_reply_was_lost_is_given_back_and_no_other)
{
	struct tw_redis *redis = fixture->redis;
	struct claim claim = {.bytes = 100000, .worker = "7", .number = 1};
	struct claim other = {.bytes = 100000, .worker = "8", .number = 1, .again = true};
	struct found first;
	unsigned attempt;

	add_task(redis, "a", 0);
	assert_int_equal(claim_as(redis, &claim, &attempt), 1);
	assert_int_equal(attempt, 1);
	first = find_task(redis, "a");
	/* Another worker's claim, and one that was never made, return nothing. */
	assert_int_equal(claim_as(redis, &other, &attempt), 0);
	claim.number = 2;
	claim.again = true;
	assert_int_equal(claim_as(redis, &claim, &attempt), 0);
	assert_true(find_task(redis, "a").token == first.token);
	claim.number = 1;
	assert_int_equal(claim_as(redis, &claim, &attempt), 1);
	assert_int_equal(attempt, 1);
	assert_true(find_task(redis, "a").token > first.token);
	/* That reply may be lost, too. */
	assert_int_equal(claim_as(redis, &claim, &attempt), 1);
	assert_int_equal(attempt, 1);
	assert_int_equal(find_task(redis, "a").state, TW_REDIS_LEASED);
}

STORED(fixture, lost_claim_of_a_later_attempt_counts_the_earlier_ones)
{
	struct tw_redis *redis = fixture->redis;
	struct claim claim = {.bytes = 100000, .worker = "7", .number = 1};
	struct tw_redis_batch *batch = claim_new(redis, "a", TW_MINUTE);
	unsigned attempt;

	assert_int_equal(fail_job(redis, batch, 0, NULL), TW_OK);
	assert_int_equal(claim_as(redis, &claim, &attempt), 1);
	assert_int_equal(attempt, 2);
	claim.again = true;
	assert_int_equal(claim_as(redis, &claim, &attempt), 1);
	assert_int_equal(attempt, 2);
}

/* A record of 200 KiB exceeds the limit of the first claim. */
STORED(fixture, claim_for_few_bytes_takes_no_more)
{
	static char body[200 * 1024];
	struct claim claim = {.bytes = 60000};
	struct tw_redis_task task = {
		.key = "a", .key_size = 1, .body = body, .body_size = sizeof(body)};
	unsigned attempt;

	memset(body, 'x', sizeof(body));
	add_one(fixture->redis, &task);
	assert_int_equal(claim_as(fixture->redis, &claim, &attempt), 0);
	assert_int_equal(find_task(fixture->redis, "a").attempts, 0);
	claim.bytes = 65536;
	assert_int_equal(claim_as(fixture->redis, &claim, &attempt), 1);
}

STORED(fixture, more_jobs_than_a_batch_are_reported_at_once)
{
	enum { COUNT = TW_REDIS_BATCH_MAX + 500 };
	static struct tw_redis_task tasks[COUNT];
	static struct tw_redis_job jobs[COUNT];
	static enum tw_status each[COUNT];
	static char keys[COUNT][KEY_SIZE];
	struct tw_redis_options one_shard = fixture->options;
	struct tw_redis_batch *batches[2];
	struct tw_redis *redis;
	size_t count = 0;

	one_shard.shards = 1;
	one_shard.name_space = "many";
	redis = client_open(&one_shard);
	for (int i = 0; i < COUNT; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){.key = keys[i], .key_size = strlen(keys[i])};
	}
	assert_ok(redis, tw_redis_add(redis, tasks, COUNT, NULL));
	for (int i = 0; i < 2; i++) {
		size_t claimed;

		assert_ok(redis, tw_redis_claim(redis, 0, TW_REDIS_BATCH_MAX, TW_MINUTE,
						&batches[i], NULL));
		claimed = batches[i]->count;
		memcpy(&jobs[count], batches[i]->jobs, claimed * sizeof(*jobs));
		count += claimed;
	}
	assert_int_equal(count, COUNT);
	assert_ok(redis, tw_redis_extend(redis, jobs, COUNT, 2 * TW_MINUTE, NULL));
	assert_ok(redis, tw_redis_finish(redis, jobs, COUNT, TW_REDIS_DONE, NULL, each));
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(each[i], TW_OK);
	assert_int_equal(stats_of(redis).tasks, 0);
	for (int i = 0; i < 2; i++)
		claim_end(batches[i]);
}

STORED(fixture, jobs_that_cannot_be_reported_have_the_status_each)
{
	struct tw_redis_options options = fixture->options;
	struct tw_redis_batch *batches[2];
	struct tw_redis_job jobs[2];
	enum tw_status each[2] = {TW_OK, TW_OK};
	struct tw_redis *redis;
	char key[KEY_SIZE];
	int number = 0;

	options.user = "reader";
	options.password = "pw";
	/* These two are in different shards, so one call does not report both. */
	do
		number_key(key, number++);
	while (shard_of(fixture->redis, key) == shard_of(fixture->redis, "a"));
	batches[0] = claim_new(fixture->redis, "a", TW_MINUTE);
	batches[1] = claim_new(fixture->redis, key, TW_MINUTE);
	for (int i = 0; i < 2; i++)
		jobs[i] = *only_job(batches[i]);
	redis_server_number(&fixture->server, "ACL SETUSER reader on >pw ~* &* +@all");
	redis = client_open(&options);
	redis_server_number(&fixture->server, "ACL SETUSER reader -eval -evalsha");
	assert_int_equal(tw_redis_finish(redis, jobs, 2, TW_REDIS_DONE, NULL, each),
			 TW_REDIS_REFUSED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(each[i], TW_REDIS_REFUSED);
		assert_ok(fixture->redis, tw_redis_finish(fixture->redis, &jobs[i], 1,
							  TW_REDIS_DONE, NULL, &each[i]));
		assert_int_equal(each[i], TW_OK);
		claim_end(batches[i]);
	}
}

STORED(fixture, bad_arguments_about_jobs_are_invalid)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_batch *batch = claim_new(redis, "a", TW_MINUTE);
	const struct tw_redis_job *job = only_job(batch);
	struct tw_redis_job elsewhere = *job;
	struct tw_redis_verdict verdict = {0};

	assert_int_equal(tw_redis_cancel(NULL, "a", 1, TW_REDIS_WHOLE), TW_INVALID);
	assert_int_equal(tw_redis_cancel(redis, NULL, 1, TW_REDIS_WHOLE), TW_INVALID);
	assert_int_equal(tw_redis_cancel(redis, "a", 0, TW_REDIS_WHOLE), TW_INVALID);
	elsewhere.shard = 4;
	assert_int_equal(tw_redis_finish(redis, NULL, 1, TW_REDIS_DONE, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_finish(redis, &elsewhere, 1, TW_REDIS_DONE, NULL, NULL),
			 TW_INVALID);
	assert_int_equal(tw_redis_extend(redis, job, 1, 9 * TW_MILLISECOND, NULL), TW_INVALID);
	assert_int_equal(tw_redis_extend(redis, job, 1, 25 * TW_HOUR, NULL), TW_INVALID);
	assert_int_equal(tw_redis_finish(redis, job, 1, TW_REDIS_SNOOZE + 1, NULL, NULL),
			 TW_INVALID);
	for (enum tw_redis_outcome end = TW_REDIS_RETRY; end <= TW_REDIS_SNOOZE; end++) {
		verdict.retry_in = -1;
		assert_int_equal(tw_redis_finish(redis, job, 1, end, &verdict, NULL), TW_INVALID);
		verdict.retry_in = TW_REDIS_DELAY_MAX + 1;
		assert_int_equal(tw_redis_finish(redis, job, 1, end, &verdict, NULL), TW_INVALID);
	}
	assert_int_equal(find_task(redis, "a").state, TW_REDIS_LEASED);
	assert_ok(redis, tw_redis_finish(redis, NULL, 0, TW_REDIS_DONE, NULL, NULL));
}

FIXTURE_FILE
