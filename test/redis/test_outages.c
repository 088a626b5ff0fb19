/* SPDX-License-Identifier: MIT */
/*
 * Redis is down, restarts, refuses, or its replies get lost. Each test has its own servers, some of
 * them behind a proxy that cuts connections and loses replies.
 */
#include "support/fixture.h"

#include "support/proxy.h"
#include "support/runs.h"
#include "support/sockets.h"

static struct redis_server server;
static struct proxy proxy;
static struct runs runs;

static int open_all(void **state)
{
	const struct redis_server_options options = {.append_only = true, .no_fsync = true};

	*state = NULL;
	redis_server_start(&server, &options);
	proxy_start(&proxy, server.port);
	runs_init(&runs, 20000);
	return 0;
}

static int close_all(void **state)
{
	runs_free(&runs);
	proxy_stop(&proxy);
	redis_server_stop(&server);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

static struct tw_redis_options options_of(const char *url)
{
	return (struct tw_redis_options){.url = url, .shards = 4, .patience = 20 * TW_SECOND};
}

static struct tw_redis_worker *start_at(const char *url, struct tw_redis_worker_options options)
{
	const struct tw_redis_options redis = options_of(url);

	runs_attach(&runs, &options);
	return worker_start(&redis, &options);
}

static struct tw_redis *open_at(const char *url)
{
	const struct tw_redis_options options = options_of(url);

	return client_open(&options);
}

struct adder {
	struct tw_redis *redis;
	_Atomic int accepted;
	int count;
};

/* Adds tasks; adds one again if its outcome is unknown, which is harmless. */
static void *add_all(void *argument)
{
	struct adder *adder = argument;
	char key[KEY_SIZE];

	for (int i = 0; i < adder->count; i++) {
		enum tw_status status;

		number_key(key, i);
		do
			status = try_add(adder->redis, key, i % 200 * TW_MILLISECOND, TW_REDIS_ANY);
		while (status == TW_REDIS_OUTCOME_UNKNOWN);
		if (status != TW_OK)
			break;
		/* relaxed: a count; what it counts is read after the thread was joined */
		atomic_fetch_add_explicit(&adder->accepted, 1, memory_order_relaxed);
	}
	return NULL;
}

static int accepted(struct adder *adder)
{
	/* relaxed: a count, orders nothing */
	return atomic_load_explicit(&adder->accepted, memory_order_relaxed);
}

/* The server is killed twice while tasks are added and run. Answered writes are in the file. (With
 * everysec they may wait for a slow disk, and be lost.) */
TEST(opened, killed_server_loses_nothing_that_was_accepted)
{
	struct adder adder = {.count = TEST_SHARE_OF(10000) + 1000};
	pthread_t thread;

	start_at(server.url, (struct tw_redis_worker_options){.lease = TW_SECOND});
	adder.redis = open_at(server.url);
	assert_int_equal(pthread_create(&thread, NULL, add_all, &adder), 0);
	for (int i = 1; i <= 2; i++) {
		WAIT_UNTIL(accepted(&adder) >= adder.count * i / 3);
		redis_server_end(&server, SIGKILL);
		wait_for(300 * TW_MILLISECOND);
		redis_server_restart(&server);
	}
	pthread_join(thread, NULL);
	assert_int_equal(accepted(&adder), adder.count);
	WAIT_UNTIL(stats_of(adder.redis).tasks == 0);
	assert_each_ran(&runs, adder.count, SIZE_MAX);
	assert_int_equal(stats_of(adder.redis).dead, 0);
	assert_true(runs_lost(&runs) >= 1);
	client_close(adder.redis);
}

TEST(opened, call_waits_for_a_server_that_comes_back)
{
	static const tw_duration patiences[] = {20 * TW_SECOND, TW_FOREVER};
	struct tw_redis_options options = options_of(server.url);

	for (size_t i = 0; i < 2; i++) {
		struct adder adder = {.count = 1};
		pthread_t thread;

		options.patience = patiences[i];
		adder.redis = client_open(&options);
		redis_server_end(&server, SIGKILL);
		assert_int_equal(pthread_create(&thread, NULL, add_all, &adder), 0);
		wait_for(700 * TW_MILLISECOND);
		assert_int_equal(accepted(&adder), 0);
		redis_server_restart(&server);
		pthread_join(thread, NULL);
		assert_int_equal(accepted(&adder), 1);
		client_close(adder.redis);
	}
}

TEST(opened, call_gives_up_after_its_patience)
{
	struct tw_redis_options options = options_of(server.url);
	struct tw_redis_error error;
	struct tw_redis *redis;
	int64_t before;

	options.patience = 400 * TW_MILLISECOND;
	redis = client_open(&options);
	redis_server_end(&server, SIGKILL);
	before = wall_clock();
	assert_int_equal(try_add(redis, "a", 0, TW_REDIS_ANY), TW_REDIS_UNREACHABLE);
	/* Pauses double, so the last try may come after half of it. The default is 5 s, more than
	 * this takes on a busy machine. */
	assert_in_range(wall_clock() - before, 200 * TW_MILLISECOND, 5 * TW_SECOND - 1);
	tw_redis_last_error(redis, &error);
	assert_true(*error.text);
}

static void *become_master_soon(void *argument)
{
	wait_for(500 * TW_MILLISECOND);
	redis_server_number(&server, "REPLICAOF NO ONE");
	return NULL;
}

TEST(opened, replica_is_waited_for_until_it_is_the_master)
{
	struct tw_redis *redis = open_at(server.url);
	pthread_t thread;

	add_task(redis, "a", TW_HOUR);
	redis_server_number(&server, "REPLICAOF 127.0.0.1 %d", port_free());
	assert_int_equal(pthread_create(&thread, NULL, become_master_soon, NULL), 0);
	assert_ok(redis, try_add(redis, "b", TW_HOUR, TW_REDIS_ANY));
	pthread_join(thread, NULL);
	assert_int_equal(stats_of(redis).tasks, 2);
}

TEST(opened, connection_cut_for_five_seconds_loses_nothing)
{
	enum { COUNT = 500 };
	struct tw_redis *direct = open_at(server.url);
	struct tw_redis *through = open_at(proxy.url);

	start_at(proxy.url, (struct tw_redis_worker_options){.lease = 2 * TW_SECOND});
	add_tasks(direct, COUNT, 0, 12 * TW_MILLISECOND);
	wait_for(500 * TW_MILLISECOND);
	proxy_cut(&proxy);
	wait_for(5 * TW_SECOND);
	assert_true(runs_lost(&runs) == 1);
	proxy_mend(&proxy);
	add_task(through, "after", 0);
	WAIT_UNTIL(stats_of(direct).tasks == 0);
	assert_each_ran(&runs, COUNT, SIZE_MAX);
	assert_true(runs_count_of(&runs, "after") >= 1);
	assert_true(runs_found(&runs) >= 1);
}

TEST(opened, lost_reply_to_an_add_is_unknown_and_adding_again_is_harmless)
{
	struct tw_redis *redis = open_at(proxy.url);

	/* The server knows the script: the first try adds the task. */
	add_task(redis, "first", TW_HOUR);
	proxy_lose_reply(&proxy, "the-lost-one");
	assert_int_equal(try_add(redis, "the-lost-one", 300 * TW_MILLISECOND, TW_REDIS_ANY),
			 TW_REDIS_OUTCOME_UNKNOWN);
	assert_int_equal(proxy_lost(&proxy), 1);
	assert_int_equal(find_task(redis, "the-lost-one").status, TW_OK);
	assert_int_equal(try_add(redis, "the-lost-one", 300 * TW_MILLISECOND, TW_REDIS_NEW),
			 TW_EXISTS);
	add_task(redis, "the-lost-one", 300 * TW_MILLISECOND);
	start_at(server.url, (struct tw_redis_worker_options){0});
	WAIT_UNTIL(ends_count(&runs) == 1);
	wait_for(500 * TW_MILLISECOND);
	assert_int_equal(runs_count(&runs), 1);
}

TEST(opened, lost_reply_to_a_claim_brings_the_task_back)
{
	struct tw_redis *direct = open_at(server.url);
	struct tw_redis *through = open_at(proxy.url);
	struct tw_redis_batch *batch = NULL;
	unsigned shard = shard_of(direct, "a");

	/* The server knows the script, and the client the shard. */
	assert_ok(through, tw_redis_claim(through, shard, 1, TW_SECOND, &batch, NULL));
	claim_end(batch);
	add_task(direct, "a", 0);
	wait_for(10 * TW_MILLISECOND);
	proxy_lose_reply(&proxy, "}state");
	assert_int_equal(tw_redis_claim(through, shard, 1, 300 * TW_MILLISECOND, &batch, NULL),
			 TW_REDIS_OUTCOME_UNKNOWN);
	assert_int_equal(find_task(direct, "a").attempts, 1);
	batch = await_claim(direct, "a", TW_SECOND);
	assert_int_equal(only_job(batch)->attempt, 2);
	claim_end(batch);
}

/* The server truncates replies of two bodies; each task may begin only once, and does. */
TEST(opened, claims_whose_replies_are_cut_off_use_up_no_attempt)
{
	enum { LARGE = 20 };
	static char body[TW_REDIS_BODY_MAX];
	struct tw_redis *direct = open_at(server.url);
	struct tw_redis_worker *worker;
	char key[KEY_SIZE];

	memset(body, 'x', sizeof(body));
	for (int i = 0; i < LARGE; i++) {
		struct tw_redis_task task = {
			.key = key, .body = body, .body_size = sizeof(body), .max_attempts = 1};

		number_key(key, i);
		task.key_size = strlen(key);
		add_one(direct, &task);
	}
	redis_server_number(&server, "CONFIG SET client-output-buffer-limit %s",
			    "normal 400000 0 0");
	worker = start_at(server.url, (struct tw_redis_worker_options){.lease = TW_SECOND});
	WAIT_UNTIL(ends_count(&runs) == LARGE);
	worker_stop(worker);
	assert_true(runs_lost(&runs) > 0);
	assert_each_ran(&runs, LARGE, 1);
	assert_int_equal(stats_of(direct).tasks, 0);
	assert_int_equal(stats_of(direct).dead, 0);
}

TEST(opened, lost_reply_to_an_acknowledgement_runs_nothing_twice)
{
	struct tw_redis *direct = open_at(server.url);

	start_at(proxy.url, (struct tw_redis_worker_options){0});
	/* This makes Redis know the script, so the lost reply is not NOSCRIPT. */
	add_task(direct, "first", 0);
	WAIT_UNTIL(ends_count(&runs) == 1);
	pthread_mutex_lock(&runs.lock);
	runs.gate_is_shut = true;
	pthread_mutex_unlock(&runs.lock);
	add_task(direct, "the-task", 0);
	WAIT_UNTIL(runs_running(&runs) == 1);
	/* The next request about it is its end. */
	proxy_lose_reply(&proxy, "the-task");
	runs_open_gate(&runs);
	WAIT_UNTIL(ends_count(&runs) == 2);
	assert_int_equal(proxy_lost(&proxy), 1);
	assert_int_equal(end_of(&runs, "the-task", 0).end, TW_REDIS_END_DONE);
	assert_int_equal(runs_count(&runs), 2);
	assert_int_equal(stats_of(direct).tasks, 0);
}

/* The worker continues where it is refused, and where the server has become unfit. */
TEST(opened, worker_reports_refusals_and_an_unfit_server)
{
	struct tw_redis *redis = open_at(server.url);

	start_at(server.url, (struct tw_redis_worker_options){.poll = 10 * TW_MILLISECOND});
	add_task(redis, "a", 0);
	WAIT_UNTIL(ends_count(&runs) == 1);
	redis_server_number(&server, "ACL SETUSER default -evalsha");
	WAIT_UNTIL(runs_lost(&runs) == 1);
	redis_server_number(&server, "ACL SETUSER default +evalsha");
	WAIT_UNTIL(runs_found(&runs) == 1);
	redis_server_number(&server, "CONFIG SET maxmemory-policy allkeys-lru");
	redis_server_number(&server, "CLIENT KILL TYPE normal SKIPME yes");
	WAIT_UNTIL(runs_lost(&runs) == 2);
	wait_for(100 * TW_MILLISECOND);
	assert_int_equal(runs_found(&runs), 1);
	redis_server_number(&server, "CONFIG SET maxmemory-policy noeviction");
	WAIT_UNTIL(runs_found(&runs) == 2);
	add_task(redis, "b", 0);
	WAIT_UNTIL(ends_count_of(&runs, NULL, TW_REDIS_END_DONE) == 2);
}

static void *give_replicas_up(void *argument)
{
	wait_for(300 * TW_MILLISECOND);
	redis_server_number(&server, "CONFIG SET min-replicas-to-write 0");
	return NULL;
}

TEST(opened, server_that_lacks_replicas_is_waited_for)
{
	struct tw_redis *redis = open_at(server.url);
	struct tw_redis_error error;
	pthread_t thread;

	redis_server_number(&server, "CONFIG SET min-replicas-to-write 1");
	set_patience(redis, -1);
	assert_int_equal(try_add(redis, "a", 0, TW_REDIS_ANY), TW_REDIS_UNREACHABLE);
	set_patience(redis, 0);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "NOREPLICAS"));
	assert_int_equal(pthread_create(&thread, NULL, give_replicas_up, NULL), 0);
	assert_int_equal(try_add(redis, "a", 0, TW_REDIS_ANY), TW_OK);
	pthread_join(thread, NULL);
}

/* Waits until the worker has reported a reason with that text. */
static void await_reason(const char *text)
{
	struct tw_redis_error last;

	WAIT_UNTIL(runs_errors(&runs, &last) && strstr(last.text, text));
}

TEST(opened, changed_reason_is_reported_again)
{
	struct tw_redis_error last;
	char url[80];

	snprintf(url, sizeof(url), "redis://app:old@127.0.0.1:%d", server.port);
	redis_server_number(&server, "ACL SETUSER app on >old ~* &* +@all");
	start_at(url, (struct tw_redis_worker_options){0});
	redis_server_number(&server, "ACL SETUSER app >new <old");
	redis_server_number(&server, "CLIENT KILL USER app");
	await_reason("WRONGPASS");
	redis_server_number(&server, "ACL SETUSER app >old -eval -evalsha");
	await_reason("NOPERM");
	assert_int_equal(runs_lost(&runs), 1);
	assert_int_equal(runs_found(&runs), 0);
	redis_server_number(&server, "ACL SETUSER app +eval +evalsha");
	WAIT_UNTIL(runs_found(&runs) == 1);
	/* The login was refused, and not hints, which soon work again. */
	assert_int_equal(runs_notices(&runs, &last), 0);
	WAIT_UNTIL(redis_server_count_listeners(&server, "default"));
}

/* The grace is over, and Redis stays down. The stop ends nevertheless, and runs whose end was not
 * reported run again elsewhere. */
TEST(opened, stop_ends_while_redis_is_away)
{
	const tw_duration lease = 3 * TW_SECOND;
	struct tw_redis *direct = open_at(server.url);
	struct tw_redis_worker *worker;

	runs.gate_is_shut = true;
	worker = start_at(proxy.url, (struct tw_redis_worker_options){.lease = lease});
	add_task(direct, "unconfirmed", 0);
	WAIT_UNTIL(runs_running(&runs) == 1);
	proxy_cut(&proxy);
	runs_open_gate(&runs);
	WAIT_UNTIL(runs_running(&runs) == 0);
	assert_int_equal(tw_redis_worker_stop(worker, 50 * TW_MILLISECOND), TW_OK);
	assert_int_equal(end_of(&runs, "unconfirmed", 0).end, TW_REDIS_END_UNCONFIRMED);
	worker_destroy(worker);
	assert_int_equal(stats_of(direct).tasks, 1);
	worker = start_at(server.url, (struct tw_redis_worker_options){.lease = lease});
	WAIT_UNTIL(ends_count(&runs) == 2);
	assert_int_equal(end_of(&runs, "unconfirmed", 1).end, TW_REDIS_END_DONE);
	assert_int_equal(runs_count_of(&runs, "unconfirmed"), 2);
}
