/* SPDX-License-Identifier: MIT */
/*
 * A worker calls an HTTP server on loopback. These tests check what it sends, what each answer
 * means, and how many calls run at a time. The path of a task's URL has the answers to its calls:
 * /503,200 is a 503 and then 200 for ever.
 */
#include "support/fixture.h"

#include <sys/resource.h>

#include "support/ends.h"
#include "support/http_server.h"
#include "support/runs.h"

static struct http_server http;
static struct tw_redis_worker *worker; /* the one that CALL_BACK() started */
static atomic_bool is_held;

/* An answer is a status, or one of these words. */
static const struct {
	const char *word;
	struct http_answer answer;
} answers[] = {
	{"pause-1", {.status = 429, .headers = "Retry-After: 1\r\n"}},
	{"pause-.4", {.status = 429, .headers = "Retry-After: 0.4\r\n"}},
	{"pause-0", {.status = 429, .headers = "Retry-After: 0\r\n"}},
	{"pause-past",
	 {.status = 429, .headers = "Retry-After: Sun, 06 Nov 1994 08:49:38 GMT\r\n"}},
	{"pause-dated",
	 {.status = 429,
	  .headers = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
		     "Retry-After: Sun, 06 Nov 1994 08:49:38 GMT\r\n"}},
	{"snooze-200", {.status = 200, .headers = "Tw-Snooze: 1\r\n"}},
	{"snooze-503", {.status = 503, .headers = "Tw-Snooze: 1\r\n"}},
	{"snooze-404", {.status = 404, .headers = "Tw-Snooze: 1\r\n"}},
	{"302", {.status = 302, .headers = "Location: /200\r\n"}},
	{"hang-up", {.hang_up = true}},
	{"no-http", {.instead = "220 mail.example ESMTP\r\n"}},
	{"cut-200", {.instead = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"}},
	{"cut-404", {.instead = "HTTP/1.1 404 OK\r\nContent-Length: 9\r\n\r\nhalf"}},
	{"stall",
	 {.instead = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", .stall_ms = 60000}},
	/* curl also accepts a switch of protocols that it has not requested. */
	{"switch", {.instead = "HTTP/1.1 101 Said\r\n\r\nas if it had been asked"}},
	{"endless-200", {.status = 200, .body_size = SIZE_MAX}},
	{"endless-404", {.status = 404, .body_size = SIZE_MAX}},
	{"long-100", {.status = 200, .body_size = 100}},
	/* This is the longest body that is read, and then one byte more. */
	{"long-65536", {.status = 200, .body_size = 65536}},
	{"long-65537", {.status = 200, .body_size = 65537}},
	{"slow-30", {.status = 200, .delay_ms = 30}},
	{"slow-50", {.status = 200, .delay_ms = 50}},
	{"slow-5000", {.status = 200, .delay_ms = 5000}},
	{"slow-60000", {.status = 200, .delay_ms = 60000}},
	{"together-56", {.status = 200, .delay_ms = 300}},
	{"held", {.status = 200}},
};

static bool word_is(const char *word, const char *other)
{
	size_t size = strlen(other);

	return !strncmp(word, other, size) && (!word[size] || word[size] == ',');
}

/* Answers by the word of the path that has the number of the call. */
static void answer_by_path(void *context, const struct http_request *request,
			   struct http_answer *answer)
{
	const char *word = request->path + 1;

	for (size_t i = http_server_count_of(&http, request->key); i > 1 && strchr(word, ','); i--)
		word = strchr(word, ',') + 1;
	answer->status = atoi(word) ? atoi(word) : 200;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (word_is(word, answers[i].word))
			*answer = answers[i].answer;
	/* A call beyond that number has time to come. */
	for (int i = 0; word_is(word, "together-56") && http_server_busiest(&http) < 56; i++) {
		if (i == 5000)
			break;
		wait_for(TW_MILLISECOND);
	}
	/* relaxed: an independent flag */
	while (word_is(word, "held") && atomic_load_explicit(&is_held, memory_order_relaxed))
		wait_for(TW_MILLISECOND);
}

static int open_all(void **state)
{
	http_server_start(&http, answer_by_path, NULL);
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

/* CALL_BACK(.callbacks = 8) starts a worker with these options and no handler. Retries are quick,
 * so that no test waits for seconds. */
#define CALL_BACK(...) call_back(fixture, (struct tw_redis_worker_options){__VA_ARGS__})
static void call_back(const struct fixture *fixture, struct tw_redis_worker_options options)
{
	runs_attach(&options);
	options.handler = NULL;
	options.retry_first = 20 * TW_MILLISECOND;
	options.retry_max = 100 * TW_MILLISECOND;
	worker = worker_start(&fixture->options, &options);
}

static int open_started(void **state)
{
	int result = open_all(state);

	/* The worker is stopped when the case has ended. */
	ends_begin();
	call_back(*state, (struct tw_redis_worker_options){0});
	return result;
}

static const struct test_kind kind_started = {.open = open_started, .close = close_all};

static void add_call_to(struct fixture *fixture, const struct http_server *server, const char *key,
			const char *path)
{
	char url[128];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/%s", server->port, path);
	add_callback(fixture->redis, key, url, 5);
}

static void add_call(struct fixture *fixture, const char *key, const char *path)
{
	add_call_to(fixture, &http, key, path);
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

/* ---- What is sent ---- */

/* Adds the task with this path and these header lines, waits for its end, and returns the last
 * request with the key as it is written there. */
static struct http_request sent(struct fixture *fixture, struct tw_redis_task task,
				const char *path, const char *shown, const char *const *headers)
{
	size_t requests = http_server_count_of(&http, shown);
	size_t ends = ends_count();
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/%s", http.port, path);
	task.url = url;
	task.headers = headers;
	while (headers && headers[task.header_count])
		task.header_count++;
	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == ends + 1);
	assert_int_equal(http_server_count_of(&http, shown), requests + 1);
	return request_of(shown, requests);
}

/* TASK("a", body) is a task with this key and this body. */
#define TASK(name, text)                                                                           \
	(struct tw_redis_task)                                                                     \
	{                                                                                          \
		.key = (name), .key_size = strlen(name), .body = (text), .body_size = strlen(text) \
	}
#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})

STORED(started, post_carries_body_headers_key_attempt_and_token)
{
	struct http_request request =
		sent(fixture, TASK("order:7", "{\"a\":1}"), "200?query=1", "order:7",
		     HEADERS("X-Shop: seven", "X-Empty:", "X-Blank: \t "));

	assert_string_equal(request.method, "POST");
	assert_string_equal(request.path, "/200?query=1");
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
}

STORED(started, content_type_of_the_task_replaces_the_default)
{
	struct http_request request = sent(fixture, TASK("a", "x"), "200", "a",
					   HEADERS("content-type: text/plain", "A: b"));

	assert_non_null(strstr(request.headers, "content-type: text/plain\r\n"));
	assert_null(strstr(request.headers, "application/json"));
}

STORED(started, every_method_is_sent_with_its_body)
{
	static const char *const names[] = {TW_REDIS_METHOD_NAMES};

	for (enum tw_redis_method method = TW_REDIS_POST; method <= TW_REDIS_HEAD; method++) {
		const char *name = names[method];
		struct tw_redis_task task = TASK(name, "");
		struct http_request request;

		task.method = method;
		request = sent(fixture, task, "long-100", name, NULL);
		assert_string_equal(request.method, name);
		assert_int_equal(request.body_size, 0);
		if (method == TW_REDIS_GET)
			assert_null(strstr(request.headers, "Content-Type"));
		task = TASK(name, "{}");
		task.method = method;
		if (method == TW_REDIS_HEAD) {
			task.url = "http://127.0.0.1/";
			assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL),
					 TW_REDIS_BAD_DATA);
			continue;
		}
		request = sent(fixture, task, "long-100", name, NULL);
		assert_string_equal(request.method, name);
		assert_string_equal(request.body, "{}");
		assert_non_null(strstr(request.headers, "application/json"));
	}
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), ends_count());
}

STORED(started, idempotency_key_is_key_and_token)
{
	struct http_request request = sent(fixture, TASK("a 1", ""), "200", "a%201", NULL);
	char expected[64];

	snprintf(expected, sizeof(expected), "Idempotency-Key: a%%201 %llu\r\n",
		 (unsigned long long)request.token);
	assert_non_null(strstr(request.headers, expected));
	/* The task's own header replaces the default. */
	request =
		sent(fixture, TASK("b", ""), "200", "b", HEADERS("idempotency-key: mine", "A: b"));
	assert_non_null(strstr(request.headers, "idempotency-key: mine\r\n"));
	assert_null(strstr(request.headers, "Idempotency-Key"));
}

/* The name has the greatest length, and the header's lines fit into what the server keeps. */
STORED(started, header_without_a_value_is_sent_however_long_its_name_is)
{
	static char name[TW_REDIS_HEADERS_MAX + 1];

	memset(name, 'N', sizeof(name) - 1);
	name[sizeof(name) - 2] = ':';
	assert_non_null(strstr(sent(fixture, TASK("a", ""), "200", "a", HEADERS(name)).headers,
			       "NNNNNNNN"));
}

STORED(started, key_that_is_not_printable_is_escaped)
{
	struct tw_redis_task task = {.key = "a b%\r\n\0\xff", .key_size = 8};

	sent(fixture, task, "200", "a%20b%25%0D%0A%00%FF", NULL);
}

STORED(started, large_body_arrives_whole)
{
	static char body[TW_REDIS_BODY_MAX + 1];

	memset(body, '7', TW_REDIS_BODY_MAX);
	assert_int_equal(sent(fixture, TASK("a", body), "200", "a", NULL).body_size,
			 TW_REDIS_BODY_MAX);
}

/* ---- What an answer means ---- */

static const char *const end_names[] = {[TW_REDIS_END_DONE] = "done",
					[TW_REDIS_END_RETRIED] = "retried",
					[TW_REDIS_END_SNOOZED] = "snoozed",
					[TW_REDIS_END_DEAD] = "dead"};

/* Checks all ends of the task and its requests. Returns whether it is dead. */
static bool check_ends(struct fixture *fixture, const char *key, const char *expected)
{
	unsigned attempt = 1;
	struct end_seen end = {.end = TW_REDIS_END_DONE};
	size_t i = 0;

	for (; *expected; i++) {
		struct http_request request = request_of(key, i);
		size_t size = strcspn(expected, ":/ ");

		if (i) {
			assert_true(request.token > request_of(key, i - 1).token);
			assert_true(request.at - request_of(key, i - 1).at >= end.retry_in);
		}
		assert_int_equal(request.attempt, attempt);
		end = end_of(key, i);
		if (strncmp(end_names[end.end], expected, size) || end_names[end.end][size])
			fail_msg("%s: %s in place of %s", key, end_names[end.end], expected);
		attempt += end.end != TW_REDIS_END_SNOOZED;
		assert_true(end.token == request.token);
		assert_int_equal(end.http_status, expected[size] == ':' ? atoi(expected + size + 1)
						  : !strchr(key, '-')   ? atoi(key + 4 * i)
									: end.http_status);
		if (expected[size] == '/')
			assert_int_equal(end.retry_in, atoi(expected + size + 1) * TW_MILLISECOND);
		expected += strcspn(expected, " ");
		expected += *expected == ' ';
	}
	/* A redirect that was followed would have made one more. */
	assert_int_equal(http_server_count_of(&http, key), i);
	if (end.end == TW_REDIS_END_DEAD) {
		char reason[16];

		snprintf(reason, sizeof(reason), "HTTP %d", end.http_status);
		assert_string_equal(find_dead(fixture->redis, key).reason, reason);
		assert_int_equal(find_dead(fixture->redis, key).attempts, attempt - 1);
	}
	return end.end == TW_REDIS_END_DEAD;
}

/* Makes tasks with these answers and checks that all ends of each are these: a number after a colon
 * is the end's HTTP status, and one after a slash the milliseconds up to the next call. */
static void answered(struct fixture *fixture, const char *all, const char *expected)
{
	size_t dead = stats_of(fixture->redis).dead;
	size_t ends = ends_count();
	int64_t before = wall_clock();
	char paths[100];
	char *rest = NULL;
	const char *path;

	strcpy(paths, all);
	for (path = strtok_r(paths, " ", &rest); path; path = strtok_r(NULL, " ", &rest)) {
		add_call(fixture, path, path);
		for (const char *end = expected; end; end = strchr(end + 1, ' '))
			ends++;
	}
	WAIT_UNTIL(ends_count() == ends);
	assert_true(wall_clock() - before < 20 * TW_SECOND);
	strcpy(paths, all);
	for (path = strtok_r(paths, " ", &rest); path; path = strtok_r(NULL, " ", &rest))
		dead += check_ends(fixture, path, expected);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	assert_int_equal(stats_of(fixture->redis).dead, dead);
}

#define ANSWERED(name, ends, ...)                                             \
	STORED(started, name)                                                 \
	{                                                                     \
		static const char *const paths[] = {__VA_ARGS__};             \
                                                                              \
		for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) \
			answered(fixture, paths[i], ends);                    \
	}

ANSWERED(every_2xx_is_success, "done", "200 201 202 204 299")
ANSWERED(unavailable_server_is_called_again, "retried retried done", "503,503,200")
ANSWERED(other_4xx_and_redirects_are_dead_at_once, "dead", "400 401 404 410 422 300 302 304")
ANSWERED(failures_that_may_pass_are_retried_until_dead, "retried retried retried retried dead",
	 "408,408,408,408,408 429,429,429,429,429 500,500,500,500,500",
	 "502,502,502,502,502 504,504,504,504,504 999,999,999,999,999")
ANSWERED(answer_without_end_counts_by_its_status, "done:200",
	 "endless-200 long-65536 long-65537 cut-200 stall")
ANSWERED(error_without_end_counts_by_its_status, "dead:404", "endless-404 cut-404")
ANSWERED(switch_of_protocols_is_no_success, "dead:101", "switch")
/* The host asks for a pause, and no attempt counts. */
ANSWERED(host_that_asks_for_a_pause_is_called_after_it, "snoozed/1000 done", "pause-1,200",
	 "pause-dated,200")
ANSWERED(fraction_of_a_second_is_a_pause, "snoozed/400 done", "pause-.4,200")
ANSWERED(least_pause_is_a_tenth_of_a_second, "snoozed/100 done", "pause-0,200", "pause-past,200")
ANSWERED(answer_may_snooze, "snoozed/1000 done", "snooze-200,200 snooze-503,200 snooze-404,200")

STORED(opened, no_answer_is_retried)
{
	CALL_BACK(.http_timeout = TW_SECOND);
	answered(fixture, "hang-up,200 slow-5000,200 no-http,200", "retried:0 done");
	add_callback(fixture->redis, "nobody", "http://127.0.0.1:1/", 2);
	WAIT_UNTIL(ends_count_of("nobody", TW_REDIS_END_DEAD) == 1);
	assert_int_equal(end_of("nobody", 0).http_status, 0);
	assert_true(*end_of("nobody", 0).reason);
}

/* Returns the previous limit. */
static struct rlimit limit_descriptors(rlim_t most)
{
	struct rlimit before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, before.rlim_max}), 0);
	return before;
}

/* Few descriptors allow 16 requests. A claim may bring those that begin within 20 ms, too. */
STORED(one_shard, worker_claims_what_its_descriptors_allow)
{
	enum { DESCRIPTORS = 48, TASKS = 64, MOST = 16 + 16 * 20 / 50 };
	struct tw_redis_worker_stats stats;
	struct rlimit before;
	char key[KEY_SIZE];
	char url[64];

	http_server_start(&http, answer_by_path, NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/slow-50", http.port);
	for (int i = 0; i < TASKS; i++) {
		number_key(key, i);
		add_callback(fixture->redis, key, url, 5);
	}
	before = limit_descriptors(DESCRIPTORS);
	CALL_BACK(.callbacks = TASKS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	WAIT_UNTIL(worker_stats(worker).claimed);
	stats = worker_stats(worker);
	assert_true(stats.claimed <= MOST * stats.claims);
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DONE) == TASKS);
	http_server_stop(&http);
}

STORED(started, task_without_a_descriptor_is_given_back)
{
	struct rlimit before;
	char url[64];
	int lowest;

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/200", http.port);
	add_callback(fixture->redis, "first", "http://127.0.0.1:1/", 1);
	WAIT_UNTIL(ends_count() == 1);
	lowest = dup(0);
	before = limit_descriptors((rlim_t)lowest);
	close(lowest);
	add_callback(fixture->redis, "a", url, 1);
	WAIT_UNTIL(ends_count_of("a", TW_REDIS_END_SNOOZED));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_string_equal(end_of("a", 0).reason, "no file descriptor is left");
	WAIT_UNTIL(ends_count_of("a", TW_REDIS_END_DONE) == 1);
	assert_int_equal(request_of("a", 0).attempt, 1);
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
	CALL_BACK();
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(end_of("a", 0).end, TW_REDIS_END_DEAD);
	assert_int_equal(end_of("a", 0).http_status, 0);
}

STORED(opened, callback_longer_than_its_lease_is_extended_and_made_once)
{

	CALL_BACK(.lease = 3 * TW_SECOND);
	/* relaxed, both: an independent flag */
	atomic_store_explicit(&is_held, true, memory_order_relaxed);
	add_call(fixture, "a", "held");
	/* The lease is extended each third of it. */
	WAIT_UNTIL(worker_stats(worker).extended >= 4);
	atomic_store_explicit(&is_held, false, memory_order_relaxed);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(http_server_count(&http), 1);
	assert_int_equal(end_of("a", 0).end, TW_REDIS_END_DONE);
}

STORED(opened, no_more_callbacks_at_a_time_than_asked_for)
{
	add_calls(fixture, 60, "slow-30");
	CALL_BACK(.callbacks = 8, .callbacks_per_host = 8);
	WAIT_UNTIL(ends_count() == 60);
	assert_in_range(http_server_busiest(&http), 2, 8);
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
			add_call_to(fixture, &hanging[i], key, "slow-60000");
		}
	}
	CALL_BACK(.callbacks = 8);
	for (int i = 0; i < HOSTS; i++)
		WAIT_UNTIL(http_server_count(&hanging[i]) > 0);
	add_calls(fixture, OTHERS, "200");
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DONE) == OTHERS);
	for (int i = 0; i < HOSTS; i++)
		assert_in_range(http_server_busiest(&hanging[i]), 1, 7);
	/* No task that was put off is lost. */
	stats = worker_stats(worker);
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
	add_calls(fixture, 168, "together-56");
	CALL_BACK();
	WAIT_UNTIL(ends_count() == 168);
	assert_int_equal(http_server_count(&http), 168);
	assert_int_equal(http_server_busiest(&http), 56);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), 168);
}

STORED(started, two_thousand_callbacks_are_made_once_each)
{
	enum { COUNT = TEST_SHARE_OF(2000) };

	add_calls(fixture, COUNT, "200");
	WAIT_UNTIL(ends_count() == COUNT);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), COUNT);
	assert_int_equal(http_server_count(&http), COUNT);
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(started, stop_breaks_off_callbacks_after_the_grace_and_gives_them_back)
{
	int64_t before;

	add_call(fixture, "a", "slow-60000");
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
	uint64_t put_off;
	size_t made;

	add_calls(fixture, CALLS, "slow-50");
	CALL_BACK(.callbacks_per_host = 1);
	WAIT_UNTIL(http_server_count(&http) >= 2);
	/* The current call ends. */
	assert_int_equal(tw_redis_worker_stop(worker, TW_MINUTE), TW_OK);
	put_off = worker_stats(worker).put_off;
	worker_destroy(worker);
	made = http_server_count(&http);
	assert_in_range(made, 2, CALLS - 1);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), made);
	assert_int_equal(stats_of(fixture->redis).tasks, CALLS - made);
	/* On a busy machine the host may seem silent: then its tasks are put off. */
	assert_in_range(stats_of(fixture->redis).due, put_off ? 0 : CALLS - made, CALLS - made);
	assert_int_equal(stats_of(fixture->redis).started, 0);
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
