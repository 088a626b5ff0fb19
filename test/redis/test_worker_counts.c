/* SPDX-License-Identifier: MIT */
/* These tests are about a worker's statistics: histograms, and its requests to Redis. */
#include "support/fixture.h"

#include "support/runs.h"

/* Waits until `count` runs have ended. */
static struct tw_redis_worker_stats await_ends(struct tw_redis_worker *worker, uint64_t count)
{
	struct tw_redis_worker_stats stats;

	WAIT_UNTIL(
		(stats = worker_stats(worker), stats.done + stats.retried + stats.dead >= count));
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

STORED(fixture, bad_arguments_are_refused)
{
	struct tw_redis_worker *worker = WORK(fixture);

	assert_int_equal(tw_redis_worker_get_stats(NULL, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_worker_get_stats(worker, NULL, NULL), TW_INVALID);
}

static enum tw_redis_outcome sleep_and_end(void *context, const struct tw_redis_job *job,
					   struct tw_redis_verdict *verdict)
{
	wait_for(60 * TW_MILLISECOND);
	return *(const char *)job->key == 'd' ? TW_REDIS_KILL : TW_REDIS_DONE;
}

STORED(fixture, times_of_all_runs_are_in_the_histograms)
{
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;

	add_task(fixture->redis, "late", 0);
	redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, "late",
			     -20 * 60 * 1000);
	add_task(fixture->redis, "dead", 0);
	/* It calls no handler. */
	add_callback(fixture->redis, "called", "http://127.0.0.1:1/", 1);
	worker = worker_start(&fixture->options,
			      &(struct tw_redis_worker_options){.handler = sleep_and_end});
	stats = await_ends(worker, 3);
	assert_int_equal(stats.done, 1);
	assert_int_equal(stats.dead, 2);
	assert_int_equal(histogram_count(&stats.lateness), 3);
	assert_int_equal(histogram_count(&stats.duration), 3);
	assert_int_equal(stats.lateness.counts[TW_REDIS_BUCKETS - 1], 1);
	assert_in_range(stats.lateness.total_us, 20ULL * 60 * 1000000, 40ULL * 60 * 1000000);
	assert_true(histogram_count_to(&stats.duration, 50 * TW_MILLISECOND) <= 1);
	assert_in_range(stats.duration.total_us, 2 * 60000, 120 * 1000000);
}

STORED(fixture, run_that_never_began_has_no_times)
{
	struct tw_redis_worker *worker;
	struct tw_redis_worker_stats stats;

	/* The task needs a handler, and there is none. */
	add_task(fixture->redis, "a", 0);
	worker = worker_start(
		&fixture->options,
		&(struct tw_redis_worker_options){.retry_first = TW_HOUR, .retry_max = TW_HOUR});
	stats = await_ends(worker, 1);
	assert_int_equal(stats.retried, 1);
	assert_int_equal(histogram_count(&stats.lateness), 0);
	assert_int_equal(histogram_count(&stats.duration), 0);
}

/* Blocks the worker's main thread while the test has the lock. */
static void wait_for_the_test(void *context, const struct tw_redis_report *report)
{
	pthread_mutex_t *lock = context;

	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
}

STORED(fixture, loop_that_is_held_up_is_seen)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct tw_redis_worker_options options = {.context = &lock, .report = wait_for_the_test};
	struct tw_redis_worker *worker;

	pthread_mutex_lock(&lock);
	worker = worker_start(&fixture->options, &options);
	add_callback(fixture->redis, "a", "http://127.0.0.1:1/", 1);
	/* The worker never sleeps for that long. */
	for (int i = 0; i < 4000 && worker_stats(worker).turned < 11 * TW_SECOND; i++)
		wait_for(10 * TW_MILLISECOND);
	assert_true(worker_stats(worker).turned >= 11 * TW_SECOND);
	pthread_mutex_unlock(&lock);
	await_ends(worker, 1);
	assert_true(worker_stats(worker).turned < 11 * TW_SECOND);
	worker_stop(worker);
}

FIXTURE_FILE
