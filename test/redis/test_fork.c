/* SPDX-License-Identifier: MIT */
/* A process forks while it has handles and a worker. The child can use neither, and does its parent
 * no harm. */
#include "support/fixture.h"

#include "redis/client/client.h"
#include "support/calls.h"
#include "support/false_server.h"
#include "support/runs.h"

enum { LONGEST = 20 }; /* seconds until a signal ends the child */

/* Runs `run` in a child and fails the test unless that exits with 0. A child does not assert. */
static void in_a_child(int (*run)(void *argument), void *argument)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		alarm(LONGEST);
		_exit(run(argument));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		fail_msg("the child was ended by signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Makes every call with the handle, and closes it. */
static int use_and_close(void *redis)
{
	struct tw_redis_error error = {0};
	struct tw_redis *beside;

	for (size_t i = 0; i < redis_call_count; i++)
		if (redis_calls[i].call(redis) != TW_INVALID)
			return 1;
	tw_redis_last_error(redis, &error);
	if (error.status != TW_INVALID || !*error.text)
		return 2;
	if (tw_redis_open_beside(redis, "beside", 0, &beside, NULL) != TW_INVALID)
		return 3;
	client_close(redis);
	return 0;
}

STORED(fixture, handle_of_the_parent_makes_no_call_in_the_child)
{
	redis_server_number(&fixture->server, "CONFIG RESETSTAT");
	in_a_child(use_and_close, fixture->redis);
	/* The parent keeps its connection. */
	stats_of(fixture->redis);
	assert_int_equal(redis_server_says(&fixture->server, "INFO stats",
					   "total_connections_received:0\r\n"),
			 1);
}

static int open_another(void *options)
{
	struct tw_redis *redis;

	return tw_redis_open(&redis, options, NULL) != TW_OK ||
	       try_add(redis, "a", TW_HOUR, TW_REDIS_NEW) != TW_OK;
}

STORED(fixture, child_has_handles_of_its_own)
{
	in_a_child(open_another, &fixture->options);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
}

static void *cancel_silent(void *redis)
{
	return VALUE(cancel_task(redis, "silent"));
}

TEST(fixture, fork_while_another_thread_calls_leaves_the_child_free)
{
	struct false_server server;
	struct tw_redis *redis;
	pthread_t thread;
	void *status;

	false_server_start(&server);
	false_server_set(&server, "#silent", "silence", FALSE_ALWAYS);
	redis = client_open(&(struct tw_redis_options){
		.url = server.url, .shards = 4, .reply_timeout = 2 * TW_SECOND});
	pthread_create(&thread, NULL, cancel_silent, redis);
	WAIT_UNTIL(false_server_asked(&server));
	in_a_child(use_and_close, redis);
	pthread_join(thread, &status);
	assert_ptr_equal(status, VALUE(TW_REDIS_OUTCOME_UNKNOWN));
	assert_int_equal(cancel_task(redis, "other"), TW_OK);
	false_server_stop(&server);
}

static atomic_bool is_held;

static void *hold_lock(void *argument)
{
	struct fixture *fixture = argument;

	pthread_mutex_lock(&fixture->redis->access->lock);
	/* relaxed, both: independent flags */
	atomic_store_explicit(&is_held, true, memory_order_relaxed);
	while (atomic_load_explicit(&is_held, memory_order_relaxed))
		give_way();
	pthread_mutex_unlock(&fixture->redis->access->lock);
	return NULL;
}

/* Each call holds the lock briefly. Nobody releases the child's copy of it. */
STORED(fixture, fork_while_another_thread_has_the_lock_leaves_the_child_free)
{
	pthread_t thread;

	pthread_create(&thread, NULL, hold_lock, fixture);
	/* relaxed, both: independent flags */
	WAIT_UNTIL(atomic_load_explicit(&is_held, memory_order_relaxed));
	in_a_child(use_and_close, fixture->redis);
	atomic_store_explicit(&is_held, false, memory_order_relaxed);
	pthread_join(thread, NULL);
	stats_of(fixture->redis);
}

static int use_worker(void *worker)
{
	struct tw_redis_worker_stats stats;

	return tw_redis_worker_get_stats(worker, NULL, &stats) != TW_INVALID ||
	       tw_redis_worker_get_stats(worker, "default", &stats) != TW_INVALID ||
	       tw_redis_worker_stop(worker, 0) != TW_INVALID ||
	       tw_redis_worker_destroy(worker) != TW_INVALID;
}

STORED(fixture, worker_of_the_parent_is_none_of_the_child)
{
	struct tw_redis_worker *worker;

	worker = WORK(fixture);
	in_a_child(use_worker, worker);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(ends_count() == 1);
	worker_stop(worker);
}

FIXTURE_FILE
