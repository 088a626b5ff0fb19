/* SPDX-License-Identifier: MIT */
/* The workers of a namespace report regularly that they are alive. */
#include "support/fixture.h"

#include "support/runs.h"

static size_t count_workers(struct tw_redis *redis)
{
	size_t count = 0;

	assert_ok(redis, tw_redis_get_workers(redis, NULL, 0, &count));
	return count;
}

static struct tw_redis_worker_info only_worker(struct tw_redis *redis)
{
	struct tw_redis_worker_info workers[2];
	size_t count = 0;

	assert_ok(redis, tw_redis_get_workers(redis, workers, 2, &count));
	assert_int_equal(count, 1);
	return workers[0];
}

STORED(fixture, each_worker_reports_that_it_is_alive)
{
	struct tw_redis_worker *workers[2];
	struct tw_redis_worker_info seen[3] = {{.name = ""}};
	char process[24];
	size_t count;

	assert_int_equal(count_workers(fixture->redis), 0);
	for (int i = 0; i < 2; i++)
		workers[i] = WORK(fixture);
	WAIT_UNTIL(count_workers(fixture->redis) == 2);
	assert_ok(fixture->redis, tw_redis_get_workers(fixture->redis, seen, 3, &count));
	assert_int_equal(count, 2);
	snprintf(process, sizeof(process), ":%ld", (long)getpid());
	for (int i = 0; i < 2; i++) {
		assert_non_null(strstr(seen[i].name, process));
		assert_in_range(seen[i].report_age, 0, 30 * TW_SECOND);
		assert_in_range(seen[i].up, 0, TW_MINUTE);
		assert_int_equal(seen[i].held, 0);
	}
	/* There is room for one. */
	memset(seen, 0, sizeof(seen));
	assert_ok(fixture->redis, tw_redis_get_workers(fixture->redis, seen, 1, &count));
	assert_int_equal(count, 2);
	assert_string_equal(seen[1].name, "");
	for (int i = 0; i < 2; i++)
		worker_stop(workers[i]);
}

/* The next report comes after a few seconds. */
STORED(fixture, counts_of_a_worker_are_reported_again)
{
	runs.gate_is_shut = true;
	WORK(fixture);
	add_task(fixture->redis, "a", 0);
	add_task(fixture->redis, "b", 0);
	WAIT_UNTIL(count_workers(fixture->redis) == 1 && only_worker(fixture->redis).held == 2 &&
		   only_worker(fixture->redis).running == 2);
	runs_open_gate();
	WAIT_UNTIL(only_worker(fixture->redis).done == 2);
	assert_int_equal(only_worker(fixture->redis).held, 0);
}

/* Writes a worker's report, valid for that long from now. */
static void report_write(struct fixture *fixture, const char *worker, const char *text,
			 int64_t good_ms)
{
	redis_server_number(&fixture->server, "ZADD {tw/%s}present %lld %s", fixture->name_space,
			    (long long)(redis_server_now(&fixture->server) + good_ms), worker);
	redis_server_number(&fixture->server, "HSET {tw/%s}workers %s %s", fixture->name_space,
			    worker, text);
}

STORED(fixture, worker_that_is_gone_is_forgotten)
{
	report_write(fixture, "gone", "host:1 5 0 0 0 0 0", -1);
	report_write(fixture, "there", "host:2 5 0 0 0 0 0", 20000);
	report_write(fixture, "none", "host:3 -1 0 0 0 0 0", 20000);
	report_write(fixture, "old", "host:4 99999999999999999 0 0 0 0 0", 20000);
	assert_string_equal(only_worker(fixture->redis).name, "host:2");
	/* The next report removes those that have expired, and the key expires with the last. */
	WORK(fixture);
	WAIT_UNTIL(count_workers(fixture->redis) == 2);
	assert_int_equal(
		redis_server_number(&fixture->server, "ZCARD {tw/%s}present", fixture->name_space),
		4);
	assert_int_equal(
		redis_server_number(&fixture->server, "HLEN {tw/%s}workers", fixture->name_space),
		4);
	assert_in_range(
		redis_server_number(&fixture->server, "PTTL {tw/%s}present", fixture->name_space),
		1, 30000);
	assert_in_range(
		redis_server_number(&fixture->server, "PTTL {tw/%s}workers", fixture->name_space),
		1, 30000);
}

STORED(fixture, no_more_than_a_thousand_are_kept)
{
	char key[KEY_SIZE];

	for (int i = 0; i < TW_REDIS_WORKERS_MAX; i++) {
		number_key(key, i);
		report_write(fixture, key, "host:1 5 0 0 0 0 0", 25000);
	}
	WORK(fixture);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(
		redis_server_number(&fixture->server, "ZCARD {tw/%s}present", fixture->name_space),
		TW_REDIS_WORKERS_MAX);
}

STORED(fixture, bad_arguments_are_invalid)
{
	struct tw_redis_worker_info info;
	size_t count;

	assert_int_equal(tw_redis_get_workers(fixture->redis, NULL, 1, &count), TW_INVALID);
	assert_int_equal(tw_redis_get_workers(fixture->redis, &info, 1, NULL), TW_INVALID);
}

FIXTURE_FILE
