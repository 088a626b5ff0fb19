/* SPDX-License-Identifier: MIT */
/*
 * These tests make the calls about tasks, claim by hand, and check what Redis holds after each.
 * There is no worker. Leases of some milliseconds end, or the test rewrites a task's time.
 */
#include "support/fixture.h"

#include "redis/client/client.h"

static const tw_duration long_lease = TW_HOUR;
static const tw_duration short_lease = 20 * TW_MILLISECOND;

/* Ends the lease by moving its end to the past. */
static void end_lease(struct fixture *fixture, const char *key)
{
	redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, key, -1);
}

static void ack_is(struct tw_redis *redis, const struct tw_redis_batch *batch,
		   enum tw_status expected)
{
	assert_int_equal(finish_job(redis, batch, TW_REDIS_DONE), expected);
}

STORED(fixture, task_is_claimed_when_it_is_due_and_not_before)
{
	struct tw_redis_batch *batch;
	int64_t added = redis_server_now(&fixture->server);

	add_task(fixture->redis, "a", TW_SECOND);
	batch = await_claim(fixture->redis, "a", long_lease);
	assert_true(redis_server_now(&fixture->server) - added >= 1000);
	assert_true(only_job(batch)->due_ms >= added + 1000);
	assert_true(only_job(batch)->lateness >= 0);
	ack_is(fixture->redis, batch, TW_OK);
	assert_nothing_due(fixture->redis, "a");
}

STORED(fixture, task_due_in_the_past_is_due_now)
{
	int64_t now = redis_server_now(&fixture->server);
	int64_t due = 0;
	const struct tw_redis_task task = {.key = "a", .key_size = 1, .at_ms = 1000};

	due = add_one(fixture->redis, &task);
	assert_in_range(due - now, 0, 5000);
	await_claim(fixture->redis, "a", long_lease);
}

STORED(fixture, due_time_is_returned_and_rounded_up)
{
	struct tw_redis_task task = {.key = "a", .key_size = 1, .delay = TW_HOUR + 1};
	int64_t now = redis_server_now(&fixture->server);
	int64_t due = 0;

	due = add_one(fixture->redis, &task);
	assert_in_range(due - now, 3600000, 3605000);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due);
	task.at_ms = now + 12345;
	due = add_one(fixture->redis, &task);
	assert_int_equal(due, now + 12345);
}

STORED(fixture, claim_returns_when_to_look_again)
{
	unsigned shard = shard_of(fixture->redis, "a");
	struct tw_redis_batch *batch = NULL;
	tw_duration next = 0;

	assert_ok(fixture->redis,
		  tw_redis_claim(fixture->redis, shard, 1, long_lease, &batch, &next));
	assert_true(next == TW_FOREVER);
	claim_end(batch);
	add_task(fixture->redis, "a", TW_MINUTE);
	assert_ok(fixture->redis,
		  tw_redis_claim(fixture->redis, shard, 1, long_lease, &batch, &next));
	assert_in_range(next, 50 * TW_SECOND, TW_MINUTE + TW_MILLISECOND);
	claim_end(batch);
}

STORED(fixture, longest_due_is_claimed_first_and_no_more_than_the_limit)
{
	struct tw_redis_batch *batch = NULL;
	unsigned shard = shard_of(fixture->redis, "a");
	tw_duration next = -1;
	unsigned added = 0;
	char first[KEY_SIZE] = "";
	char key[KEY_SIZE];

	for (unsigned i = 0; added < 5; i++) {
		number_key(key, (int)i);
		if (shard_of(fixture->redis, key) != shard)
			continue;
		add_task(fixture->redis, key, TW_HOUR);
		/* The last one added has been due longest. */
		redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, key,
				     -1000 * (int64_t)++added);
		snprintf(first, sizeof(first), "%s", key);
	}
	assert_ok(fixture->redis,
		  tw_redis_claim(fixture->redis, shard, 2, long_lease, &batch, &next));
	assert_int_equal(batch->count, 2);
	assert_memory_equal(batch->jobs->key, first, strlen(first));
	assert_true(batch->jobs->lateness >= 5 * TW_SECOND);
	assert_int_equal(next, 0);
	claim_end(batch);
}

STORED(fixture, second_add_as_new_exists_and_changes_nothing)
{
	static const struct tw_redis_task first = {.key = "b",
						   .key_size = 1,
						   .body = "first",
						   .body_size = 6,
						   .delay = TW_HOUR,
						   .mode = TW_REDIS_NEW};
	static const struct tw_redis_task second = {.key = "b",
						    .key_size = 1,
						    .body = "other",
						    .body_size = 6,
						    .delay = TW_HOUR,
						    .mode = TW_REDIS_NEW};
	struct found before;
	struct found after;

	assert_int_equal(try_add(fixture->redis, "a", TW_HOUR, TW_REDIS_NEW), TW_OK);
	before = find_task(fixture->redis, "a");
	assert_int_equal(try_add(fixture->redis, "a", TW_MINUTE, TW_REDIS_NEW), TW_EXISTS);
	after = find_task(fixture->redis, "a");
	assert_int_equal(before.due_ms, after.due_ms);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	add_one(fixture->redis, &first);
	assert_int_equal(tw_redis_add(fixture->redis, &second, 1, NULL), TW_EXISTS);
	assert_string_equal(find_task(fixture->redis, "b").body, "first");
}

STORED(fixture, replaced_task_runs_as_the_new_one_only)
{
	struct tw_redis_task task = {
		.key = "a", .key_size = 1, .delay = TW_MINUTE, .body = "old", .body_size = 3};
	struct tw_redis_batch *batch;

	add_one(fixture->redis, &task);
	task.body = "new";
	task.delay = 0;
	add_one(fixture->redis, &task);
	batch = await_claim(fixture->redis, "a", long_lease);
	assert_memory_equal(only_job(batch)->body, "new", 3);
	ack_is(fixture->redis, batch, TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(fixture, replace_wants_a_task_to_replace)
{
	assert_int_equal(try_add(fixture->redis, "a", 0, TW_REDIS_REPLACE), TW_NOT_FOUND);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	add_task(fixture->redis, "a", TW_HOUR);
	assert_int_equal(try_add(fixture->redis, "a", TW_MINUTE, TW_REDIS_REPLACE), TW_OK);
}

STORED(fixture, run_of_a_replaced_task_does_not_end_the_new_one)
{
	struct tw_redis_batch *old;
	struct tw_redis_batch *new;

	old = claim_new(fixture->redis, "a", long_lease);
	add_task(fixture->redis, "a", 0);
	ack_is(fixture->redis, old, TW_REDIS_STALE);
	new = await_claim(fixture->redis, "a", long_lease);
	assert_int_equal(only_job(new)->attempt, 1);
	assert_true(only_job(new)->token > only_job(old)->token);
	ack_is(fixture->redis, old, TW_REDIS_STALE);
	ack_is(fixture->redis, new, TW_OK);
}

STORED(fixture, keys_and_bodies_are_any_bytes)
{
	static char key[TW_REDIS_KEY_MAX];
	static char body[TW_REDIS_BODY_MAX];
	struct tw_redis_task task = {
		.key = key, .key_size = sizeof(key), .body = body, .body_size = sizeof(body)};
	struct tw_redis_batch *batch = NULL;

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (char)(i * 7);
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 11 + i / 256);
	add_one(fixture->redis, &task);
	assert_ok(fixture->redis,
		  tw_redis_claim(fixture->redis,
				 space_shard(&fixture->redis->space, key, sizeof(key)), 10,
				 long_lease, &batch, NULL));
	assert_int_equal(only_job(batch)->key_size, sizeof(key));
	assert_memory_equal(only_job(batch)->key, key, sizeof(key));
	assert_int_equal(only_job(batch)->body_size, sizeof(body));
	assert_memory_equal(only_job(batch)->body, body, sizeof(body));
	assert_null(only_job(batch)->url);
	ack_is(fixture->redis, batch, TW_OK);
	claim_end(batch);
}

static bool is_given_none(void *context, const struct tw_redis_info *info)
{
	fail();
	return false;
}

STORED(fixture, bad_arguments_are_invalid)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_batch *batch = NULL;

	assert_int_equal(tw_redis_cancel(redis, "", 0, TW_REDIS_OCCURRENCE), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 4, 1, long_lease, &batch, NULL), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, 0, long_lease, &batch, NULL), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, TW_REDIS_BATCH_MAX + 1, long_lease, &batch, NULL),
			 TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, 1, 9 * TW_MILLISECOND, &batch, NULL), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, 1, 25 * TW_HOUR, &batch, NULL), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, 1, long_lease, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_add(redis, NULL, 1, NULL), TW_INVALID);
	assert_int_equal(tw_redis_open(NULL, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_open_beside(redis, NULL, 4, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_get_stats(redis, NULL), TW_INVALID);
	assert_int_equal(tw_redis_get(redis, "a", 1, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_each(redis, TW_REDIS_TASKS, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_each(redis, TW_REDIS_LETTERS + 1, is_given_none, NULL),
			 TW_INVALID);
	assert_int_equal(tw_redis_cancel(redis, "a", 1, TW_REDIS_WHOLE + 1), TW_INVALID);
	assert_int_equal(tw_redis_move(redis, "a", 1, -1, 0, NULL), TW_INVALID);
	assert_int_equal(tw_redis_move(redis, "", 0, 1, 0, NULL), TW_INVALID);
	assert_int_equal(tw_redis_finish(redis, NULL, 1, TW_REDIS_DONE, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_worker_start(NULL, NULL, NULL, NULL), TW_INVALID);
	tw_redis_last_error(redis, NULL);
	tw_redis_last_error(NULL, NULL);
	assert_int_equal(tw_redis_shard_count(NULL), 0);
	tw_redis_close(NULL);
	tw_redis_batch_free(NULL);
}

STORED(fixture, many_are_added_and_each_has_its_status)
{
	enum { COUNT = 1500 };
	static struct tw_redis_task tasks[COUNT];
	static struct tw_redis_added each[COUNT];
	static char keys[COUNT][KEY_SIZE];

	add_task(fixture->redis, "task-700", TW_HOUR);
	for (int i = 0; i < COUNT; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){.key = keys[i],
						  .key_size = strlen(keys[i]),
						  .delay = TW_HOUR,
						  .mode = TW_REDIS_NEW};
	}
	tasks[900].url = "ftp://host/";
	tasks[901].key_size = 0;
	assert_int_equal(tw_redis_add(fixture->redis, tasks, COUNT, each), TW_EXISTS);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(each[i].status, i == 700   ? TW_EXISTS
						 : i == 900 ? TW_REDIS_BAD_DATA
						 : i == 901 ? TW_INVALID
							    : TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, COUNT - 2);
	/* The two that were refused can't be replaced. */
	tasks[900].url = NULL;
	tasks[901].key_size = strlen(keys[901]);
	for (int i = 0; i < COUNT; i++)
		tasks[i].mode = TW_REDIS_REPLACE;
	assert_int_equal(tw_redis_add(fixture->redis, tasks, COUNT, each), TW_NOT_FOUND);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(each[i].status, i == 900 || i == 901 ? TW_NOT_FOUND : TW_OK);
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, 0, NULL));
}

STORED(fixture, first_of_many_that_is_not_added_is_the_answer)
{
	const struct tw_redis_task tasks[] = {
		{.key = "there", .key_size = 5, .mode = TW_REDIS_NEW},
		{.key = "bad", .key_size = 3, .url = "ftp://host/"},
		{.key = "none", .key_size = 4, .mode = TW_REDIS_REPLACE},
	};
	struct tw_redis_error error;

	add_task(fixture->redis, "there", TW_HOUR);
	assert_int_equal(tw_redis_add(fixture->redis, tasks, 3, NULL), TW_EXISTS);
	tw_redis_last_error(fixture->redis, &error);
	assert_int_equal(error.status, TW_EXISTS);
	assert_string_equal(error.text, tw_status_text(TW_EXISTS));
	assert_int_equal(tw_redis_add(fixture->redis, tasks + 1, 2, NULL), TW_REDIS_BAD_DATA);
	tw_redis_last_error(fixture->redis, &error);
	assert_string_equal(error.text, "the callback's URL must begin with http:// or https://");
	assert_int_equal(tw_redis_add(fixture->redis, tasks + 2, 1, NULL), TW_NOT_FOUND);
}

STORED(fixture, each_task_that_is_added_is_counted)
{
	enum { MANY = 600 };
	static struct tw_redis_task tasks[MANY];
	static char keys[MANY][KEY_SIZE];
	const struct tw_redis_task recurring = {
		.key = "every", .key_size = 5, .delay = TW_HOUR, .every = TW_HOUR};
	struct tw_redis *redis = fixture->redis;

	assert_int_equal(stats_of(redis).added, 0);
	add_task(redis, "a", TW_HOUR);
	add_task(redis, "b", TW_HOUR);
	/* It replaces another. */
	add_task(redis, "a", 2 * TW_HOUR);
	assert_int_equal(stats_of(redis).added, 3);
	assert_int_equal(try_add(redis, "a", TW_HOUR, TW_REDIS_NEW), TW_EXISTS);
	assert_int_equal(try_add(redis, "c", TW_HOUR, TW_REDIS_REPLACE), TW_NOT_FOUND);
	assert_int_equal(cancel_task(redis, "b"), TW_OK);
	assert_ok(redis, move_task(redis, "a", TW_MINUTE));
	assert_int_equal(stats_of(redis).added, 3);
	add_one(redis, &recurring);
	assert_int_equal(cancel_task(redis, "every"), TW_OK);
	assert_int_equal(stats_of(redis).added, 4);
	for (int i = 0; i < MANY; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){.key = keys[i],
						  .key_size = strlen(keys[i]),
						  .delay = TW_HOUR,
						  .mode = TW_REDIS_NEW};
	}
	assert_ok(redis, tw_redis_add(redis, tasks, MANY / 2, NULL));
	assert_int_equal(stats_of(redis).added, 4 + MANY / 2);
	/* Half of them exist already. */
	assert_int_equal(tw_redis_add(redis, tasks, MANY, NULL), TW_EXISTS);
	assert_int_equal(stats_of(redis).added, 4 + MANY);
}

STORED(fixture, task_cancelled_150_s_ahead_leaves_nothing_behind)
{
	add_task(fixture->redis, "a", 150 * TW_SECOND);
	assert_int_equal(cancel_task(fixture->redis, "a"), TW_OK);
	/* Nothing is left that could run or expire. */
	assert_int_equal(redis_server_count_keys(&fixture->server, fixture->name_space), 0);
	assert_int_equal(find_task(fixture->redis, "a").status, TW_NOT_FOUND);
	assert_nothing_due(fixture->redis, "a");
}

STORED(fixture, cancel_and_move_of_an_unknown_task_report_it)
{
	assert_int_equal(cancel_task(fixture->redis, "nobody"), TW_NOT_FOUND);
	assert_int_equal(move_task(fixture->redis, "nobody", TW_SECOND), TW_NOT_FOUND);
	assert_int_equal(find_task(fixture->redis, "nobody").status, TW_NOT_FOUND);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(fixture, moved_task_is_due_sooner_or_later)
{
	int64_t now;

	add_task(fixture->redis, "sooner", TW_HOUR);
	assert_ok(fixture->redis, move_task(fixture->redis, "sooner", 0));
	await_claim(fixture->redis, "sooner", long_lease);
	add_task(fixture->redis, "later", 0);
	assert_ok(fixture->redis, move_task(fixture->redis, "later", TW_HOUR));
	now = redis_server_now(&fixture->server);
	assert_in_range(find_task(fixture->redis, "later").due_ms - now, 3590000, 3600001);
	assert_nothing_due(fixture->redis, "later");
	assert_ok(fixture->redis, tw_redis_move(fixture->redis, "later", 5, now + 500000, 0, &now));
	assert_int_equal(find_task(fixture->redis, "later").due_ms, now);
}

STORED(fixture, leased_task_is_neither_moved_nor_cancelled)
{
	struct tw_redis_batch *batch;

	batch = claim_new(fixture->redis, "a", long_lease);
	assert_int_equal(move_task(fixture->redis, "a", TW_SECOND), TW_RUNNING);
	assert_int_equal(cancel_task(fixture->redis, "a"), TW_RUNNING);
	assert_int_equal(find_task(fixture->redis, "a").state, TW_REDIS_LEASED);
	assert_true(find_task(fixture->redis, "a").token == only_job(batch)->token);
	ack_is(fixture->redis, batch, TW_OK);
}

STORED(fixture, task_whose_lease_has_ended_is_moved_and_its_old_run_is_stale)
{
	struct tw_redis_batch *batch;

	batch = claim_new(fixture->redis, "a", long_lease);
	end_lease(fixture, "a");
	assert_int_equal(move_task(fixture->redis, "a", TW_HOUR), TW_OK);
	ack_is(fixture->redis, batch, TW_REDIS_STALE);
	assert_int_equal(find_task(fixture->redis, "a").attempts, 1);
	assert_int_equal(cancel_task(fixture->redis, "a"), TW_OK);
}

STORED(fixture, task_on_lease_is_nobody_elses)
{
	struct tw_redis *other = client_open(&fixture->options);

	claim_new(fixture->redis, "a", long_lease);
	assert_nothing_due(other, "a");
}

STORED(fixture, ended_lease_gives_the_task_to_another_with_a_higher_token)
{
	struct tw_redis_batch *first;
	struct tw_redis_batch *second;
	enum tw_status each;

	first = claim_new(fixture->redis, "a", short_lease);
	second = await_claim(fixture->redis, "a", long_lease);
	assert_int_equal(only_job(second)->attempt, 2);
	assert_true(only_job(second)->token > only_job(first)->token);
	ack_is(fixture->redis, first, TW_REDIS_STALE);
	assert_ok(fixture->redis,
		  tw_redis_extend(fixture->redis, only_job(first), 1, long_lease, &each));
	assert_int_equal(each, TW_REDIS_STALE);
	assert_int_equal(fail_job(fixture->redis, first, 0, NULL), TW_REDIS_STALE);
	assert_int_equal(finish_job(fixture->redis, first, TW_REDIS_SNOOZE), TW_REDIS_STALE);
	ack_is(fixture->redis, second, TW_OK);
	ack_is(fixture->redis, second, TW_NOT_FOUND);
	ack_is(fixture->redis, first, TW_NOT_FOUND);
}

STORED(fixture, ended_lease_that_nobody_took_over_is_still_good)
{
	struct tw_redis_batch *batch;

	batch = claim_new(fixture->redis, "a", long_lease);
	end_lease(fixture, "a");
	ack_is(fixture->redis, batch, TW_OK);
}

STORED(fixture, extended_lease_ends_later)
{
	struct tw_redis_batch *batch;

	batch = claim_new(fixture->redis, "a", short_lease);
	assert_ok(fixture->redis,
		  tw_redis_extend(fixture->redis, only_job(batch), 1, long_lease, NULL));
	wait_for(2 * short_lease);
	assert_nothing_due(fixture->redis, "a");
	ack_is(fixture->redis, batch, TW_OK);
}

STORED(fixture, lease_may_be_made_to_end_sooner)
{
	struct tw_redis_batch *first;
	struct tw_redis_batch *second;

	first = claim_new(fixture->redis, "a", TW_HOUR);
	assert_ok(fixture->redis,
		  tw_redis_extend(fixture->redis, only_job(first), 1, short_lease, NULL));
	second = await_claim(fixture->redis, "a", long_lease);
	assert_int_equal(only_job(second)->attempt, 2);
}

STORED(fixture, jobs_of_several_shards_are_acknowledged_together)
{
	struct tw_redis_job jobs[20];
	struct tw_redis_batch *batches[4] = {0};
	enum tw_status each[20];
	size_t count = 0;

	add_tasks(fixture->redis, 20, 0, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_ok(fixture->redis,
			  tw_redis_claim(fixture->redis, i, 100, long_lease, &batches[i], NULL));
		for (size_t k = 0; k < batches[i]->count; k++)
			jobs[count++] = batches[i]->jobs[k];
	}
	assert_int_equal(count, 20);
	jobs[5].token++;
	assert_ok(fixture->redis,
		  tw_redis_finish(fixture->redis, jobs, count, TW_REDIS_DONE, NULL, each));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(each[i], i == 5 ? TW_REDIS_STALE : TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	for (unsigned i = 0; i < 4; i++)
		claim_end(batches[i]);
}

STORED(fixture, released_task_is_due_at_once_and_the_attempt_does_not_count)
{
	struct tw_redis_batch *first;
	struct tw_redis_batch *second;

	first = claim_new(fixture->redis, "a", long_lease);
	assert_int_equal(finish_job(fixture->redis, first, TW_REDIS_SNOOZE), TW_OK);
	assert_int_equal(find_task(fixture->redis, "a").attempts, 0);
	assert_int_equal(stats_of(fixture->redis).started, 0);
	second = await_claim(fixture->redis, "a", long_lease);
	assert_int_equal(only_job(second)->attempt, 1);
	assert_true(only_job(second)->token > only_job(first)->token);
}

static void add_with_attempts(struct fixture *fixture, const char *key, unsigned attempts)
{
	const struct tw_redis_task task = {.key = key,
					   .key_size = strlen(key),
					   .max_attempts = attempts,
					   .body = "body",
					   .body_size = 4};

	add_one(fixture->redis, &task);
}

static void fail_once(struct fixture *fixture, const char *key, tw_duration retry_in,
		      const char *reason)
{
	struct tw_redis_batch *batch = await_claim(fixture->redis, key, long_lease);

	assert_int_equal(fail_job(fixture->redis, batch, retry_in, reason), TW_OK);
}

STORED(fixture, failed_task_waits_and_is_dead_after_its_attempts)
{
	struct found found;
	int64_t now;

	add_with_attempts(fixture, "a", 3);
	fail_once(fixture, "a", TW_MINUTE, "first");
	now = redis_server_now(&fixture->server);
	found = find_task(fixture->redis, "a");
	assert_int_equal(found.state, TW_REDIS_WAITING);
	assert_int_equal(found.attempts, 1);
	assert_in_range(found.due_ms - now, 50000, 60001);
	assert_int_equal(stats_of(fixture->redis).started, 1);
	assert_ok(fixture->redis, move_task(fixture->redis, "a", 0));
	fail_once(fixture, "a", 0, "second");
	fail_once(fixture, "a", 0, "it's always: broken");
	assert_int_equal(find_task(fixture->redis, "a").status, TW_NOT_FOUND);
	found = find_dead(fixture->redis, "a");
	assert_int_equal(found.status, TW_OK);
	assert_int_equal(found.state, TW_REDIS_DEAD);
	assert_int_equal(found.attempts, 3);
	assert_string_equal(found.reason, "it's always: broken");
	assert_string_equal(found.body, "body");
	assert_int_equal(stats_of(fixture->redis).dead, 1);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	assert_nothing_due(fixture->redis, "a");
}

static int64_t server_microseconds(struct fixture *fixture)
{
	redisReply *reply = redis_server_ask(&fixture->server, "TIME");
	int64_t now = atoll(reply->element[0]->str) * 1000000 + atoll(reply->element[1]->str);

	freeReplyObject(reply);
	return now;
}

STORED(fixture, next_attempt_is_not_a_fraction_of_a_millisecond_early)
{
	add_with_attempts(fixture, "a", 100);
	for (int i = 0; i < 30; i++) {
		struct tw_redis_batch *batch = await_claim(fixture->redis, "a", long_lease);
		int64_t before = server_microseconds(fixture);

		assert_int_equal(fail_job(fixture->redis, batch, 5 * TW_MILLISECOND, NULL), TW_OK);
		assert_in_range(find_task(fixture->redis, "a").due_ms * 1000 - before, 5000,
				5 * 1000 * 1000);
	}
}

STORED(fixture, added_and_moved_tasks_are_not_a_fraction_of_a_millisecond_early)
{
	const struct tw_redis_task task = {
		.key = "a", .key_size = 1, .delay = 5 * TW_MILLISECOND + TW_MICROSECOND};

	for (int i = 0; i < 60; i++) {
		int64_t before = server_microseconds(fixture);
		int64_t due = 0;

		if (i % 2 == 0)
			due = add_one(fixture->redis, &task);
		else
			assert_ok(fixture->redis,
				  tw_redis_move(fixture->redis, "a", 1, 0, task.delay, &due));
		assert_in_range(due * 1000 - before, 5001, 5 * 1000 * 1000);
	}
}

STORED(fixture, task_that_fails_for_good_is_dead_at_once)
{
	char reason[400];

	memset(reason, 'r', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	add_with_attempts(fixture, "a", 3);
	fail_once(fixture, "a", TW_FOREVER, reason);
	assert_int_equal(strlen(find_dead(fixture->redis, "a").reason), TW_REDIS_REASON_MAX);
	assert_int_equal(find_dead(fixture->redis, "a").attempts, 1);
}

STORED(fixture, dead_letter_is_retried_once_or_dropped)
{
	struct tw_redis_batch *batch;

	add_with_attempts(fixture, "a", 1);
	fail_once(fixture, "a", 0, "no");
	assert_ok(fixture->redis, tw_redis_retry(fixture->redis, "a", 1));
	assert_int_equal(tw_redis_retry(fixture->redis, "a", 1), TW_NOT_FOUND);
	batch = await_claim(fixture->redis, "a", long_lease);
	assert_int_equal(only_job(batch)->attempt, 1);
	assert_memory_equal(only_job(batch)->body, "body", 4);
	end_lease(fixture, "a");
	/* Its only attempt has ended without a reply. */
	assert_nothing_due(fixture->redis, "a");
	assert_int_equal(find_dead(fixture->redis, "a").status, TW_OK);
	assert_true(*find_dead(fixture->redis, "a").reason);
	assert_ok(fixture->redis, tw_redis_drop(fixture->redis, "a", 1));
	assert_int_equal(tw_redis_drop(fixture->redis, "a", 1), TW_NOT_FOUND);
	assert_int_equal(redis_server_count_keys(&fixture->server, fixture->name_space), 0);
}

STORED(fixture, dead_letter_is_not_retried_over_a_new_task)
{
	add_with_attempts(fixture, "a", 1);
	fail_once(fixture, "a", 0, "no");
	add_task(fixture->redis, "a", TW_HOUR);
	assert_int_equal(tw_redis_retry(fixture->redis, "a", 1), TW_EXISTS);
	assert_int_equal(find_dead(fixture->redis, "a").status, TW_OK);
	assert_int_equal(find_task(fixture->redis, "a").attempts, 0);
}

struct listing {
	size_t count;
	size_t limit;
	int64_t last_due;
	unsigned last_shard;
	bool sorted;
	char seen[1000];
};

static bool list_one(void *context, const struct tw_redis_info *info)
{
	struct listing *listing = context;
	unsigned number = (unsigned)strtoul((const char *)info->task.key + 5, NULL, 10);

	if (listing->count && info->shard == listing->last_shard &&
	    info->due_ms < listing->last_due)
		listing->sorted = false;
	listing->last_due = info->due_ms;
	listing->last_shard = info->shard;
	if (number < sizeof(listing->seen))
		listing->seen[number]++;
	return ++listing->count != listing->limit;
}

STORED(fixture, every_task_is_listed_once_by_due_time)
{
	struct listing listing = {.sorted = true};
	char key[KEY_SIZE];

	for (int i = 0; i < 1000; i++) {
		number_key(key, i);
		/* Many are due in the same millisecond. */
		add_task(fixture->redis, key, TW_HOUR + i % 3 * TW_MINUTE);
	}
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_TASKS, list_one, &listing));
	assert_int_equal(listing.count, 1000);
	assert_true(listing.sorted);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(listing.seen[i], 1);
	listing = (struct listing){.limit = 7};
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_TASKS, list_one, &listing));
	assert_int_equal(listing.count, 7);
}

static bool cancel_one(void *context, const struct tw_redis_info *info)
{
	struct fixture *fixture = context;

	return tw_redis_cancel(fixture->redis, info->task.key, info->task.key_size,
			       TW_REDIS_OCCURRENCE) == TW_OK;
}

STORED(fixture, listing_may_call_the_same_redis)
{
	add_tasks(fixture->redis, 50, TW_HOUR, TW_MILLISECOND);
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_TASKS, cancel_one, fixture));
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(fixture, stats_count_what_there_is)
{
	struct tw_redis_stats stats;

	stats = stats_of(fixture->redis);
	assert_int_equal(stats.tasks + stats.due + stats.started + stats.dead, 0);
	assert_int_equal(stats.next_ms, 0);
	add_task(fixture->redis, "later", TW_HOUR);
	claim_new(fixture->redis, "running", long_lease);
	add_task(fixture->redis, "due", 0);
	stats = stats_of(fixture->redis);
	assert_int_equal(stats.tasks, 3);
	assert_int_equal(stats.due, 1);
	assert_int_equal(stats.started, 1);
	assert_in_range(stats.now_ms - stats.next_ms, 0, 5000);
}

STORED(fixture, default_is_the_number_that_the_namespace_has_or_one)
{
	struct tw_redis_options options = fixture->options;
	struct tw_redis *others[3];
	char name[40];

	options.shards = 0;
	others[0] = client_open(&options);
	assert_int_equal(tw_redis_shard_count(others[0]), 4);
	add_task(others[0], "a", TW_HOUR);
	assert_int_equal(find_task(fixture->redis, "a").status, TW_OK);
	snprintf(name, sizeof(name), "%s-new", fixture->name_space);
	options.name_space = name;
	others[1] = client_open(&options);
	assert_int_equal(tw_redis_shard_count(others[1]), 1);
	assert_ok(others[1],
		  tw_redis_open_beside(others[1], fixture->name_space, 0, &others[2], NULL));
	assert_int_equal(tw_redis_shard_count(others[2]), 4);
	for (int i = 0; i < 3; i++)
		client_close(others[i]);
}

STORED(fixture, scripts_that_redis_forgets_are_sent_again)
{
	struct tw_redis_batch *batch;

	for (int i = 0; i < 3; i++) {
		redis_server_number(&fixture->server, "SCRIPT FLUSH");
		add_task(fixture->redis, "a", 0);
		redis_server_number(&fixture->server, "SCRIPT FLUSH");
		batch = await_claim(fixture->redis, "a", long_lease);
		redis_server_number(&fixture->server, "SCRIPT FLUSH");
		ack_is(fixture->redis, batch, TW_OK);
	}
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

enum { MODEL_KEYS = 40 };

/* The model knows of a key whether a task has it, and whether we have it on lease. */
struct modelled {
	bool there;
	bool leased;
	struct tw_redis_batch *batch;
};

static void model_step(struct fixture *fixture, struct modelled *modelled, const char *key,
		       uint64_t choice)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_batch *batch;
	enum tw_status status;

	switch (choice) {
	case 0:
		status = try_add(redis, key, TW_HOUR, TW_REDIS_NEW);
		assert_int_equal(status, modelled->there ? TW_EXISTS : TW_OK);
		modelled->there = true;
		break;
	case 1:
		status = try_add(redis, key, TW_HOUR, TW_REDIS_REPLACE);
		assert_int_equal(status, modelled->there ? TW_OK : TW_NOT_FOUND);
		modelled->leased &= status != TW_OK;
		break;
	case 2:
		add_task(redis, key, TW_HOUR);
		modelled->there = true;
		modelled->leased = false;
		break;
	case 3:
		status = cancel_task(redis, key);
		assert_int_equal(status, modelled->leased  ? TW_RUNNING
					 : modelled->there ? TW_OK
							   : TW_NOT_FOUND);
		modelled->there &= status != TW_OK;
		break;
	case 4:
		/* A lease that ended after the last attempt would make the task a dead letter
		 * instead. */
		if (!modelled->there ||
		    (modelled->leased &&
		     only_job(modelled->batch)->attempt == only_job(modelled->batch)->max_attempts))
			break;
		/* It is due, and claimed again; the previous run loses it. */
		redis_server_set_due(&fixture->server, redis, fixture->name_space, key, -1000);
		batch = await_claim(redis, key, long_lease);
		if (modelled->batch)
			assert_true(only_job(batch)->token > only_job(modelled->batch)->token);
		claim_end(modelled->batch);
		modelled->batch = batch;
		modelled->leased = true;
		break;
	default:
		if (!modelled->batch)
			break;
		assert_ok(redis, tw_redis_finish(redis, only_job(modelled->batch), 1, TW_REDIS_DONE,
						 NULL, &status));
		assert_int_equal(status, modelled->leased  ? TW_OK
					 : modelled->there ? TW_REDIS_STALE
							   : TW_NOT_FOUND);
		modelled->there &= status != TW_OK;
		modelled->leased = false;
		break;
	}
}

STORED(fixture, random_calls_answer_as_the_model_does)
{
	struct modelled keys[MODEL_KEYS] = {0};
	struct random random = random_from(seed_choose(), 0);
	char key[KEY_SIZE];
	size_t left = 0;

	for (int i = 0; i < TEST_SHARE_OF(6000); i++) {
		uint64_t number = random_below(&random, MODEL_KEYS);

		snprintf(key, sizeof(key), "key-%d", (int)number);
		model_step(fixture, &keys[number], key, random_below(&random, 6));
	}
	for (int i = 0; i < MODEL_KEYS; i++) {
		snprintf(key, sizeof(key), "key-%d", i);
		assert_int_equal(find_task(fixture->redis, key).status,
				 keys[i].there ? TW_OK : TW_NOT_FOUND);
		left += keys[i].there;
		claim_end(keys[i].batch);
	}
	assert_int_equal(stats_of(fixture->redis).tasks, left);
}

static bool grace_each(void *context, const struct tw_redis_info *info)
{
	*(tw_duration *)context = info->task.grace;
	return false;
}

STORED(fixture, task_that_would_begin_too_late_is_skipped)
{
	struct tw_redis_task task = {.key = "a", .key_size = 1, .grace = 2 * TW_SECOND - 1};
	struct tw_redis_batch *batch;
	tw_duration grace = 0;

	add_one(fixture->redis, &task);
	assert_ok(fixture->redis, tw_redis_get(fixture->redis, "a", 1, grace_each, &grace));
	assert_int_equal(grace, 2 * TW_SECOND);
	make_overdue(fixture, "a", 3 * TW_SECOND);
	assert_nothing_due(fixture->redis, "a");
	assert_int_equal(find_task(fixture->redis, "a").status, TW_NOT_FOUND);
	assert_int_equal(redis_server_count_keys(&fixture->server, fixture->name_space), 0);
	task.grace = TW_HOUR;
	add_one(fixture->redis, &task);
	make_overdue(fixture, "a", 59 * TW_MINUTE);
	batch = claim_for(fixture->redis, "a", TW_MINUTE);
	/* The grace does not limit a retry: the task began in time. */
	assert_int_equal(fail_job(fixture->redis, batch, TW_HOUR, ""), TW_OK);
	make_overdue(fixture, "a", 2 * TW_HOUR);
	batch = claim_for(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(only_job(batch)->attempt, 2);
}

STORED(fixture, longest_grace_and_most_attempts_are_taken)
{
	const struct tw_redis_task task = {
		.key = "a", .key_size = 1, .grace = TW_REDIS_DELAY_MAX, .max_attempts = 1000000};
	struct tw_redis_batch *batch;

	add_one(fixture->redis, &task);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(only_job(batch)->max_attempts, 1000000);
}

FIXTURE_FILE
