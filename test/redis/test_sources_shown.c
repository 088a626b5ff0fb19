/* SPDX-License-Identifier: MIT */
/* These tests are about twr worker with several namespaces: how they are given, and what its pages
 * show of each. */
#include "support/fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "support/http_server.h"
#include "support/pages.h"
#include "support/wait.h"

enum { NAME_SIZE = 48, OPTION_SIZE = 160 };

static struct program_environment environment;
static struct http_server http;
static struct program worker;
static struct tw_redis *second; /* beside the fixture's, in NAME.2 */
static char second_name[NAME_SIZE];
static char both[OPTION_SIZE]; /* --namespace=NAME=3,NAME.2 */

/* Answers with the status that the path begins with. */
static void answer_by_path(void *context, const struct http_request *request,
			   struct http_answer *answer)
{
	answer->status = atoi(request->path + 1);
}

static int open_all(void **state)
{
	int result = fixture_open(state);
	struct fixture *fixture = *state;

	environment = (struct program_environment){.url = fixture->server.url};
	snprintf(second_name, NAME_SIZE, "%s.2", fixture->name_space);
	snprintf(both, sizeof(both), "--namespace=%s=3,%s", fixture->name_space, second_name);
	assert_ok(fixture->redis,
		  tw_redis_open_beside(fixture->redis, second_name, 4, &second, NULL));
	http_server_start(&http, answer_by_path, NULL);
	worker = (struct program){.output = -1};
	return result;
}

/* Workers that still run are stopped, so that a sanitizer can report, too. */
static int close_all(void **state)
{
	if (worker.pid) {
		kill(worker.pid, SIGTERM);
		assert_int_equal(program_wait(&worker), 0);
	}
	if (worker.output >= 0)
		assert_null(strstr(program_text(&worker), "Sanitizer"));
	program_end(&worker);
	http_server_stop(&http);
	tw_redis_close(second);
	return fixture_close(state);
}

/* Adds `count` callbacks that are answered with the status. */
static void add_calls(struct tw_redis *redis, int status, int count)
{
	char url[128];
	char key[KEY_SIZE + 8];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/%d", http.port, status);
	for (int i = 0; i < count; i++) {
		snprintf(key, sizeof(key), "%d-%d", status, i);
		add_callback(redis, key, url, 1);
	}
}

/* Adds 5 tasks that will be done and 2 that will be dead letters in the fixture's namespace; in the
 * other 3 and 1, and one that waits. */
static void add_some(struct fixture *fixture)
{
	add_calls(fixture->redis, 200, 5);
	add_calls(fixture->redis, 404, 2);
	add_calls(second, 200, 3);
	add_calls(second, 404, 1);
	add_task(second, "later", TW_HOUR);
}

/* Returns "twr_done_total{namespace="NAME"}", or with another label after it. */
static const char *metric(const char *name, const char *name_space, const char *label)
{
	static char text[256];

	snprintf(text, sizeof(text), "%s{namespace=\"%s\"%s%s}", name, name_space,
		 *label ? "," : "", label);
	return text;
}

/* Compares each namespace's metrics with the output of twr stats. */
static void assert_adds_up(const struct page_reply *reply, const char *name_space)
{
	struct program program;
	json_t *stats;

	assert_int_equal(
		program_run(&program, &environment,
			    ARGUMENTS("stats", "--shards=4", "--json", "--namespace", name_space)),
		0);
	stats = json_loads(program_text(&program), 0, NULL);
	assert_non_null(stats);
	assert_true(page_metric(reply, metric("twr_tasks", name_space, "state=\"dead\"")) ==
		    json_number_value(json_object_get(stats, "dead")));
	assert_true(page_metric(reply, metric("twr_tasks", name_space, "state=\"scheduled\"")) ==
		    json_number_value(json_object_get(stats, "tasks")));
	assert_true(page_metric(reply, metric("twr_due_tasks", name_space, "")) == 0);
	json_decref(stats);
	program_end(&program);
}

static void metrics_of_each_namespace_add_up_with_its_tasks(void **state)
{
	struct fixture *fixture = *state;
	const char *name = fixture->name_space;
	const struct tw_redis_task grouped = {
		.key = "g", .key_size = 1, .delay = TW_HOUR, .group = "g"};
	struct page_reply reply;
	const char *heads;
	int port;

	add_some(fixture);
	add_one(second, &grouped);
	port = pages_start(&worker, &environment, ARGUMENTS(both));
	free(pages_await_metric(port, metric("twr_group_waiting_tasks", second_name, "group=\"g\""),
				1)
		     .text);
	free(pages_await_metric(port, metric("twr_dead_total", name, ""), 2).text);
	free(pages_await_metric(port, metric("twr_done_total", second_name, ""), 3).text);
	free(pages_await_metric(port, metric("twr_dead_total", second_name, ""), 1).text);
	free(pages_await_metric(port, metric("twr_done_total", name, ""), 5).text);
	free(pages_await_metric(port, metric("twr_tasks", name, "state=\"dead\""), 2).text);
	reply = pages_await_metric(port, metric("twr_tasks", second_name, "state=\"dead\""), 1);
	assert_true(page_metric(&reply, metric("twr_added_total", name, "")) == 7);
	assert_true(page_metric(&reply, metric("twr_added_total", second_name, "")) == 6);
	assert_adds_up(&reply, name);
	assert_adds_up(&reply, second_name);
	assert_true(page_metric(&reply, metric("twr_claimed_total", name, "")) == 7);
	assert_true(page_metric(&reply, metric("twr_claimed_total", second_name, "")) == 4);
	assert_true(page_metric(&reply, metric("twr_held_tasks", name, "")) == 0);
	assert_true(page_metric(&reply, metric("twr_lateness_seconds_count", name, "")) == 7);
	assert_true(page_metric(&reply, metric("twr_duration_seconds_bucket", second_name,
					       "le=\"+Inf\"")) == 4);
	/* The worker's own metrics have no namespace, and each metric is described once. */
	assert_true(page_metric(&reply, "twr_redis_round_trips_total") > 0);
	assert_true(page_metric(&reply, "twr_redis_up") == 1);
	heads = strstr(reply.body, "# TYPE twr_done_total ");
	assert_non_null(heads);
	assert_null(strstr(heads + 1, "# TYPE twr_done_total "));
	free(reply.text);
}

static void promtool_finds_nothing_wrong(void **state)
{
	struct page_reply reply;
	FILE *promtool;
	int port;

	if (system("command -v promtool >/dev/null 2>&1"))
		TEST_SKIP("no promtool (package prometheus)");
	add_some(*state);
	port = pages_start(&worker, &environment, ARGUMENTS(both));
	reply = pages_await_metric(port, metric("twr_done_total", second_name, ""), 3);
	promtool = popen("promtool check metrics", "w");
	assert_non_null(promtool);
	fputs(reply.body, promtool);
	assert_int_equal(pclose(promtool), 0);
	free(reply.text);
}

/* Returns whether there are three dead letters, and the second namespace is paused. */
static bool shows_pause(const json_t *status)
{
	const json_t *space = json_array_get(json_object_get(status, "namespaces"), 1);

	return json_array_size(json_object_get(status, "letters")) == 3 &&
	       json_is_true(json_object_get(space, "paused"));
}

/* Returns /status.json. The caller frees it. */
static json_t *read_status(int port)
{
	struct page_reply reply = pages_get(port, "/status.json");
	json_t *status = json_loads(reply.body, 0, NULL);

	assert_non_null(status);
	free(reply.text);
	return status;
}

/* Returns /status.json once it shows the pause. */
static json_t *await_pause(int port)
{
	for (int i = 0; i < 3000; i++) {
		json_t *status = read_status(port);

		if (shows_pause(status))
			return status;
		json_decref(status);
		wait_for(10 * TW_MILLISECOND);
	}
	fail_msg("there is no pause, or no three dead letters");
	return NULL;
}

/* Returns how many dead letters name the namespace. */
static size_t letters_of(const json_t *status, const char *name_space)
{
	const json_t *letters = json_object_get(status, "letters");
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(letters); i++)
		count += !strcmp(name_space, json_string_value(json_object_get(
						     json_array_get(letters, i), "namespace")));
	return count;
}

static void page_shows_each_namespace(void **state)
{
	struct fixture *fixture = *state;
	const json_t *spaces;
	const json_t *space;
	json_t *status;
	int port;

	add_some(fixture);
	add_task(fixture->redis, "later", TW_HOUR);
	port = pages_start(&worker, &environment, ARGUMENTS(both));
	free(pages_await_metric(port, metric("twr_dead_total", second_name, ""), 1).text);
	assert_ok(second, tw_redis_pause(second));
	status = await_pause(port);
	spaces = json_object_get(status, "namespaces");
	assert_int_equal(json_array_size(spaces), 2);
	space = json_array_get(spaces, 0);
	assert_string_equal(json_string_value(json_object_get(space, "name")), fixture->name_space);
	assert_true(json_is_false(json_object_get(space, "paused")));
	space = json_array_get(spaces, 1);
	assert_string_equal(json_string_value(json_object_get(space, "name")), second_name);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(space, "tasks"), "dead")), 1);
	/* This is the total of all namespaces. */
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(status, "tasks"), "scheduled")),
		2);
	assert_int_equal(letters_of(status, fixture->name_space), 2);
	assert_int_equal(letters_of(status, second_name), 1);
	json_decref(status);
}

static void add_worker(struct fixture *fixture, const char *id, const char *name)
{
	int64_t good_until = redis_server_now(&fixture->server) + 25000;
	char text[96];

	snprintf(text, sizeof(text), "%s 5000 1 2 3 4 5", name);
	redis_server_number(&fixture->server, "ZADD {tw/%s}present %lld %s", second_name,
			    (long long)good_until, id);
	redis_server_number(&fixture->server, "HSET {tw/%s}workers %s %s", second_name, id, text);
}

/* Returns how many workers have the text in their names. Checks that all members of the page
 * exist. */
static size_t workers_called(const json_t *workers, const char *text)
{
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(workers); i++) {
		const json_t *row = json_array_get(workers, i);

		assert_true(json_number_value(json_object_get(row, "report_age_s")) < 31);
		assert_true(json_is_integer(json_object_get(row, "held")));
		count += !!strstr(json_string_value(json_object_get(row, "name")), text);
	}
	return count;
}

/* One worker serves both namespaces, and the other serves the second under a name of its own. */
static void page_shows_all_workers(void **state)
{
	static const char hostile[] = "<b>x</b>\"\x1b[2J";
	json_t *status = NULL;
	const json_t *workers = NULL;
	char own[24];
	int port;

	port = pages_start(&worker, &environment, ARGUMENTS(both));
	add_worker(*state, "other", hostile);
	for (int i = 0; i < 3000 && json_array_size(workers) != 3; i++) {
		json_decref(status);
		status = read_status(port);
		workers = json_object_get(status, "all_workers");
		wait_for(10 * TW_MILLISECOND);
	}
	assert_int_equal(json_array_size(workers), 3);
	snprintf(own, sizeof(own), ":%ld", (long)worker.pid);
	assert_int_equal(workers_called(workers, own), 2);
	assert_int_equal(workers_called(workers, "<b>x</b>\"%1B[2J"), 1);
	json_decref(status);
}

static void first_hundred_workers_are_shown(void **state)
{
	enum { SHOWN = 100 };
	struct fixture *fixture = *state;
	size_t count = 0;
	int port;

	for (int i = 0; i < SHOWN; i++) {
		char id[KEY_SIZE];

		number_key(id, i);
		add_worker(fixture, id, "host:1");
	}
	port = pages_start(&worker, &environment, ARGUMENTS(both));
	for (int i = 0; i < 3000 && count < SHOWN; i++) {
		json_t *status = read_status(port);

		count = json_array_size(json_object_get(status, "all_workers"));
		json_decref(status);
		wait_for(10 * TW_MILLISECOND);
	}
	assert_int_equal(count, SHOWN);
}

/* Waits until the oldest due task has been due for at least that many seconds. */
static void await_oldest_due(int port, double seconds)
{
	double oldest = 0;

	for (int i = 0; i < 3000 && oldest < seconds; i++) {
		json_t *status = read_status(port);

		oldest = json_number_value(
			json_object_get(json_object_get(status, "tasks"), "oldest_due_s"));
		json_decref(status);
		wait_for(10 * TW_MILLISECOND);
	}
	assert_true(oldest >= seconds && oldest < seconds + 60);
}

static void oldest_due_task_is_that_of_all_namespaces(void **state)
{
	struct fixture *fixture = *state;
	int port;

	assert_ok(fixture->redis, tw_redis_pause(fixture->redis));
	assert_ok(second, tw_redis_pause(second));
	add_task(fixture->redis, "a", 0);
	add_task(second, "a", 0);
	redis_server_set_due(&fixture->server, second, second_name, "a", -100000);
	port = pages_start(&worker, &environment, ARGUMENTS(both));
	await_oldest_due(port, 100);
	redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, "a", -300000);
	await_oldest_due(port, 300);
}

static void lines_of_runs_name_the_namespace(void **state)
{
	char text[96];

	program_start(&worker, &environment, ARGUMENTS("worker", "--shards=4", both, "--verbose"));
	add_calls(second, 200, 1);
	snprintf(text, sizeof(text), "200-0  namespace %s  attempt 1/1", second_name);
	assert_true(program_wait_text(&worker, text));
}

static void single_namespace_may_have_a_weight(void **state)
{
	struct fixture *fixture = *state;
	char option[OPTION_SIZE];
	int port;

	add_some(fixture);
	snprintf(option, sizeof(option), "--namespace=%s=7", fixture->name_space);
	port = pages_start(&worker, &environment, ARGUMENTS(option));
	/* A single namespace needs no label. */
	free(pages_await_metric(port, "twr_done_total", 5).text);
	assert_int_equal(stats_of(second).due, 4);
}

static void invalid_lists_are_refused(void **state)
{
	static const char *const bad[] = {"a=0",   "a=1001", "a=",    "a=x", "a=-1",
					  "a=1.5", "a,a",    "a=1,a", "a,",  ",a",
					  ",",     "=1",     "a,b c", "a;b", "a=1=2"};
	struct program program;
	char many[4 * TW_REDIS_SOURCES_MAX + 16] = "";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (program_run(&program, &environment,
				ARGUMENTS("worker", "--namespace", bad[i])) != 2)
			fail_msg("\"%s\" is taken", bad[i]);
		program_end(&program);
	}
	for (int i = 0; i <= TW_REDIS_SOURCES_MAX; i++)
		snprintf(many + strlen(many), 8, "%sn%d", i ? "," : "", i);
	assert_int_equal(
		program_run(&program, &environment, ARGUMENTS("worker", "--namespace", many)), 2);
	program_end(&program);
	/* Other commands take one namespace. */
	assert_int_equal(program_run(&program, &environment, ARGUMENTS("stats", "--namespace=a,b")),
			 2);
	program_end(&program);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(metrics_of_each_namespace_add_up_with_its_tasks),
		TEST(promtool_finds_nothing_wrong),
		TEST(page_shows_each_namespace),
		TEST(page_shows_all_workers),
		TEST(first_hundred_workers_are_shown),
		TEST(oldest_due_task_is_that_of_all_namespaces),
		TEST(lines_of_runs_name_the_namespace),
		TEST(single_namespace_may_have_a_weight),
		TEST(invalid_lists_are_refused),
	};

	return FIXTURE_RUN(tests);
}
