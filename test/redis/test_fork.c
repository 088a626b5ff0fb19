/* SPDX-License-Identifier: MIT */
/* A process forks while a tw_redis is open. Parent and child have connections of their own. */
#include "support/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redis/client/client.h"
#include "support/false_server.h"
#include "support/wait.h"

enum { LONGEST = 20 }; /* seconds until a signal ends the child */

/* Runs `run` in a child and fails the test unless that exits with 0. A child does not assert. */
static void in_a_child(int (*run)(struct tw_redis *redis), struct tw_redis *redis)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		alarm(LONGEST);
		_exit(run(redis));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		fail_msg("the child was ended by signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int connections_with(struct fixture *fixture, const char *field)
{
	redisReply *reply = redis_server_ask(&fixture->server, "CLIENT LIST");
	int count = 0;

	for (const char *at = reply->str; (at = strstr(at, field)); at++)
		count++;
	freeReplyObject(reply);
	return count;
}

static int add_many_and_close(struct tw_redis *redis)
{
	char key[KEY_SIZE];

	for (int i = 0; i < 1000; i++) {
		number_key(key, 1000 + i);
		if (try_add(redis, key, TW_HOUR, TW_REDIS_NEW) != TW_OK)
			return 1;
	}
	tw_redis_close(redis);
	return 0;
}

static void child_and_parent_call_at_the_same_time(void **state)
{
	struct fixture *fixture = *state;
	char key[KEY_SIZE];
	int status;
	pid_t child;

	assert_ok(fixture->redis, tw_redis_ping(fixture->redis, NULL));
	child = fork();
	if (!child) {
		alarm(LONGEST);
		_exit(add_many_and_close(fixture->redis));
	}
	for (int i = 0; i < 1000; i++) {
		number_key(key, i);
		assert_ok(fixture->redis, try_add(fixture->redis, key, TW_HOUR, TW_REDIS_NEW));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(stats_of(fixture->redis).tasks, 2000);
}

/* The server is asked over the parent's link; the child returns counts by its exit status. */
static struct fixture *counted;

static int count_connections(struct tw_redis *redis)
{
	/* The child must not use the parent's link. */
	counted->server.context = NULL;
	return tw_redis_ping(redis, NULL) != TW_OK ||
	       connections_with(counted, "name=timingwheel ") != 2;
}

static void child_has_a_connection_of_its_own(void **state)
{
	struct fixture *fixture = *state;

	counted = fixture;
	assert_int_equal(connections_with(fixture, "name=timingwheel "), 1);
	in_a_child(count_connections, fixture->redis);
	/* The parent keeps its connection. */
	WAIT_UNTIL(connections_with(fixture, "name=timingwheel ") == 1);
	assert_ok(fixture->redis, tw_redis_ping(fixture->redis, NULL));
	assert_int_equal(connections_with(fixture, "name=timingwheel "), 1);
}

static int only_close(struct tw_redis *redis)
{
	tw_redis_close(redis);
	return 0;
}

static int grandchild_adds(struct tw_redis *redis)
{
	int status = 1;
	pid_t child;

	if (try_add(redis, "child", TW_HOUR, TW_REDIS_NEW) != TW_OK)
		return 1;
	child = fork();
	if (!child)
		_exit(try_add(redis, "grandchild", TW_HOUR, TW_REDIS_NEW));
	waitpid(child, &status, 0);
	return status || cancel_task(redis, "child") != TW_OK;
}

static void child_that_closes_and_child_that_forks_leave_the_parent_alone(void **state)
{
	struct fixture *fixture = *state;

	in_a_child(only_close, fixture->redis);
	assert_int_equal(connections_with(fixture, "name=timingwheel "), 1);
	in_a_child(grandchild_adds, fixture->redis);
	assert_int_equal(cancel_task(fixture->redis, "grandchild"), TW_OK);
	assert_int_equal(connections_with(fixture, "name=timingwheel "), 1);
}

static atomic_bool is_asked;

static size_t answer_but_silent(void *context, const redisReply *request, char *reply, size_t room)
{
	for (size_t i = 3; i < request->elements; i++) {
		if (strcmp(request->element[i]->str, "silent"))
			continue;
		/* relaxed: an independent flag */
		atomic_store_explicit(&is_asked, true, memory_order_relaxed);
		return 0;
	}
	return (size_t)snprintf(reply, room, ":0\r\n");
}

static void *cancel_silent(void *redis)
{
	return VALUE(cancel_task(redis, "silent"));
}

static int cancel_other(struct tw_redis *redis)
{
	return cancel_task(redis, "other") != TW_OK;
}

static int grandchild_cancels(struct tw_redis *redis)
{
	int status = 1;
	/* The child has made no call, so the grandchild inherits the parent's handle through it. */
	pid_t child = fork();

	if (!child)
		_exit(cancel_other(redis));
	waitpid(child, &status, 0);
	return status || cancel_other(redis);
}

static void fork_while_another_thread_calls_leaves_the_child_free(void **state)
{
	struct false_server server;
	struct tw_redis *redis;
	pthread_t thread;
	void *status;

	false_server_start(&server, answer_but_silent, NULL);
	redis = client_open(&(struct tw_redis_options){
		.url = server.url, .shards = 4, .reply_timeout = 2 * TW_SECOND});
	pthread_create(&thread, NULL, cancel_silent, redis);
	/* relaxed: an independent flag */
	WAIT_UNTIL(atomic_load_explicit(&is_asked, memory_order_relaxed));
	in_a_child(cancel_other, redis);
	in_a_child(grandchild_cancels, redis);
	pthread_join(thread, &status);
	assert_ptr_equal(status, VALUE(TW_REDIS_OUTCOME_UNKNOWN));
	assert_int_equal(cancel_task(redis, "other"), TW_OK);
	tw_redis_close(redis);
	false_server_stop(&server);
}

static atomic_bool is_held;

static void *hold_lock(void *argument)
{
	struct fixture *fixture = argument;

	pthread_mutex_lock(&fixture->redis->access->calls.lock);
	/* relaxed, both: independent flags */
	atomic_store_explicit(&is_held, true, memory_order_relaxed);
	while (atomic_load_explicit(&is_held, memory_order_relaxed))
		give_way();
	pthread_mutex_unlock(&fixture->redis->access->calls.lock);
	return NULL;
}

static int ping_and_close(struct tw_redis *redis)
{
	enum tw_status status = tw_redis_ping(redis, NULL);

	tw_redis_close(redis);
	return status != TW_OK;
}

/* Each call holds the lock briefly. Nobody releases the child's copy of it. */
static void fork_while_another_thread_has_the_lock_leaves_the_child_free(void **state)
{
	struct fixture *fixture = *state;
	pthread_t thread;

	assert_ok(fixture->redis, tw_redis_ping(fixture->redis, NULL));
	pthread_create(&thread, NULL, hold_lock, fixture);
	/* relaxed, both: independent flags */
	WAIT_UNTIL(atomic_load_explicit(&is_held, memory_order_relaxed));
	in_a_child(ping_and_close, fixture->redis);
	atomic_store_explicit(&is_held, false, memory_order_relaxed);
	pthread_join(thread, NULL);
	assert_ok(fixture->redis, tw_redis_ping(fixture->redis, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(child_and_parent_call_at_the_same_time),
		FIXTURE_TEST(child_has_a_connection_of_its_own),
		FIXTURE_TEST(child_that_closes_and_child_that_forks_leave_the_parent_alone),
		FIXTURE_TEST(fork_while_another_thread_calls_leaves_the_child_free),
		FIXTURE_TEST(fork_while_another_thread_has_the_lock_leaves_the_child_free),
	};

	return FIXTURE_RUN(tests);
}
