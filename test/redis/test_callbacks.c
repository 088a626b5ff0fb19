/* SPDX-License-Identifier: MIT */
/*
 * A worker calls an HTTP server on loopback. These tests check what it sends, what each answer
 * means, and how many calls run at a time. The path of a task's URL selects the server's answer.
 */
#include "support/fixture.h"

#include <sys/resource.h>

#include "support/ends.h"
#include "support/http_server.h"
#include "support/runs.h"

static struct http_server http;
static char address[64];               /* the server's / */
static struct tw_redis_worker *worker; /* the one that start_with() started */

static bool path_starts(const struct http_request *request, const char *start)
{
	return !strncmp(request->path, start, strlen(start));
}

static bool has_been_busy(int calls)
{
	return http_server_busiest(&http) >= (size_t)calls;
}

/* Answers to these paths ask for pauses. */
static const struct {
	const char *path;
	const char *headers;
	tw_duration pause;
} pauses[] = {
	{"/pause/1", "Retry-After: 1\r\n", TW_SECOND},
	{"/pause/.4", "Retry-After: 0.4\r\n", 400 * TW_MILLISECOND},
	{"/pause/0", "Retry-After: 0\r\n", 100 * TW_MILLISECOND},
	{"/pause/past", "Retry-After: Sun, 06 Nov 1994 08:49:38 GMT\r\n", 100 * TW_MILLISECOND},
	{"/pause/dated",
	 "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
	 TW_SECOND},
};
enum { PAUSES = sizeof(pauses) / sizeof(pauses[0]) };

static const char *header_of(const char *path)
{
	for (size_t i = 0; i < PAUSES; i++)
		if (!strcmp(path, pauses[i].path))
			return pauses[i].headers;
	return NULL;
}

static atomic_bool is_held;

/* Answers /STATUS with that status, and some other paths in their own ways. */
static void answer_by_path(void *context, const struct http_request *request,
			   struct http_answer *answer)
{
	if (path_starts(request, "/twice-503") && request->attempt <= 2) {
		answer->status = 503;
	} else if (http_server_count_of(&http, request->key) == 1 &&
		   (answer->headers = header_of(request->path))) {
		answer->status = 429;
	} else if (path_starts(request, "/snooze/") && http_server_count(&http) <= 3) {
		answer->status = atoi(request->path + 8);
		answer->headers = "Tw-Snooze: 1\r\n";
	} else if (path_starts(request, "/hang-up") && request->attempt == 1) {
		answer->hang_up = true;
	} else if (path_starts(request, "/no-http") && request->attempt == 1) {
		answer->instead = "220 mail.example ESMTP\r\n";
	} else if (path_starts(request, "/cut/")) {
		answer->instead = atoi(request->path + 5) == 200
					  ? "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
					  : "HTTP/1.1 404 OK\r\nContent-Length: 9\r\n\r\nhalf";
	} else if (path_starts(request, "/stall")) {
		answer->instead = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
		answer->stall_ms = 60000;
	} else if (path_starts(request, "/switch")) {
		answer->instead = "HTTP/1.1 101 Said\r\n\r\nas if it had been asked";
	} else if (path_starts(request, "/together/")) {
		/* A call beyond that number has time to come. */
		for (int i = 0; i < 5000 && !has_been_busy(atoi(request->path + 10)); i++)
			wait_for(TW_MILLISECOND);
		answer->delay_ms = 300;
	} else if (path_starts(request, "/held")) {
		/* relaxed: an independent flag */
		while (atomic_load_explicit(&is_held, memory_order_relaxed))
			wait_for(TW_MILLISECOND);
	} else if (path_starts(request, "/slow/")) {
		answer->delay_ms = atoi(request->path + 6);
	} else if (path_starts(request, "/slow-first") && request->attempt == 1) {
		answer->delay_ms = 5000;
	} else if (path_starts(request, "/endless/")) {
		answer->status = atoi(request->path + 9);
		answer->body_size = SIZE_MAX;
	} else if (path_starts(request, "/long/")) {
		answer->body_size = (size_t)atoi(request->path + 6);
	} else if (path_starts(request, "/302")) {
		answer->status = 302;
		answer->headers = "Location: /200\r\n";
	} else if (atoi(request->path + 1)) {
		answer->status = atoi(request->path + 1);
	}
}

static int open_all(void **state)
{
	http_server_start(&http, answer_by_path, NULL);
	snprintf(address, sizeof(address), "http://127.0.0.1:%d/", http.port);
	return fixture_open(state);
}

static int close_all(void **state)
{
	/* relaxed: an independent flag */
	atomic_store_explicit(&is_held, false, memory_order_relaxed);
	http_server_stop(&http);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

/* Retries are quick, so that no test waits for seconds. */
static void start_with(struct fixture *fixture, struct tw_redis_worker_options options)
{
	runs_attach(&options);
	options.handler = NULL;
	options.retry_first = 20 * TW_MILLISECOND;
	options.retry_max = 100 * TW_MILLISECOND;
	worker = worker_start(&fixture->options, &options);
}

static void start(struct fixture *fixture)
{
	start_with(fixture, (struct tw_redis_worker_options){0});
}

static int open_started(void **state)
{
	int result = open_all(state);

	/* The worker is stopped when the case has ended. */
	ends_begin();
	start(*state);
	return result;
}

static const struct test_kind kind_started = {.open = open_started, .close = close_all};

static void add_call(struct fixture *fixture, const char *key, const char *path)
{
	char url[128];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", http.port, path);
	add_callback(fixture->redis, key, url, 5);
}

static void add_calls(struct fixture *fixture, int count, const char *path)
{
	char key[KEY_SIZE];

	for (int i = 0; i < count; i++) {
		number_key(key, i);
		add_call(fixture, key, path);
	}
}

static struct http_request request_of(const char *key, size_t index)
{
	struct http_request request = {0};

	assert_true(http_server_request(&http, key, index, &request));
	return request;
}

STORED(started, post_carries_body_headers_key_attempt_and_token)
{
	static const char *const headers[] = {"X-Shop: seven", "X-Empty:", "X-Blank: \t "};
	struct http_request request;
	char url[64];
	struct tw_redis_task task = {.key = "order:7",
				     .key_size = 7,
				     .url = url,
				     .headers = headers,
				     .header_count = 3,
				     .body = "{\"a\":1}",
				     .body_size = 7};

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/path?query=1", http.port);
	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == 1);
	request = request_of("order:7", 0);
	assert_string_equal(request.method, "POST");
	assert_string_equal(request.path, "/path?query=1");
	assert_string_equal(request.body, "{\"a\":1}");
	assert_int_equal(request.body_size, 7);
	assert_int_equal(request.attempt, 1);
	assert_true(request.token > 0);
	assert_true(request.token == end_of("order:7", 0).token);
	assert_non_null(strstr(request.headers, "X-Shop: seven\r\n"));
	assert_non_null(strstr(request.headers, "X-Empty:"));
	assert_non_null(strstr(request.headers, "X-Blank:"));
	assert_non_null(strstr(request.headers, "Content-Type: application/json\r\n"));
	assert_int_equal(end_of("order:7", 0).http_status, 200);
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(started, content_type_of_the_task_replaces_the_default)
{
	static const char *const headers[] = {"content-type: text/plain", "A: b"};
	struct tw_redis_task task = {.key = "a",
				     .key_size = 1,
				     .url = address,
				     .headers = headers,
				     .header_count = 2,
				     .body = "x",
				     .body_size = 1};

	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == 1);
	assert_non_null(strstr(request_of("a", 0).headers, "content-type: text/plain\r\n"));
	assert_null(strstr(request_of("a", 0).headers, "application/json"));
}

STORED(started, every_method_is_sent_with_its_body)
{
	static const char *const names[] = {TW_REDIS_METHOD_NAMES};
	size_t ends = 0;

	for (enum tw_redis_method method = TW_REDIS_POST; method <= TW_REDIS_HEAD; method++) {
		const char *name = names[method];
		char url[64];
		struct tw_redis_task task = {
			.key = name, .key_size = strlen(name), .url = url, .method = method};

		snprintf(url, sizeof(url), "http://127.0.0.1:%d/long/100", http.port);
		add_one(fixture->redis, &task);
		WAIT_UNTIL(ends_count() == ends + 1);
		assert_string_equal(request_of(name, 0).method, name);
		assert_int_equal(request_of(name, 0).body_size, 0);
		if (method == TW_REDIS_GET)
			assert_null(strstr(request_of(name, 0).headers, "Content-Type"));
		ends++;
		task.body = "{}";
		task.body_size = 2;
		if (method == TW_REDIS_HEAD) {
			assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL),
					 TW_REDIS_BAD_DATA);
			continue;
		}
		add_one(fixture->redis, &task);
		WAIT_UNTIL(ends_count() == ends + 1);
		assert_string_equal(request_of(name, 1).method, name);
		assert_string_equal(request_of(name, 1).body, "{}");
		assert_non_null(strstr(request_of(name, 1).headers, "application/json"));
		ends++;
	}
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), ends);
}

STORED(started, answer_without_end_counts_by_its_status)
{
	int64_t before = wall_clock();

	add_call(fixture, "fine", "/endless/200");
	add_call(fixture, "gone", "/endless/404");
	/* This is the longest body that is read, and then one byte more. */
	add_call(fixture, "most", "/long/65536");
	add_call(fixture, "more", "/long/65537");
	add_call(fixture, "half", "/cut/200");
	add_call(fixture, "gone half", "/cut/404");
	add_call(fixture, "stalled", "/stall");
	WAIT_UNTIL(ends_count() == 7);
	assert_true(wall_clock() - before < 20 * TW_SECOND);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), 5);
	assert_int_equal(end_of("gone half", 0).http_status, 404);
	assert_int_equal(end_of("fine", 0).http_status, 200);
	assert_int_equal(end_of("gone", 0).end, TW_REDIS_END_DEAD);
	assert_string_equal(end_of("gone", 0).reason, "HTTP 404");
}

STORED(started, idempotency_key_is_key_and_token)
{
	static const char *const headers[] = {"idempotency-key: mine", "A: b"};
	char expected[64];
	struct tw_redis_task task = {
		.key = "b", .key_size = 1, .url = address, .headers = headers, .header_count = 2};

	add_call(fixture, "a 1", "/200");
	WAIT_UNTIL(ends_count() == 1);
	snprintf(expected, sizeof(expected), "Idempotency-Key: a%%201 %llu\r\n",
		 (unsigned long long)request_of("a%201", 0).token);
	assert_non_null(strstr(request_of("a%201", 0).headers, expected));
	/* The task's own header replaces the default. */
	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == 2);
	assert_non_null(strstr(request_of("b", 0).headers, "idempotency-key: mine\r\n"));
	assert_null(strstr(request_of("b", 0).headers, "Idempotency-Key"));
}

/* The name has the greatest length, and the header's lines fit into what the server keeps. */
STORED(started, header_without_a_value_is_sent_however_long_its_name_is)
{
	static char name[TW_REDIS_HEADERS_MAX + 1];
	static const char *const header = name;
	struct http_request request;
	struct tw_redis_task task = {
		.key = "a", .key_size = 1, .url = address, .headers = &header, .header_count = 1};

	memset(name, 'N', sizeof(name) - 1);
	name[sizeof(name) - 2] = ':';
	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == 1);
	request = request_of("a", 0);
	assert_non_null(strstr(request.headers, "NNNNNNNN"));
}

STORED(started, key_that_is_not_printable_is_escaped)
{
	struct tw_redis_task task = {.key = "a b%\r\n\0\xff", .key_size = 8, .url = address};

	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(http_server_count_of(&http, "a%20b%25%0D%0A%00%FF"), 1);
}

STORED(started, large_body_arrives_whole)
{
	static char body[TW_REDIS_BODY_MAX];
	struct tw_redis_task task = {
		.key = "a", .key_size = 1, .url = address, .body = body, .body_size = sizeof(body)};

	memset(body, '7', sizeof(body));
	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(request_of("a", 0).body_size, sizeof(body));
}

STORED(started, every_2xx_is_success)
{
	static const char *const paths[] = {"/200", "/201", "/202", "/204", "/299"};

	for (size_t i = 0; i < 5; i++)
		add_call(fixture, paths[i], paths[i]);
	WAIT_UNTIL(ends_count() == 5);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), 5);
	assert_int_equal(http_server_count(&http), 5);
	assert_int_equal(end_of("/201", 0).http_status, 201);
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks + stats_of(fixture->redis).dead, 0);
}

STORED(started, unavailable_server_is_called_again)
{
	add_call(fixture, "a", "/twice-503");
	WAIT_UNTIL(ends_count() == 3);
	assert_int_equal(end_of("a", 0).end, TW_REDIS_END_RETRIED);
	assert_int_equal(end_of("a", 0).http_status, 503);
	assert_non_null(strstr(end_of("a", 0).reason, "503"));
	assert_int_equal(end_of("a", 2).end, TW_REDIS_END_DONE);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(request_of("a", i).attempt, i + 1);
	assert_true(request_of("a", 2).token > request_of("a", 1).token);
	assert_true(request_of("a", 1).token > request_of("a", 0).token);
}

/* The host asks for a pause, and no attempt counts. */
STORED(started, host_that_asks_for_a_pause_is_called_after_it)
{
	for (size_t i = 0; i < PAUSES; i++) {
		const char *key = pauses[i].path;
		struct end_seen end;

		add_call(fixture, key, key);
		WAIT_UNTIL(ends_count_of(key, TW_REDIS_END_DONE) == 1);
		assert_true(request_of(key, 1).at - request_of(key, 0).at >= pauses[i].pause);
		end = end_of(key, 0);
		assert_int_equal(end.end, TW_REDIS_END_SNOOZED);
		assert_int_equal(end.retry_in, pauses[i].pause);
		assert_int_equal(request_of(key, 1).attempt, 1);
	}
}

/* Returns the previous limit. */
static struct rlimit leave_no_descriptor(void)
{
	int lowest = dup(0);
	struct rlimit before;
	struct rlimit none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){(rlim_t)lowest, before.rlim_max};
	close(lowest);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return before;
}

STORED(started, task_without_a_descriptor_is_given_back)
{
	struct rlimit before;
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/200", http.port);
	add_callback(fixture->redis, "first", "http://127.0.0.1:1/", 1);
	WAIT_UNTIL(ends_count() == 1);
	before = leave_no_descriptor();
	add_callback(fixture->redis, "a", url, 1);
	WAIT_UNTIL(ends_count_of("a", TW_REDIS_END_SNOOZED));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_string_equal(end_of("a", 0).reason, "no file descriptor is left");
	WAIT_UNTIL(ends_count_of("a", TW_REDIS_END_DONE) == 1);
	assert_int_equal(request_of("a", 0).attempt, 1);
}

/* curl also accepts a switch of protocols that it has not requested. */
STORED(started, status_that_is_of_no_class_has_its_end)
{
	add_call(fixture, "101", "/switch");
	add_call(fixture, "999", "/999");
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DEAD) == 2);
	assert_int_equal(find_dead(fixture->redis, "101").attempts, 1);
	assert_string_equal(find_dead(fixture->redis, "101").reason, "HTTP 101");
	assert_int_equal(find_dead(fixture->redis, "999").attempts, 5);
}

STORED(started, answer_may_snooze)
{
	static const char *const paths[] = {"/snooze/200", "/snooze/503", "/snooze/404"};

	for (size_t i = 0; i < 3; i++)
		add_call(fixture, paths[i], paths[i]);
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DONE) == 3);
	for (size_t i = 0; i < 3; i++) {
		assert_in_range(request_of(paths[i], 1).at - request_of(paths[i], 0).at, TW_SECOND,
				TW_MINUTE);
		assert_int_equal(request_of(paths[i], 1).attempt, 1);
		assert_int_equal(end_of(paths[i], 0).end, TW_REDIS_END_SNOOZED);
		assert_int_equal(end_of(paths[i], 0).retry_in, TW_SECOND);
	}
}

STORED(started, other_4xx_and_redirects_are_dead_at_once)
{
	static const char *const paths[] = {"/400", "/401", "/404", "/410",
					    "/422", "/300", "/302", "/304"};

	for (size_t i = 0; i < 8; i++)
		add_call(fixture, paths[i], paths[i]);
	WAIT_UNTIL(ends_count() == 8);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DEAD), 8);
	/* A redirect that was followed would have made one more. */
	assert_int_equal(http_server_count(&http), 8);
	assert_string_equal(find_dead(fixture->redis, "/404").reason, "HTTP 404");
	assert_int_equal(find_dead(fixture->redis, "/404").attempts, 1);
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).dead, 8);
}

STORED(started, failures_that_may_pass_are_retried_until_dead)
{
	static const char *const paths[] = {"/408", "/429", "/500", "/502", "/504"};

	for (size_t i = 0; i < 5; i++)
		add_call(fixture, paths[i], paths[i]);
	WAIT_UNTIL(ends_count() == 25);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_RETRIED), 20);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DEAD), 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(find_dead(fixture->redis, paths[i]).attempts, 5);
}

STORED(opened, no_answer_is_retried)
{
	start_with(fixture, (struct tw_redis_worker_options){.http_timeout = TW_SECOND});
	add_call(fixture, "hang-up", "/hang-up");
	add_call(fixture, "slow", "/slow-first");
	add_call(fixture, "no-http", "/no-http");
	add_callback(fixture->redis, "nobody", "http://127.0.0.1:1/", 2);
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DONE) == 3 &&
		   ends_count_of("nobody", TW_REDIS_END_DEAD) == 1);
	assert_int_equal(end_of("hang-up", 0).end, TW_REDIS_END_RETRIED);
	assert_int_equal(end_of("slow", 0).end, TW_REDIS_END_RETRIED);
	assert_int_equal(end_of("no-http", 0).http_status, 0);
	assert_int_equal(end_of("nobody", 0).http_status, 0);
	assert_true(*end_of("nobody", 0).reason);
}

STORED(started, url_that_curl_does_not_take_is_dead_at_once)
{
	add_callback(fixture->redis, "a", "http://127.0.0.1:65536/", 5);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(find_dead(fixture->redis, "a").attempts, 1);
	assert_true(*find_dead(fixture->redis, "a").reason);
}

STORED(opened, scheme_that_came_into_redis_another_way_is_not_called)
{
	static const char record[] = "3 0\nGET file:///etc/passwd\n\n";

	add_task(fixture->redis, "a", TW_HOUR);
	redis_server_number(&fixture->server, "HSET {tw/%s/%u}body a %s", fixture->name_space,
			    shard_of(fixture->redis, "a"), record);
	redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, "a", -1);
	start(fixture);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(end_of("a", 0).end, TW_REDIS_END_DEAD);
	assert_int_equal(end_of("a", 0).http_status, 0);
}

STORED(opened, callback_longer_than_its_lease_is_extended_and_made_once)
{
	struct tw_redis_worker_stats stats;

	start_with(fixture, (struct tw_redis_worker_options){.lease = 3 * TW_SECOND});
	/* relaxed, both: an independent flag */
	atomic_store_explicit(&is_held, true, memory_order_relaxed);
	add_call(fixture, "a", "/held");
	/* The lease is extended each third of it. */
	WAIT_UNTIL(tw_redis_worker_get_stats(worker, NULL, &stats) == TW_OK && stats.extended >= 4);
	atomic_store_explicit(&is_held, false, memory_order_relaxed);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(http_server_count(&http), 1);
	assert_int_equal(end_of("a", 0).end, TW_REDIS_END_DONE);
}

STORED(opened, no_more_callbacks_at_a_time_than_asked_for)
{
	add_calls(fixture, 60, "/slow/30");
	start_with(fixture,
		   (struct tw_redis_worker_options){.callbacks = 8, .callbacks_per_host = 8});
	WAIT_UNTIL(ends_count() == 60);
	assert_in_range(http_server_busiest(&http), 2, 8);
}

static void add_call_to(struct fixture *fixture, const struct http_server *server, const char *key,
			const char *path)
{
	char url[128];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", server->port, path);
	add_callback(fixture->redis, key, url, 5);
}

/* There are more hosts that hang than places, and all their tasks are due before the others. */
STORED(opened, hosts_that_hang_hold_up_no_other)
{
	enum { HOSTS = 12, EACH = 20, OTHERS = 100 };
	struct http_server hanging[HOSTS];
	struct tw_redis_worker_stats stats;
	char key[KEY_SIZE];

	for (int i = 0; i < HOSTS; i++) {
		http_server_start(&hanging[i], answer_by_path, NULL);
		for (int k = 0; k < EACH; k++) {
			snprintf(key, sizeof(key), "hangs-%d-%d", i, k);
			add_call_to(fixture, &hanging[i], key, "/slow/60000");
		}
	}
	start_with(fixture, (struct tw_redis_worker_options){.callbacks = 8});
	for (int i = 0; i < HOSTS; i++)
		WAIT_UNTIL(http_server_count(&hanging[i]) > 0);
	add_calls(fixture, OTHERS, "/200");
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DONE) == OTHERS);
	for (int i = 0; i < HOSTS; i++)
		assert_in_range(http_server_busiest(&hanging[i]), 1, 7);
	/* No task that was put off is lost. */
	assert_int_equal(tw_redis_worker_get_stats(worker, NULL, &stats), TW_OK);
	assert_true(stats.put_off > 0);
	assert_int_equal(tw_redis_worker_stop(worker, 0), TW_OK);
	worker_destroy(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, HOSTS * EACH);
	assert_int_equal(stats_of(fixture->redis).started, 0);
	for (int i = 0; i < HOSTS; i++)
		http_server_stop(&hanging[i]);
}

/* The server answers each call when it has as many as one host may have. */
STORED(opened, slow_host_has_all_places_but_an_eighth)
{
	add_calls(fixture, 168, "/together/56");
	start(fixture);
	WAIT_UNTIL(ends_count() == 168);
	assert_int_equal(http_server_count(&http), 168);
	assert_int_equal(http_server_busiest(&http), 56);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), 168);
}

STORED(started, two_thousand_callbacks_are_made_once_each)
{
	enum { COUNT = TEST_SHARE_OF(2000) };

	add_calls(fixture, COUNT, "/200");
	WAIT_UNTIL(ends_count() == COUNT);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), COUNT);
	assert_int_equal(http_server_count(&http), COUNT);
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(started, stop_breaks_off_callbacks_after_the_grace_and_gives_them_back)
{
	int64_t before;

	add_call(fixture, "a", "/slow/20000");
	WAIT_UNTIL(http_server_count(&http) == 1);
	before = wall_clock();
	assert_int_equal(tw_redis_worker_stop(worker, 200 * TW_MILLISECOND), TW_OK);
	worker_destroy(worker);
	assert_in_range(wall_clock() - before, 200 * TW_MILLISECOND, 10 * TW_SECOND);
	assert_int_equal(end_of("a", 0).end, TW_REDIS_END_RELEASED);
	assert_int_equal(stats_of(fixture->redis).due, 1);
}

STORED(opened, stop_gives_back_callbacks_that_wait_for_their_host)
{
	enum { CALLS = 60 };
	size_t made;

	add_calls(fixture, CALLS, "/slow/50");
	start_with(fixture, (struct tw_redis_worker_options){.callbacks_per_host = 1});
	WAIT_UNTIL(http_server_count(&http) >= 2);
	/* The current call ends. */
	assert_int_equal(tw_redis_worker_stop(worker, TW_MINUTE), TW_OK);
	worker_destroy(worker);
	made = http_server_count(&http);
	assert_in_range(made, 2, CALLS - 1);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), made);
	assert_int_equal(stats_of(fixture->redis).due, CALLS - made);
	assert_int_equal(stats_of(fixture->redis).started, 0);
}

STORED(opened, handler_may_take_callbacks_too)
{

	WORK(fixture, .handler_for_callbacks = true);
	add_call(fixture, "a", "/200");
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(runs_count_of("a"), 1);
	assert_int_equal(http_server_count(&http), 0);
}

STORED(started, task_without_callback_fails_where_no_handler_is)
{
	const struct tw_redis_task task = {.key = "a", .key_size = 1, .max_attempts = 2};

	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == 2);
	assert_int_equal(ends_count_of("a", TW_REDIS_END_DEAD), 1);
	assert_true(*find_dead(fixture->redis, "a").reason);
}

FIXTURE_FILE
