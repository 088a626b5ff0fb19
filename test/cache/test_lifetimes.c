/* SPDX-License-Identifier: MIT */
/* Lookups lengthen these lifetimes, or jitter spreads them. */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"

static struct cache_recorder *open_sliding(const struct variant *variant, tw_duration expire,
					   tw_duration idle)
{
	return cache_recorder_open_with(variant, expire, (struct tw_cache_options){.idle = idle});
}

CACHE_SCRIPT(inline_and_threads, entry_that_is_not_looked_up_expires_before_its_lifetime_ends,
	     100 * INTERVAL,
	     "set key value; pass 10-1ns; entries = 1; pass 1ns; get key = NOT_FOUND;"
	     "pass 2 -> value:expired",
	     .idle = 10 * INTERVAL)

#define LATER "pass 9; get key = value;"
CACHE_SCRIPT(inline_and_threads, each_lookup_restarts_the_idle_time_until_the_lifetime_ends,
	     100 * INTERVAL,
	     "set key value;" LATER LATER LATER LATER LATER LATER LATER LATER LATER LATER LATER
	     "lives key value 1",
	     .idle = 10 * INTERVAL)

CACHE_SCRIPT(inline_and_threads, idle_time_counts_from_the_last_lookup_exactly, TW_FOREVER,
	     "set read value; set left other; pass 7+300ns; get read = value; pass 3-300ns;"
	     "get left = NOT_FOUND; pass 7+299ns -> other:expired; entries = 1; pass 1ns;"
	     "get read = NOT_FOUND",
	     .idle = 10 * INTERVAL)

CACHE_SCRIPT(inline_and_threads, idle_time_counts_from_the_last_lookup_within_a_lifetime_too,
	     100 * INTERVAL, "set key value; pass 5; get key = value; pass 10; get key = NOT_FOUND",
	     .idle = 10 * INTERVAL)

/* An entry that is not looked up, which would set a new deadline, expires, too. */
CACHE_SCRIPT(inline_and_threads, lifetime_shorter_than_the_idle_time_holds, 5 * INTERVAL,
	     "set key value; set left other; lives key value 5;"
	     "pass 1 -> value:expired other:expired; entries = 0",
	     .idle = 10 * INTERVAL)

static void assert_expires_at(struct cache_recorder *recorder, const char *key,
			      tw_duration deadline)
{
	const struct tw_cache_entry *entry = cache_pinned(recorder, key);

	assert_true(tw_cache_entry_deadline(entry) == deadline);
	tw_cache_entry_release(entry);
}

CACHED_BY(inline_and_threads, deadline_that_no_clock_reaches_is_none,
	  open_sliding(*state, TW_FOREVER, TW_FOREVER / 2))
{
	cache_set_for(recorder, "first", "value", TW_FOREVER / 2);
	assert_expires_at(recorder, "first", TW_FOREVER / 2);
	cache_pass(recorder, INTERVAL);
	cache_set_for(recorder, "set", "value", TW_FOREVER / 2);
	assert_expires_at(recorder, "set", TW_FOREVER);
	assert_status(touch_key(recorder->cache, "first", 5, TW_FOREVER / 2), TW_OK);
	assert_expires_at(recorder, "first", TW_FOREVER);
}

/* Sets the key to "value" with that deadline, which must be accepted. */
static void set_until(struct cache_recorder *recorder, const char *key, tw_duration deadline)
{
	const struct tw_cache_value value = {.data = "value", .size = 5, .deadline = deadline};

	assert_status(tw_cache_put(recorder->cache, key, strlen(key), &value, TW_CACHE_PUT_SET),
		      TW_OK);
}

CACHED(inline_and_threads, deadline_has_no_jitter, TW_HOUR, .jitter = 0.5)
{
	set_until(recorder, "forever", TW_FOREVER);
	assert_expires_at(recorder, "forever", TW_FOREVER);
	for (int tick = 5; tick < 50; tick += 5) {
		cache_pass(recorder, 5 * INTERVAL);
		set_until(recorder, "key", 50 * INTERVAL);
		assert_expires_at(recorder, "key", 50 * INTERVAL);
	}
	cache_pass(recorder, 5 * INTERVAL);
	assert_holds_none(recorder, "key");
}

CACHED_BY(inline_and_threads, deadline_ends_a_lifetime_that_slides,
	  open_sliding(*state, TW_HOUR, 10 * INTERVAL))
{
	for (int tick = 0; tick < 100; tick += 8) {
		tw_duration idle_end = (tw_duration)(tick + 10) * INTERVAL;

		set_until(recorder, "key", 100 * INTERVAL);
		assert_expires_at(recorder, "key",
				  idle_end < 100 * INTERVAL ? idle_end : 100 * INTERVAL);
		cache_pass(recorder, 8 * INTERVAL);
	}
	assert_holds_none(recorder, "key");
}

CACHE_SCRIPT(inline_and_threads, value_past_its_deadline_is_never_found, TW_HOUR,
	     "pass 8; set now old; until now value 8; until past value 1ns; get now = NOT_FOUND;"
	     "get past = NOT_FOUND; pass 2 -> old:replaced value:expired value:expired;"
	     "removed expired = 2; entries = 0",
	     .jitter = -1)

CACHED(inline_and_threads, value_with_a_field_out_of_range_is_refused, TW_HOUR)
{
	static const struct tw_cache_value bad[] = {
		{.expire = -1},    {.deadline = -1},     {.expire = TW_HOUR, .deadline = TW_HOUR},
		{.reserved = {1}}, {.reserved = {0, 1}},
	};
	const struct tw_cache_value good = {.data = NULL};
	struct tw_cache *cache = recorder->cache;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_status(tw_cache_put(cache, "key", 3, &bad[i], TW_CACHE_PUT_SET), TW_INVALID);
	assert_status(tw_cache_put(cache, "key", 3, NULL, TW_CACHE_PUT_SET), TW_INVALID);
	assert_status(tw_cache_put(cache, "key", 3, &good, (enum tw_cache_put_mode)3), TW_INVALID);
	assert_int_equal(cache_stats(recorder).inserts, 0);
	/* A zeroed one is an empty value. */
	assert_status(tw_cache_put(cache, "key", 3, &good, TW_CACHE_PUT_SET), TW_OK);
	assert_holds(recorder, "key", "");
}

enum { JITTERED = 20000, BINS = 20 };

static struct cache_recorder *open_jittered(const struct variant *variant, double jitter)
{
	struct cache_recorder *recorder = cache_recorder_create(variant);
	struct tw_cache_options options = cache_recorder_options(recorder);

	options.jitter = jitter;
	cache_recorder_start(recorder, TW_HOUR, &options);
	return recorder;
}

static double lifetime_in_hours(struct cache_recorder *recorder, int key)
{
	const struct tw_cache_entry *entry;
	tw_duration deadline;

	assert_status(tw_cache_acquire(recorder->cache, &key, sizeof(key), 0, &entry), TW_OK);
	deadline = tw_cache_entry_deadline(entry);
	tw_cache_entry_release(entry);
	return (double)(deadline - tw_now(recorder->wheel)) / (double)TW_HOUR;
}

/* Checks that each of the bins between 1 - jitter and 1 has its share, within five deviations. */
static void assert_flat(struct cache_recorder *recorder, double jitter)
{
	const double share = (double)JITTERED / BINS;
	int bins[BINS] = {0};

	for (int key = 0; key < JITTERED; key++) {
		double part = (lifetime_in_hours(recorder, key) - (1 - jitter)) / jitter;

		assert_true(part >= 0 && part <= 1);
		bins[part < 1 ? (int)(part * BINS) : BINS - 1]++;
	}
	for (int bin = 0; bin < BINS; bin++)
		assert_true((bins[bin] - share) * (bins[bin] - share) < 25 * share);
}

TEST(inline, jitter_spreads_lifetimes_evenly)
{
	static const double jitters[] = {0, 0.5};

	for (int i = 0; i < 2; i++) {
		struct cache_recorder *recorder = open_jittered(*state, jitters[i]);
		double jitter = jitters[i] > 0 ? jitters[i] : 0.05;

		for (int key = 0; key < JITTERED; key++)
			assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1),
				      TW_OK);
		assert_flat(recorder, jitter);
		for (int key = 0; key < JITTERED; key++)
			assert_status(touch_key(recorder->cache, &key, sizeof(key), TW_HOUR),
				      TW_OK);
		assert_flat(recorder, jitter);
		cache_recorder_close(recorder);
	}
}

enum { SETTERS = 100 };

/* These threads exist at the same time, and each draws its first number. */
struct setters {
	struct cache_recorder *recorder;
	pthread_barrier_t barrier;
	atomic_int next;
};

static void *set_once(void *argument)
{
	struct setters *setters = argument;
	int key = atomic_fetch_add(&setters->next, 1);

	pthread_barrier_wait(&setters->barrier);
	if (tw_cache_set(setters->recorder->cache, &key, sizeof(key), "v", 1) != TW_OK)
		abort();
	pthread_barrier_wait(&setters->barrier);
	return NULL;
}

TEST(inline, first_lifetimes_of_many_threads_are_spread)
{
	struct setters setters = {.recorder = open_jittered(*state, 0.05)};
	pthread_t threads[SETTERS];
	double sum = 0;
	double squares = 0;
	double variance;

	assert_int_equal(pthread_barrier_init(&setters.barrier, NULL, SETTERS), 0);
	for (int i = 0; i < SETTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, set_once, &setters), 0);
	for (int i = 0; i < SETTERS; i++)
		pthread_join(threads[i], NULL);
	for (int key = 0; key < SETTERS; key++) {
		double part = (lifetime_in_hours(setters.recorder, key) - 1) / 0.05;

		sum += part;
		squares += part * part;
	}
	/* The variance of numbers from -1 to 0 is a twelfth, within five deviations. */
	variance = squares / SETTERS - sum / SETTERS * sum / SETTERS;
	assert_true(variance > 0.045 && variance < 0.12);
	pthread_barrier_destroy(&setters.barrier);
	cache_recorder_close(setters.recorder);
}

CACHED_BY(inline, negative_jitter_is_none, open_jittered(*state, -0.1))
{
	for (int key = 0; key < 1000; key++) {
		assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), "v", 1), TW_OK);
		assert_true(lifetime_in_hours(recorder, key) == 1);
	}
}
