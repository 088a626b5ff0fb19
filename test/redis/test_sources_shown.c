/* SPDX-License-Identifier: MIT */
/* These tests are about twr worker with several namespaces: how they are given, and what its pages
 * show of each. */
#include "support/fixture.h"

#include <jansson.h>

#include "support/http_server.h"
#include "support/pages.h"

enum { NAME_SIZE = 48, OPTION_SIZE = 160 };

static struct http_server http;
static struct program worker;
static struct tw_redis *second; /* beside the fixture's, in NAME.2 */
static char second_name[NAME_SIZE];
static char both[OPTION_SIZE]; /* --namespace=NAME,NAME.2 */

static int open_all(void **state)
{
	int result = fixture_open(state);
	struct fixture *fixture = *state;

	twr_environment.name_space = NULL;
	snprintf(second_name, NAME_SIZE, "%s.2", fixture->name_space);
	snprintf(both, sizeof(both), "--namespace=%s,%s", fixture->name_space, second_name);
	assert_ok(fixture->redis,
		  tw_redis_open_beside(fixture->redis, second_name, 4, &second, NULL));
	http_server_start(&http, NULL, NULL);
	worker = (struct program){.output = -1};
	return result;
}

static int close_all(void **state)
{
	pages_stop(&worker);
	http_server_stop(&http);
	client_close(second);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

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
	json_t *stats;

	assert_int_equal(TWR("stats", "--json", "--namespace", name_space), 0);
	stats = json_loads(twr_text(), 0, NULL);
	assert_non_null(stats);
	assert_true(page_metric(reply, metric("twr_tasks", name_space, "state=\"dead\"")) ==
		    json_number_value(json_object_get(stats, "dead")));
	assert_true(page_metric(reply, metric("twr_tasks", name_space, "state=\"scheduled\"")) ==
		    json_number_value(json_object_get(stats, "tasks")));
	assert_true(page_metric(reply, metric("twr_due_tasks", name_space, "")) == 0);
	json_decref(stats);
}

STORED(opened, metrics_of_each_namespace_add_up_with_its_tasks)
{
	const char *name = fixture->name_space;
	const struct tw_redis_task grouped = {
		.key = "g", .key_size = 1, .delay = TW_HOUR, .group = "g"};
	struct page_reply reply;
	const char *heads;
	int port;

	add_some(fixture);
	add_one(second, &grouped);
	port = pages_start(&worker, &twr_environment, ARGUMENTS(both));
	pages_await_metric(port, metric("twr_group_waiting_tasks", second_name, "group=\"g\""), 1);
	pages_await_metric(port, metric("twr_dead_total", name, ""), 2);
	pages_await_metric(port, metric("twr_done_total", second_name, ""), 3);
	pages_await_metric(port, metric("twr_dead_total", second_name, ""), 1);
	pages_await_metric(port, metric("twr_done_total", name, ""), 5);
	pages_await_metric(port, metric("twr_tasks", name, "state=\"dead\""), 2);
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
}

TEST(opened, promtool_finds_nothing_wrong)
{
	struct page_reply reply;
	FILE *promtool;
	int port;

	if (system("command -v promtool >/dev/null 2>&1"))
		TEST_SKIP("no promtool (package prometheus)");
	add_some(*state);
	port = pages_start(&worker, &twr_environment, ARGUMENTS(both));
	reply = pages_await_metric(port, metric("twr_done_total", second_name, ""), 3);
	promtool = popen("promtool check metrics", "w");
	assert_non_null(promtool);
	fputs(reply.body, promtool);
	assert_int_equal(pclose(promtool), 0);
}

/* Returns /status.json. The caller frees it. */
static json_t *read_status(int port)
{
	struct page_reply reply = pages_get(port, "/status.json");
	json_t *status = json_loads(reply.body, 0, NULL);

	assert_non_null(status);
	return status;
}

static void assert_number(const json_t *row, const char *name, json_int_t number)
{
	assert_int_equal(json_integer_value(json_object_get(row, name)), number);
}

STORED(opened, page_shows_each_namespace)
{
	const char *const names[] = {fixture->name_space, second_name};
	const json_int_t dead[] = {2, 1};
	json_t *status;
	json_t *stats;
	int port;

	add_some(fixture);
	add_task(fixture->redis, "later", TW_HOUR);
	port = pages_start(&worker, &twr_environment, ARGUMENTS(both));
	pages_await_metric(port, metric("twr_dead_total", second_name, ""), 1);
	pages_await_metric(port, metric("twr_dead_total", fixture->name_space, ""), 2);
	set_paused(second, true);
	pages_await_metric(port, metric("twr_paused", second_name, ""), 1);
	status = read_status(port);
	for (size_t i = 0; i < 2; i++) {
		json_t *tasks = json_array_get(json_object_get(status, "tasks"), i);
		const json_t *runs = json_array_get(json_object_get(status, "runs"), i);

		assert_string_equal(json_string_value(json_object_get(tasks, "namespace")),
				    names[i]);
		assert_string_equal(json_string_value(json_object_get(runs, "namespace")),
				    names[i]);
		assert_number(tasks, "scheduled", 1);
		assert_number(tasks, "dead", dead[i]);
		assert_number(runs, "dead", dead[i]);
		assert_int_equal(json_is_true(json_object_get(tasks, "paused")), i);
		/* It is what twr stats shows. */
		assert_int_equal(TWR("stats", "--json", "--namespace", names[i]), 0);
		stats = json_loads(twr_text(), 0, NULL);
		json_object_del(stats, "now");
		json_object_del(tasks, "now");
		json_object_del(tasks, "namespace");
		assert_true(json_equal(stats, tasks));
		json_decref(stats);
	}
	json_decref(status);
}

/* One worker serves both namespaces, and the other serves the second under a name of its own. */
STORED(opened, workers_of_a_namespace_are_listed)
{
	int64_t good_until = redis_server_now(&fixture->server) + 25000;
	char own[24];

	program_start(&worker, &twr_environment, ARGUMENTS("worker", both));
	assert_true(program_wait_text(&worker, "the worker runs"));
	redis_server_number(&fixture->server, "ZADD {tw/%s}present %lld other", second_name,
			    (long long)good_until);
	redis_server_number(&fixture->server, "HSET {tw/%s}workers other %s", second_name,
			    "<b>\x1b[2J 5000 1 2 3 4 5");
	snprintf(own, sizeof(own), ":%ld\n", (long)worker.pid);
	WAIT_UNTIL(TWR("workers", "--namespace", second_name) == 0 && twr_said(own));
	assert_true(twr_said("    5.00 s"));
	assert_true(twr_said("         1         2         3         4         5  <b>%1B[2J\n"));
}

FIXTURE_FILE
