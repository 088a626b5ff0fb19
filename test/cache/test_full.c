/* SPDX-License-Identifier: MIT */
/*
 * These caches are on a wheel that others use, too. Its queue and its timers may be full, and none
 * of the cache reaches the others' functions.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"

enum { ROOM = 8 };

/* Fills the queue of a wheel that refuses, or its timers. */
static void fill(struct tw_wheel *wheel)
{
	int key = 0;

	while (tw_set_timer(wheel, &key, sizeof(key), NULL, TW_HOUR) == TW_OK)
		key++;
}

/* The cache has its largest number of alarms. */
TEST(everywhere, cache_needs_no_room_in_its_wheel)
{
	struct cache_recorder *recorder =
		cache_recorder_create_with(*state, INTERVAL, 64,
					   (struct tw_options){.queue_capacity = ROOM,
							       .when_full = TW_WHEN_FULL_FAIL,
							       .max_pending = ROOM});
	struct tw_cache_options options = cache_recorder_options(recorder);

	options.shards = TW_CACHE_SHARDS_MAX;
	fill(recorder->wheel);
	cache_recorder_start(recorder, TW_HOUR, &options);
	cache_set(recorder, "key", "deleted");
	cache_set_for(recorder, "early", "expired", 2 * INTERVAL);
	cache_pass(recorder, 4 * INTERVAL);
	assert_removed(recorder, "expired", TW_CAUSE_EXPIRED);
	fill(recorder->wheel);
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	cache_pass(recorder, 0);
	assert_removed(recorder, "deleted", TW_CAUSE_EXPLICIT);
	cache_set(recorder, "key", "left");
	fill(recorder->wheel);
	assert_status(tw_cache_flush(recorder->cache), TW_OK);
	fill(recorder->wheel);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_removed(recorder, "left", TW_CAUSE_SHUTDOWN);
	cache_pass(recorder, 0);
	assert_int_equal(tw_pending(recorder->wheel), ROOM);
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

TEST(inline_and_threads, nothing_of_a_cache_reaches_a_function_of_its_wheel)
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
