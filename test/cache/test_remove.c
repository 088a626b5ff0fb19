/* SPDX-License-Identifier: MIT */
/*
 * Every entry is removed once, with one cause, and reported to the listener, which may call the
 * cache and may sleep; caches and wheels may end meanwhile.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
#include "support/gate.h"

/* The entry that was used twice gets two more turns. */
CACHE_SCRIPT(inline_and_threads, each_removal_has_its_cause, TW_HOUR,
	     "set d deleted; delete d; set r first; set r second; replace r last 1h; set x short 1;"
	     "pass 3; letters abcdfge; clear; set left left;"
	     "settle -> deleted:explicit first:replaced second:replaced short:expired last:size"
	     "          a:size b:size c:size d:size f:explicit g:explicit e:explicit;"
	     "removed explicit = 4; removed replaced = 2; removed expired = 1; removed size = 5;"
	     "removed shutdown = 0; notified = 12; destroy -> left:shutdown",
	     .policy = TW_POLICY_LRU, .max_entries = 3)

/* It is past its deadline, before its timer's tick: every removal has the cause expired. */
CACHE_SCRIPT(inline_and_threads, entry_past_its_deadline_always_has_expired, TW_HOUR,
	     "set set set 1.2; set delete delete 1.2; set add add 1.2; set clear clear 1.2;"
	     "set adopt adopt 1.2; pass 1.5; set set new; delete delete = NOT_FOUND;"
	     "replace add new 1h = NOT_FOUND; add add new 1h; adopt adopt new 1h; clear;"
	     "settle -> set:expired delete:expired add:expired clear:expired adopt:expired"
	     "          new:explicit new:explicit new:explicit")

CACHE_SCRIPT(inline_and_threads, destroy_reports_every_entry_as_shutdown, TW_HOUR,
	     "set past past 1.2; set left left; pass 1.5; destroy -> past:shutdown left:shutdown")

CACHE_SCRIPT(inline_and_threads, destroy_reports_all_though_the_wheel_is_stopped, TW_HOUR,
	     "letters abcd; delete a; wheel_stop; delete b;"
	     "destroy -> a:explicit b:explicit c:shutdown d:shutdown")

/* Sets every entry again under another key, up to ten. */
static void set_again(struct cache_recorder *recorder, const struct tw_cache_entry *entry,
		      enum tw_cache_cause cause)
{
	size_t size;
	const char *value = tw_cache_entry_value(entry, &size);
	char next = (char)(*value + 1);

	if (cause == TW_CAUSE_SHUTDOWN || *value == '9')
		return;
	if (tw_cache_set_with_expire(recorder->cache, &next, 1, &next, 1, INTERVAL) != TW_OK ||
	    tw_cache_get(recorder->cache, &next, 1, &next, 1, NULL) != TW_OK ||
	    tw_cache_delete(recorder->cache, "none", 4) != TW_NOT_FOUND)
		abort();
}

CACHED(inline_and_threads, listener_may_call_the_cache, TW_HOUR)
{
	recorder->on_remove = set_again;
	cache_set_for(recorder, "0", "0", INTERVAL);
	for (int i = 0; i < 30; i++)
		cache_pass(recorder, INTERVAL);
	assert_int_equal(removal_count(recorder), 10);
	assert_removed(recorder, "9", TW_CAUSE_EXPIRED);
	assert_int_equal(cache_stats(recorder).entries, 0);
}

static void listener_must_not_wait_for_itself(struct cache_recorder *recorder,
					      const struct tw_cache_entry *entry,
					      enum tw_cache_cause cause)
{
	if (tw_cache_flush(recorder->cache) != TW_INVALID)
		abort();
	tw_cache_destroy(recorder->cache);
}

CACHED(inline_and_threads, flush_and_destroy_in_a_listener_do_nothing, TW_HOUR)
{
	recorder->on_remove = listener_must_not_wait_for_itself;
	cache_set(recorder, "key", "value");
	cache_set(recorder, "other", "value");
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	cache_settle(recorder);
	assert_int_equal(removal_count(recorder), 1);
	assert_holds(recorder, "other", "value");
}

struct sleeper {
	struct gate gate;
	atomic_int inside;
	atomic_int most_inside;
};

static void sleep_at_gate(struct cache_recorder *recorder, const struct tw_cache_entry *entry,
			  enum tw_cache_cause cause)
{
	struct sleeper *sleeper = recorder->argument;
	int inside = atomic_fetch_add(&sleeper->inside, 1) + 1;

	if (inside > atomic_load(&sleeper->most_inside))
		atomic_store(&sleeper->most_inside, inside);
	gate_pass(&sleeper->gate);
	atomic_fetch_sub(&sleeper->inside, 1);
}

CACHED(pool, listener_that_sleeps_blocks_no_call_and_no_expiry, TW_HOUR)
{
	struct sleeper sleeper = {0};

	gate_init(&sleeper.gate);
	recorder->argument = &sleeper;
	recorder->on_remove = sleep_at_gate;
	cache_set(recorder, "first", "first");
	assert_status(tw_cache_delete(recorder->cache, "first", 5), TW_OK);
	assert_status(tw_advance(recorder->wheel, 0), TW_OK);
	gate_await(&sleeper.gate);
	for (int i = 0; i < 1000; i++)
		assert_status(tw_cache_set_with_expire(recorder->cache, &i, sizeof(i), "v", 1,
						       2 * INTERVAL),
			      TW_OK);
	cache_set(recorder, "key", "value");
	assert_holds(recorder, "key", "value");
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	assert_status(tw_advance(recorder->wheel, 4 * INTERVAL), TW_OK);
	WAIT_UNTIL(cache_stats(recorder).entries == 0);
	assert_int_equal(cache_stats(recorder).notified, 0);
	for (int i = 0; i < 1002; i++)
		gate_open(&sleeper.gate);
	cache_settle(recorder);
	assert_int_equal(removal_count(recorder), 1002);
	assert_int_equal(cache_stats(recorder).notified, 1002);
	assert_int_equal(atomic_load(&sleeper.most_inside), 1);
}

enum { QUEUED_MOST = 10 };

CACHED(pool, removals_are_queued_while_the_listener_sleeps, TW_HOUR)
{
	struct sleeper sleeper = {0};

	gate_init(&sleeper.gate);
	recorder->argument = &sleeper;
	recorder->on_remove = sleep_at_gate;
	cache_set(recorder, "key", "value");
	for (int i = 0; i < QUEUED_MOST; i++) {
		assert_int_equal(cache_stats(recorder).queued_removals, i);
		cache_set(recorder, "key", "value");
	}
	assert_status(tw_advance(recorder->wheel, 0), TW_OK);
	gate_await(&sleeper.gate);
	assert_int_equal(cache_stats(recorder).queued_removals, QUEUED_MOST);
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	assert_int_equal(cache_stats(recorder).queued_removals, QUEUED_MOST + 1);
	for (int i = 0; i < QUEUED_MOST + 1; i++)
		gate_open(&sleeper.gate);
	cache_settle(recorder);
	assert_int_equal(cache_stats(recorder).queued_removals, 0);
	assert_int_equal(cache_stats(recorder).notified, QUEUED_MOST + 1);
}

CACHED(inline_and_threads, two_caches_share_a_wheel_and_one_is_destroyed, 10 * INTERVAL)
{
	struct tw_cache_options options = cache_recorder_options(recorder);
	struct tw_cache *other;

	assert_status(tw_cache_create(&other, 10 * INTERVAL, &options), TW_OK);
	for (int i = 0; i < 500; i++) {
		assert_status(tw_cache_set(other, &i, sizeof(i), "other", 5), TW_OK);
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "one", 3), TW_OK);
	}
	tw_cache_destroy(other);
	assert_int_equal(times_removed(recorder, "other"), 500);
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_SHUTDOWN), 500);
	assert_int_equal(cache_stats(recorder).entries, 500);
	cache_pass(recorder, 10 * INTERVAL - 1);
	assert_int_equal(times_removed(recorder, "one"), 0);
	cache_pass(recorder, 2 * INTERVAL);
	assert_int_equal(times_removed(recorder, "one"), 500);
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_EXPIRED), 500);
}

/* These tasks take a while and set themselves again, as a job must wait in the pool's queue. */
enum { BUSY_TASKS = 4, BUSY_TURNS = 600, BUSY_MS = 30 };

struct busy {
	struct tw_wheel *wheel;
	atomic_int turns;
};

static void stay_busy(void *argument)
{
	struct busy *busy = argument;

	wait_for(BUSY_MS * TW_MILLISECOND);
	if (atomic_fetch_add(&busy->turns, 1) < BUSY_TURNS)
		may_fail(tw_after_func(busy->wheel, 0, stay_busy, busy, NULL));
}

CACHED(threads, flush_waits_no_longer_than_the_pool_takes, TW_HOUR)
{
	struct busy busy = {.wheel = recorder->wheel};

	cache_set(recorder, "key", "value");
	for (int i = 0; i < BUSY_TASKS; i++)
		assert_status(tw_after_func(recorder->wheel, 0, stay_busy, &busy, NULL), TW_OK);
	WAIT_UNTIL(atomic_load(&busy.turns) >= BUSY_TASKS);
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	assert_status(tw_cache_flush(recorder->cache), TW_OK);
	assert_true(atomic_exchange(&busy.turns, BUSY_TURNS) < BUSY_TURNS);
	assert_removed(recorder, "value", TW_CAUSE_EXPLICIT);
	WAIT_UNTIL(atomic_load(&busy.turns) >= BUSY_TURNS + BUSY_TASKS);
}

enum {
	CROWDS = TEST_SHARE_OF(100),
	MANY = CROWDS * 1024, /* removals that the listener gets in one run */
	CROWD_MS = 10         /* longer than one takes, and shorter than a sleep */
};

static void set_many(struct cache_recorder *recorder)
{
	for (int i = 0; i < MANY; i++)
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "value", 5), TW_OK);
}

static bool was_quick(int64_t began)
{
	return TEST_HAS_SANITIZER || wall_clock() - began < CROWDS * CROWD_MS * TW_MILLISECOND;
}

static bool flush_and_destroy_are_quick(const struct variant *variant)
{
	struct cache_recorder *recorder = cache_recorder_open(variant, TW_HOUR);
	bool are_quick;
	int64_t began;

	set_many(recorder);
	assert_status(tw_cache_clear(recorder->cache), TW_OK);
	began = wall_clock();
	cache_settle(recorder);
	are_quick = was_quick(began);
	assert_int_equal(removal_count(recorder), MANY);
	set_many(recorder);
	began = wall_clock();
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	are_quick &= was_quick(began);
	assert_int_equal(removal_count(recorder), 2 * MANY);
	cache_recorder_close(recorder);
	return are_quick;
}

/* The caller drives the wheel from run to run. A busy machine may need several attempts. */
TEST(by_caller, flush_and_destroy_do_not_sleep_from_run_to_run)
{
	WAIT_UNTIL(flush_and_destroy_are_quick(*state));
}

TEST(once, cache_with_its_own_wheel_leaves_no_thread)
{
	size_t before = count_threads(); /* maybe with threads of other tests that are ending */
	struct tw_cache *cache;
	char value[5];

	for (int i = 0; i < 10; i++) {
		assert_status(tw_cache_create(&cache, TW_HOUR, NULL), TW_OK);
		assert_status(tw_cache_set(cache, "key", 3, "value", 5), TW_OK);
		assert_status(tw_cache_get(cache, "key", 3, value, 5, NULL), TW_OK);
		assert_memory_equal(value, "value", 5);
		WAIT_UNTIL(count_threads() <= before + 3);
		tw_cache_destroy(cache);
		WAIT_UNTIL(count_threads() <= before);
	}
	tw_cache_destroy(NULL);
}
