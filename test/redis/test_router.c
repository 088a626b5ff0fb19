/* SPDX-License-Identifier: MIT */
/*
 * What a call makes of a server's errors: which it asks again after, how long, and which end it.
 * The server is a false one that answers every script with the error that the test wants, so often.
 */
#include "support/fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/sockets.h"
#include "support/wait.h"

enum { CONNECTIONS = 32, REQUEST_MAX = 16384, FOR_EVER = 1000000 };

static struct {
	int port;
	int listener;
	pthread_t thread;
	int connections[CONNECTIONS]; /* -1: it was closed */
	size_t open;

	pthread_mutex_t lock; /* for all below */
	char error[160];      /* what scripts are answered, with the - before it */
	int errors;           /* so often; then 0 */
	size_t asked;         /* scripts so far */
	bool stop;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct tw_redis *redis;

static void answer_script(char *answer, size_t room)
{
	pthread_mutex_lock(&server.lock);
	server.asked++;
	snprintf(answer, room, "%s\r\n", server.errors > 0 ? server.error : ":0");
	server.errors -= server.errors > 0;
	pthread_mutex_unlock(&server.lock);
}

/* Requests come whole: they are short, and each waits for its answer; ASKING and CLIENT SETNAME
 * precede another. */
static void answer(int connection, const char *request)
{
	static const char info[] =
		"redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\ncluster_enabled:0\r\n";
	char text[256];

	if (strstr(request, "\r\nASKING\r\n") || strstr(request, "\r\nSETNAME\r\n"))
		socket_send(connection, "+OK\r\n", 5);
	if (strstr(request, "\r\nEVAL"))
		answer_script(text, sizeof(text));
	else if (strstr(request, "\r\nINFO\r\n"))
		snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", strlen(info), info);
	else if (strstr(request, "\r\nGET\r\n"))
		snprintf(text, sizeof(text), "$4\r\n1 64\r\n");
	else if (strstr(request, "\r\nCLUSTER\r\n"))
		snprintf(text, sizeof(text), "-ERR not now\r\n");
	else
		snprintf(text, sizeof(text), "+OK\r\n");
	socket_send(connection, text, strlen(text));
}

static bool should_stop(void)
{
	bool stop;

	pthread_mutex_lock(&server.lock);
	stop = server.stop;
	pthread_mutex_unlock(&server.lock);
	return stop;
}

static void take_request(int *connection)
{
	static char request[REQUEST_MAX];
	ssize_t size = recv(*connection, request, REQUEST_MAX - 1, 0);

	if (size > 0) {
		request[size] = '\0';
		answer(*connection, request);
	} else {
		close(*connection);
		*connection = -1;
	}
}

static void *serve(void *argument)
{

	while (!should_stop()) {
		struct pollfd descriptors[CONNECTIONS + 1] = {
			{.fd = server.listener, .events = POLLIN}};
		size_t open = server.open;

		for (size_t i = 0; i < open; i++)
			descriptors[i + 1] =
				(struct pollfd){.fd = server.connections[i], .events = POLLIN};
		poll(descriptors, open + 1, 20);
		if (descriptors[0].revents && open < CONNECTIONS)
			server.connections[server.open++] = accept(server.listener, NULL, NULL);
		for (size_t i = 0; i < open; i++)
			if (descriptors[i + 1].revents)
				take_request(&server.connections[i]);
	}
	return argument;
}

static int open_all(void **state)
{
	static char url[64];
	const struct tw_redis_options options = {.url = url, .patience = 5 * TW_SECOND};

	(void)state;
	server.port = 0;
	server.listener = socket_listen(&server.port);
	server.open = 0;
	server.stop = false;
	server.asked = server.errors = 0;
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
	assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
	redis = client_open(&options);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	pthread_mutex_lock(&server.lock);
	server.stop = true;
	pthread_mutex_unlock(&server.lock);
	pthread_join(server.thread, NULL);
	for (size_t i = 0; i < server.open; i++)
		if (server.connections[i] >= 0)
			close(server.connections[i]);
	close(server.listener);
	tw_redis_close(redis);
	return 0;
}

static void fail_with(const char *error, int times)
{
	pthread_mutex_lock(&server.lock);
	snprintf(server.error, sizeof(server.error), "-%s", error);
	server.errors = times;
	server.asked = 0;
	pthread_mutex_unlock(&server.lock);
}

static size_t asked(void)
{
	return locked_read(&server.lock, &server.asked);
}

static const char *const passing[] = {
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica.",
	/* In Redis 6. */
	("ERR Error running script (call to f_00): @user_script:40: @user_script: 40: -READONLY "
	 "You can't write against a read only replica."),
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"CLUSTERDOWN The cluster is down",
	"MASTERDOWN Link with MASTER is down",
	"BUSY Redis is busy running a script.",
};
enum { PASSING = sizeof(passing) / sizeof(passing[0]) };

static void server_that_is_not_ready_is_asked_again(void **state)
{
	(void)state;
	for (int i = 0; i < PASSING; i++) {
		fail_with(passing[i], 2);
		assert_ok(redis, cancel_task(redis, "a"));
		assert_int_equal(asked(), 3);
	}
}

/* As one with this patience, and not opened anew: the server's answers at opening don't matter. */
static struct tw_redis *hasty(tw_duration patience)
{
	char url[64];
	const struct tw_redis_options options = {.url = url, .patience = patience};

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
	return client_open(&options);
}

static void server_that_does_not_get_ready_is_given_up_after_the_patience(void **state)
{
	struct tw_redis *other = hasty(60 * TW_MILLISECOND);
	struct tw_redis_error error;

	(void)state;
	for (int i = 0; i < PASSING; i++) {
		int64_t before = wall_clock();

		fail_with(passing[i], FOR_EVER);
		assert_int_equal(cancel_task(other, "a"), TW_REDIS_UNREACHABLE);
		assert_true(wall_clock() - before < 5 * TW_SECOND);
		assert_in_range(asked(), 1, 5);
		tw_redis_last_error(other, &error);
		assert_memory_equal(error.text, passing[i], 4);
	}
	tw_redis_close(other);
}

/* The pauses stay short of it, and add up to it. */
static void long_patience_ends_too(void **state)
{
	struct tw_redis *other = hasty(TW_SECOND);
	int64_t before = wall_clock();

	(void)state;
	fail_with(passing[0], FOR_EVER);
	assert_int_equal(cancel_task(other, "a"), TW_REDIS_UNREACHABLE);
	assert_in_range(wall_clock() - before, 300 * TW_MILLISECOND, 5 * TW_SECOND);
	tw_redis_close(other);
}

static void redirect_is_followed_and_a_circle_of_them_ends(void **state)
{
	static const char *const kinds[] = {"MOVED", "ASK"};
	struct tw_redis *other = hasty(60 * TW_MILLISECOND);
	char error[64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		snprintf(error, sizeof(error), "%s 7 127.0.0.1:%d", kinds[i], server.port);
		fail_with(error, 2);
		assert_ok(other, cancel_task(other, "a"));
		assert_int_equal(asked(), 3);
		fail_with(error, FOR_EVER);
		assert_int_equal(cancel_task(other, "a"), TW_REDIS_UNREACHABLE);
		assert_in_range(asked(), 3, 17);
	}
	/* To nowhere: nobody is there, or it is no address at all. */
	snprintf(error, sizeof(error), "MOVED 7 127.0.0.1:%d", port_free());
	fail_with(error, 1);
	assert_int_equal(cancel_task(other, "a"), TW_REDIS_UNREACHABLE);
	fail_with("MOVED 7 nowhere", 1);
	assert_int_equal(cancel_task(other, "b"), TW_REDIS_UNREACHABLE);
	tw_redis_close(other);
}

static void error_that_will_not_pass_ends_the_call(void **state)
{
	static const struct {
		const char *error;
		enum tw_status status;
		int asked;
	} cases[] = {
		{"ERR something else", TW_REDIS_FAILED, 1},
		{"OOM command not allowed when used memory > 'maxmemory'.", TW_REDIS_FAILED, 1},
		{"NOPERM this user has no permissions", TW_REDIS_REFUSED, 1},
		{"NOAUTH Authentication required.", TW_REDIS_REFUSED, 1},
		/* Its text was sent, and still the server doesn't know it. */
		{"NOSCRIPT No matching script.", TW_REDIS_FAILED, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fail_with(cases[i].error, FOR_EVER);
		assert_int_equal(cancel_task(redis, "a"), cases[i].status);
		assert_int_equal(asked(), cases[i].asked);
	}
}

#define ROUTER_TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROUTER_TEST(server_that_is_not_ready_is_asked_again),
		ROUTER_TEST(server_that_does_not_get_ready_is_given_up_after_the_patience),
		ROUTER_TEST(long_patience_ends_too),
		ROUTER_TEST(redirect_is_followed_and_a_circle_of_them_ends),
		ROUTER_TEST(error_that_will_not_pass_ends_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
