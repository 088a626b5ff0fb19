/* SPDX-License-Identifier: MIT */
/* twr top: on a terminal, in a pipe, as JSON; of Redis and of a worker. */
#include "support/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
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

/* "--worker=http://127.0.0.1:PORT", of a new worker. */
static const char *worker_option(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "--worker=http://127.0.0.1:%d/",
		 pages_start(&worker, &environment, no_options));
	return text;
}

/* Makes the key a dead letter; before there is a worker that would claim it. */
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
	assert_true(program_wait_text(&top, "scheduled 1  started 0  due 0  dead 1  longest due"));
	add_task(fixture->redis, "c", TW_HOUR);
	assert_true(program_wait_text(&top, "\nscheduled 2  started 0  due 0  dead 1  "));
	assert_null(strchr(program_text(&top), '\033'));
	top_end(SIGTERM);
}

static void task_that_waits_is_told_with_its_age(void **state)
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
	/* Nobody listens there. */
	environment.url = "redis://127.0.0.1:1";
	top_start(ARGUMENTS(option));
	assert_true(program_wait_text(&top, "scheduled 1  started 0  due 0  dead 0  "));
	assert_true(program_wait_text(&top, "a second: claimed 0.0  done 0.0  "));
	top_end(SIGHUP);
}

static void nobody_there_is_unreachable(void **state)
{
	char option[64];
	int port = port_free();

	(void)state;
	snprintf(option, sizeof(option), "--worker=http://127.0.0.1:%d", port);
	top_start(ARGUMENTS(option));
	assert_int_equal(program_wait(&top), 69);
	program_end(&top);
	environment.url = "redis://127.0.0.1:1";
	top_start(no_options);
	assert_int_equal(program_wait(&top), 69);
}

static void answer_of_another_server_is_refused(void **state)
{
	struct http_server http;
	char option[64];

	(void)state;
	http_server_start(&http, NULL, NULL);
	snprintf(option, sizeof(option), "--worker=http://127.0.0.1:%d", http.port);
	top_start(ARGUMENTS(option));
	assert_int_equal(program_wait(&top), 69);
	assert_non_null(strstr(program_text(&top), "that is no worker's answer"));
	http_server_stop(&http);
}

static void bad_options_are_refused(void **state)
{
	(void)state;
	top_start(ARGUMENTS("--worker=ftp://127.0.0.1/"));
	assert_int_equal(program_wait(&top), 2);
	program_end(&top);
	top_start(ARGUMENTS("--interval=1ms"));
	assert_int_equal(program_wait(&top), 2);
	program_end(&top);
	top_start(ARGUMENTS("--listen=127.0.0.1:0"));
	assert_int_equal(program_wait(&top), 2);
}

static void end_of_redis_is_told_and_outlived(void **state)
{
	struct redis_server server;
	struct tw_redis_options options = {.url = server.url, .shards = 4};
	struct tw_redis *redis;

	(void)state;
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

struct terminal {
	pid_t pid;
	int descriptor;
	char text[262144];
	size_t size;
};

static void terminal_start(struct terminal *terminal, const char *option)
{
	const struct winsize size = {.ws_row = 20, .ws_col = 200};
	const char *build = getenv("BUILD");
	char path[256];

	terminal->size = 0;
	snprintf(path, sizeof(path), "%s/twr", build ? build : "build");
	terminal->pid = forkpty(&terminal->descriptor, NULL, NULL, &size);
	if (terminal->pid < 0)
		support_failed("forkpty");
	if (!terminal->pid) {
		execl(path, path, "top", "--interval=100ms", option, (char *)NULL);
		_exit(127);
	}
}

/* Reads on until the text has come, or the program has ended, for half a minute at most. */
static bool terminal_wait_text(struct terminal *terminal, const char *text)
{
	struct pollfd ready = {.fd = terminal->descriptor, .events = POLLIN};

	for (int i = 0; i < 3000; i++) {
		char *end = terminal->text + terminal->size;
		size_t room = sizeof(terminal->text) - 1 - terminal->size;
		ssize_t got;

		*end = '\0';
		if (text && strstr(terminal->text, text))
			return true;
		if (poll(&ready, 1, 10) <= 0)
			continue;
		got = read(terminal->descriptor, end, room);
		if (got <= 0)
			return false;
		terminal->size += (size_t)got;
	}
	return false;
}

static int terminal_end(struct terminal *terminal)
{
	int status;

	/* To its end. */
	terminal_wait_text(terminal, NULL);
	assert_int_equal(waitpid(terminal->pid, &status, 0), terminal->pid);
	close(terminal->descriptor);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void screen_is_redrawn_and_given_back(void **state)
{
	static const char begin[] = "\033[?1049h\033[?25l\033[?7l\033[H";
	static const char end[] = "\033[?7h\033[?25h\033[?1049l";
	static struct terminal terminal;
	struct fixture *fixture = *state;
	const char *option;

	bury(fixture->redis, "bad\033[2J", "evil\033]0;title\a\xc2\x9b\x31m end");
	add_task(fixture->redis, "a", TW_HOUR);
	option = worker_option();
	terminal_start(&terminal, option);
	assert_true(terminal_wait_text(&terminal, "scheduled 1  "));
	assert_memory_equal(terminal.text, begin, strlen(begin));
	assert_true(terminal_wait_text(&terminal, "bad%1B[2J  evil%1B]0;title%07%C2%9B1m end"));
	add_task(fixture->redis, "b", TW_HOUR);
	assert_true(terminal_wait_text(&terminal, "scheduled 2  "));
	/* Control-C, as the terminal takes it. */
	assert_int_equal(write(terminal.descriptor, "\003", 1), 1);
	assert_int_equal(terminal_end(&terminal), 0);
	assert_true(terminal.size > strlen(end));
	assert_string_equal(terminal.text + terminal.size - strlen(end), end);
	assert_null(strstr(terminal.text, "\033]"));
	assert_null(strstr(terminal.text, "\033[2J"));
}

static void screen_has_no_more_lines_than_the_terminal(void **state)
{
	static struct terminal terminal;
	struct fixture *fixture = *state;
	const char *option;
	const char *frame;
	char key[KEY_SIZE];
	int lines = 0;

	for (int i = 0; i < 30; i++) {
		number_key(key, i);
		bury(fixture->redis, key, "so");
	}
	option = worker_option();
	terminal_start(&terminal, option);
	assert_true(terminal_wait_text(&terminal, "  so\033[K"));
	frame = strstr(terminal.text, "dead letters");
	assert_non_null(frame);
	assert_true(terminal_wait_text(&terminal, "\033[J\033[H"));
	kill(terminal.pid, SIGTERM);
	assert_int_equal(terminal_end(&terminal), 0);
	for (const char *at = strstr(terminal.text, "\033[H"); *at && strncmp(at, "\033[J", 3);
	     at++)
		lines += *at == '\n';
	assert_in_range(lines, 5, 19);
	/* The last frame too, which has all its dead letters. */
	lines = 0;
	frame = strstr(terminal.text, "  so\033[K");
	while (strncmp(frame, "\033[H", 3) != 0)
		frame--;
	for (; *frame && strncmp(frame, "\033[J", 3) != 0; frame++)
		lines += *frame == '\n';
	assert_int_equal(lines, 19);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(counts_of_redis_are_lines_in_a_pipe),
		TEST(task_that_waits_is_told_with_its_age),
		TEST(worker_is_asked_without_redis),
		TEST(nobody_there_is_unreachable),
		TEST(answer_of_another_server_is_refused),
		TEST(bad_options_are_refused),
		TEST(end_of_redis_is_told_and_outlived),
		TEST(screen_is_redrawn_and_given_back),
		TEST(screen_has_no_more_lines_than_the_terminal),
	};

	return FIXTURE_RUN(tests);
}
