/* SPDX-License-Identifier: MIT */
/* These tests ask for the pages of twr worker --listen: methods, hosts, escaped texts, and figures
 * that add up. */
#include "support/fixture.h"

#include <sys/socket.h>

#include <jansson.h>

#include "support/http_server.h"
#include "support/pages.h"
#include "support/sockets.h"
#include "support/words.h"

static struct http_server http;
static struct program worker;
static int port;
static const char *const no_options[] = {NULL};

/* Answers /slow after half a minute. */
static void answer_late(void *context, const struct http_request *request,
			struct http_answer *answer)
{
	answer->delay_ms = strcmp(request->path, "/slow") ? 0 : 30000;
}

static int open_all(void **state)
{
	int result = fixture_open(state);

	http_server_start(&http, answer_late, NULL);
	worker = (struct program){.output = -1};
	return result;
}

static int close_all(void **state)
{
	pages_stop(&worker);
	http_server_stop(&http);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

static void start(const char *const *options)
{
	port = pages_start(&worker, &twr_environment, options);
}
#define START(...) start(ARGUMENTS(__VA_ARGS__))

/* Completes the request, which is given up to its last header, and returns the reply's status. */
static int status_of(const char *request)
{
	char text[1024];
	int size = snprintf(text, sizeof(text), "%s\r\n\r\n", request);

	return pages_ask(port, text, (size_t)size).status;
}

static int status_of_path(const char *path)
{
	return pages_get(port, path).status;
}

/* Waits up to half a minute until the path has the status. */
static bool await_status(const char *path, int status)
{
	for (int i = 0; i < 3000; i++) {
		if (status_of_path(path) == status)
			return true;
		wait_for(10 * TW_MILLISECOND);
	}
	return false;
}

static void call(struct tw_redis *redis, const char *key, const char *path, unsigned attempts)
{
	char url[128];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", http.port, path);
	add_callback(redis, key, url, attempts);
}

/* Returns /status.json. The caller frees it. */
static json_t *read_status(void)
{
	struct page_reply reply = pages_get(port, "/status.json");
	json_t *status = json_loads(reply.body, 0, NULL);

	assert_non_null(status);
	/* The text is ASCII, whatever it contains. */
	for (const char *at = reply.body; *at; at++)
		assert_true(*at >= ' ' && *at < 0x7f);
	return status;
}

static size_t rows_of(const json_t *status, const char *name)
{
	return json_array_size(json_object_get(status, name));
}

/* Returns /status.json once the array of that name has at least `count` rows. */
static json_t *await_rows(const char *name, size_t count)
{
	for (int i = 0; i < 3000; i++) {
		json_t *status = read_status();

		if (rows_of(status, name) >= count)
			return status;
		json_decref(status);
		wait_for(10 * TW_MILLISECOND);
	}
	fail_msg("there are no %zu %s", count, name);
	return NULL;
}

/* ---- Methods and hosts ---- */

TEST(opened, every_page_is_there_with_its_headers)
{
	static const char *const pages[][2] = {
		{"/", "Content-Type: text/html; charset=utf-8"},
		{"/?a=b", "Content-Type: text/html; charset=utf-8"},
		{"/status.json", "Content-Type: application/json"},
		{"/metrics", "Content-Type: text/plain; version=0.0.4; charset=utf-8"},
		{"/healthz", "Content-Type: text/plain; charset=utf-8"},
		{"/readyz", "Content-Type: text/plain; charset=utf-8"},
	};

	start(no_options);
	assert_true(await_status("/readyz", 200));
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		struct page_reply reply = pages_get(port, pages[i][0]);

		assert_int_equal(reply.status, 200);
		assert_true(page_has_header(&reply, pages[i][1]));
		assert_true(page_has_header(&reply, "X-Content-Type-Options: nosniff"));
		assert_true(page_has_header(&reply, "Cache-Control: no-store"));
		assert_non_null(strstr(reply.text, "\r\nContent-Security-Policy: default-src "
						   "'none'; script-src 'sha256-"));
		assert_null(strstr(reply.text, "unsafe"));
		assert_null(strcasestr(reply.text, "\r\nSet-Cookie:"));
		assert_true(strlen(reply.body) > 0);
	}
}

TEST(opened, page_loads_nothing_from_elsewhere)
{
	struct page_reply reply;

	start(no_options);
	reply = pages_get(port, "/");
	/* The name of SVG's elements is the only URL. */
	assert_null(strstr(reply.body, "https:"));
	assert_null(strstr(reply.body, "src="));
	assert_null(strstr(reply.body, "href="));
	assert_null(strstr(reply.body, "innerHTML"));
	assert_null(strstr(reply.body, "url("));
}

TEST(opened, head_has_only_the_headers)
{
	static const char request[] = "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct page_reply reply;

	start(no_options);
	reply = pages_ask(port, request, strlen(request));
	assert_int_equal(reply.status, 200);
	assert_true(page_has_header(&reply, "X-Content-Type-Options: nosniff"));
	assert_string_equal(reply.body, "");
}

/* Checks that each request has the status: the format with one of the words in place of its %s. */
static void assert_each(int status, const char *format, const char *all)
{
	char text[1000];
	char *words[30];
	int count;

	snprintf(text, sizeof(text), "%s", all);
	count = words_split(text, words, 30);
	for (int i = 0; i < count; i++) {
		const char *at = strstr(format, "%s");
		char request[256];
		int answer;

		snprintf(request, sizeof(request), "%.*s%s%s", (int)(at - format), format, words[i],
			 at + 2);
		answer = status_of(request);
		if (answer != status)
			fail_msg("%s is answered %d", request, answer);
	}
}

TEST(opened, other_methods_are_refused)
{
	static const char request[] = "POST / HTTP/1.1\r\nHost: localhost\r\n"
				      "Content-Length: 0\r\n\r\n";
	struct page_reply reply;

	start(no_options);
	assert_each(405, "%s / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0",
		    "POST PUT DELETE PATCH get OPTIONS TRACE X");
	reply = pages_ask(port, request, strlen(request));
	assert_true(page_has_header(&reply, "Allow: GET, HEAD"));
}

TEST(opened, other_paths_are_not_there)
{
	start(no_options);
	assert_each(404, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close",
		    "/metrics/ /Metrics // /page.html /../etc/passwd http://127.0.0.1/metrics");
}

TEST(opened, only_named_hosts_are_answered)
{
	START("--listen-host=wheel.example", "--listen-host", "2001:db8::7");
	assert_each(200, "GET /metrics HTTP/1.1\r\nHost: %s",
		    "127.0.0.1 127.0.0.1:1 localhost:9464 LocalHost [::1]:9464 wheel.example "
		    "Wheel.Example:80 [2001:db8::7]:80 localhost: 127.0.0.2 10.244.0.5:9464 "
		    "[fe80::1]");
	assert_each(421, "GET /metrics HTTP/1.1\r\nHost: %s",
		    "evil.example localhost.evil.example evil.example:127.0.0.1 localhost:80:80 "
		    "localhost:x 127.0.0.1.evil.example:9464 10.244.0 10.244.0.5.evil.example "
		    "[2001:db8::7 '' :80 []");
	assert_int_equal(status_of("POST / HTTP/1.1\r\nHost: evil.example\r\n"
				   "Content-Length: 0"),
			 421);
	assert_int_equal(status_of("GET / HTTP/1.0"), 421);
	assert_int_equal(status_of("GET / HTTP/1.0\r\nHost: localhost"), 200);
}

/* A probe names the address of a container, a service, or no host. */
TEST(opened, probes_are_answered_whatever_host_they_name)
{
	static const char rests[] = "'1.1\r\nHost: evil.example' '1.1\r\nHost: ' "
				    "'1.1\r\nHost: twr.default.svc:9464' 1.0";

	start(no_options);
	assert_true(await_status("/readyz", 200));
	assert_each(200, "GET /readyz HTTP/%s", rests);
	assert_true(await_status("/healthz", 200));
	assert_each(200, "GET /healthz HTTP/%s", rests);
}

TEST(opened, bad_requests_are_refused_and_harm_nobody)
{
	static const char garbage[] = "\0\1\2\xff GET / / / HTTP/7\r\n\r\n\r\n\r\n";
	static const char body[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
				   "Content-Length: 1000000\r\n\r\nabc";
	static const char *const begins[] = {"GET /", "GET / HTTP/1.1\r\nHost: localhost\r\nA: "};
	enum { SIZE = 1024 * 1024 };
	char *text = malloc(SIZE);

	start(no_options);
	assert_int_not_equal(pages_ask(port, garbage, sizeof(garbage) - 1).status, 200);
	/* The worker does not wait for the body. */
	assert_int_equal(pages_ask(port, body, sizeof(body) - 1).status, 200);
	for (int i = 0; i < 2; i++) {
		memset(text, 'a', SIZE);
		memcpy(text, begins[i], strlen(begins[i]));
		assert_int_not_equal(pages_ask(port, text, SIZE).status, 200);
	}
	free(text);
	assert_int_equal(status_of_path("/healthz"), 200);
}

TEST(opened, silent_connections_hold_nobody_up_for_long)
{
	enum { FEW = 40, MANY = 80 };
	int descriptors[MANY];
	char byte;

	start(no_options);
	for (int i = 0; i < FEW; i++)
		descriptors[i] = socket_connect(port);
	assert_int_equal(status_of_path("/healthz"), 200);
	for (int i = FEW; i < MANY; i++)
		descriptors[i] = socket_connect(port);
	/* These are more than it serves at a time: they are closed, and then there is room
	 * again. */
	assert_true(await_status("/healthz", 200));
	assert_int_equal(read(descriptors[0], &byte, 1), 0);
	for (int i = 0; i < MANY; i++)
		close(descriptors[i]);
}

/* ---- The figures ---- */

static double total(const struct page_reply *reply, const char *name)
{
	double value = page_metric(reply, name);

	if (value < 0)
		fail_msg("there is no %s", name);
	return value;
}

static void assert_histogram(const struct page_reply *reply, const char *name, double count)
{
	char text[64];
	double last = 0;
	const char *at = reply->body;

	snprintf(text, sizeof(text), "twr_%s_count", name);
	assert_true(total(reply, text) == count);
	snprintf(text, sizeof(text), "twr_%s_bucket{le=\"+Inf\"}", name);
	assert_true(total(reply, text) == count);
	snprintf(text, sizeof(text), "twr_%s_sum", name);
	assert_true(total(reply, text) > 0);
	snprintf(text, sizeof(text), "\ntwr_%s_bucket{le=", name);
	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++) {
		double value;

		at = strstr(at, text);
		assert_non_null(at);
		value = strtod(strchr(++at, '}') + 1, NULL);
		assert_true(value >= last);
		last = value;
	}
	assert_null(strstr(at, text));
}

/* Makes 5 tasks done, 2 dead at once, 1 dead after two retries, and 1 wait for its second
 * attempt. */
static void run_some(struct fixture *fixture)
{
	char key[KEY_SIZE];

	for (int i = 0; i < 5; i++) {
		number_key(key, i);
		call(fixture->redis, key, "/200", 1);
	}
	call(fixture->redis, "bad-1", "/404", 8);
	call(fixture->redis, "bad-2", "/301", 8);
	call(fixture->redis, "hopeless", "/503", 3);
	add_task(fixture->redis, "later", TW_HOUR);
}

TEST(opened, figures_add_up_with_those_of_redis)
{
	struct fixture *fixture = *state;
	struct tw_redis_stats stats;
	struct page_reply reply;
	json_t *object;

	run_some(fixture);
	START("--retry-first=10ms");
	reply = pages_await_metric(port, "twr_dead_total", 3);
	pages_await_metric(port, "twr_tasks{state=\"dead\"}", 3);
	reply = pages_await_metric(port, "twr_done_total", 5);
	assert_metrics(&reply, "twr_retried_total 2 twr_claimed_total 10 twr_held_tasks 0 "
			       "twr_running_tasks 0 twr_redis_up 1 twr_redis_reconnects_total 0 "
			       "twr_tasks{state=\"scheduled\"} 1");
	assert_true(total(&reply, "twr_redis_round_trips_total") > 0);
	assert_histogram(&reply, "lateness_seconds", 10);
	assert_histogram(&reply, "duration_seconds", 10);
	assert_null(strstr(reply.body, "twr_group"));

	stats = stats_of(fixture->redis);
	assert_int_equal(stats.tasks, 1);
	assert_true(total(&reply, "twr_tasks{state=\"started\"}") == stats.started);
	assert_true(total(&reply, "twr_due_tasks") == stats.due);
	assert_true(total(&reply, "twr_added_total") == stats.added);
	assert_int_equal(stats.dead, 3);

	assert_int_equal(TWR("stats", "--json"), 0);
	object = json_loads(twr_text(), 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(object, "tasks")), 1);
	assert_int_equal(json_integer_value(json_object_get(object, "dead")), 3);
	json_decref(object);
}

/* Returns the member of the array's row. */
static const json_t *member_of(const json_t *status, const char *array, size_t row,
			       const char *member)
{
	return json_object_get(json_array_get(json_object_get(status, array), row), member);
}

TEST(opened, namespace_that_is_not_named_is_shown_as_default)
{
	json_t *status;

	twr_environment.name_space = NULL;
	start(no_options);
	status = await_rows("tasks", 1);
	assert_int_equal(rows_of(status, "groups"), 0);
	assert_string_equal(json_string_value(member_of(status, "tasks", 0, "namespace")),
			    "default");
	assert_string_equal(json_string_value(member_of(status, "runs", 0, "namespace")),
			    "default");
	json_decref(status);
}

/* Adds a task of the group, due in an hour. */
static void add_to(struct tw_redis *redis, const char *group, const char *key)
{
	const struct tw_redis_task task = {
		.key = key, .key_size = strlen(key), .delay = TW_HOUR, .group = group};

	add_one(redis, &task);
}

STORED(opened, groups_with_any_name_are_labels)
{
	static const char *const names[] = {"group_base64", "group", "group"};
	static const char *const shown[] = {"/w==", "<script>\"a\\b{}", "\xc3\xa9\xe2\x80\xae% x"};
	struct page_reply reply;
	json_t *status;

	add_to(fixture->redis, "<script>\"a\\b{}", "a");
	add_to(fixture->redis, "<script>\"a\\b{}", "b");
	add_to(fixture->redis, "\xc3\xa9\xe2\x80\xae% x", "c");
	/* Another program has written this turn. It never comes, so no claim looks at it. */
	redis_server_number(&fixture->server, "ZADD {tw/%s/0}turns 9e15 \xff", fixture->name_space);
	for (int i = 0; i < 3; i++)
		redis_server_number(&fixture->server, "ZADD {tw/%s/0}queue 0 %b%d",
				    fixture->name_space,
				    "\xff\0"
				    "000000000000007",
				    (size_t)17, i);
	start(no_options);
	pages_await_metric(port, "twr_group_waiting_tasks{group=\"%FF\"}", 3);
	reply = pages_await_metric(port, "twr_group_waiting_tasks{group=\"<script>\\\"a\\\\b{}\"}",
				   2);
	assert_true(total(&reply, "twr_group_waiting_tasks{group=\"%C3%A9%E2%80%AE%25%20x\"}") ==
		    1);
	assert_true(total(&reply, "twr_group_running_tasks{group=\"%FF\"}") == 0);
	assert_true(total(&reply, "twr_group_oldest_due_age_seconds{group=\"%FF\"}") > 1e9);
	assert_true(total(&reply, "twr_group_oldest_due_age_seconds{group=\"%C3%A9%E2%80%AE%25%20x"
				  "\"}") == 0);
	status = await_rows("groups", 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(json_string_value(member_of(status, "groups", i, names[i])),
				    shown[i]);
		assert_int_equal(json_integer_value(member_of(status, "groups", i, "waiting")),
				 3 - i);
		assert_string_equal(json_string_value(member_of(status, "groups", i, "namespace")),
				    fixture->name_space);
	}
	json_decref(status);
}

STORED(opened, no_more_than_20_groups_are_labels)
{
	enum { GROUPS = 30, SHOWN = 20 };
	struct page_reply reply;
	int labels = 0;

	for (int i = 0; i < GROUPS; i++) {
		char key[KEY_SIZE];

		number_key(key, i);
		add_to(fixture->redis, key, key);
	}
	add_to(fixture->redis, "task-29", "more");
	start(no_options);
	reply = pages_await_metric(port, "twr_group_waiting_tasks{group=\"task-29\"}", 2);
	for (const char *at = reply.body; (at = strstr(at, "twr_group_waiting_tasks{")); at++)
		labels++;
	assert_int_equal(labels, SHOWN);
}

STORED(opened, promtool_finds_nothing_wrong)
{
	struct page_reply reply;
	FILE *promtool;

	if (system("command -v promtool >/dev/null 2>&1"))
		TEST_SKIP("no promtool (package prometheus)");
	add_to(fixture->redis, "\"g\"", "g");
	run_some(fixture);
	START("--retry-first=10ms");
	reply = pages_await_metric(port, "twr_dead_total", 3);
	promtool = popen("promtool check metrics", "w");
	assert_non_null(promtool);
	fputs(reply.body, promtool);
	assert_int_equal(pclose(promtool), 0);
}

/* ---- Health ---- */

TEST(opened, lost_redis_is_not_ready_and_no_figure)
{
	struct redis_server server;
	struct page_reply reply;

	redis_server_start(&server, NULL);
	twr_environment.url = server.url;
	start(no_options);
	assert_true(await_status("/readyz", 200));
	redis_server_end(&server, SIGKILL);
	assert_true(await_status("/readyz", 503));
	reply = pages_await_metric(port, "twr_redis_up", 0);
	assert_null(strstr(reply.body, "twr_tasks{"));
	reply = pages_get(port, "/readyz");
	assert_non_null(strstr(reply.body, "Redis is unavailable: "));
	assert_non_null(strstr(reply.body, "Connection refused"));
	assert_int_equal(status_of_path("/healthz"), 200);
	assert_int_equal(status_of_path("/status.json"), 200);
	redis_server_restart(&server);
	assert_true(await_status("/readyz", 200));
	reply = pages_await_metric(port, "twr_redis_up", 1);
	assert_true(total(&reply, "twr_redis_losses_total") >= 1);
	assert_true(total(&reply, "twr_redis_reconnects_total") ==
		    total(&reply, "twr_redis_losses_total"));
	assert_true(total(&reply, "twr_tasks{state=\"scheduled\"}") == 0);
	kill(worker.pid, SIGTERM);
	assert_int_equal(program_wait(&worker), 0);
	redis_server_stop(&server);
}

STORED(opened, worker_that_ends_is_healthy_and_not_ready)
{
	struct page_reply reply;

	call(fixture->redis, "slow", "/slow", 1);
	START("--grace=1m");
	pages_await_metric(port, "twr_running_tasks", 1);
	assert_true(await_status("/readyz", 200));
	kill(worker.pid, SIGTERM);
	assert_true(await_status("/readyz", 503));
	reply = pages_get(port, "/readyz");
	assert_string_equal(reply.body, "the worker is stopping\n");
	assert_int_equal(status_of_path("/healthz"), 200);
	assert_int_equal(status_of_path("/status.json"), 200);
	/* This ends the current call. */
	http_server_stop(&http);
	assert_int_equal(program_wait(&worker), 0);
	http_server_start(&http, answer_late, NULL);
}

TEST(opened, loop_that_stands_is_not_healthy)
{
	/* An idle loop is silent for longer than that. */
	START("--health-limit=1ms");
	assert_true(await_status("/healthz", 503));
}

/* ---- What it costs ---- */

/* Only the counting of tasks calls HLEN, four times for each shard. */
static const char counted[] = "hlen";

STORED(opened, redis_is_asked_once_a_second_whoever_looks)
{
	enum { CALLS = 4 * 4, LOOKS_MS = 2500 };
	tw_duration begin;
	tw_duration took;
	int64_t before;
	int64_t asked;

	start(no_options);
	assert_true(await_status("/readyz", 200));
	/* The time covers the whole count, even if the machine is busy in between. */
	begin = redis_server_now(&fixture->server);
	before = redis_server_calls(&fixture->server, counted);
	do {
		wait_for(20 * TW_MILLISECOND);
		assert_int_equal(status_of_path("/metrics"), 200);
		/* The worker asks for more, but the counts are fresh. */
		assert_int_equal(status_of_path("/status.json"), 200);
		asked = redis_server_calls(&fixture->server, counted) - before;
		took = redis_server_now(&fixture->server) - begin;
		/* A worker that has no processor asks less often. */
	} while (took < LOOKS_MS || (asked < 2 * CALLS && took < 10 * LOOKS_MS));
	assert_in_range(asked, 2 * CALLS, CALLS * (took / 1000 + 1));
}

/* A probe of the loop asks nothing either. */
STORED(opened, redis_is_not_asked_while_nobody_looks)
{
	int64_t before;

	start(no_options);
	assert_true(await_status("/readyz", 200));
	before = redis_server_calls(&fixture->server, counted);
	for (int i = 0; i < 25; i++) {
		assert_int_equal(status_of_path("/healthz"), 200);
		wait_for(50 * TW_MILLISECOND);
	}
	assert_int_equal(redis_server_calls(&fixture->server, counted), before);
}

/* A page waits for a silent Redis as long as a reply may take, and a probe of the loop does not
 * wait for that page. */
TEST(opened, silent_redis_is_shown_and_delays_no_probe)
{
	static const char request[] = "GET /readyz HTTP/1.0\r\n\r\n";
	struct redis_server server;
	tw_duration begin;
	char url[96];
	int waiting;
	char byte;

	redis_server_start(&server, NULL);
	snprintf(url, sizeof(url), "%s?timeout=3", server.url);
	twr_environment.url = url;
	start(no_options);
	assert_true(await_status("/readyz", 200));
	/* The answer is no longer fresh. */
	wait_for(1100 * TW_MILLISECOND);
	kill(server.pid, SIGSTOP);
	begin = wall_clock();
	waiting = socket_connect(port);
	assert_true(socket_send(waiting, request, strlen(request)));
	for (int i = 0; i < 10; i++)
		assert_int_equal(status_of_path("/healthz"), 200);
	assert_true(wall_clock() - begin < 3 * TW_SECOND);
	assert_int_equal(recv(waiting, &byte, 1, 0), 1);
	assert_in_range(wall_clock() - begin, 2900 * TW_MILLISECOND, 20 * TW_SECOND);
	close(waiting);
	assert_int_equal(status_of_path("/readyz"), 503);
	kill(server.pid, SIGCONT);
	assert_true(await_status("/readyz", 200));
	kill(worker.pid, SIGTERM);
	assert_int_equal(program_wait(&worker), 0);
	redis_server_stop(&server);
}

FIXTURE_FILE
