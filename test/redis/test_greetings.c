/* SPDX-License-Identifier: MIT */
/*
 * What becomes of calls whose server refuses as it is connected to anew: those errors that pass are
 * waited for, the others are told. The server is a false one.
 */
#include "support/fixture.h"

#include <stdio.h>

#include "client.h"
#include "support/false_server.h"

enum { FOR_EVER = 1000000 };

static struct false_server server;
static struct tw_redis *redis;

/* A call about "break" breaks the connection. */
static size_t answer_or_break(void *context, const redisReply *request, char *reply, size_t room)
{
	(void)context;
	for (size_t i = 3; i < request->elements; i++)
		if (!strcmp(request->element[i]->str, "break"))
			return FALSE_CLOSE;
	return (size_t)snprintf(reply, room, ":0\r\n");
}

static int open_all(void **state)
{
	*state = NULL;
	false_server_start(&server, answer_or_break, NULL);
	redis = client_open(&(struct tw_redis_options){
		.url = server.url, .shards = 4, .password = "p", .patience = 5 * TW_SECOND});
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	tw_redis_close(redis);
	false_server_stop(&server);
	return 0;
}

/* The next call has to connect, and is answered so, so often. */
static void refuse_next(const char *word, const char *error, int times)
{
	assert_int_equal(cancel_task(redis, "break"), TW_REDIS_OUTCOME_UNKNOWN);
	false_server_refuse(&server, word, error, times);
}

static const char *const words[] = {"AUTH", "CLIENT", "INFO"};
static const char *const passing[] = {"-BUSY Redis is busy running a script.",
				      "-LOADING Redis is loading the dataset in memory",
				      "-MASTERDOWN Link with MASTER is down", "-TRYAGAIN not now",
				      "-ERR max number of clients reached"};

static void server_that_is_not_ready_is_connected_to_again(void **state)
{
	(void)state;
	for (size_t word = 0; word < sizeof(words) / sizeof(words[0]); word++) {
		for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
			refuse_next(words[word], passing[i], 2);
			assert_ok(redis, cancel_task(redis, "a"));
		}
	}
}

static void server_that_does_not_get_ready_is_told_as_it_said(void **state)
{
	struct tw_redis_error error;

	(void)state;
	refuse_next("INFO", passing[0], FOR_EVER);
	tw_redis_set_patience(50 * TW_MILLISECOND);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_UNREACHABLE);
	tw_redis_set_patience(0);
	tw_redis_last_error(redis, &error);
	assert_string_equal(error.text, passing[0] + 1);
}

static void opening_tries_once_and_tells_it_too(void **state)
{
	struct tw_redis_error error;
	struct tw_redis *other;

	(void)state;
	false_server_refuse(&server, "INFO", passing[0], 1);
	assert_int_equal(
		tw_redis_open(&other, &(struct tw_redis_options){.url = server.url}, &error),
		TW_REDIS_UNREACHABLE);
	assert_string_equal(error.text, passing[0] + 1);
}

static void refused_login_ends_the_call(void **state)
{
	(void)state;
	refuse_next("AUTH", "-WRONGPASS invalid username-password pair", FOR_EVER);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_REFUSED);
}

/* Commands for all shards, in one pass, and a patience that lets none try again. */
static void all_commands_of_a_pass_are_told_the_refusal(void **state)
{
	static const char refusal[] = "WRONGPASS invalid username-password pair";
	struct command commands[4] = {0};
	struct call *call;

	(void)state;
	refuse_next("AUTH", "-WRONGPASS invalid username-password pair", FOR_EVER);
	/* The second time it is not asked again, so soon after. */
	for (int time = 0; time < 2; time++) {
		call = call_begin(&redis->access->calls);
		for (unsigned i = 0; i < 4; i++)
			command_begin(&commands[i], &script_count, &redis->space, i);
		tw_redis_set_patience(-1);
		call_run(&redis->access->calls, call, commands, 4);
		tw_redis_set_patience(0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(commands[i].status, TW_REDIS_REFUSED);
		assert_string_equal(call->error.text, refusal);
		call_end(&redis->access->calls, call, TW_REDIS_REFUSED);
	}
	for (unsigned i = 0; i < 4; i++)
		command_free(&commands[i]);
}

#define GREETING_TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GREETING_TEST(server_that_is_not_ready_is_connected_to_again),
		GREETING_TEST(server_that_does_not_get_ready_is_told_as_it_said),
		GREETING_TEST(opening_tries_once_and_tells_it_too),
		GREETING_TEST(refused_login_ends_the_call),
		GREETING_TEST(all_commands_of_a_pass_are_told_the_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
