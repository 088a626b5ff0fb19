/* SPDX-License-Identifier: MIT */
/* Many threads share one struct tw_redis. Their calls share round trips, and no call waits for
 * another. */
#include "support/fixture.h"

#include <sys/syscall.h>

#include "redis/client/client.h"
#include "support/false_server.h"
#include "support/sockets.h"

enum { THREADS = 16, EACH = 200 };

struct calling {
	struct tw_redis *redis;
	pthread_t thread;
	int number;
	size_t failed;
};

static void caller_key(const struct calling *caller, int index, char key[KEY_SIZE])
{
	snprintf(key, KEY_SIZE, "%d-%d", caller->number, index);
}

/* Adds tasks, looks at them, and cancels every other one. */
static void *call_about_tasks(void *argument)
{
	struct calling *caller = argument;
	char key[KEY_SIZE];

	for (int i = 0; i < EACH; i++) {
		struct tw_redis_stats stats;

		caller_key(caller, i, key);
		caller->failed += try_add(caller->redis, key, TW_HOUR, TW_REDIS_NEW) != TW_OK;
		caller->failed += try_add(caller->redis, key, TW_HOUR, TW_REDIS_NEW) != TW_EXISTS;
		if (i % 2)
			caller->failed += cancel_task(caller->redis, key) != TW_OK;
		if (i % 50 == 0)
			caller->failed += tw_redis_get_stats(caller->redis, &stats) != TW_OK;
	}
	return NULL;
}

STORED(fixture, calls_of_many_threads_have_their_own_answers)
{
	struct calling callers[THREADS];

	for (int i = 0; i < THREADS; i++) {
		callers[i] = (struct calling){.redis = fixture->redis, .number = i};
		pthread_create(&callers[i].thread, NULL, call_about_tasks, &callers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(callers[i].thread, NULL);
		assert_int_equal(callers[i].failed, 0);
	}
	assert_int_equal(stats_of(fixture->redis).tasks, THREADS * EACH / 2);
	/* All calls used one connection. */
	assert_int_equal(redis_server_says(&fixture->server, "CLIENT LIST", "name=timingwheel"), 1);
}

/* More calls run at a time than connections are kept afterwards. */
STORED(fixture, calls_at_the_same_time_are_not_all_kept)
{
	enum { MANY = 100 };
	struct access *access = fixture->redis->access;
	struct call *begun[MANY];

	for (int i = 0; i < MANY; i++) {
		begun[i] = call_begin(access, 1);
		assert_non_null(begun[i]);
	}
	for (int i = 0; i < MANY; i++)
		assert_int_equal(call_end(begun[i], TW_OK), TW_OK);
	assert_in_range(access->idle_count, 1, MANY / 2);
	stats_of(fixture->redis);
}

static void *cancel_stuck(void *argument)
{
	struct calling *caller = argument;

	caller->failed = cancel_task(caller->redis, "stuck") != TW_OK;
	return NULL;
}

TEST(fixture, call_that_is_tried_again_holds_up_no_other)
{
	struct false_server server;
	struct calling caller = {0};

	false_server_start(&server);
	false_server_set(&server, "#stuck", "-TRYAGAIN not now", FALSE_ALWAYS);
	caller.redis = client_open(&(struct tw_redis_options){
		.url = server.url, .shards = 4, .patience = 30 * TW_SECOND});
	pthread_create(&caller.thread, NULL, cancel_stuck, &caller);
	WAIT_UNTIL(false_server_asked(&server) >= 2);
	for (int i = 0; i < 100; i++)
		assert_int_equal(cancel_task(caller.redis, "other"), TW_OK);
	false_server_set(&server, "#stuck", "usual", FALSE_ALWAYS);
	pthread_join(caller.thread, NULL);
	assert_int_equal(caller.failed, 0);
	client_close(caller.redis);
	false_server_stop(&server);
}

/* This is a call of a thread that may be cancelled in it. It is static, for it may outlive its
 * test. */
struct one_call {
	struct tw_redis *redis;
	const char *key;
	pthread_t thread;
	atomic_int id;    /* the thread's id, or 0 before it runs */
	atomic_int ended; /* the call's status, or -1 before it ends */
};

static void *make_one_call(void *argument)
{
	struct one_call *call = argument;
	int status;

	/* relaxed, both: independent values */
	atomic_store_explicit(&call->id, (int)syscall(SYS_gettid), memory_order_relaxed);
	status = (int)cancel_task(call->redis, call->key);
	atomic_store_explicit(&call->ended, status, memory_order_relaxed);
	return NULL;
}

static void one_call_start(struct one_call *call, struct tw_redis *redis, const char *key)
{
	call->redis = redis;
	call->key = key;
	/* relaxed: the thread does not run yet */
	atomic_store_explicit(&call->id, 0, memory_order_relaxed);
	atomic_store_explicit(&call->ended, -1, memory_order_relaxed);
	pthread_create(&call->thread, NULL, make_one_call, call);
}

static int one_call_status(struct one_call *call)
{
	/* relaxed: an independent value */
	return atomic_load_explicit(&call->ended, memory_order_relaxed);
}

static void one_call_await_sleep(struct one_call *call)
{
	/* relaxed: an independent value */
	WAIT_UNTIL(thread_is_asleep(atomic_load_explicit(&call->id, memory_order_relaxed)));
}

TEST(fixture, thread_that_is_cancelled_in_a_call_holds_up_no_other)
{
	static struct one_call calls[3];
	struct false_server server;
	struct tw_redis *redis;

	false_server_start(&server);
	false_server_set(&server, "#silent", "silence", FALSE_ALWAYS);
	redis = client_open(&(struct tw_redis_options){
		.url = server.url, .shards = 4, .reply_timeout = 500 * TW_MILLISECOND});
	/* One thread waits for a reply, and one for the first thread. */
	one_call_start(&calls[0], redis, "silent");
	WAIT_UNTIL(false_server_asked(&server));
	one_call_start(&calls[1], redis, "second");
	one_call_await_sleep(&calls[1]);
	pthread_cancel(calls[0].thread);
	pthread_cancel(calls[1].thread);
	one_call_start(&calls[2], redis, "third");
	WAIT_UNTIL(one_call_status(&calls[2]) >= 0);
	assert_int_equal(one_call_status(&calls[2]), TW_OK);
	for (int i = 0; i < 3; i++)
		pthread_join(calls[i].thread, NULL);
	/* Both calls ran to the end. */
	assert_int_equal(one_call_status(&calls[0]), TW_REDIS_OUTCOME_UNKNOWN);
	assert_int_equal(one_call_status(&calls[1]), TW_OK);
	false_server_stop(&server);
}

static void *open_one(void *argument)
{
	struct one_call *call = argument;
	int status;

	/* relaxed, both: independent values */
	atomic_store_explicit(&call->id, (int)syscall(SYS_gettid), memory_order_relaxed);
	status = (int)tw_redis_open(
		&call->redis,
		&(struct tw_redis_options){.url = call->key, .reply_timeout = 300 * TW_MILLISECOND},
		NULL);
	atomic_store_explicit(&call->ended, status, memory_order_relaxed);
	return NULL;
}

TEST(fixture, thread_that_is_cancelled_as_it_opens_goes_on_to_its_end)
{
	static struct one_call opening = {.ended = -1};
	char url[64];
	int port = 0;
	int listener = socket_listen(&port);

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
	opening.key = url;
	pthread_create(&opening.thread, NULL, open_one, &opening);
	one_call_await_sleep(&opening);
	pthread_cancel(opening.thread);
	pthread_join(opening.thread, NULL);
	assert_int_equal(one_call_status(&opening), TW_REDIS_UNREACHABLE);
	close(listener);
}

FIXTURE_FILE
