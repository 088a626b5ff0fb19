/* SPDX-License-Identifier: MIT */
/* These tests are about a worker's statistics: histograms, answers by host, and its requests to
 * Redis. */
#include "support/fixture.h"

#include "support/http_server.h"
#include "support/runs.h"

static struct http_server http;

/* Answers with the status that the path begins with, and never to "/0". */
static void answer_by_path(void *context, const struct http_request *request,
			   struct http_answer *answer)
{
	answer->status = atoi(request->path + 1);
	answer->hang_up = !answer->status;
}

static int open_all(void **state)
{
	http_server_start(&http, answer_by_path, NULL);
	return fixture_open(state);
}

static int close_all(void **state)
{
	http_server_stop(&http);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

static struct tw_redis_worker *worker_of(const struct fixture *fixture,
					 struct tw_redis_worker_options options)
{
	struct tw_redis_error error = {0};
	struct tw_redis_worker *worker;

	if (tw_redis_worker_start(&worker, &fixture->options, &options, &error) != TW_OK)
		fail_msg("%s: %s", tw_status_name(error.status), error.text);
	return worker;
}

/* Waits until `count` runs have ended. */
static struct tw_redis_worker_stats await_ends(struct tw_redis_worker *worker, uint64_t count)
{
	struct tw_redis_worker_stats stats = worker_stats(worker);

	for (int i = 0; i < 12000 && stats.done + stats.retried + stats.dead < count; i++) {
		wait_for(5 * TW_MILLISECOND);
		stats = worker_stats(worker);
	}
	assert_int_equal(stats.done + stats.retried + stats.dead, count);
	return stats;
}

static uint64_t histogram_count(const struct tw_redis_histogram *histogram)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++)
		count += histogram->counts[i];
	return count;
}

/* Returns the number of times in buckets up to the bound. */
static uint64_t histogram_count_to(const struct tw_redis_histogram *histogram, tw_duration bound)
{
	uint64_t count = 0;

	for (unsigned i = 0; tw_redis_bucket_bound(i) <= bound; i++)
		count += histogram->counts[i];
	return count;
}

static void add_at(struct tw_redis *redis, const char *key, const char *host, int status)
{
	char url[128];

	snprintf(url, sizeof(url), "http://%s:%d/%d", host, http.port, status);
	add_callback(redis, key, url, 1);
}

TEST(once, bounds_go_up_to_forever)
{
	tw_duration last = 0;

	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++) {
		assert_true(tw_redis_bucket_bound(i) > last);
		last = tw_redis_bucket_bound(i);
	}
	assert_int_equal(tw_redis_bucket_bound(0), TW_MILLISECOND);
	assert_int_equal(tw_redis_bucket_bound(TW_REDIS_BUCKETS - 2), 5 * TW_MINUTE);
	assert_int_equal(tw_redis_bucket_bound(TW_REDIS_BUCKETS - 1), TW_FOREVER);
	assert_int_equal(tw_redis_bucket_bound(UINT32_MAX), TW_FOREVER);
}

TEST(opened, bad_arguments_are_refused)
{
	struct tw_redis_worker *worker = worker_of(*state, (struct tw_redis_worker_options){0});
	struct tw_redis_host_stats host = {.name = "?"};
	size_t count;

	assert_int_equal(tw_redis_worker_get_stats(NULL, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_worker_get_hosts(NULL, &host, 1, &count), TW_INVALID);
	assert_int_equal(tw_redis_worker_get_hosts(worker, &host, 1, NULL), TW_INVALID);
	assert_int_equal(tw_redis_worker_get_hosts(worker, NULL, 1, &count), TW_INVALID);
	assert_int_equal(tw_redis_worker_get_hosts(worker, NULL, 0, &count), TW_OK);
	assert_int_equal(count, 1);
	assert_int_equal(tw_redis_worker_get_hosts(worker, &host, 1, &count), TW_OK);
	assert_string_equal(host.name, "");
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

static enum tw_redis_outcome sleep_and_end(void *context, const struct tw_redis_job *job,
					   struct tw_redis_verdict *verdict)
{
	wait_for(60 * TW_MILLISECOND);
	return *(const char *)job->key == 'd' ? TW_REDIS_KILL : TW_REDIS_DONE;
}

STORED(opened, times_of_all_runs_are_in_the_histograms)
{
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;

	add_task(fixture->redis, "late", 0);
	redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, "late",
			     -20 * 60 * 1000);
	add_task(fixture->redis, "dead", 0);
	/* It calls no handler. */
	add_callback(fixture->redis, "called", "http://127.0.0.1:1/", 1);
	worker = worker_of(fixture, (struct tw_redis_worker_options){.handler = sleep_and_end});
	stats = await_ends(worker, 3);
	assert_int_equal(stats.done, 1);
	assert_int_equal(stats.dead, 2);
	assert_int_equal(histogram_count(&stats.lateness), 3);
	assert_int_equal(histogram_count(&stats.duration), 3);
	assert_int_equal(stats.lateness.counts[TW_REDIS_BUCKETS - 1], 1);
	assert_in_range(stats.lateness.total_us, 20ULL * 60 * 1000000, 40ULL * 60 * 1000000);
	assert_true(histogram_count_to(&stats.duration, 50 * TW_MILLISECOND) <= 1);
	assert_in_range(stats.duration.total_us, 2 * 60000, 120 * 1000000);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

STORED(opened, run_that_never_began_has_no_times)
{
	struct tw_redis_worker *worker;
	struct tw_redis_worker_stats stats;

	/* The task needs a handler, and there is none. */
	add_task(fixture->redis, "a", 0);
	worker = worker_of(fixture, (struct tw_redis_worker_options){.retry_first = TW_HOUR,
								     .retry_max = TW_HOUR});
	stats = await_ends(worker, 1);
	assert_int_equal(stats.retried, 1);
	assert_int_equal(histogram_count(&stats.lateness), 0);
	assert_int_equal(histogram_count(&stats.duration), 0);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

STORED(opened, answers_are_counted_by_host_and_class)
{
	static const struct {
		const char *host;
		int status;
	} calls[] = {{"127.0.0.1", 200}, {"127.0.0.1", 204},       {"127.0.0.1", 301},
		     {"127.0.0.1", 404}, {"127.0.0.1", 999},       {"127.0.0.1", 0},
		     {"localhost", 200}, {"me:you@localhost", 500}};
	enum { COUNT = sizeof(calls) / sizeof(calls[0]) };
	static const uint64_t expected[][TW_REDIS_ANSWERS] = {
		{1}, {1, 0, 2, 1, 1, 1}, {0, 0, 1, 0, 0, 1}, {1}};
	struct tw_redis_host_stats hosts[TW_REDIS_HOSTS_MAX + 1];
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;
	char name[64];
	char url[64];
	char long_url[TW_REDIS_HOST_NAME_MAX + 16] = "http://";
	size_t count;

	/* Tasks run one at a time, so the hosts come in this order. */
	worker = worker_of(fixture, (struct tw_redis_worker_options){0});
	for (int i = 0; i < COUNT; i++) {
		char key[KEY_SIZE];

		number_key(key, i);
		add_at(fixture->redis, key, calls[i].host, calls[i].status);
		stats = await_ends(worker, (uint64_t)i + 1);
	}
	/* Another host's name begins with this one. Nobody answers at a port of one digit. */
	snprintf(name, sizeof(name), "%d", http.port);
	snprintf(url, sizeof(url), "http://localhost:%.1s/", name);
	add_callback(fixture->redis, "prefix", url, 1);
	stats = await_ends(worker, COUNT + 1);
	/* This name is too long for a row. */
	memset(long_url + 7, 'a', TW_REDIS_HOST_NAME_MAX + 1);
	add_callback(fixture->redis, "long", long_url, 1);
	stats = await_ends(worker, COUNT + 2);
	assert_int_equal(tw_redis_worker_get_hosts(worker, hosts, 51, &count), TW_OK);
	assert_int_equal(count, 4);
	snprintf(name, sizeof(name), "127.0.0.1:%d", http.port);
	assert_string_equal(hosts[1].name, name);
	snprintf(name, sizeof(name), "localhost:%d", http.port);
	assert_string_equal(hosts[2].name, name);
	for (size_t i = 0; i < count; i++)
		assert_memory_equal(hosts[i].answers, expected[i], sizeof(expected[i]));
	assert_int_equal(histogram_count(&stats.duration), COUNT + 2);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

STORED(opened, hosts_beyond_the_fiftieth_share_a_row)
{
	enum { HOSTS = TW_REDIS_HOSTS_MAX + 5 };
	struct tw_redis_host_stats hosts[TW_REDIS_HOSTS_MAX + 1];
	struct tw_redis_worker *worker;
	size_t count;

	for (int i = 0; i < HOSTS; i++) {
		char host[KEY_SIZE + 16];

		number_key(host, i);
		strcat(host, ".localhost");
		add_at(fixture->redis, host, host, 200);
	}
	worker = worker_of(fixture, (struct tw_redis_worker_options){0});
	await_ends(worker, HOSTS);
	assert_int_equal(tw_redis_worker_get_hosts(worker, hosts, 51, &count), TW_OK);
	assert_int_equal(count, TW_REDIS_HOSTS_MAX + 1);
	assert_string_equal(hosts[0].name, "");
	assert_int_equal(hosts[0].answers[2], HOSTS - TW_REDIS_HOSTS_MAX);
	for (size_t i = 1; i < count; i++)
		assert_int_equal(hosts[i].answers[2], 1);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

TEST(once, loss_and_return_of_redis_are_counted)
{
	struct redis_server server;
	struct tw_redis_options options = {.url = server.url, .shards = 4};
	struct tw_redis_worker *worker;
	struct tw_redis_worker_stats stats;

	redis_server_start(&server, NULL);
	assert_int_equal(tw_redis_worker_start(&worker, &options, NULL, NULL), TW_OK);
	redis_server_end(&server, SIGKILL);
	for (int i = 0; i < 6000 && !worker_stats(worker).losses; i++)
		wait_for(5 * TW_MILLISECOND);
	stats = worker_stats(worker);
	assert_int_equal(stats.losses, 1);
	assert_int_equal(stats.reconnects, 0);
	redis_server_restart(&server);
	for (int i = 0; i < 6000 && !worker_stats(worker).reconnects; i++)
		wait_for(5 * TW_MILLISECOND);
	assert_int_equal(worker_stats(worker).reconnects, 1);
	assert_true(worker_stats(worker).round_trips > stats.round_trips);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
	redis_server_stop(&server);
}

/* Blocks the worker's main thread while the test has the lock. */
static void wait_for_the_test(void *context, const struct tw_redis_report *report)
{
	pthread_mutex_t *lock = context;

	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
}

STORED(opened, loop_that_is_held_up_is_seen)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct tw_redis_worker_options options = {.context = &lock, .report = wait_for_the_test};
	struct tw_redis_worker *worker;

	pthread_mutex_lock(&lock);
	worker = worker_of(fixture, options);
	add_at(fixture->redis, "a", "127.0.0.1", 200);
	/* The worker never sleeps for that long. */
	for (int i = 0; i < 4000 && worker_stats(worker).turned < 11 * TW_SECOND; i++)
		wait_for(10 * TW_MILLISECOND);
	assert_true(worker_stats(worker).turned >= 11 * TW_SECOND);
	pthread_mutex_unlock(&lock);
	await_ends(worker, 1);
	assert_true(worker_stats(worker).turned < 11 * TW_SECOND);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

FIXTURE_FILE
