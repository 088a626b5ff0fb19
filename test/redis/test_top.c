/* SPDX-License-Identifier: MIT */
/* These tests run twr top on a terminal, in a pipe and as JSON, for Redis and for a worker. */
#include "support/fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "support/http_server.h"
#include "support/pages.h"
#include "support/sockets.h"
#include "support/wait.h"

static struct program_environment environment;
static struct program worker;
static struct program top;
static const char *const no_options[] = {NULL};
static const struct winsize screen = {.ws_row = 20, .ws_col = 200};

static int open_all(void **state)
{
	struct fixture *fixture;
	int result = fixture_open(state);

	fixture = *state;
	environment = (struct program_environment){.url = fixture->server.url,
						   .name_space = fixture->name_space};
	worker = (struct program){.output = -1};
	top = (struct program){.output = -1};
	return result;
}

static int close_all(void **state)
{
	program_end(&top);
	program_end(&worker);
	return fixture_close(state);
}

static void top_start(const char *const *options)
{
	const char *words[8] = {"top", "--shards=4", "--interval=100ms"};
	size_t count = 3;

	for (; *options; options++)
		words[count++] = *options;
	program_start(&top, &environment, words);
}

static void top_end(int signal)
{
	kill(top.pid, signal);
	assert_int_equal(program_wait(&top), 0);
	assert_null(strstr(program_text(&top), "Sanitizer"));
}

/* Starts a worker, and returns "--worker=http://127.0.0.1:PORT". */
static const char *worker_option(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "--worker=http://127.0.0.1:%d/",
		 pages_start(&worker, &environment, no_options));
	return text;
}

/* Makes the key a dead letter before a worker could claim it. */
static void bury(struct tw_redis *redis, const char *key, const char *reason)
{
	struct tw_redis_batch *batch = claim_new(redis, key, TW_MINUTE);

	assert_ok(redis, tw_redis_fail(redis, only_job(batch), 1, TW_FOREVER, reason, NULL));
	tw_redis_batch_free(batch);
}

static void counts_of_redis_are_lines_in_a_pipe(void **state)
{
	struct fixture *fixture = *state;

	add_task(fixture->redis, "a", TW_HOUR);
	bury(fixture->redis, "b", "so");
	top_start(no_options);
	assert_true(program_wait_text(&top, "scheduled 1  started 0  due 0  dead 1  oldest due"));
	add_task(fixture->redis, "c", TW_HOUR);
	assert_true(program_wait_text(&top, "\nscheduled 2  started 0  due 0  dead 1  "));
	assert_null(strchr(program_text(&top), '\033'));
	top_end(SIGTERM);
}

static void waiting_task_is_shown_with_its_age(void **state)
{
	struct fixture *fixture = *state;
	const json_t *tasks;
	json_t *status;

	add_task(fixture->redis, "a", TW_HOUR);
	redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, "a",
			     -3600 * 1000);
	top_start(ARGUMENTS("--json"));
	assert_true(program_wait_text(&top, "}\n"));
	status = json_loads(program_text(&top), JSON_DISABLE_EOF_CHECK, NULL);
	tasks = json_object_get(status, "tasks");
	assert_int_equal(json_integer_value(json_object_get(tasks, "due")), 1);
	assert_int_equal(json_integer_value(json_object_get(tasks, "scheduled")), 1);
	assert_in_range(json_number_value(json_object_get(tasks, "oldest_due_s")), 3600, 7200);
	json_decref(status);
	top_end(SIGINT);
}

static void worker_is_asked_without_redis(void **state)
{
	struct fixture *fixture = *state;
	const char *option = worker_option();

	add_task(fixture->redis, "a", TW_HOUR);
	/* Nothing listens there. */
	environment.url = "redis://127.0.0.1:1";
	top_start(ARGUMENTS(option));
	assert_true(program_wait_text(&top, "scheduled 1  started 0  due 0  dead 0  "));
	assert_true(program_wait_text(&top, "per second: claimed 0.0  done 0.0  "));
	top_end(SIGHUP);
}

static void nobody_there_is_unreachable(void **state)
{
	char option[64];
	int port = port_free();

	for (int tls = 0; tls < 2; tls++) {
		snprintf(option, sizeof(option), "--worker=http%s://127.0.0.1:%d", tls ? "s" : "",
			 port);
		top_start(ARGUMENTS(option));
		assert_int_equal(program_wait(&top), 69);
		assert_non_null(strstr(program_text(&top), "twr: no answer: "));
		program_end(&top);
	}
	environment.url = "redis://127.0.0.1:1";
	top_start(no_options);
	assert_int_equal(program_wait(&top), 69);
}

static const char forbidden[] = "forbidden";

/* Answers with the context's text, with status 403 for that one. NULL is an endless answer. */
static void answer_with(void *context, const struct http_request *request,
			struct http_answer *answer)
{
	if (context == forbidden)
		answer->status = 403;
	answer->body = context;
	answer->body_size = SIZE_MAX;
}

/* Starts a server that is no worker, and sends this text. */
static void false_worker_start(struct http_server *http, const char *text)
{
	static char option[64];

	http_server_start(http, answer_with, (void *)(uintptr_t)text);
	snprintf(option, sizeof(option), "--worker=http://127.0.0.1:%d", http->port);
	top_start(ARGUMENTS(option));
}

static void answer_of_another_server_is_refused(void **state)
{
	static const char *const answers[][2] = {
		{"", "the answer is not from a worker"},
		{"<html>", "the answer is not from a worker"},
		{"[]", "the answer is not from a worker"},
		{NULL, "the answer is not from a worker"},
		{forbidden, "HTTP 403"},
	};
	struct http_server http;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		false_worker_start(&http, answers[i][0]);
		assert_int_equal(program_wait(&top), 69);
		assert_non_null(strstr(program_text(&top), answers[i][1]));
		program_end(&top);
		http_server_stop(&http);
	}
}

static void what_a_worker_does_not_say_is_left_open(void **state)
{
	static const char *const answers[][2] = {
		{"{}",
		 "scheduled -  started -  due -  dead -  oldest due -  "
		 "per second: claimed -  done -  retried -  dead -  lateness: p50 -, p99 -\n"},
		{"{\"tasks\": {\"dead\": \"all\", \"oldest_due_s\": \"\"}, "
		 "\"seconds\": [{\"late_p50_s\": -1, \"late_p99_s\": 4e9}]}",
		 "dead -  oldest due -  per second: claimed -  done -  retried -  dead -  "
		 "lateness: p50 -, p99 -\n"},
		{"{\"seconds\": [{\"done\": 7}, {\"done\": 8.25, \"late_p50_s\": 0.5, "
		 "\"late_p99_s\": 2}]}",
		 "claimed -  done 8.2  retried -  dead -  lateness: p50 500.0 ms, p99 2.00 s\n"},
	};
	struct http_server http;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		false_worker_start(&http, answers[i][0]);
		assert_true(program_wait_text(&top, answers[i][1]));
		top_end(SIGTERM);
		program_end(&top);
		http_server_stop(&http);
	}
}

static void output_that_is_gone_ends_it(void **state)
{
	environment.standard_output = "/dev/full";
	top_start(no_options);
	assert_int_equal(program_wait(&top), 71);
	assert_non_null(strstr(program_text(&top), "standard output can't be written"));
}

static void bad_options_are_refused(void **state)
{
	char url[3000];

	top_start(ARGUMENTS("--worker=ftp://127.0.0.1/"));
	assert_int_equal(program_wait(&top), 2);
	program_end(&top);
	snprintf(url, sizeof(url), "--worker=http://127.0.0.1/%02500d", 0);
	top_start(ARGUMENTS(url));
	assert_int_equal(program_wait(&top), 2);
	assert_non_null(strstr(program_text(&top), "twr: "));
	program_end(&top);
	top_start(ARGUMENTS("--interval=1ms"));
	assert_int_equal(program_wait(&top), 2);
	program_end(&top);
	top_start(ARGUMENTS("--listen=127.0.0.1:0"));
	assert_int_equal(program_wait(&top), 2);
}

static void end_of_redis_is_shown_and_outlived(void **state)
{
	struct redis_server server;
	struct tw_redis_options options = {.url = server.url, .shards = 4};
	struct tw_redis *redis;

	redis_server_start(&server, NULL);
	environment.url = server.url;
	options.name_space = environment.name_space;
	top_start(ARGUMENTS("--patience=0"));
	assert_true(program_wait_text(&top, "scheduled 0  "));
	redis_server_end(&server, SIGKILL);
	assert_true(program_wait_text(&top, "twr: "));
	redis_server_restart(&server);
	redis = client_open(&options);
	add_task(redis, "a", TW_HOUR);
	tw_redis_close(redis);
	assert_true(program_wait_text(&top, "scheduled 1  "));
	top_end(SIGTERM);
	redis_server_stop(&server);
}

/* ---- On a terminal ---- */

/* Starts twr top on a terminal of that size, and the worker without a terminal. */
static void screen_start(const char *const *options)
{
	environment.terminal = &screen;
	top_start(options);
}

static void screen_is_redrawn_and_given_back(void **state)
{
	static const char begin[] = "\033[?1049h\033[?25l\033[?7l\033[H";
	static const char end[] = "\033[?7h\033[?25h\033[?1049l";
	struct fixture *fixture = *state;
	const char *text;

	bury(fixture->redis, "bad\033[2J", "evil\033]0;title\a\xc2\x9b\x31m end");
	add_task(fixture->redis, "a", TW_HOUR);
	screen_start(ARGUMENTS(worker_option()));
	assert_true(program_wait_text(&top, "scheduled 1  "));
	assert_memory_equal(program_text(&top), begin, strlen(begin));
	assert_true(program_wait_text(&top, "bad%1B[2J  evil%1B]0;title%07%C2%9B1m end"));
	assert_non_null(strstr(program_text(&top), "\nready\033[K"));
	add_task(fixture->redis, "b", TW_HOUR);
	assert_true(program_wait_text(&top, "scheduled 2  "));
	/* This is Control-C. */
	assert_int_equal(write(top.terminal, "\003", 1), 1);
	assert_int_equal(program_wait(&top), 0);
	text = program_text(&top);
	assert_true(strlen(text) > strlen(end));
	assert_string_equal(text + strlen(text) - strlen(end), end);
	assert_null(strstr(text, "\033]"));
	assert_null(strstr(text, "\033[2J"));
}

static void screen_shows_any_text_and_obeys_none(void **state)
{
	struct http_server http;

	environment.terminal = &screen;
	false_worker_start(&http,
			   "{\"ready\": 1, \"groups\": [{\"name\": \"g\\u009f\", "
			   "\"waiting\": 7}], \"letters\": [{}, {\"key\": \"a\\u007fb\\u0080c"
			   "\\u009fd\\u00a0e\\u00bff\\u07ffg\", \"reason\": 7}]}");
	assert_true(program_wait_text(&top, "\n    \033[K\r\n  a%7Fb%C2%80c%C2%9Fd\xc2\xa0"
					    "e\xc2\xbf"
					    "f\xdf\xbfg  \033[K\r\n\033[J"));
	assert_non_null(strstr(program_text(&top), "\nnot ready\033[K"));
	assert_non_null(strstr(program_text(&top), "  waiting  running  group\033[K\r\n"
						   "        7        -  g%C2%9F\033[K\r\n"));
	top_end(SIGTERM);
	program_end(&top);
	http_server_stop(&http);
	false_worker_start(&http, "{}");
	assert_true(program_wait_text(&top, "\nnot ready\033[K\r\nscheduled -  "));
	assert_true(program_wait_text(&top, "\ndead letters\033[K\r\n\033[J"));
	top_end(SIGTERM);
	http_server_stop(&http);
}

static void screen_shows_each_namespace(void **state)
{
	struct fixture *fixture = *state;
	char namespaces[128];
	char option[64];

	snprintf(namespaces, sizeof(namespaces), "--namespace=%s=3,%s.2", fixture->name_space,
		 fixture->name_space);
	snprintf(option, sizeof(option), "--worker=http://127.0.0.1:%d/",
		 pages_start(&worker, &environment, ARGUMENTS(namespaces)));
	snprintf(namespaces, sizeof(namespaces), "  %s.2\033[K", fixture->name_space);
	screen_start(ARGUMENTS(option));
	assert_true(program_wait_text(&top, "  namespace\033[K"));
	assert_true(program_wait_text(&top, namespaces));
	top_end(SIGTERM);
}

static void screen_shows_the_end_of_redis_and_outlives_it(void **state)
{
	struct redis_server server;
	struct tw_redis_options options = {.url = server.url, .shards = 4};
	struct tw_redis *redis;
	char refused[100];

	redis_server_start(&server, NULL);
	environment.url = server.url;
	options.name_space = environment.name_space;
	screen_start(ARGUMENTS("--patience=0"));
	assert_true(program_wait_text(&top, "twr top  Redis\033[K\r\n\033[K\r\nscheduled 0  "));
	redis_server_end(&server, SIGKILL);
	snprintf(refused, sizeof(refused), ": %s\033[K\r\n\033[J", strerror(ECONNREFUSED));
	assert_true(program_wait_text(&top, refused));
	redis_server_restart(&server);
	redis = client_open(&options);
	add_task(redis, "a", TW_HOUR);
	tw_redis_close(redis);
	assert_true(program_wait_text(&top, "scheduled 1  "));
	top_end(SIGTERM);
	assert_null(strstr(program_text(&top), "per second"));
	redis_server_stop(&server);
}

static void json_is_no_screen(void **state)
{
	screen_start(ARGUMENTS("--json"));
	assert_true(program_wait_text(&top, "}\r\n{\"tasks\":"));
	top_end(SIGTERM);
	assert_null(strchr(program_text(&top), '\033'));
}

/* The last frame has all its dead letters. */
static void assert_frames_have(int most, const struct winsize *size)
{
	const char *frame;
	int lines = 0;

	environment.terminal = size;
	top_start(ARGUMENTS(worker_option()));
	assert_true(program_wait_text(&top, "  so\033[K"));
	assert_non_null(strstr(program_text(&top), "dead letters"));
	assert_true(program_wait_text(&top, "\033[J\033[H"));
	top_end(SIGTERM);
	for (const char *at = strstr(program_text(&top), "\033[H"); *at && strncmp(at, "\033[J", 3);
	     at++)
		lines += *at == '\n';
	assert_in_range(lines, 5, most);
	lines = 0;
	frame = strstr(top.text, "  so\033[K");
	while (strncmp(frame, "\033[H", 3) != 0)
		frame--;
	for (; *frame && strncmp(frame, "\033[J", 3) != 0; frame++)
		lines += *frame == '\n';
	assert_int_equal(lines, most);
	program_end(&top);
	environment.terminal = NULL;
	program_end(&worker);
}

static void screen_has_no_more_lines_than_the_terminal(void **state)
{
	static const struct winsize unknown = {0};
	struct fixture *fixture = *state;
	char key[KEY_SIZE];

	for (int i = 0; i < 30; i++) {
		number_key(key, i);
		bury(fixture->redis, key, "so");
	}
	assert_frames_have(19, &screen);
	/* The default is the most common size of a terminal. */
	assert_frames_have(23, &unknown);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(counts_of_redis_are_lines_in_a_pipe),
		TEST(waiting_task_is_shown_with_its_age),
		TEST(worker_is_asked_without_redis),
		TEST(nobody_there_is_unreachable),
		TEST(answer_of_another_server_is_refused),
		TEST(what_a_worker_does_not_say_is_left_open),
		TEST(output_that_is_gone_ends_it),
		TEST(bad_options_are_refused),
		TEST(end_of_redis_is_shown_and_outlived),
		TEST(screen_is_redrawn_and_given_back),
		TEST(screen_shows_any_text_and_obeys_none),
		TEST(screen_shows_each_namespace),
		TEST(screen_shows_the_end_of_redis_and_outlives_it),
		TEST(json_is_no_screen),
		TEST(screen_has_no_more_lines_than_the_terminal),
	};

	return FIXTURE_RUN(tests);
}
