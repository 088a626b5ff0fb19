/* SPDX-License-Identifier: MIT */
/* A namespace limits how many tasks run, and how many begin in a second, over all its workers. */
#include "support/fixture.h"

#include "support/proxy.h"
#include "support/runs.h"

/* This counts what the handlers of all workers of a test do. All operations are relaxed. */
struct crowd {
	_Atomic int running;
	_Atomic int most;
	_Atomic int done;
	_Atomic bool is_held; /* runs wait until it is false */
	tw_duration takes;
};

static enum tw_redis_outcome join_crowd(void *context, const struct tw_redis_job *job,
					struct tw_redis_verdict *verdict)
{
	struct crowd *crowd = context;
	int running = atomic_fetch_add_explicit(&crowd->running, 1, memory_order_relaxed) + 1;
	int most = atomic_load_explicit(&crowd->most, memory_order_relaxed);

	while (running > most &&
	       !atomic_compare_exchange_weak_explicit(&crowd->most, &most, running,
						      memory_order_relaxed, memory_order_relaxed))
		;
	while (atomic_load_explicit(&crowd->is_held, memory_order_relaxed))
		wait_for(TW_MILLISECOND);
	wait_for(crowd->takes);
	atomic_fetch_sub_explicit(&crowd->running, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&crowd->done, 1, memory_order_relaxed);
	return TW_REDIS_DONE;
}

static int done(struct crowd *crowd)
{
	return atomic_load_explicit(&crowd->done, memory_order_relaxed);
}

static struct tw_redis_worker *start(struct fixture *fixture, struct crowd *crowd)
{
	const struct tw_redis_worker_options options = {
		.context = crowd, .handler = join_crowd, .handlers = 8, .lease = 3 * TW_SECOND};

	return worker_start(&fixture->options, &options);
}

static void stop(struct tw_redis_worker *worker)
{
	assert_int_equal(tw_redis_worker_stop(worker, TW_FOREVER), TW_OK);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

static void set_limits(struct fixture *fixture, unsigned running, unsigned per_second)
{
	const struct tw_redis_limits limits = {.running = running, .per_second = per_second};

	assert_ok(fixture->redis, tw_redis_set_limits(fixture->redis, NULL, &limits));
}

static long long workers_reported(struct fixture *fixture)
{
	return redis_server_number(&fixture->server, "HLEN {tw/%s}running", fixture->name_space);
}

STORED(one_shard, no_more_run_than_may)
{
	enum { COUNT = 60, MOST = 3 };
	struct crowd crowd = {.takes = 10 * TW_MILLISECOND};
	struct tw_redis_worker *workers[2];

	set_limits(fixture, MOST, 0);
	for (int i = 0; i < 2; i++)
		workers[i] = start(fixture, &crowd);
	add_tasks(fixture->redis, COUNT, 0, 0);
	WAIT_UNTIL(done(&crowd) == COUNT);
	assert_in_range(crowd.most, 1, MOST);
	for (int i = 0; i < 2; i++)
		stop(workers[i]);
	/* Ended workers leave no reports. */
	assert_int_equal(workers_reported(fixture), 0);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(one_shard, no_more_begin_in_a_second_than_may)
{
	enum { COUNT = 45, RATE = 30 };
	struct crowd crowd = {0};
	struct tw_redis_worker *worker;
	int64_t begin;

	set_limits(fixture, 0, RATE);
	worker = start(fixture, &crowd);
	begin = wall_clock();
	add_tasks(fixture->redis, COUNT, 0, 0);
	WAIT_UNTIL(done(&crowd) == COUNT);
	/* Permits for a tenth of a second may be available at the beginning. */
	assert_true(wall_clock() - begin >= (COUNT - RATE / 10) * TW_SECOND / RATE);
	stop(worker);
}

STORED(one_shard, limits_that_are_lifted_hold_up_nothing)
{
	enum { COUNT = 200 };
	struct crowd crowd = {.takes = TW_MILLISECOND};
	struct tw_redis_limits found;
	struct tw_redis_worker *worker;
	int64_t begin;

	set_limits(fixture, 0, 1);
	assert_ok(fixture->redis, tw_redis_get_limits(fixture->redis, NULL, &found));
	assert_int_equal(found.running, 0);
	assert_int_equal(found.per_second, 1);
	worker = start(fixture, &crowd);
	add_tasks(fixture->redis, COUNT, 0, 0);
	WAIT_UNTIL(done(&crowd) >= 1);
	begin = wall_clock();
	set_limits(fixture, 0, 0);
	WAIT_UNTIL(done(&crowd) == COUNT);
	assert_true(wall_clock() - begin < 60 * TW_SECOND);
	assert_ok(fixture->redis, tw_redis_get_limits(fixture->redis, NULL, &found));
	assert_int_equal(found.running + found.per_second, 0);
	stop(worker);
}

/* A worker's report expires. */
STORED(one_shard, what_a_dead_worker_had_is_free_again)
{
	struct crowd crowd = {0};
	struct tw_redis_worker *worker;
	int64_t until_ms = stats_of(fixture->redis).now_ms + 700;
	char word[40];

	set_limits(fixture, 2, 0);
	/* %b accepts the blank in the word. */
	snprintf(word, sizeof(word), "2 %lld", (long long)until_ms);
	redis_server_number(&fixture->server, "HSET {tw/%s}running dead %b", fixture->name_space,
			    word, strlen(word));
	worker = start(fixture, &crowd);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(done(&crowd) == 1);
	assert_true(stats_of(fixture->redis).now_ms >= until_ms);
	stop(worker);
	assert_int_equal(workers_reported(fixture), 0);
}

/* Returns until when the only worker's report is valid by the server's time, or 0 if there is
 * none. */
static int64_t word_until_ms(struct fixture *fixture)
{
	redisReply *reply =
		redis_server_ask(&fixture->server, "HVALS {tw/%s}running", fixture->name_space);
	const char *blank = reply->elements == 1 ? strchr(reply->element[0]->str, ' ') : NULL;
	int64_t until_ms = blank ? atoll(blank) : 0;

	freeReplyObject(reply);
	return until_ms;
}

/* The worker does not wait for its next look, a third of a lease later. */
STORED(one_shard, ends_are_reported_at_once)
{
	enum { HOUR_MS = 3600000 };
	struct crowd crowd = {.is_held = true, .takes = TW_SECOND};
	const struct tw_redis_worker_options options = {
		.context = &crowd, .handler = join_crowd, .lease = TW_HOUR};
	struct tw_redis_worker *worker;

	set_limits(fixture, 5, 0);
	worker = worker_start(&fixture->options, &options);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(atomic_load_explicit(&crowd.running, memory_order_relaxed) == 1);
	/* The run is longer than a lease. */
	assert_true(word_until_ms(fixture) - stats_of(fixture->redis).now_ms > HOUR_MS);
	atomic_store_explicit(&crowd.is_held, false, memory_order_relaxed);
	WAIT_UNTIL(workers_reported(fixture) == 0);
	assert_int_equal(done(&crowd), 1);
	/* This holds if it is stopped meanwhile, too. */
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(atomic_load_explicit(&crowd.running, memory_order_relaxed) == 1 ||
		   done(&crowd) == 2);
	stop(worker);
	assert_int_equal(workers_reported(fixture), 0);
	assert_int_equal(done(&crowd), 2);
}

/* Another worker may have them by then, so the worker asks again and does not claim. */
STORED(one_shard, permits_that_come_late_are_not_used)
{
	enum { LEASE_MS = 1000 };
	struct crowd crowd = {0};
	struct tw_redis_options options = fixture->options;
	const struct tw_redis_worker_options worker_options = {
		.context = &crowd, .handler = join_crowd, .lease = LEASE_MS * TW_MILLISECOND};
	struct tw_redis_worker *worker;
	struct proxy proxy;
	int64_t first_ms;

	proxy_start(&proxy, fixture->server.port);
	options.url = proxy.url;
	set_limits(fixture, 1, 0);
	/* It is due after the worker's start. */
	add_task(fixture->redis, "a", 5 * TW_SECOND);
	worker = worker_start(&options, &worker_options);
	/* A reply of a dozen bytes takes longer than half a lease. */
	proxy_drip(&proxy, 100);
	WAIT_UNTIL(word_until_ms(fixture));
	first_ms = word_until_ms(fixture);
	WAIT_UNTIL(word_until_ms(fixture) > first_ms);
	assert_int_equal(stats_of(fixture->redis).started, 0);
	proxy_drip(&proxy, 0);
	WAIT_UNTIL(done(&crowd) == 1);
	stop(worker);
	proxy_stop(&proxy);
}

STORED(one_shard, bad_arguments_are_refused)
{
	struct tw_redis_limits limits = {.running = 1, .per_second = 1};

	assert_int_equal(tw_redis_set_limits(NULL, NULL, &limits), TW_INVALID);
	assert_int_equal(tw_redis_set_limits(fixture->redis, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_get_limits(NULL, NULL, &limits), TW_INVALID);
	assert_int_equal(tw_redis_get_limits(fixture->redis, NULL, NULL), TW_INVALID);
	/* These are a group's. */
	limits.weight = 2;
	assert_int_equal(tw_redis_set_limits(fixture->redis, NULL, &limits), TW_INVALID);
	limits = (struct tw_redis_limits){.burst = 2};
	assert_int_equal(tw_redis_set_limits(fixture->redis, NULL, &limits), TW_INVALID);
	assert_ok(fixture->redis, tw_redis_get_limits(fixture->redis, NULL, &limits));
	assert_int_equal(limits.running + limits.per_second, 0);
}

FIXTURE_FILE
