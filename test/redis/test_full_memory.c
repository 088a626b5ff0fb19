/* SPDX-License-Identifier: MIT */
/* Redis has no memory left, or a replica refuses writes. These tests check what must still
 * work; test_tasks.c has the calls. */
#include "support/fixture.h"

#include "support/runs.h"

static void set_memory(struct fixture *fixture, const char *limit)
{
	redis_server_number(&fixture->server, "CONFIG SET maxmemory %s", limit);
}

static bool each_ends(void *context, const struct tw_redis_info *info)
{
	++*(int *)context;
	return true;
}

STORED(fixture, workers_drain_a_full_memory)
{
	struct tw_redis_worker_options options = {.lease = 3 * TW_SECOND,
						  .retry_first = TW_MILLISECOND};
	struct tw_redis_worker *worker;

	if (redis_server_figure(&fixture->server, "INFO server", "redis_version:") < 7)
		TEST_SKIP("this needs Redis 7");
	add_tasks(fixture->redis, 20, 0, 0);
	set_memory(fixture, "1");
	runs_attach(&options);
	/* Leases of four runs are extended often enough, and one run fails for good. */
	runs.gate_is_shut = true;
	runs.outcome = TW_REDIS_KILL;
	worker = worker_start(&fixture->options, &options);
	WAIT_UNTIL(worker_stats(worker).extended >= 4 * 4);
	runs_open_gate();
	WAIT_UNTIL(ends_count() >= 1);
	pthread_mutex_lock(&runs.lock);
	runs.outcome = TW_REDIS_DONE;
	pthread_mutex_unlock(&runs.lock);
	WAIT_UNTIL(stats_of(fixture->redis).tasks == 0);
	worker_stop(worker);
	assert_each_ran(20, 1);
	assert_true(stats_of(fixture->redis).dead >= 1);
	set_memory(fixture, "0");
}

static bool replica_has(struct redis_server *replica, const char *name_space)
{
	return redis_server_number(replica, "EXISTS {tw/%s}layout", name_space) == 1 &&
	       redis_server_count_keys(replica, name_space) > 0;
}

STORED(fixture, replica_can_be_looked_at)
{
	struct tw_redis_options options = fixture->options;
	struct redis_server replica;
	struct tw_redis *redis;
	int listed = 0;

	add_task(fixture->redis, "a", TW_HOUR);
	redis_server_start(&replica,
			   &(struct redis_server_options){.replica_of = fixture->server.port});
	WAIT_UNTIL(replica_has(&replica, fixture->name_space));
	options.url = replica.url;
	options.patience = -1;
	redis = client_open(&options);
	assert_int_equal(stats_of(redis).tasks, 1);
	assert_int_equal(find_task(redis, "a").status, TW_OK);
	assert_ok(redis, tw_redis_each(redis, TW_REDIS_TASKS, each_ends, &listed));
	assert_ok(redis, tw_redis_each(redis, TW_REDIS_LETTERS, each_ends, &listed));
	assert_int_equal(listed, 1);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_UNREACHABLE);
	redis_server_stop(&replica);
}

FIXTURE_FILE
