/* SPDX-License-Identifier: MIT */
/*
 * A server refuses a call's new connection, or a call, or sends it elsewhere. Calls retry temporary
 * errors and return the others (test_errors.c has each error of a call). These tests also check
 * other answers of a server or a Sentinel to a greeting. Both are false ones.
 */
#include "support/fixture.h"

#include "redis/client/client.h"
#include "support/false_server.h"
#include "support/sockets.h"

enum { FOR_EVER = 1000000, URL_SIZE = 160, REPLY_SIZE = 512, ERROR_SIZE = 400 };

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

/* A call about "break" breaks the connection. */
static size_t answer_or_break(void *context, const redisReply *request, char *reply, size_t room)
{
	size_t size;

	for (size_t i = 3; i < request->elements; i++)
		if (!strcmp(request->element[i]->str, "break"))
			return FALSE_CLOSE;
	pthread_mutex_lock(&scripts.lock);
	scripts.asked++;
	scripts.keys = (unsigned)atoi(request->element[2]->str);
	scripts.flagged |= !strncmp(request->element[1]->str, "#!", 2);
	size = (size_t)snprintf(reply, room, "%s\r\n", scripts.errors > 0 ? scripts.error : ":0");
	scripts.errors -= scripts.errors > 0;
	pthread_mutex_unlock(&scripts.lock);
	return size;
}

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

static struct tw_redis *open_with(tw_duration patience)
{
	return client_open(&(struct tw_redis_options){
		.url = server.url, .shards = 4, .password = "p", .patience = patience});
}

static int open_all(void **state)
{
	*state = NULL;
	false_server_start(&server, answer_or_break, NULL);
	fail_with("", 0);
	redis = open_with(5 * TW_SECOND);
	return 0;
}

static int close_all(void **state)
{
	client_close(redis);
	false_server_stop(&server);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

/* The next call has to connect, and gets this error `times` times. */
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

TEST(opened, server_that_is_not_ready_is_connected_to_again)
{
	for (size_t word = 0; word < sizeof(words) / sizeof(words[0]); word++) {
		for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
			refuse_next(words[word], passing[i], 2);
			assert_ok(redis, cancel_task(redis, "a"));
		}
	}
}

TEST(opened, error_of_a_server_that_stays_unready_is_reported)
{
	struct tw_redis_error error;

	refuse_next("INFO", passing[0], FOR_EVER);
	set_patience(redis, 50 * TW_MILLISECOND);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_UNREACHABLE);
	set_patience(redis, 0);
	tw_redis_last_error(redis, &error);
	assert_string_equal(error.text, passing[0] + 1);
}

TEST(opened, opening_tries_once_and_reports_it_too)
{
	struct tw_redis_error error;
	struct tw_redis *other;

	for (int i = 0; i < 2; i++) {
		false_server_refuse(&server, i ? "layout" : "INFO", passing[0], 1);
		assert_int_equal(tw_redis_open(&other,
					       &(struct tw_redis_options){.url = server.url},
					       &error),
				 TW_REDIS_UNREACHABLE);
		assert_string_equal(error.text, passing[0] + 1);
	}
}

TEST(opened, layout_of_another_kind_is_reported)
{
	static const struct {
		const char *reply;
		const char *words;
	} cases[] = {
		{"$1\r\nx", "can't be read"},
		{"$1\r\n4", "can't be read"},
		{"$3\r\n4 0", "can't be read"},
		{"$9\r\n4 1000000", "can't be read"},
		{"$3\r\n3 4", "has layout 3, expected 4: move its tasks by `twr list --json` of"},
		{"$3\r\n4 5", "has 5 shards, expected 4"}};
	struct tw_redis *other;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tw_redis_error error;

		false_server_refuse(&server, "layout", cases[i].reply, 1);
		assert_int_equal(
			tw_redis_open(&other,
				      &(struct tw_redis_options){.url = server.url, .shards = 4},
				      &error),
			TW_REDIS_UNFIT);
		assert_null(other);
		assert_non_null(strstr(error.text, cases[i].words));
	}
}

/* These are more than one command for each shard takes. */
TEST(opened, tasks_that_do_not_reach_the_server_have_the_status_each)
{
	enum { COUNT = 600 };
	static struct tw_redis_task tasks[COUNT];
	static struct tw_redis_added each[COUNT];
	struct tw_redis_error error;

	for (int i = 0; i < COUNT; i++)
		tasks[i] = (struct tw_redis_task){.key = "k", .key_size = 1};
	/* One of them is invalid, and so is one of the last. */
	tasks[1].key_size = tasks[COUNT - 1].key_size = 0;
	refuse_next("INFO", passing[0], FOR_EVER);
	set_patience(redis, 50 * TW_MILLISECOND);
	assert_int_equal(tw_redis_add(redis, tasks, COUNT, each), TW_REDIS_UNREACHABLE);
	set_patience(redis, 0);
	tw_redis_last_error(redis, &error);
	assert_string_equal(error.text, passing[0] + 1);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(each[i].status, i == 1 ? TW_INVALID : TW_REDIS_UNREACHABLE);
}

TEST(opened, refused_login_ends_the_call)
{
	refuse_next("AUTH", "-WRONGPASS invalid username-password pair", FOR_EVER);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_REFUSED);
}

/* One pass has commands for all shards, and the patience allows no retry. */
TEST(opened, all_evals_of_a_pass_return_the_refusal)
{
	static const char refusal[] = "WRONGPASS invalid username-password pair";
	struct eval evals[4] = {0};
	struct call *call;

	refuse_next("AUTH", "-WRONGPASS invalid username-password pair", FOR_EVER);
	/* The second time it is not asked, for the refusal is recent. */
	for (int time = 0; time < 2; time++) {
		call = call_begin(&redis->access->calls);
		for (unsigned i = 0; i < 4; i++)
			eval_begin(&evals[i], &script_count, &redis->space, i);
		set_patience(redis, -1);
		call_run(&redis->access->calls, call, evals, 4);
		set_patience(redis, 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(evals[i].status, TW_REDIS_REFUSED);
		assert_string_equal(call->error.text, refusal);
		call_end(&redis->access->calls, call, TW_REDIS_REFUSED);
	}
	for (unsigned i = 0; i < 4; i++)
		eval_free(&evals[i]);
}

/* Opening returns that status and that text. */
static void assert_opens(const struct tw_redis_options *options, enum tw_status expected,
			 const char *said)
{
	struct tw_redis_error error = {0};
	struct tw_redis *other;
	enum tw_status status = tw_redis_open(&other, options, &error);

	if (status != expected || error.status != status || !strstr(error.text, said))
		fail_msg("%s, not %s: %s", tw_status_name(status), tw_status_name(expected),
			 error.text);
	assert_int_equal(status == TW_OK, other != NULL);
	client_close(other);
}

TEST(opened, server_is_judged_by_its_info)
{
	static const char fine[] = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n";
	static const struct {
		const char *info;
		enum tw_status status;
		const char *said;
	} cases[] = {
		{fine, TW_OK, ""},
		/* Only the policy is checked if other fields are missing. */
		{"maxmemory_policy:noeviction\r\n", TW_OK, ""},
		{"", TW_REDIS_UNFIT, "eviction policy"},
		{"redis_version:4.0.14\r\nmaxmemory_policy:noeviction\r\n", TW_REDIS_UNFIT,
		 "Redis 5"},
		{"maxmemory_policy:allkeys-lru\r\n", TW_REDIS_UNFIT, "allkeys-lru may"},
		{"maxmemory_policy:allkeys-random\r\n", TW_REDIS_UNFIT, "allkeys-random may"},
		{"maxmemory_policy:volatile-lru\r\n", TW_OK, ""},
		{"redis_mode:sentinel\r\n", TW_REDIS_UNFIT, "is a Sentinel"},
		/* Valkey reports it so. */
		{"redis_version:7.2.4\r\nserver_mode:sentinel\r\n", TW_REDIS_UNFIT,
		 "is a Sentinel"},
		/* These names only end like the expected ones. */
		{"no_maxmemory_policy:noeviction\r\n", TW_REDIS_UNFIT, "eviction policy"},
		{"no_maxmemory_policy:allkeys-lru\r\nmaxmemory_policy:noeviction\r\n", TW_OK, ""},
	};
	const struct tw_redis_options options = {.url = server.url, .shards = 4};
	char reply[REPLY_SIZE];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(reply, sizeof(reply), "$%zu\r\n%s", strlen(cases[i].info), cases[i].info);
		false_server_refuse(&server, "INFO", reply, 1);
		assert_opens(&options, cases[i].status, cases[i].said);
	}
}

TEST(opened, unexpected_answer_to_a_greeting_is_reported)
{
	static const struct {
		const char *word;
		const char *reply;
		enum tw_status status;
		const char *said;
	} cases[] = {
		{"INFO", "+OK", TW_REDIS_UNFIT, "eviction policy"},
		{"INFO", "-NOPERM no permissions", TW_REDIS_UNFIT, "NOPERM"},
		{"INFO", "-NOAUTH Authentication required.", TW_REDIS_REFUSED, "NOAUTH"},
		{"INFO", "?", TW_REDIS_UNREACHABLE, "Protocol error"},
		{"AUTH", "?", TW_REDIS_UNREACHABLE, "Protocol error"},
		{"AUTH", "-ERR AUTH called without any password configured", TW_REDIS_REFUSED,
		 "without any password"},
		/* A client name is optional. */
		{"CLIENT", "-NOPERM no permissions", TW_OK, ""},
	};
	const struct tw_redis_options options = {.url = server.url, .shards = 4, .password = "p"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		false_server_refuse(&server, cases[i].word, cases[i].reply, 1);
		assert_opens(&options, cases[i].status, cases[i].said);
	}
}

TEST(opened, server_without_scripts_is_unfit)
{
	static const char *const errors[] = {
		"-ERR unknown command 'EVAL', with args beginning with: ",
		"-ERR unknown command `EVAL`, with args beginning with: ",
		"-ERR Could not find scripting engine 'lua'"};
	const struct tw_redis_options options = {.url = server.url, .shards = 4};
	struct tw_redis_error error;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		false_server_refuse(&server, "layout", errors[i], 1);
		assert_opens(&options, TW_REDIS_UNFIT, "the server does not run scripts (EVAL): ");
	}
	/* Another server at the address may lack them, too. */
	false_server_refuse(&server, "EVAL", errors[0], 1);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_UNFIT);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "does not run scripts (EVAL): ERR unknown command"));
}

/* No client asks for RESP3, so its messages are not from a usable Redis. */
TEST(opened, message_of_resp3_is_taken_for_no_reply)
{
	static const char push[] = ">2\r\n$10\r\ninvalidate\r\n*0\r\n";
	const struct tw_redis_options options = {.url = server.url, .shards = 4};
	/* The last that a connection sends comes first: a server that is slow may read the rest
	 * of it later. */
	static const char *const replies[][2] = {{"layout", "$3\r\n4 4"},
						 {"INFO", "$28\r\nmaxmemory_policy:noeviction\r\n"},
						 {"CLIENT", "+OK"}};
	struct tw_redis_error error;
	char reply[REPLY_SIZE];

	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		snprintf(reply, sizeof(reply), "%s%s", push, replies[i][1]);
		false_server_refuse(&server, replies[i][0], reply, 1);
		assert_opens(&options, TW_REDIS_UNREACHABLE, "Protocol error");
	}
	/* The call's reply is lost with the connection, and the next call gets its own. */
	snprintf(reply, sizeof(reply), "%s:-2", push);
	false_server_refuse(&server, "EVAL", reply, 1);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_OUTCOME_UNKNOWN);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "Protocol error"));
	assert_ok(redis, cancel_task(redis, "a"));
}

TEST(opened, greeting_that_takes_too_long_is_given_up)
{
	const struct tw_redis_options options = {.url = server.url, .reply_timeout = 1};

	assert_opens(&options, TW_REDIS_UNREACHABLE, "the reply timed out");
}

static void sentinel_says(const char *host, const char *port, char reply[REPLY_SIZE])
{
	snprintf(reply, REPLY_SIZE, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s", strlen(host), host,
		 strlen(port), port);
	false_server_refuse(&server, "SENTINEL", reply, 1);
}

TEST(opened, sentinel_must_give_an_address)
{
	static const struct {
		const char *reply;
		enum tw_status status;
		const char *said;
	} cases[] = {
		{"$-1", TW_REDIS_UNFIT, "no master named main"},
		{"*-1", TW_REDIS_UNFIT, "no master named main"},
		{"*0", TW_REDIS_UNFIT, "no address"},
		{"*1\r\n$9\r\n127.0.0.1", TW_REDIS_UNFIT, "no address"},
		{"*2\r\n:127\r\n$4\r\n6379", TW_REDIS_UNFIT, "no address"},
		{"*2\r\n$9\r\n127.0.0.1\r\n:6379", TW_REDIS_UNFIT, "no address"},
		{"-ERR unknown command", TW_REDIS_UNFIT, "unknown command"},
		{"-NOAUTH Authentication required.", TW_REDIS_REFUSED, "NOAUTH"},
		{"-LOADING not yet", TW_REDIS_UNREACHABLE, "LOADING"},
		{"?", TW_REDIS_UNREACHABLE, "Protocol error"},
	};
	static const char *const wrong_ports[] = {"", "x", "0", "-1", "65536", "4294967295"};
	char url[URL_SIZE];
	const struct tw_redis_options options = {.url = url, .shards = 4};
	char longest[256 + 1];
	char reply[REPLY_SIZE];
	char port[8];

	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/main", server.port);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		false_server_refuse(&server, "SENTINEL", cases[i].reply, 1);
		assert_opens(&options, cases[i].status, cases[i].said);
	}
	for (size_t i = 0; i < sizeof(wrong_ports) / sizeof(wrong_ports[0]); i++) {
		sentinel_says("127.0.0.1", wrong_ports[i], reply);
		assert_opens(&options, TW_REDIS_UNFIT, "no address");
	}
	memset(longest, 'h', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	sentinel_says(longest, "6379", reply);
	assert_opens(&options, TW_REDIS_UNFIT, "no address");
	snprintf(port, sizeof(port), "%d", server.port);
	sentinel_says("127.0.0.1", port, reply);
	assert_opens(&options, TW_OK, "");
}

/* The Sentinel has old information. */
TEST(opened, replica_reported_as_the_master_is_refused)
{
	char url[URL_SIZE];
	const struct tw_redis_options options = {.url = url, .shards = 4};
	char reply[REPLY_SIZE];
	char port[8];

	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/main", server.port);
	snprintf(port, sizeof(port), "%d", server.port);
	sentinel_says("127.0.0.1", port, reply);
	false_server_refuse(&server, "INFO", "$39\r\nmaxmemory_policy:noeviction\r\nrole:slave", 1);
	assert_opens(&options, TW_REDIS_UNREACHABLE, "should be the master but is a replica");
}

TEST(opened, word_of_a_sentinel_that_answers_counts_more)
{
	char url[URL_SIZE];
	const struct tw_redis_options options = {.url = url};
	int away = port_free();

	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/main", server.port,
		 away);
	false_server_refuse(&server, "SENTINEL", "$-1", 1);
	assert_opens(&options, TW_REDIS_UNFIT, "no master named main");
	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/main", away,
		 server.port);
	false_server_refuse(&server, "SENTINEL", "$-1", 1);
	assert_opens(&options, TW_REDIS_UNFIT, "no master named main");
}

TEST(opened, login_at_a_sentinel_may_fail)
{
	char url[URL_SIZE];
	const struct tw_redis_options options = {.url = url, .sentinel_password = "p"};

	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/main", server.port);
	false_server_refuse(&server, "AUTH", "?", 1);
	assert_opens(&options, TW_REDIS_UNREACHABLE, "Protocol error");
	false_server_refuse(&server, "AUTH", "-WRONGPASS invalid password", 1);
	assert_opens(&options, TW_REDIS_REFUSED, "WRONGPASS");
}

/* ---- Redirects, and the scripts that are sent ---- */

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
	/* Two nodes redirect to each other for a while. */
	snprintf(error, sizeof(error), "MOVED 7 127.0.0.1:%d", server.port);
	fail_with(error, 9);
	assert_ok(redis, cancel_task(redis, "a"));
	assert_int_equal(asked(), 10);
	/* The redirect leads to a closed port. */
	snprintf(error, sizeof(error), "MOVED 7 127.0.0.1:%d", port_free());
	fail_with(error, 1);
	assert_int_equal(cancel_task(other, "a"), TW_REDIS_UNREACHABLE);
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
	client_close(client_open(&options));
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
		client_close(other);
		/* This script may run while the memory is full. */
		other = open_with(TW_SECOND);
		assert_ok(other, tw_redis_set_limits(other, NULL, &(struct tw_redis_limits){0}));
		assert_int_equal(scripts.flagged, cases[i].flagged);
		client_close(other);
	}
}
