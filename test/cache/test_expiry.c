/* SPDX-License-Identifier: MIT */
/*
 * Lifetimes are exact on the manual clock: no call returns a value at or past its deadline, whether
 * the wheel is punctual or stuck, and no entry expires before that. Known faults of go-zero's cache
 * do not occur.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"

#include <semaphore.h>

#include "runtime/ask.h"

enum { LIFETIMES = 1000 };

struct lifetime {
	char key[16];
	tw_duration deadline;
};

/* Sets the keys at various times, and notes when each must end. */
static void set_lifetimes(struct cache_recorder *recorder, struct random *random,
			  struct lifetime *lifetimes)
{
	for (int i = 0; i < LIFETIMES; i++) {
		tw_duration life = random_between(random, 1, 300 * INTERVAL);

		snprintf(lifetimes[i].key, sizeof(lifetimes[i].key), "%d", i);
		lifetimes[i].deadline = tw_now(recorder->wheel) + life;
		cache_set_for(recorder, lifetimes[i].key, lifetimes[i].key, life);
		if (random_once_in(random, 20))
			cache_pass(recorder, random_between(random, 1, INTERVAL));
	}
}

static void assert_lifetimes(struct cache_recorder *recorder, const struct lifetime *lifetimes)
{
	tw_duration now = tw_now(recorder->wheel);

	for (int i = 0; i < LIFETIMES; i++) {
		enum tw_status expected = now < lifetimes[i].deadline ? TW_OK : TW_NOT_FOUND;

		if (cache_get(recorder, lifetimes[i].key) != expected)
			fail_msg("at %lld: key %s of deadline %lld: not %s", (long long)now,
				 lifetimes[i].key, (long long)lifetimes[i].deadline,
				 tw_status_name(expected));
	}
}

/* Checks that expired entries are gone two ticks later without any lookup. */
static void assert_left_in_time(struct cache_recorder *recorder, const struct lifetime *lifetimes)
{
	tw_duration now = tw_now(recorder->wheel);
	uint64_t may_be_there = 0;

	for (int i = 0; i < LIFETIMES; i++)
		may_be_there += lifetimes[i].deadline + 2 * INTERVAL > now;
	assert_true(cache_stats(recorder).entries <= may_be_there);
}

static void assert_all_expired(struct cache_recorder *recorder)
{
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_EXPIRED), LIFETIMES);
	assert_int_equal(removal_count(recorder), LIFETIMES);
	for (size_t i = 0; i < LIFETIMES; i++) {
		struct removal removal = removal_at(recorder, i);

		assert_true(removal.now >= removal.deadline);
	}
}

CACHED(inline_and_threads, lifetimes_end_at_their_deadlines_and_entries_leave_by_themselves,
       TW_HOUR)
{
	struct lifetime lifetimes[LIFETIMES];
	struct random random = random_from(seed_choose(), 1);
	tw_duration end;

	set_lifetimes(recorder, &random, lifetimes);
	assert_lifetimes(recorder, lifetimes);
	for (end = tw_now(recorder->wheel) + 302 * INTERVAL; tw_now(recorder->wheel) < end;) {
		cache_pass(recorder, random_between(&random, 1, 5 * INTERVAL));
		assert_left_in_time(recorder, lifetimes);
		assert_lifetimes(recorder, lifetimes);
	}
	assert_int_equal(cache_stats(recorder).entries, 0);
	assert_all_expired(recorder);
}

static void wait_for_semaphore(void *semaphore)
{
	sem_wait(semaphore);
}

/* The wheel's only worker hangs, so that no task of the cache runs. */
TEST(pool, lifetimes_end_at_their_deadlines_while_the_pool_is_stuck)
{
	struct variant one_worker = *(struct variant *)*state;
	struct cache_recorder *recorder;
	struct lifetime lifetimes[LIFETIMES];
	struct random random = random_from(seed_choose(), 2);
	sem_t gate;
	tw_duration end;

	one_worker.workers = 1;
	recorder = cache_recorder_open(&one_worker, TW_HOUR);
	assert_int_equal(sem_init(&gate, 0, 0), 0);
	assert_status(tw_after_func(recorder->wheel, 0, wait_for_semaphore, &gate, NULL), TW_OK);
	assert_status(tw_advance(recorder->wheel, 0), TW_OK);
	for (int i = 0; i < LIFETIMES; i++) {
		snprintf(lifetimes[i].key, sizeof(lifetimes[i].key), "%d", i);
		lifetimes[i].deadline = random_between(&random, 1, 300 * INTERVAL);
		cache_set_for(recorder, lifetimes[i].key, lifetimes[i].key, lifetimes[i].deadline);
	}
	for (end = 302 * INTERVAL; tw_now(recorder->wheel) < end;) {
		assert_lifetimes(recorder, lifetimes);
		assert_status(tw_advance(recorder->wheel, random_between(&random, 1, 3 * INTERVAL)),
			      TW_OK);
	}
	assert_lifetimes(recorder, lifetimes);
	assert_int_equal(removal_count(recorder), 0);
	sem_post(&gate);
	cache_settle(recorder);
	assert_all_expired(recorder);
	cache_recorder_close(recorder);
	sem_destroy(&gate);
}

/* Sets and deletes do the alarm's work, with a listener and without. */
TEST(pool, changes_remove_what_has_expired_while_the_pool_is_stuck)
{
	enum { EACH = 64, ROUNDS = 100, LIVE_TICKS = 2, LATE_TICKS = 4 };

	for (int has_listener = 0; has_listener < 2; has_listener++) {
		struct variant one_worker = *(struct variant *)*state;
		struct tw_cache_options options = {.shards = 1};
		struct cache_recorder *recorder;
		uint64_t key = 0;
		sem_t gate;

		one_worker.workers = 1;
		recorder = has_listener ? cache_recorder_open_with(&one_worker,
								   LIVE_TICKS * INTERVAL, options)
					: cache_recorder_open_quiet(&one_worker,
								    LIVE_TICKS * INTERVAL, options);
		assert_int_equal(sem_init(&gate, 0, 0), 0);
		assert_status(tw_after_func(recorder->wheel, 0, wait_for_semaphore, &gate, NULL),
			      TW_OK);
		assert_status(tw_advance(recorder->wheel, 0), TW_OK);
		for (int round = 0; round < ROUNDS; round++) {
			for (int i = 0; i < EACH; i++, key++)
				assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), &key,
							   sizeof(key)),
					      TW_OK);
			assert_true(cache_stats(recorder).entries <=
				    (LIVE_TICKS + LATE_TICKS) * EACH);
			assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
		}
		assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
		for (int i = 0; i < EACH; i++)
			assert_status(tw_cache_delete(recorder->cache, "none", 4), TW_NOT_FOUND);
		assert_int_equal(cache_stats(recorder).entries, 0);
		assert_int_equal(cache_stats(recorder).queued_removals,
				 has_listener ? ROUNDS * EACH : 0);
		sem_post(&gate);
		/* The worker finds live entries filed. */
		cache_set(recorder, "key", "value");
		cache_pass(recorder, (LIVE_TICKS + 2) * INTERVAL);
		assert_int_equal(cache_stats(recorder).entries, 0);
		cache_settle(recorder);
		assert_int_equal(cache_stats(recorder).removed[TW_CAUSE_EXPIRED],
				 ROUNDS * EACH + 1);
		cache_recorder_close(recorder);
		sem_destroy(&gate);
	}
}

struct real_lifetime {
	/* The deadline is between these. */
	tw_duration earliest;
	tw_duration latest;
};

static void set_real_lifetimes(struct tw_cache *cache, struct tw_wheel *wheel,
			       struct random *random, struct real_lifetime *lifetimes)
{
	for (int key = 0; key < LIFETIMES; key++) {
		tw_duration life = random_between(random, 1, 60 * TW_MILLISECOND);

		lifetimes[key].earliest = tw_now(wheel) + life;
		assert_status(
			tw_cache_set_with_expire(cache, &key, sizeof(key), &key, sizeof(key), life),
			TW_OK);
		lifetimes[key].latest = tw_now(wheel) + life;
	}
}

/* Looks all up until none is there; *early and *late count wrong answers. */
static void watch_real_lifetimes(struct tw_cache *cache, struct tw_wheel *wheel,
				 const struct real_lifetime *lifetimes, int *early, int *late)
{
	bool any = true;

	while (any) {
		any = false;
		for (int key = 0; key < LIFETIMES; key++) {
			tw_duration before = tw_now(wheel);
			enum tw_status status =
				tw_cache_get(cache, &key, sizeof(key), NULL, 0, NULL);
			bool is_there = status == TW_TRUNCATED;

			*late += is_there && before >= lifetimes[key].latest;
			*early += !is_there && tw_now(wheel) < lifetimes[key].earliest;
			any |= is_there;
		}
	}
}

enum owner_state { OWNER_WORKS, OWNER_IS_STUCK, OWNER_IS_STOPPED };

static void live_real_round(enum owner_state owner, struct random *random)
{
	struct tw_options wheel_options = {.drive = owner == OWNER_IS_STUCK ? TW_DRIVE_CALLER
									    : TW_DRIVE_THREAD};
	struct tw_cache_options options = {.jitter = -1};
	struct real_lifetime lifetimes[LIFETIMES];
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	int early = 0;
	int late = 0;

	assert_status(tw_create(&wheel, INTERVAL, 64, ignore_task, &wheel_options), TW_OK);
	options.wheel = wheel;
	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	set_real_lifetimes(cache, wheel, random, lifetimes);
	if (owner == OWNER_IS_STOPPED)
		assert_status(tw_stop(wheel), TW_OK);
	watch_real_lifetimes(cache, wheel, lifetimes, &early, &late);
	assert_int_equal(early, 0);
	assert_int_equal(late, 0);
	tw_cache_destroy(cache);
	tw_destroy(wheel);
}

static const struct test_kind kind_owners = {
	.variants = TEST_VARIANTS(
		{"on_the_real_clock", &(enum owner_state){OWNER_WORKS}},
		{"while_nobody_drives_the_wheel", &(enum owner_state){OWNER_IS_STUCK}},
		{"though_the_wheel_is_stopped", &(enum owner_state){OWNER_IS_STOPPED}}),
};

TEST(owners, lifetimes_end_at_their_deadlines)
{
	struct random random = random_from(seed_choose(), 3);

	for (int round = 0; round < 5; round++)
		live_real_round(*(enum owner_state *)*state, &random);
}

CACHE_SCRIPT(inline_and_threads, set_shortens_and_lengthens_a_lifetime, TW_HOUR,
	     "set shorter old 100; set longer old 10; pass 5; set shorter new 10;"
	     "set longer new 100; lives shorter new 10; get longer = new; lives longer new 90;"
	     "pass 2 -> old:replaced old:replaced new:expired new:expired")

CACHE_SCRIPT(inline_and_threads, touch_shortens_and_lengthens_a_lifetime, TW_HOUR,
	     "set shorter s 100; set longer l 10; pass 5; touch shorter 10; touch longer 100;"
	     "lives shorter s 10; touch shorter 1h = NOT_FOUND; lives longer l 90;"
	     "touch longer -1ns = INVALID; touch nothing 1h = NOT_FOUND")

CACHE_SCRIPT(inline_and_threads, entry_without_expiry_stays_until_it_is_given_one, TW_FOREVER,
	     "set key value; set freed value 1; touch freed never; pass 1000h; get freed = value;"
	     "deadline key = never; touch key 1; pass 1; get key = NOT_FOUND")

CACHE_SCRIPT(inline_and_threads, lifetime_too_long_for_the_clock_never_ends, TW_HOUR,
	     "pass 1h; set key value never-1ns; pass 1000h; get key = value")

/* Opens a cache on a wheel of one second, like go-zero's, 48 ms before its next tick. */
static struct cache_recorder *open_before_a_tick(const struct variant *variant)
{
	struct cache_recorder *recorder =
		cache_recorder_create_with(variant, TW_SECOND, 300, (struct tw_options){0});
	struct tw_cache_options options = cache_recorder_options(recorder);

	cache_recorder_start(recorder, TW_MINUTE, &options);
	cache_pass(recorder, 10 * TW_SECOND - 48 * TW_MILLISECOND);
	return recorder;
}

CACHED_BY(inline_and_threads, entry_set_just_before_a_tick_lives_its_whole_life,
	  open_before_a_tick(*state))
{
	cache_set_for(recorder, "key", "value", 1900 * TW_MILLISECOND);
	cache_pass(recorder, 52 * TW_MILLISECOND);
	assert_holds(recorder, "key", "value");
	assert_lives_for(recorder, "key", "value", 1848 * TW_MILLISECOND);
}

CACHED_BY(inline_and_threads, lifetime_under_a_tick_is_kept_exactly, open_before_a_tick(*state))
{
	cache_set_for(recorder, "new", "value", 300 * TW_MILLISECOND);
	cache_set(recorder, "existing", "old");
	cache_set_for(recorder, "existing", "value", 300 * TW_MILLISECOND);
	cache_pass(recorder, 2 * TW_MILLISECOND);
	assert_holds(recorder, "existing", "value");
	cache_pass(recorder, 298 * TW_MILLISECOND - 1);
	assert_holds(recorder, "new", "value");
	assert_holds(recorder, "existing", "value");
	cache_pass(recorder, 1);
	assert_holds_none(recorder, "new");
	assert_holds_none(recorder, "existing");
}

CACHE_SCRIPT(inline_and_threads, lifetime_of_nothing_is_refused_and_changes_nothing, TW_HOUR,
	     "set key value; set key x 0 = INVALID; set key x -1ns = INVALID;"
	     "replace key x -1ns = INVALID; get key = value; inserts = 1")

TEST(once, cache_whose_entries_have_no_lifetime_is_refused)
{
	for (tw_duration expire = 0; expire >= -1; expire--) {
		struct tw_cache *none = (struct tw_cache *)&expire;

		assert_status(tw_cache_create(&none, expire, NULL), TW_INVALID);
		assert_null(none);
	}
}

/* How often the owner took alarms that were set. */
static uint64_t changes_of(const struct tw_wheel *wheel)
{
	uint64_t marks[ALARM_INBOXES];
	uint64_t all = 0;

	alarm_table_mark(&wheel->owner.out.alarms, marks);
	for (size_t i = 0; i < ALARM_LISTS; i++)
		all += marks[i];
	return all;
}

/* A later deadline sends the wheel no command, and neither does one that is not the earliest. */
CACHED_QUIET(inline_and_threads, later_deadlines_send_no_commands, TW_MINUTE, .shards = 1)
{
	struct tw_stats before;
	struct tw_stats after;
	uint64_t changes;

	cache_set_for(recorder, "key", "value", 10 * INTERVAL);
	cache_pass(recorder, 0);
	assert_status(tw_get_stats(recorder->wheel, &before), TW_OK);
	changes = changes_of(recorder->wheel);
	for (int i = 0; i < 1000; i++) {
		assert_status(touch_key(recorder->cache, "key", 3, 20 * INTERVAL + i), TW_OK);
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "v", 1), TW_OK);
	}
	assert_status(tw_flush(recorder->wheel), TW_OK);
	assert_status(tw_get_stats(recorder->wheel, &after), TW_OK);
	assert_int_equal(after.set, before.set);
	/* The owner is woken by changes alone. */
	assert_in_range(changes_of(recorder->wheel) - changes, 0, 10);
	assert_int_equal(after.fired, before.fired);
}
