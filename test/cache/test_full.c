/* SPDX-License-Identifier: MIT */
/*
 * These caches are on a wheel that others use, too. Whether its queue or its timers are full, and
 * whether it blocks callers or refuses them, the cache drops ignore_task, and none of it reaches
 * the others' functions.
 */
#include "support/test.h"

#include "support/cache_recorder.h"
#include "support/gate.h"
#include "support/seed.h"
#include "support/wait.h"

enum { QUEUE = 8 };

/* Creates a recorder whose wheel has a short, empty queue, and no cache yet. */
static struct cache_recorder *create_narrow(const struct variant *variant,
					    enum tw_when_full when_full)
{
	return cache_recorder_create_with(
		variant, INTERVAL, 64,
		(struct tw_options){.queue_capacity = QUEUE, .when_full = when_full});
}

static struct cache_recorder *open_narrow(const struct variant *variant,
					  enum tw_when_full when_full)
{
	struct cache_recorder *recorder = create_narrow(variant, when_full);
	struct tw_cache_options options = cache_recorder_options(recorder);

	options.shards = 1;
	cache_recorder_start(recorder, TW_HOUR, &options);
	cache_settle(recorder);
	cache_pass(recorder, 0);
	return recorder;
}

/* Fills the queue of a wheel that refuses, without another driver. */
static void fill_queue(struct tw_wheel *wheel)
{
	int key = 0;

	while (tw_set_timer(wheel, &key, sizeof(key), NULL, TW_HOUR) == TW_OK)
		key++;
}

/* The cache has its largest number of alarms. */
static void cache_is_made_though_the_wheel_has_no_room(void **state)
{
	struct cache_recorder *recorder = create_narrow(*state, TW_WHEN_FULL_FAIL);
	struct tw_cache_options options = cache_recorder_options(recorder);

	options.shards = TW_CACHE_SHARDS_MAX;
	fill_queue(recorder->wheel);
	cache_recorder_start(recorder, TW_HOUR, &options);
	cache_set_for(recorder, "key", "value", INTERVAL);
	cache_pass(recorder, 2 * INTERVAL);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
	fill_queue(recorder->wheel);
	cache_recorder_close(recorder);
}

static void entry_expires_though_the_wheel_has_no_room(void **state)
{
	struct cache_recorder *recorder = open_narrow(*state, TW_WHEN_FULL_FAIL);

	fill_queue(recorder->wheel);
	cache_set_for(recorder, "key", "value", 2 * INTERVAL);
	cache_pass(recorder, 4 * INTERVAL);
	assert_int_equal(cache_stats(recorder).entries, 0);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
	/* This touch sets an earlier deadline. */
	cache_set(recorder, "key", "touched");
	cache_pass(recorder, 0);
	fill_queue(recorder->wheel);
	assert_status(tw_cache_touch(recorder->cache, "key", 3, 2 * INTERVAL), TW_OK);
	cache_pass(recorder, 4 * INTERVAL);
	assert_removed(recorder, "touched", TW_CAUSE_EXPIRED);
	cache_recorder_close(recorder);
}

static void removals_are_reported_though_the_wheel_has_no_room(void **state)
{
	static const char *const keys[] = {"a", "b", "c"};
	struct cache_recorder *recorder = open_narrow(*state, TW_WHEN_FULL_FAIL);

	for (size_t i = 0; i < 3; i++)
		cache_set(recorder, keys[i], keys[i]);
	cache_pass(recorder, 0);
	for (size_t i = 0; i < 3; i++) {
		fill_queue(recorder->wheel);
		assert_status(tw_cache_delete(recorder->cache, keys[i], 1), TW_OK);
		cache_pass(recorder, 0);
		assert_removed(recorder, keys[i], TW_CAUSE_EXPLICIT);
	}
	cache_recorder_close(recorder);
}

enum { PENDING_MOST = 10 };

/* Creates a recorder with a wheel whose timers are all in use. */
static struct cache_recorder *open_crowded(const struct variant *variant)
{
	struct cache_recorder *recorder = cache_recorder_create_with(
		variant, INTERVAL, 64,
		(struct tw_options){.when_full = TW_WHEN_FULL_FAIL, .max_pending = PENDING_MOST});
	struct tw_cache_options options = cache_recorder_options(recorder);

	options.shards = 1;
	cache_recorder_start(recorder, TW_HOUR, &options);
	fill_queue(recorder->wheel);
	return recorder;
}

static void cache_needs_no_place(void **state)
{
	struct cache_recorder *recorder = open_crowded(*state);

	cache_set_for(recorder, "key", "value", 2 * INTERVAL);
	cache_pass(recorder, 4 * INTERVAL);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
	cache_set(recorder, "other", "other");
	assert_status(tw_cache_flush(recorder->cache), TW_OK);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_removed(recorder, "other", TW_CAUSE_SHUTDOWN);
	assert_int_equal(tw_pending(recorder->wheel), PENDING_MOST);
	cache_recorder_close(recorder);
}

static void count_released(void *released, const struct tw_task *task, enum tw_reason reason)
{
	atomic_fetch_add((atomic_int *)released, 1);
}

static void count_drained(void *drained, const struct tw_task *task)
{
	atomic_fetch_add((atomic_int *)drained, 1);
}

static void nothing_of_a_cache_reaches_a_function_of_its_wheel(void **state)
{
	atomic_int given = 0;
	struct cache_recorder *recorder = cache_recorder_create_with(
		*state, INTERVAL, 64,
		(struct tw_options){.context = &given, .release = count_released});
	struct tw_cache_options options = cache_recorder_options(recorder);

	cache_recorder_start(recorder, TW_HOUR, &options);
	cache_set_for(recorder, "key", "later", 100 * INTERVAL);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	assert_status(tw_drain(recorder->wheel, count_drained, &given), TW_OK);
	cache_pass(recorder, 5 * INTERVAL);
	cache_set_for(recorder, "short", "value", INTERVAL);
	cache_pass(recorder, 5 * INTERVAL);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	assert_status(tw_wait_idle(recorder->wheel), TW_OK);
	assert_int_equal(atomic_load(&given), 0);
	cache_recorder_close(recorder);
}

static void set_inside(void *argument)
{
	struct cache_recorder *recorder = argument;

	(void)tw_cache_set_with_expire(recorder->cache, "inside", 6, "inside", 6, INTERVAL);
}

/* A caller that finds the queue full drives the wheel, and may run such a task. */
static void change_that_drives_the_wheel_may_meet_a_task_of_the_same_cache(void **state)
{
	struct cache_recorder *recorder = open_narrow(*state, TW_WHEN_FULL_WAIT);

	assert_status(tw_after_func(recorder->wheel, 0, set_inside, recorder, NULL), TW_OK);
	for (int key = 1; key < QUEUE; key++)
		assert_status(tw_set_timer(recorder->wheel, &key, sizeof(key), NULL, TW_HOUR),
			      TW_OK);
	cache_set_for(recorder, "key", "value", 2 * INTERVAL);
	cache_pass(recorder, 4 * INTERVAL);
	assert_removed(recorder, "inside", TW_CAUSE_EXPIRED);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
	cache_recorder_close(recorder);
}

/* This task runs in the owner, opens when it may, and then calls the cache. */
struct visitor {
	struct cache_recorder *recorder;
	struct gate gate;
};

static void visit_late(void *argument)
{
	struct visitor *visitor = argument;

	gate_pass(&visitor->gate);
	(void)tw_cache_delete(visitor->recorder->cache, "none", 4);
}

static void *overfill_run(void *argument)
{
	struct cache_recorder *recorder = argument;

	for (int key = 0; key < 3 * QUEUE; key++)
		may_fail(tw_set_timer(recorder->wheel, &key, sizeof(key), NULL, TW_HOUR));
	return NULL;
}

static void *set_run(void *argument)
{
	struct cache_recorder *recorder = argument;

	(void)tw_cache_set_with_expire(recorder->cache, "key", 3, "value", 5, 2 * INTERVAL);
	return NULL;
}

static void change_that_waits_for_room_holds_up_no_task(void **state)
{
	struct cache_recorder *recorder = open_narrow(*state, TW_WHEN_FULL_WAIT);
	struct visitor visitor = {.recorder = recorder};
	pthread_t filler;
	pthread_t setter;

	gate_init(&visitor.gate);
	assert_status(tw_after_func(recorder->wheel, 0, visit_late, &visitor, NULL), TW_OK);
	gate_await(&visitor.gate);
	assert_int_equal(pthread_create(&filler, NULL, overfill_run, recorder), 0);
	wait_for(20 * TW_MILLISECOND);
	assert_int_equal(pthread_create(&setter, NULL, set_run, recorder), 0);
	wait_for(20 * TW_MILLISECOND);
	gate_open(&visitor.gate);
	pthread_join(filler, NULL);
	pthread_join(setter, NULL);
	cache_pass(recorder, 4 * INTERVAL);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
	cache_recorder_close(recorder);
}

enum { CROWD = 4, CROWD_CALLS = TEST_SHARE_OF(20000) };

struct crowd {
	struct cache_recorder *recorder;
	uint64_t seed;
	atomic_int next;
	atomic_int at_work;
};

/* Fills the wheel's queue in even threads, and changes the cache in the others. */
static void *crowd_run(void *argument)
{
	struct crowd *crowd = argument;
	int number = atomic_fetch_add(&crowd->next, 1);
	struct random random = random_from(crowd->seed, (uint64_t)number);
	struct cache_recorder *recorder = crowd->recorder;

	for (int i = 0; i < CROWD_CALLS; i++) {
		uint64_t key = random_below(&random, 500);
		tw_duration life = random_between(&random, 1, 20 * INTERVAL);

		if (number % 2 == 0)
			may_fail(tw_set_timer(recorder->wheel, &key, sizeof(key), NULL, life));
		else if (random_once_in(&random, 4))
			(void)tw_cache_touch(recorder->cache, &key, sizeof(key), life);
		else
			(void)tw_cache_set_with_expire(recorder->cache, &key, sizeof(key), &key,
						       sizeof(key), life);
	}
	atomic_fetch_sub(&crowd->at_work, 1);
	return NULL;
}

static void live_through_a_crowd(const struct variant *variant, enum tw_when_full when_full)
{
	struct cache_recorder *recorder = open_narrow(variant, when_full);
	struct crowd crowd = {.recorder = recorder, .seed = seed_choose(), .at_work = CROWD};
	pthread_t threads[CROWD];
	struct tw_cache_stats stats;

	for (int i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &crowd), 0);
	while (atomic_load(&crowd.at_work) > 0)
		assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	/* This needs no calls. */
	for (int tick = 0; tick < 30; tick++)
		cache_pass(recorder, INTERVAL);
	stats = cache_stats(recorder);
	assert_int_equal(stats.entries, 0);
	assert_int_equal(stats.notified, stats.inserts);
	cache_recorder_close(recorder);
}

static void nothing_is_left_where_many_fill_the_queue(void **state)
{
	live_through_a_crowd(*state, TW_WHEN_FULL_WAIT);
	live_through_a_crowd(*state, TW_WHEN_FULL_FAIL);
}

static const struct CMUnitTest tests[] = {
	TEST_IN(levels_inline, cache_is_made_though_the_wheel_has_no_room),
	TEST_IN(levels_workers, cache_is_made_though_the_wheel_has_no_room),
	TEST_IN(levels_inline, entry_expires_though_the_wheel_has_no_room),
	TEST_IN(levels_workers, entry_expires_though_the_wheel_has_no_room),
	TEST_IN(levels_inline, removals_are_reported_though_the_wheel_has_no_room),
	TEST_IN(levels_workers, removals_are_reported_though_the_wheel_has_no_room),
	TEST_CACHE(cache_needs_no_place),
	TEST_CACHE(nothing_of_a_cache_reaches_a_function_of_its_wheel),
	TEST_IN(levels_inline, change_that_drives_the_wheel_may_meet_a_task_of_the_same_cache),
	TEST_IN(levels_owner, change_that_waits_for_room_holds_up_no_task),
	TEST_IN(levels_inline, nothing_is_left_where_many_fill_the_queue),
	TEST_IN(levels_owner, nothing_is_left_where_many_fill_the_queue),
	TEST_IN(levels_workers, nothing_is_left_where_many_fill_the_queue),
	TEST_IN(levels_threads, nothing_is_left_where_many_fill_the_queue),
};

TEST_PROGRAM(tests)
