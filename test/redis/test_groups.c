/* SPDX-License-Identifier: MIT */
/*
 * This tests groups through the calls: a group's tasks keep their data, and claims take turns.
 * test_turns.c tests the turns themselves.
 */
#include "support/fixture.h"

#include "support/http_server.h"
#include "support/runs.h"

static const tw_duration long_lease = TW_HOUR;
static const tw_duration short_lease = 20 * TW_MILLISECOND;

static void add_to(struct tw_redis *redis, const char *group, const char *key, tw_duration delay)
{
	const struct tw_redis_task task = {
		.key = key, .key_size = strlen(key), .delay = delay, .group = group};

	add_one(redis, &task);
}

/* Adds "GROUP-0" and so on, due now. */
static void add_many_to(struct tw_redis *redis, const char *group, int count)
{
	for (int i = 0; i < count; i++) {
		char key[64];

		snprintf(key, sizeof(key), "%s-%d", group, i);
		add_to(redis, group, key, 0);
	}
}

static struct tw_redis_batch *claim(struct tw_redis *redis, size_t limit, tw_duration lease)
{
	struct tw_redis_batch *batch = NULL;

	assert_ok(redis, tw_redis_claim(redis, 0, limit, lease, &batch, NULL));
	return batch;
}

/* Returns how many tasks of the batch are in that group. */
static size_t count_of(const struct tw_redis_batch *batch, const char *group)
{
	const struct tw_redis_job *jobs = batch->jobs;
	size_t count = 0;

	for (size_t i = 0; i < batch->count; i++)
		count += jobs[i].group ? group && !strcmp(jobs[i].group, group) : !group;
	return count;
}

static void assert_claimed(struct tw_redis *redis, size_t limit, const char *group, size_t count)
{
	struct tw_redis_batch *batch = claim(redis, limit, long_lease);

	assert_int_equal(count_of(batch, group), count);
	claim_end(batch);
}

STORED(one_shard, flood_holds_up_no_other_group)
{
	struct tw_redis_batch *batch;

	add_many_to(fixture->redis, "flood", 300);
	assert_claimed(fixture->redis, 10, "flood", 10);
	add_to(fixture->redis, "trickle", "it", 0);
	add_to(fixture->redis, NULL, "own", 0);
	batch = claim(fixture->redis, 3, long_lease);
	assert_int_equal(batch->count, 3);
	assert_int_equal(count_of(batch, "flood"), 1);
	assert_int_equal(count_of(batch, "trickle"), 1);
	assert_int_equal(count_of(batch, NULL), 1);
	claim_end(batch);
	assert_claimed(fixture->redis, 1000, "flood", 289);
}

STORED(one_shard, weights_are_shares_where_claims_end_within_a_turn)
{
	static const char *const groups[] = {"a", "b", "c"};
	size_t taken[3] = {0};

	for (int i = 0; i < 3; i++) {
		const struct tw_redis_limits limits = {.weight = 1u << i};

		assert_ok(fixture->redis, tw_redis_set_limits(fixture->redis, groups[i], &limits));
		add_many_to(fixture->redis, groups[i], 20 << i);
	}
	for (size_t all = 4; all <= 140; all += 4) {
		struct tw_redis_batch *batch = claim(fixture->redis, 4, long_lease);

		for (int i = 0; i < 3; i++) {
			taken[i] += count_of(batch, groups[i]);
			if (all % 7 == 0)
				assert_int_equal(taken[i], (all / 7) << i);
		}
		claim_end(batch);
	}
}

struct seen {
	size_t count;
	char group[64];
	int64_t due_ms;
};

static bool see(void *context, const struct tw_redis_info *info)
{
	struct seen *seen = context;

	seen->count++;
	snprintf(seen->group, sizeof(seen->group), "%s", info->task.group ? info->task.group : "");
	seen->due_ms = info->due_ms;
	return true;
}

static struct seen get(struct tw_redis *redis, const char *key)
{
	struct seen seen = {0};

	assert_ok(redis, tw_redis_get(redis, key, strlen(key), see, &seen));
	return seen;
}

STORED(one_shard, task_of_a_group_is_listed_moved_and_taken_out)
{
	int64_t now = redis_server_now(&fixture->server);
	struct seen seen = {0};
	int64_t due = 0;

	add_to(fixture->redis, "g", "a", TW_HOUR);
	assert_string_equal(get(fixture->redis, "a").group, "g");
	assert_in_range(get(fixture->redis, "a").due_ms - now, 3600000, 3605000);
	assert_in_range(stats_of(fixture->redis).next_ms - now, 3600000, 3605000);
	assert_int_equal(stats_of(fixture->redis).due, 0);
	assert_ok(fixture->redis, tw_redis_move(fixture->redis, "a", 1, 0, 2 * TW_HOUR, &due));
	assert_int_equal(get(fixture->redis, "a").due_ms, due);
	assert_ok(fixture->redis, tw_redis_each(fixture->redis, TW_REDIS_TASKS, see, &seen));
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.due_ms, due);
	assert_ok(fixture->redis, move_task(fixture->redis, "a", 0));
	assert_int_equal(stats_of(fixture->redis).due, 1);
	assert_ok(fixture->redis, cancel_task(fixture->redis, "a"));
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	assert_claimed(fixture->redis, 10, "g", 0);
}

STORED(one_shard, task_that_was_replaced_runs_once_and_when_it_says)
{
	/* Tasks leave groups, enter them and change them. */
	add_to(fixture->redis, "g", "a", 0);
	add_to(fixture->redis, NULL, "a", TW_HOUR);
	assert_claimed(fixture->redis, 10, NULL, 0);
	add_to(fixture->redis, NULL, "b", TW_HOUR);
	add_to(fixture->redis, "g", "b", 0);
	assert_claimed(fixture->redis, 10, "g", 1);
	add_to(fixture->redis, "g", "c", 0);
	add_to(fixture->redis, "h", "c", 0);
	assert_claimed(fixture->redis, 10, "h", 1);
	assert_claimed(fixture->redis, 10, "g", 0);
}

STORED(one_shard, ended_lease_and_retry_stay_in_the_group)
{
	struct tw_redis_batch *batch;

	add_to(fixture->redis, "g", "a", 0);
	claim_end(claim(fixture->redis, 10, short_lease));
	wait_for(2 * short_lease);
	/* This claim returns it to its group. */
	assert_claimed(fixture->redis, 10, "g", 0);
	batch = claim(fixture->redis, 10, long_lease);
	assert_int_equal(count_of(batch, "g"), 1);
	assert_int_equal(only_job(batch)->attempt, 2);
	/* A failed task waits behind the others' tasks, as any of its group. */
	add_many_to(fixture->redis, "g", 5);
	assert_claimed(fixture->redis, 1, "g", 1);
	add_to(fixture->redis, "h", "b", 0);
	assert_int_equal(fail_job(fixture->redis, batch, 0, "it failed"), TW_OK);
	claim_end(batch);
	assert_claimed(fixture->redis, 2, "h", 1);
	assert_claimed(fixture->redis, 10, "g", 4);
}

STORED(one_shard, dead_letter_comes_back_into_its_group)
{
	struct tw_redis_batch *batch;

	add_to(fixture->redis, "g", "a", 0);
	batch = claim(fixture->redis, 1, long_lease);
	assert_int_equal(fail_job(fixture->redis, batch, TW_FOREVER, "no"), TW_OK);
	claim_end(batch);
	assert_ok(fixture->redis, tw_redis_retry(fixture->redis, "a", 1));
	assert_claimed(fixture->redis, 1, "g", 1);
}

STORED(one_shard, occurrences_stay_in_the_group)
{
	const struct tw_redis_task task = {
		.key = "a", .key_size = 1, .every = TW_HOUR, .group = "g/u"};
	struct tw_redis_batch *batch;

	add_one(fixture->redis, &task);
	batch = claim(fixture->redis, 1, long_lease);
	assert_int_equal(count_of(batch, "g/u"), 1);
	assert_int_equal(finish_job(fixture->redis, batch, TW_REDIS_DONE), TW_OK);
	claim_end(batch);
	assert_ok(fixture->redis, move_task(fixture->redis, "a", 0));
	assert_claimed(fixture->redis, 1, "g/u", 1);
}

STORED(one_shard, occurrence_after_one_that_was_skipped_is_claimed)
{
	int64_t now = redis_server_now(&fixture->server);
	const struct tw_redis_info info = {.task = {.key = "a",
						    .key_size = 1,
						    .every = 2 * TW_SECOND,
						    .grace = TW_SECOND,
						    .group = "g",
						    .at_ms = now - 61000},
					   .due_ms = now - 61000};
	struct tw_redis_batch *batch;

	assert_ok(fixture->redis, tw_redis_restore(fixture->redis, &info, 1, NULL));
	batch = claim(fixture->redis, 10, long_lease);
	while (batch->count == 0) {
		assert_true(redis_server_now(&fixture->server) < now + 30000);
		claim_end(batch);
		wait_for(20 * TW_MILLISECOND);
		batch = claim(fixture->redis, 10, long_lease);
	}
	assert_int_equal(count_of(batch, "g"), 1);
	claim_end(batch);
}

STORED(one_shard, turn_without_a_task_is_no_reason_to_look_at_once)
{
	struct tw_redis_batch *batch;
	tw_duration next = 0;

	add_to(fixture->redis, "g", "a", TW_HOUR);
	assert_ok(fixture->redis, cancel_task(fixture->redis, "a"));
	assert_ok(fixture->redis, tw_redis_claim(fixture->redis, 0, 10, long_lease, &batch, &next));
	assert_int_equal(batch->count, 0);
	claim_end(batch);
	assert_true(next > TW_MINUTE);
}

STORED(one_shard, group_is_any_text_without_control_characters)
{
	static const char *const bad[] = {"a\nb", "\n", "\xff"};
	static const char *const good[] = {"/", "//", "a/", "/a", "a/b/c", "a*"};
	struct tw_redis_task task = {.key = "a", .key_size = 1, .group = ""};
	char longest[TW_REDIS_GROUP_MAX + 2];

	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_INVALID);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		task.group = bad[i];
		assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_REDIS_BAD_DATA);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		task.group = good[i];
		add_one(fixture->redis, &task);
		assert_claimed(fixture->redis, 1, good[i], 1);
	}
	memset(longest, 'g', sizeof(longest));
	longest[TW_REDIS_GROUP_MAX + 1] = '\0';
	task.group = longest;
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_INVALID);
	longest[TW_REDIS_GROUP_MAX] = '\0';
	add_one(fixture->redis, &task);
	assert_claimed(fixture->redis, 1, longest, 1);
}

STORED(one_shard, many_are_added_in_their_groups)
{
	struct tw_redis_task tasks[60];
	char keys[60][8];

	for (int i = 0; i < 60; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%d", i % 50);
		tasks[i] = (struct tw_redis_task){.key = keys[i],
						  .key_size = strlen(keys[i]),
						  .group = i % 3 == 0   ? NULL
							   : i % 3 == 1 ? "one"
									: "two"};
	}
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, 60, NULL));
	/* The last ten have replaced the first ten. */
	assert_int_equal(stats_of(fixture->redis).tasks, 50);
	for (int i = 0; i < 60; i++)
		if (i >= 10)
			assert_string_equal(get(fixture->redis, keys[i]).group,
					    tasks[i].group ? tasks[i].group : "");
}

/* One call of the script adds them, and writes the first before it reads the second. */
STORED(one_shard, last_of_those_with_one_key_that_are_added_together_stays)
{
	struct tw_redis_task tasks[] = {
		{.key = "a", .key_size = 1, .group = "g"},
		{.key = "a", .key_size = 1, .group = "h", .delay = TW_HOUR},
		{.key = "a", .key_size = 1, .group = "g", .mode = TW_REDIS_NEW},
		{.key = "a", .key_size = 1, .group = "i", .mode = TW_REDIS_REPLACE},
		{.key = "b", .key_size = 1, .group = "i", .mode = TW_REDIS_REPLACE},
	};
	struct tw_redis_added each[5];

	assert_int_equal(tw_redis_add(fixture->redis, tasks, 5, each), TW_EXISTS);
	assert_int_equal(each[1].status, TW_OK);
	assert_int_equal(each[2].status, TW_EXISTS);
	assert_int_equal(each[3].status, TW_OK);
	assert_int_equal(each[4].status, TW_NOT_FOUND);
	assert_claimed(fixture->redis, 10, "i", 1);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
}

STORED(one_shard, name_of_a_group_may_hold_what_json_escapes)
{
	static const char *const names[] = {"a\"b", "\\", "\"group\":\"x"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		add_to(fixture->redis, names[i], "k", TW_HOUR);
		assert_ok(fixture->redis, move_task(fixture->redis, "k", 0));
		assert_claimed(fixture->redis, 10, names[i], 1);
	}
}

STORED(one_shard, tasks_of_a_group_cost_few_commands)
{
	enum { COUNT = 100 };
	struct tw_redis_task tasks[COUNT];
	char keys[COUNT][KEY_SIZE];
	int64_t before =
		redis_server_figure(&fixture->server, "INFO stats", "total_commands_processed:");

	for (int i = 0; i < COUNT; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){
			.key = keys[i], .key_size = strlen(keys[i]), .group = "g"};
	}
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, COUNT, NULL));
	/* The script asks for each key whether it has a task. */
	assert_in_range(
		redis_server_figure(&fixture->server, "INFO stats", "total_commands_processed:") -
			before,
		COUNT, COUNT + 25);
	before = redis_server_figure(&fixture->server, "INFO stats", "total_commands_processed:");
	assert_claimed(fixture->redis, COUNT, "g", COUNT);
	assert_in_range(
		redis_server_figure(&fixture->server, "INFO stats", "total_commands_processed:") -
			before,
		10, 40);
}

STORED(fixture, worker_runs_groups_and_callbacks_name_them)
{
	struct http_request request;
	struct http_server http;
	struct runs runs;
	struct tw_redis_worker_options options = {0};
	struct tw_redis_worker *worker;
	char url[64];
	struct tw_redis_task task = {
		.key = "call", .key_size = 4, .url = url, .group = "tenant/us\xc3\xa9r"};

	http_server_start(&http, NULL, NULL);
	runs_init(&runs, 100);
	runs_attach(&runs, &options);
	worker = worker_start(&fixture->options, &options);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", http.port);
	add_one(fixture->redis, &task);
	add_many_to(fixture->redis, "g", 20);
	WAIT_UNTIL(ends_count(&runs) == 21);
	assert_true(http_server_request(&http, "call", 0, &request));
	assert_non_null(strstr(request.headers, "Tw-Group: tenant/us%C3%A9r\r\n"));
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	runs_free(&runs);
	http_server_stop(&http);
}

FIXTURE_FILE
