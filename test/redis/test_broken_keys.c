/* SPDX-License-Identifier: MIT */
/* Another program has written to our keys. A broken task is a dead letter, and a broken shard is an
 * error; the others work as before. */
#include "support/fixture.h"

#include "support/runs.h"

enum { TASKS = 40 };

STORED(fixture, broken_task_is_a_dead_letter)
{
	struct tw_redis_worker *worker;

	add_task(fixture->redis, "a", 200 * TW_MILLISECOND);
	redis_server_number(&fixture->server, "HSET {tw/%s/%u}body a nothing", fixture->name_space,
			    shard_of(fixture->redis, "a"));
	worker = WORK(fixture);
	WAIT_UNTIL(ends_count() == 1);
	worker_stop(worker);
	assert_int_equal(runs_count(), 0);
	assert_string_equal(find_dead(fixture->redis, "a").reason,
			    "the task's record can't be read");
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(fixture, worker_runs_the_tasks_of_other_shards)
{
	struct tw_redis_worker *worker;
	struct tw_redis_error last;
	struct tw_redis_stats stats;
	unsigned broken;
	size_t others = 0;
	char shard[32];
	char name[64];

	add_tasks(fixture->redis, TASKS, 500 * TW_MILLISECOND, 0);
	broken = shard_of(fixture->redis, "task-0");
	for (int i = 0; i < TASKS; i++) {
		char key[KEY_SIZE];

		number_key(key, i);
		others += shard_of(fixture->redis, key) != broken;
	}
	assert_in_range(others, 1, TASKS - 1);
	snprintf(name, sizeof(name), "{tw/%s/%u}due", fixture->name_space, broken);
	redis_server_number(&fixture->server, "SET %s broken", name);
	assert_int_equal(tw_redis_get_stats(fixture->redis, &stats), TW_REDIS_FAILED);
	assert_int_equal(stats.missing, 1);
	assert_int_equal(stats.tasks, others);
	worker = WORK(fixture, .poll = 50 * TW_MILLISECOND);
	WAIT_UNTIL(ends_count() == others);
	/* The worker claims from it repeatedly, and reports it once. */
	assert_int_equal(runs_notices(&last), 1);
	assert_int_equal(last.status, TW_REDIS_FAILED);
	snprintf(shard, sizeof(shard), "shard %u: ", broken);
	assert_non_null(strstr(last.text, shard));
	assert_int_equal(runs_lost(), 0);
	/* A repaired key that breaks again is reported again. */
	redis_server_number(&fixture->server, "DEL %s", name);
	add_task(fixture->redis, "task-0", 0);
	WAIT_UNTIL(ends_count() == others + 1);
	redis_server_number(&fixture->server, "SET %s broken", name);
	WAIT_UNTIL(runs_notices(&last) == 2);
	worker_stop(worker);
}

FIXTURE_FILE
