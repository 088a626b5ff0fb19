/* SPDX-License-Identifier: MIT */
/*
 * These are go-zero's promises about its cache, with the figures of its own tests: set, delete,
 * take, limits. The clock is manual.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/recorder.h"
#include "support/stats.h"

#include <timingwheel/cache.h>

struct fixture {
	struct tw_wheel *wheel;
	struct tw_cache *cache;
};

static struct fixture fixture_open(tw_duration expire, struct tw_cache_options options)
{
	struct tw_options manual = {.clock = TW_CLOCK_MANUAL};
	struct fixture fixture;

	assert_status(tw_create(&fixture.wheel, 100 * TW_MILLISECOND, 64, ignore_task, &manual),
		      TW_OK);
	options.wheel = fixture.wheel;
	assert_status(tw_cache_create(&fixture.cache, expire, &options), TW_OK);
	return fixture;
}

static void fixture_close(struct fixture *fixture)
{
	tw_cache_destroy(fixture->cache);
	tw_destroy(fixture->wheel);
}

static void set(struct fixture *fixture, const char *key, const char *value)
{
	assert_status(tw_cache_set(fixture->cache, key, strlen(key), value, strlen(value)), TW_OK);
}

static void assert_value(struct fixture *fixture, const char *key, const char *value)
{
	char buffer[64];
	size_t size;

	assert_status(tw_cache_get(fixture->cache, key, strlen(key), buffer, sizeof(buffer), &size),
		      TW_OK);
	assert_int_equal(size, strlen(value));
	assert_memory_equal(buffer, value, size);
}

static void assert_missing(struct fixture *fixture, const char *key)
{
	size_t size = 1;

	assert_status(tw_cache_get(fixture->cache, key, strlen(key), NULL, 0, &size), TW_NOT_FOUND);
	assert_int_equal(size, 0);
}

TEST(once, values_set_are_got_until_they_expire)
{
	struct fixture fixture = fixture_open(2 * TW_SECOND, (struct tw_cache_options){0});

	set(&fixture, "first", "first element");
	assert_status(tw_cache_set_with_expire(fixture.cache, "second", 6, "second element", 14,
					       3 * TW_SECOND),
		      TW_OK);
	assert_value(&fixture, "first", "first element");
	assert_value(&fixture, "second", "second element");
	assert_status(tw_advance(fixture.wheel, 2200 * TW_MILLISECOND), TW_OK);
	assert_missing(&fixture, "first");
	assert_value(&fixture, "second", "second element");
	fixture_close(&fixture);
}

TEST(once, deleted_value_is_gone)
{
	struct fixture fixture = fixture_open(2 * TW_SECOND, (struct tw_cache_options){0});

	set(&fixture, "first", "first element");
	set(&fixture, "second", "second element");
	assert_status(tw_cache_delete(fixture.cache, "first", 5), TW_OK);
	assert_status(tw_cache_delete(fixture.cache, "first", 5), TW_NOT_FOUND);
	assert_missing(&fixture, "first");
	assert_value(&fixture, "second", "second element");
	fixture_close(&fixture);
}

struct source {
	struct tw_cache *cache;
	atomic_int loads;
	atomic_int values;
	enum tw_status answer;
	pthread_barrier_t begin;
};

static enum tw_status load_first(void *argument, const void *key, size_t key_size,
				 struct tw_cache_loading *loading)
{
	struct source *source = argument;
	struct timespec moment = {0, 20000000};

	atomic_fetch_add(&source->loads, 1);
	nanosleep(&moment, NULL);
	if (source->answer != TW_OK)
		return source->answer;
	return give_copied(loading, "first element", 13, 0);
}

static void *take_first(void *argument)
{
	struct source *source = argument;
	const struct tw_cache_entry *entry;
	size_t size;

	pthread_barrier_wait(&source->begin);
	if (tw_cache_take(source->cache, "first", 5, load_first, source, TW_FOREVER, &entry) ==
		    TW_OK &&
	    memcmp(tw_cache_entry_value(entry, &size), "first element", 13) == 0 && size == 13)
		atomic_fetch_add(&source->values, 1);
	tw_cache_entry_release(entry);
	return NULL;
}

TEST(once, hundred_takes_load_once)
{
	enum { THREADS = 100 };
	struct fixture fixture = fixture_open(2 * TW_SECOND, (struct tw_cache_options){0});
	struct source source = {.cache = fixture.cache};
	struct tw_cache_stats stats;
	pthread_t threads[THREADS];

	pthread_barrier_init(&source.begin, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_first, &source), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&source.begin);
	assert_int_equal(atomic_load(&source.loads), 1);
	assert_int_equal(atomic_load(&source.values), THREADS);
	assert_status(tw_cache_get_stats(fixture.cache, &stats), TW_OK);
	assert_int_equal(stats.loads, 1);
	assert_int_equal(stats.hits + stats.misses, THREADS);
	assert_int_equal(stats.load_waits, stats.misses - 1);
	assert_value(&fixture, "first", "first element");
	fixture_close(&fixture);
}

TEST(once, take_of_a_value_that_is_there_does_not_load)
{
	struct fixture fixture = fixture_open(2 * TW_SECOND, (struct tw_cache_options){0});
	struct source source = {.cache = fixture.cache};
	const struct tw_cache_entry *entry;

	set(&fixture, "first", "first element");
	assert_status(tw_cache_take(fixture.cache, "first", 5, load_first, &source, 0, &entry),
		      TW_OK);
	assert_memory_equal(tw_cache_entry_value(entry, NULL), "first element", 13);
	tw_cache_entry_release(entry);
	assert_int_equal(atomic_load(&source.loads), 0);
	fixture_close(&fixture);
}

TEST(once, error_of_a_load_is_returned_and_not_kept)
{
	struct fixture fixture = fixture_open(2 * TW_SECOND, (struct tw_cache_options){0});
	struct source source = {.cache = fixture.cache, .answer = TW_SYSTEM};
	const struct tw_cache_entry *entry;

	for (int i = 1; i <= 2; i++) {
		assert_status(
			tw_cache_take(fixture.cache, "first", 5, load_first, &source, 0, &entry),
			TW_SYSTEM);
		assert_null(entry);
		assert_int_equal(atomic_load(&source.loads), i);
	}
	assert_missing(&fixture, "first");
	fixture_close(&fixture);
}

/* Opens a full cache with a limit of three: "first" is 1, "second" 2, "third" 3. */
static struct fixture fixture_open_full(void)
{
	struct fixture fixture =
		fixture_open(2 * TW_SECOND,
			     (struct tw_cache_options){.policy = TW_POLICY_LRU, .max_entries = 3});

	set(&fixture, "first", "1");
	set(&fixture, "second", "2");
	set(&fixture, "third", "3");
	return fixture;
}

TEST(once, limit_of_three_evicts_the_oldest)
{
	struct fixture fixture = fixture_open_full();

	set(&fixture, "fourth", "4");
	assert_missing(&fixture, "first");
	assert_value(&fixture, "second", "2");
	assert_value(&fixture, "third", "3");
	assert_value(&fixture, "fourth", "4");
	fixture_close(&fixture);
}

TEST(once, limit_of_three_keeps_the_one_read)
{
	struct fixture fixture = fixture_open_full();

	assert_value(&fixture, "first", "1");
	set(&fixture, "fourth", "4");
	assert_value(&fixture, "first", "1");
	assert_missing(&fixture, "second");
	set(&fixture, "fifth", "5");
	assert_missing(&fixture, "third");
	assert_value(&fixture, "first", "1");
	fixture_close(&fixture);
}

TEST(once, value_set_makes_others_go_and_not_itself)
{
	struct fixture fixture =
		fixture_open(TW_MINUTE, (struct tw_cache_options){.max_entries = 10, .shards = 64});
	char key[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		set(&fixture, key, "value");
		assert_value(&fixture, key, "value");
	}
	assert_int_equal(entries_of(fixture.cache), 10);
	fixture_close(&fixture);
}
