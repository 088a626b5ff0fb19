/* SPDX-License-Identifier: MIT */
/*
 * A client asks three Sentinels for a master with one replica. It finds the master, and the next
 * one after a fail-over.
 */
#include "support/fixture.h"

#include "support/runs.h"
#include "support/sentinels.h"
#include "support/sockets.h"

/* Between fail-overs, Sentinels wait that long for a master that does not answer. */
enum { URL_SIZE = 300, HOLD_MS = 600000 };

static struct redis_server servers[2];
static struct sentinels sentinels;

static int open_all(void **state)
{
	*state = NULL;
	redis_server_start(&servers[0], NULL);
	redis_server_start(&servers[1],
			   &(struct redis_server_options){.replica_of = servers[0].port});
	WAIT_UNTIL(redis_server_says(&servers[1], "INFO replication", "master_link_status:up"));
	sentinels_start(&sentinels, servers[0].port);
	sentinels_set_patience(&sentinels, HOLD_MS);
	return 0;
}

static int close_all(void **state)
{
	sentinels_stop(&sentinels);
	for (int i = 0; i < 2; i++)
		redis_server_stop(&servers[i]);
	return 0;
}

static void assert_refused(const char *at, enum tw_status expected, const char *words)
{
	const struct tw_redis_options options = {.url = at};
	struct tw_redis_error error = {0};
	struct tw_redis *redis;
	enum tw_status status = tw_redis_open(&redis, &options, &error);

	if (status != expected || !strstr(error.text, words))
		fail_msg("%s: %s", tw_status_name(status), error.text);
}

TEST(once, useless_sentinels_are_distinguished)
{
	char at[URL_SIZE];

	snprintf(at, sizeof(at), "redis+sentinel://127.0.0.1:%d/other", sentinels.all[0].port);
	assert_refused(at, TW_REDIS_UNFIT, "other");
	snprintf(at, sizeof(at), "redis+sentinel://127.0.0.1:%d/main", port_free());
	assert_refused(at, TW_REDIS_UNREACHABLE, strerror(ECONNREFUSED));
	/* A Sentinel is no Redis server, and a Redis server is no Sentinel. */
	snprintf(at, sizeof(at), "redis://127.0.0.1:%d", sentinels.all[0].port);
	assert_refused(at, TW_REDIS_UNFIT, "Sentinel");
	snprintf(at, sizeof(at), "redis+sentinel://127.0.0.1:%d/main", servers[0].port);
	assert_refused(at, TW_REDIS_UNFIT, "Sentinel");
}

TEST(once, sentinel_that_is_away_is_passed_over)
{
	const struct tw_redis_options options = {.url = sentinels.url, .shards = 4};
	char at[URL_SIZE];
	struct tw_redis *redis;

	snprintf(at, sizeof(at), "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/main", port_free(),
		 sentinels.all[1].port);
	redis = client_open(&(struct tw_redis_options){.url = at, .shards = 4});
	add_task(redis, "passed", 0);
	client_close(redis);
	redis = client_open(&options);
	assert_int_equal(cancel_task(redis, "passed"), TW_OK);
}

TEST(once, master_that_is_killed_gives_way_to_the_next)
{
	const struct tw_redis_options options = {
		.url = sentinels.url, .shards = 4, .patience = 40 * TW_SECOND};
	struct tw_redis_worker_options worker_options = {.lease = TW_SECOND};
	struct tw_redis_worker *worker;
	struct tw_redis *redis = client_open(&options);
	struct runs runs;

	runs_init(&runs, 100);
	runs_attach(&runs, &worker_options);
	worker = worker_start(&options, &worker_options);
	add_tasks(redis, 20, TW_SECOND, 50 * TW_MILLISECOND);
	/* The replica has them. */
	assert_true(redis_server_number(&servers[0], "WAIT 1 5000") == 1);
	sentinels_set_patience(&sentinels, 500);
	redis_server_end(&servers[0], SIGKILL);
	assert_int_equal(try_add(redis, "task-20", 0, TW_REDIS_ANY), TW_OK);
	WAIT_UNTIL(runs_count_of(&runs, "task-20") >= 1 && runs_count(&runs) >= 21);
	assert_each_ran(&runs, 21, SIZE_MAX);
	worker_stop(worker);
	runs_free(&runs);
}

TEST_FILE(open_all, close_all)
