/* SPDX-License-Identifier: MIT */
/*
 * This tests groups through the calls: a group's tasks keep their data, and claims take turns.
 * test_turns.c tests the turns themselves.
 */
#include "support/steps.h"

#include "support/http_server.h"
#include "support/runs.h"

STEPS(task_of_a_group_is_listed_moved_and_taken_out,
      "add a in 1h group g = 1h; get a group due = g 1h; stats next due = 1h 0;"
      "move a in 2h = 2h; get a due = 2h; list = a; move a = 0; stats due = 1; cancel a;"
      "stats tasks = 0; claim = none")
STEPS(task_that_leaves_enters_or_changes_its_group_runs_once_and_when_it_says,
      "add a group g; add a in 1h; claim = none; add b in 1h; add b group g; claim = b#1@0;"
      "add c group g; add c group h; get c group = h; claim = c#1@0; claim = none")
STEPS(ended_lease_and_retry_stay_in_the_group,
      "add a group g; claim lease 1s = a#1; pass 1s; claim = a#2;"
      "add g1 group g , g2 group g , g3 group g; pass 1ms; claim most 1 = g1; pass 1ms;"
      "add b group h; retry a why no; pass 1ms; claim most 2 = g2#1 b#1; pass 1ms;"
      "claim = g3#1 a#3")
STEPS(dead_letter_comes_back_into_its_group,
      "add a group g; claim = a; kill a why no; revive a; get a group = g; claim = a#1")
STEPS(occurrences_stay_in_the_group,
      "add a every 1h group g/u; claim = a; done a; get a group due = g/u 1h; move a = 0;"
      "claim = a#1")
STEPS(occurrence_after_one_that_was_skipped_is_claimed,
      "restore a every 2s grace 1s group g due -61s at -61s; claim = none; pass 1s;"
      "claim = any; claim = a#1@1s")
STEPS(grace_of_a_task_that_is_put_off_is_from_its_own_due_time,
      "add a grace 5s , b grace 5s , c grace 5s group g; claim = any;"
      "put_off a 3s; put_off b 3s; put_off c 6s; pass 3s; claim = a b;"
      "put_off a 2s; snooze b in 2s; pass 4s; claim = b; get a = NOT_FOUND; get c = NOT_FOUND")
STEPS(grace_of_an_occurrence_that_is_put_off_is_from_its_own_due_time,
      "add a every 1h grace 5s at 0s; claim = a; put_off a 4s; pass 4s; claim = a; put_off a 2s;"
      "pass 2s; claim = none; get a due = 1h; move a in 2h; pass 2h; claim = a; snooze a in 20m;"
      "pass 20m; claim = a; put_off a 6s; pass 6s; claim = none; get a due = 3h")
STEPS(turn_without_a_task_is_no_reason_to_look_at_once,
      "add a in 1h group g; cancel a; claim = none; next = 1h")
STEPS(many_are_added_in_their_groups,
      "add a , b group one , c group two , a group two = 0 0 0 0; stats tasks = 3;"
      "get a group = two; get b group = one; get c group = two")
STEPS(last_of_those_with_one_key_that_are_added_together_stays,
      "add a group g , a in 1h group h , a group g mode new , a group i mode replace ,"
      " b group i mode replace = 0 1h EXISTS 0 NOT_FOUND; claim = a#1; get a group = i;"
      "stats tasks = 1")
STEPS(name_of_a_group_may_hold_any_text,
      "add a in 1h group 'a\"b'; move a = 0; claim = a; get a group = a\"b;"
      "add b in 1h group \\; move b = 0; claim = b; get b group = \\;"
      "add c in 1h group '\"group\":\"x'; move c = 0; claim = c; get c group = \"group\":\"x")

/* ---- Limits of a group, and of the namespace, which is the group "" ---- */

#define PLACE_OF(limited, group)                                                               \
	"limits " limited " running 1; add it" group "; claim lease 1s = it; add it" group ";" \
	"claim = none; pass 1s; claim = it#1; done it; add it" group "; claim = it;"           \
	"add it" group "; claim = none; done it = STALE; claim = it#1; done it"
STEPS(place_in_a_group_is_free_when_its_run_is_over, PLACE_OF("a", " group a"))
STEPS(place_in_the_namespace_is_free_when_its_run_is_over, PLACE_OF("''", ""))

#define LIFTED(limited, group)                                                               \
	"limits " limited " rate 1/1s; add x" group " , y" group " , z" group "; claim = x;" \
	"claim = none; pass 1s; claim = y; claim = none; limits " limited "; claim = z"
STEPS(limits_of_a_group_that_are_lifted_hold_up_nothing, LIFTED("a", " group a"))
STEPS(limits_of_the_namespace_that_are_lifted_hold_up_nothing, LIFTED("''", ""))

/* Half the time of another task is allowed for late claims. Where there was a group, the key stays
 * that has the turns. */
#define RATE_OF(limited, group, left)                                                             \
	"limits " limited " rate 5/500ms; add u" group " , v" group " , w" group " , x" group ";" \
	"claim = u; next = 50ms; pass 49ms; claim = none; pass 1ms; claim = v; next = 100ms;"     \
	"pass 99ms; claim = none; pass 1ms; claim = w; pass 100ms; claim = x;"                    \
	"done u; done v; done w; done x; pass 1m; limits " limited "; claim = none; keys = " left
STEPS(rate_of_a_group_is_what_begins_in_a_time, RATE_OF("a", " group a", "1"))
STEPS(rate_of_the_namespace_is_what_begins_in_a_time, RATE_OF("''", "", "0"))
STEPS(tenth_of_a_fast_rate_may_begin_at_once,
      "limits a rate 40/1s; add u group a , v group a , w group a , x group a , y group a;"
      "claim = u v w x; next = 25ms; pass 25ms; claim = y")

STEPS(default_limits_each_group_without_limits,
      "limits * running 1; limits own running 2; add a1 group a , a2 group a , b1 group b ,"
      " b2 group b , o1 group own , o2 group own , o3 group own , x , y;"
      "claim = x a1 b1 o1 y o2; claim = none; done a1; done o1; claim = a2 o3")

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
	struct tw_redis_batch *batch = claim(redis, limit, TW_HOUR);

	assert_int_equal(count_of(batch, group), count);
	claim_end(batch);
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

STORED(one_shard, tasks_of_a_group_cost_few_commands)
{
	enum { COUNT = 100 };
	struct tw_redis_task tasks[COUNT];
	char keys[COUNT][KEY_SIZE];
	struct tw_redis_batch *batch;
	int64_t before =
		redis_server_figure(&fixture->server, "INFO stats", "total_commands_processed:");

	for (int i = 0; i < COUNT; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){.key = keys[i],
						  .key_size = strlen(keys[i]),
						  .body = keys[i],
						  .body_size = strlen(keys[i]),
						  .group = "g"};
	}
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, COUNT, NULL));
	/* The script asks for each key whether it has a task. */
	assert_in_range(
		redis_server_figure(&fixture->server, "INFO stats", "total_commands_processed:") -
			before,
		COUNT, COUNT + 25);
	before = redis_server_figure(&fixture->server, "INFO stats", "total_commands_processed:");
	batch = claim(fixture->redis, COUNT, TW_HOUR);
	assert_in_range(
		redis_server_figure(&fixture->server, "INFO stats", "total_commands_processed:") -
			before,
		10, 40);
	assert_int_equal(batch->count, COUNT);
	claim_end(batch);
}

STORED(fixture, worker_runs_groups_and_callbacks_name_them)
{
	struct http_request request;
	struct http_server http;
	struct tw_redis_worker *worker;
	char url[64];
	struct tw_redis_task task = {
		.key = "call", .key_size = 4, .url = url, .group = "tenant/us\xc3\xa9r"};

	http_server_start(&http, NULL, NULL);
	worker = WORK(fixture);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", http.port);
	add_one(fixture->redis, &task);
	add_to_group(fixture->redis, "g", 20, 0, 0);
	WAIT_UNTIL(ends_count() == 21);
	assert_true(http_server_request(&http, "call", 0, &request));
	assert_non_null(strstr(request.headers, "Tw-Group: tenant/us%C3%A9r\r\n"));
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	http_server_stop(&http);
}

CLOCKED_FILE
