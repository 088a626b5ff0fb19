/* SPDX-License-Identifier: MIT */
/*
 * These tests are about callbacks to hosts whose names are looked up slowly, change, or are not
 * ASCII. libcurl looks names up through the getaddrinfo below. It finds the test's hosts on
 * loopback, and hosts "slow-N.invalid" only after the test opens the lookups.
 */
#include "support/fixture.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <netdb.h>

#include "support/http_server.h"
#include "support/runs.h"
#include "support/sockets.h"

static struct http_server http;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
	bool moved; /* "moved.invalid" has an address where no server listens */
	size_t begun;
	size_t ended;
} lookups = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

typedef int lookup_fn(const char *host, const char *service, const struct addrinfo *hints,
		      struct addrinfo **found);

static bool has_moved(const char *host)
{
	bool moved;

	pthread_mutex_lock(&lookups.lock);
	moved = lookups.moved && !strcmp(host, "moved.invalid");
	pthread_mutex_unlock(&lookups.lock);
	return moved;
}

/* This replaces libc's for libcurl. */
__attribute__((visibility("default"))) int getaddrinfo(const char *restrict host,
						       const char *restrict service,
						       const struct addrinfo *restrict hints,
						       struct addrinfo **restrict found)
{
	union {
		void *address;
		lookup_fn *function;
	} next = {.address = dlsym(RTLD_NEXT, "getaddrinfo")};

	if (!host || !strstr(host, ".invalid"))
		return next.function(host, service, hints, found);
	if (strncmp(host, "slow", 4))
		return next.function(has_moved(host) ? "127.0.0.2" : "127.0.0.1", service, hints,
				     found);
	pthread_mutex_lock(&lookups.lock);
	lookups.begun++;
	while (!lookups.open)
		pthread_cond_wait(&lookups.changed, &lookups.lock);
	lookups.ended++;
	pthread_mutex_unlock(&lookups.lock);
	return EAI_NONAME;
}

static size_t lookups_begun(void)
{
	return locked_read(&lookups.lock, &lookups.begun);
}

static bool lookups_have_ended(void)
{
	return locked_read(&lookups.lock, &lookups.ended) == lookups_begun();
}

static int open_all(void **state)
{
	http_server_start(&http, NULL, NULL);
	return fixture_open(state);
}

static int close_all(void **state)
{
	http_server_stop(&http);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

/* Adds callbacks to hosts with slow names, and waits until all their lookups have begun. */
static void add_slow(struct tw_redis *redis, int first, int count)
{
	size_t begun = lookups_begun();

	for (int i = first; i < first + count; i++) {
		char key[32];
		char url[64];

		snprintf(key, sizeof(key), "slow-%d", i);
		snprintf(url, sizeof(url), "http://slow-%d.invalid/", i);
		add_callback(redis, key, url, 1);
	}
	WAIT_UNTIL(lookups_begun() >= begun + (size_t)count);
}

STORED(opened, slow_lookups_of_hosts_hold_up_nobody)
{
	/* Newer versions of libcurl have 20 threads for lookups by default. */
	enum { SLOW = 25 };
	struct tw_redis_worker_options options = {.http_timeout = TW_SECOND};
	struct tw_redis_worker *worker;
	int64_t before;
	char url[64];

	snprintf(url, sizeof(url), "http://quick.invalid:%d/", http.port);
	runs_attach(&options);
	options.handler = NULL;
	worker = worker_start(&fixture->options, &options);
	add_slow(fixture->redis, 0, SLOW);
	/* The callbacks time out while their names are still looked up. */
	WAIT_UNTIL(ends_count() == SLOW);
	assert_int_equal(end_of("slow-0", 0).end, TW_REDIS_END_DEAD);
	add_callback(fixture->redis, "quick", url, 5);
	WAIT_UNTIL(ends_count_of("quick", TW_REDIS_END_DONE) == 1);
	/* The worker stops without waiting for lookups, too. */
	add_slow(fixture->redis, SLOW, 1);
	before = wall_clock();
	assert_int_equal(tw_redis_worker_stop(worker, 0), TW_OK);
	worker_destroy(worker);
	assert_true(wall_clock() - before < 10 * TW_SECOND);
	assert_false(lookups_have_ended());
	pthread_mutex_lock(&lookups.lock);
	lookups.open = true;
	pthread_cond_broadcast(&lookups.changed);
	pthread_mutex_unlock(&lookups.lock);
	WAIT_UNTIL(lookups_have_ended());
	/* The threads then free their memory. */
	wait_for(100 * TW_MILLISECOND);
}

/* The stream keeps its connection busy, and the server at the old address keeps answering. */
STORED(opened, steady_callbacks_follow_a_changed_name)
{
	struct tw_redis_worker_options options = {.connection_age = TW_SECOND};
	char url[64];
	struct tw_redis_task task = {
		.key = "tick", .key_size = 4, .url = url, .every = 50 * TW_MILLISECOND};

	snprintf(url, sizeof(url), "http://moved.invalid:%d/", http.port);
	runs_attach(&options);
	options.handler = NULL;
	worker_start(&fixture->options, &options);
	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count_of("tick", TW_REDIS_END_DONE) >= 3);
	pthread_mutex_lock(&lookups.lock);
	lookups.moved = true;
	pthread_mutex_unlock(&lookups.lock);
	WAIT_UNTIL(ends_count_of("tick", TW_REDIS_END_RETRIED) >= 1);
}

static void add_host(struct fixture *fixture, const char *key, const char *host)
{
	char url[128];

	snprintf(url, sizeof(url), "http://%s:%d/", host, http.port);
	add_callback(fixture->redis, key, url, 2);
}

STORED(opened, host_whose_name_is_not_ascii_is_called_and_judged_by_its_ascii_form)
{
	static const char *const denied[] = {"xn--bcher-kva.invalid", "evil.invalid"};
	struct tw_redis_worker_options options = {.retry_first = TW_MILLISECOND, .deny = denied};
	struct tw_redis_worker *worker;

	if (!(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_IDN))
		TEST_SKIP("libcurl reads ASCII names only");
	runs_attach(&options);
	options.handler = NULL;
	worker = worker_start(&fixture->options, &options);
	add_host(fixture, "written", "m\u00fcnchen.invalid");
	add_host(fixture, "encoded", "m%C3%BCnchen.invalid");
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DONE) == 2);
	worker_stop(worker);
	options.deny_count = 2;
	worker = worker_start(&fixture->options, &options);
	add_host(fixture, "written", "m\u00fcnchen.invalid");
	add_host(fixture, "wide", "\uff45\uff56\uff49\uff4c.invalid");
	add_host(fixture, "books", "b\u00fccher.invalid");
	add_host(fixture, "bad", "-\u00fc-.invalid");
	add_host(fixture, "latin", "m%FCnchen.invalid");
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DEAD) == 4);
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DONE) == 3);
	worker_stop(worker);
	assert_string_equal(end_of("wide", 0).reason, "the host is denied: evil.invalid");
	assert_string_equal(end_of("books", 0).reason, "the host is denied: xn--bcher-kva.invalid");
	assert_string_equal(end_of("bad", 0).reason,
			    "the host has no name in ASCII: -\u00fc-.invalid");
	assert_string_equal(end_of("latin", 0).reason,
			    "the host has no name in ASCII: m\xfcnchen.invalid");
	assert_int_equal(http_server_count(&http), 3);
}

FIXTURE_FILE
