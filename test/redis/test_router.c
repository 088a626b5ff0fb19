/* SPDX-License-Identifier: MIT */
/*
 * A server's errors lead a call to retry, to wait, or to end (test_errors.c has each error). The
 * server is a false one that answers every script with the test's error, a given number of times.
 */
#include "support/fixture.h"

#include "redis/client/client.h"
#include "support/false_server.h"
#include "support/sockets.h"

enum { FOR_EVER = 1000000, ERROR_SIZE = 400 };

static struct false_server server;
static struct tw_redis *redis;

static struct {
	pthread_mutex_t lock;   /* guards the fields below */
	char error[ERROR_SIZE]; /* the reply to scripts, with its "-" */
	int errors;             /* how often it is still sent; then 0 */
	size_t asked;           /* scripts so far */
	unsigned keys;          /* the keys of the last script */
	bool flagged;           /* a script had a first line for the server */
} scripts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t answer_script(void *context, const redisReply *request, char *reply, size_t room)
{
	size_t size;

	pthread_mutex_lock(&scripts.lock);
	scripts.asked++;
	scripts.keys = (unsigned)atoi(request->element[2]->str);
	scripts.flagged |= !strncmp(request->element[1]->str, "#!", 2);
	size = (size_t)snprintf(reply, room, "%s\r\n", scripts.errors > 0 ? scripts.error : ":0");
	scripts.errors -= scripts.errors > 0;
	pthread_mutex_unlock(&scripts.lock);
	return size;
}

/* Opens a client with 4 shards and this patience. */
static struct tw_redis *open_with(tw_duration patience)
{
	return client_open(
		&(struct tw_redis_options){.url = server.url, .shards = 4, .patience = patience});
}

static int open_all(void **state)
{
	*state = NULL;
	scripts.asked = 0;
	scripts.errors = 0;
	false_server_start(&server, answer_script, NULL);
	redis = open_with(5 * TW_SECOND);
	return 0;
}

static int close_all(void **state)
{
	tw_redis_close(redis);
	false_server_stop(&server);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

static void fail_with(const char *error, int times)
{
	pthread_mutex_lock(&scripts.lock);
	snprintf(scripts.error, sizeof(scripts.error), "-%s", error);
	scripts.errors = times;
	scripts.asked = 0;
	scripts.flagged = false;
	pthread_mutex_unlock(&scripts.lock);
}

static size_t asked(void)
{
	return locked_read(&scripts.lock, &scripts.asked);
}

/* The pauses are shorter than the patience, and add up to it. */
TEST(opened, long_patience_ends_too)
{
	struct tw_redis *other = open_with(TW_SECOND);
	int64_t before = wall_clock();

	fail_with("LOADING Redis is loading the dataset in memory", FOR_EVER);
	assert_int_equal(cancel_task(other, "a"), TW_REDIS_UNREACHABLE);
	assert_in_range(wall_clock() - before, 300 * TW_MILLISECOND, 5 * TW_SECOND);
	tw_redis_close(other);
}

TEST(opened, redirect_is_followed_and_a_circle_of_them_ends)
{
	static const char *const kinds[] = {"MOVED", "ASK"};
	struct tw_redis *other = open_with(60 * TW_MILLISECOND);
	char error[64];

	for (int i = 0; i < 2; i++) {
		snprintf(error, sizeof(error), "%s 7 127.0.0.1:%d", kinds[i], server.port);
		fail_with(error, 2);
		assert_ok(other, cancel_task(other, "a"));
		assert_int_equal(asked(), 3);
		fail_with(error, FOR_EVER);
		assert_int_equal(cancel_task(other, "a"), TW_REDIS_UNREACHABLE);
		assert_in_range(asked(), 3, 17);
	}
	/* The redirect leads to a closed port. */
	snprintf(error, sizeof(error), "MOVED 7 127.0.0.1:%d", port_free());
	fail_with(error, 1);
	assert_int_equal(cancel_task(other, "a"), TW_REDIS_UNREACHABLE);
	tw_redis_close(other);
}

/* Two nodes redirect to each other for a while. */
TEST(opened, circle_of_redirects_is_followed_as_long_as_the_patience_lasts)
{
	char error[64];

	snprintf(error, sizeof(error), "MOVED 7 127.0.0.1:%d", server.port);
	fail_with(error, 9);
	assert_ok(redis, cancel_task(redis, "a"));
	assert_int_equal(asked(), 10);
}

TEST(opened, redirect_to_no_address_ends_the_call)
{
	static const char *const addresses[] = {"",         " nowhere", " host:0",
						" host:-1", " host:x",  " host:65536"};
	char error[HOST_SIZE + 32];
	char host[HOST_SIZE + 1] = "";

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		snprintf(error, sizeof(error), "MOVED 7%s", addresses[i]);
		fail_with(error, FOR_EVER);
		assert_int_equal(cancel_task(redis, "a"), TW_REDIS_UNREACHABLE);
		assert_int_equal(asked(), 1);
	}
	memset(host, 'h', HOST_SIZE);
	snprintf(error, sizeof(error), "MOVED 7 %s:1", host);
	fail_with(error, FOR_EVER);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_UNREACHABLE);
	assert_int_equal(asked(), 1);
}

TEST(opened, redirect_without_a_host_is_to_the_one_that_was_asked)
{
	static const char *const hosts[] = {"", "?"};
	char error[64];

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		snprintf(error, sizeof(error), "MOVED 7 %s:%d", hosts[i], server.port);
		fail_with(error, 1);
		assert_ok(redis, cancel_task(redis, "a"));
		assert_int_equal(asked(), 2);
	}
}

TEST(opened, redirect_to_another_name_of_a_server_is_followed)
{
	char error[64];

	snprintf(error, sizeof(error), "MOVED 7 127.1:%d", server.port);
	fail_with(error, 1);
	assert_ok(redis, cancel_task(redis, "a"));
	assert_int_equal(asked(), 2);
}

TEST(opened, redirect_at_opening_is_followed_and_a_circle_of_them_ends)
{
	const struct tw_redis_options options = {.url = server.url, .shards = 4};
	struct tw_redis_error error;
	struct tw_redis *other;
	char moved[64];

	snprintf(moved, sizeof(moved), "-MOVED 7 127.0.0.1:%d", server.port);
	false_server_refuse(&server, "layout", moved, 2);
	tw_redis_close(client_open(&options));
	false_server_refuse(&server, "layout", moved, FOR_EVER);
	assert_int_equal(tw_redis_open(&other, &options, &error), TW_REDIS_UNREACHABLE);
	assert_non_null(strstr(error.text, moved + 1));
	false_server_refuse(&server, "layout", "-MOVED 7 nowhere", 1);
	assert_int_equal(tw_redis_open(&other, &options, &error), TW_REDIS_UNREACHABLE);
	assert_string_equal(error.text, "redirected: MOVED 7 nowhere");
	snprintf(moved, sizeof(moved), "-MOVED 7 127.0.0.1:%d", port_free());
	false_server_refuse(&server, "layout", moved, 1);
	assert_int_equal(tw_redis_open(&other, &options, NULL), TW_REDIS_UNREACHABLE);
	false_server_refuse(&server, "layout", "-NOPERM not this key", 1);
	assert_int_equal(tw_redis_open(&other, &options, NULL), TW_REDIS_REFUSED);
}

/* Redis 7 takes a script's first line, and refuses a command about keys that the script does not
 * name. */
TEST(opened, script_is_sent_as_the_version_of_the_server_takes_it)
{
	static const struct {
		int version;
		unsigned keys;
		bool flagged;
	} cases[] = {{6, 12, false}, {7, 1, true}};
	char error[64];

	snprintf(error, sizeof(error), "ASK 7 127.0.0.1:%d", server.port);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tw_redis *other;

		false_server_be(&server, cases[i].version, false);
		other = open_with(TW_SECOND);
		fail_with(error, 1);
		assert_ok(other, cancel_task(other, "a"));
		assert_int_equal(scripts.keys, cases[i].keys);
		tw_redis_close(other);
		/* This script may run while the memory is full. */
		other = open_with(TW_SECOND);
		assert_ok(other, tw_redis_pause(other, true));
		assert_int_equal(scripts.flagged, cases[i].flagged);
		tw_redis_close(other);
	}
}
