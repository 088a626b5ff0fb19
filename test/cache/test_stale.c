/* SPDX-License-Identifier: MIT */
/* Values past their deadline are given only to takes whose load fails. */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/stats.h"

enum { LIFE = 10 * INTERVAL, STALE = 100 * INTERVAL };

static struct cache_recorder *open_stale(void *state, struct tw_cache_options more)
{
	more.stale_if_error = STALE;
	return cache_recorder_open_with(state, LIFE, more);
}

#define assert_stale(recorder, key, source, value) \
	assert_stale_(recorder, key, source, value, __FILE__, __LINE__)
static void assert_stale_(struct cache_recorder *recorder, const char *key, struct source *source,
			  const char *value, const char *file, int line)
{
	const struct tw_cache_entry *entry;
	enum tw_status status = take(recorder, key, source, TW_FOREVER, &entry);

	_assert_string_equal(tw_status_name(status), "TW_STALE", file, line);
	assert_value_(entry, value, file, line);
	_assert_true(tw_cache_entry_deadline(entry) <= tw_now(recorder->wheel), "is past", file,
		     line);
	tw_cache_entry_release(entry);
}

static int visit_none(void *context, const struct tw_cache_entry *entry)
{
	++*(int *)context;
	return 1;
}

TEST(inline_and_threads, failed_load_gives_the_old_value_and_says_so)
{
	struct cache_recorder *recorder = open_stale(*state, (struct tw_cache_options){0});
	const struct tw_cache_entry *entry;
	struct source source;
	int visited = 0;

	source_open(&source, NULL);
	cache_set(recorder, "key", "old");
	cache_pass(recorder, LIFE);
	/* This is a failure with no value returned. */
	source.status = TW_SYSTEM;
	assert_stale(recorder, "key", &source, "old");
	source.status = TW_OK;
	assert_stale(recorder, "key", &source, "old");
	assert_int_equal(source.loads, 2);
	/* No other call finds it. */
	assert_holds_none(recorder, "key");
	assert_status(tw_cache_acquire(recorder->cache, "key", 3, TW_CACHE_NO_USE, &entry),
		      TW_NOT_FOUND);
	assert_status(touch_key(recorder->cache, "key", 3, TW_HOUR), TW_NOT_FOUND);
	assert_status(put_replaced(recorder->cache, "key", 3, "v", 1, TW_HOUR), TW_NOT_FOUND);
	assert_status(tw_cache_each(recorder->cache, visit_none, &visited), TW_OK);
	assert_int_equal(visited, 0);
	assert_cache_counts(recorder->cache, .misses = 3, .loads = 2, .load_errors = 2, .stale = 2,
			    .inserts = 1, .entries = 1);
	/* A load that brings a value replaces it. */
	source.value = "new";
	assert_taken(recorder, "key", &source, "new");
	cache_settle(recorder);
	assert_removed(recorder, "old", TW_CAUSE_EXPIRED);
	cache_recorder_close(recorder);
}

CACHED_BY(inline_and_threads, old_value_leaves_in_its_time,
	  open_stale(*state, (struct tw_cache_options){0}))
{
	struct source source;

	source_open(&source, NULL);
	source.status = TW_SYSTEM;
	cache_set(recorder, "key", "old");
	cache_set_for(recorder, "unread", "old too", 2 * LIFE);
	cache_set_for(recorder, "for ever", "kept", TW_FOREVER);
	cache_pass(recorder, LIFE + STALE - 1);
	assert_stale(recorder, "key", &source, "old");
	assert_int_equal(removal_count(recorder), 0);
	cache_pass(recorder, 1);
	assert_not_taken(recorder, "key", &source, TW_SYSTEM);
	cache_pass(recorder, 2 * INTERVAL);
	assert_removed(recorder, "old", TW_CAUSE_EXPIRED);
	assert_int_equal(cache_stats(recorder).entries, 2);
	cache_pass(recorder, LIFE);
	assert_removed(recorder, "old too", TW_CAUSE_EXPIRED);
	assert_int_equal(cache_stats(recorder).entries, 1);
	assert_holds(recorder, "for ever", "kept");
}

CACHED_BY(inline_and_threads, value_that_was_touched_is_stale_from_its_last_deadline_on,
	  open_stale(*state, (struct tw_cache_options){0}))
{
	struct source source;

	source_open(&source, NULL);
	source.status = TW_SYSTEM;
	cache_set(recorder, "key", "old");
	assert_status(touch_key(recorder->cache, "key", 3, 5 * LIFE), TW_OK);
	cache_pass(recorder, 5 * LIFE + STALE - 1);
	assert_stale(recorder, "key", &source, "old");
	cache_pass(recorder, 1 + 2 * INTERVAL);
	assert_int_equal(cache_stats(recorder).entries, 0);
}

CACHED_BY(inline_and_threads, deleted_cleared_and_absent_values_are_not_given,
	  open_stale(*state, (struct tw_cache_options){.negative_expire = 5 * INTERVAL}))
{
	struct source source;

	source_open(&source, NULL);
	source.status = TW_SYSTEM;
	cache_set_letters(recorder, "abc");
	cache_pass(recorder, LIFE);
	assert_status(tw_cache_delete(recorder->cache, "a", 1), TW_NOT_FOUND);
	assert_not_taken(recorder, "a", &source, TW_SYSTEM);
	assert_stale(recorder, "b", &source, "b");
	/* The source reports that there is none. */
	source.status = TW_NOT_FOUND;
	assert_not_taken(recorder, "b", &source, TW_NOT_FOUND);
	source.status = TW_SYSTEM;
	assert_not_taken(recorder, "b", &source, TW_NOT_FOUND);
	/* An absence is no value: it expires on time, and is not given. */
	cache_pass(recorder, 5 * INTERVAL);
	assert_not_taken(recorder, "b", &source, TW_SYSTEM);
	cache_pass(recorder, 2 * INTERVAL);
	assert_int_equal(cache_stats(recorder).entries, 1);
	assert_status(tw_cache_clear(recorder->cache), TW_OK);
	assert_not_taken(recorder, "c", &source, TW_SYSTEM);
	assert_int_equal(cache_stats(recorder).entries, 0);
}

CACHED_BY(inline_and_threads, source_that_lost_the_key_ends_the_old_value,
	  open_stale(*state, (struct tw_cache_options){0}))
{
	struct source source;

	source_open(&source, NULL);
	source.status = TW_NOT_FOUND;
	cache_set(recorder, "key", "old");
	cache_pass(recorder, LIFE);
	assert_not_taken(recorder, "key", &source, TW_NOT_FOUND);
	cache_settle(recorder);
	assert_removed(recorder, "old", TW_CAUSE_EXPIRED);
	source.status = TW_SYSTEM;
	assert_not_taken(recorder, "key", &source, TW_SYSTEM);
}

CACHED_BY(inline_and_threads, what_was_set_during_the_load_is_not_given_as_old,
	  open_stale(*state, (struct tw_cache_options){0}))
{
	struct source source;
	struct taker taker;

	source_open(&source, NULL);
	source.status = TW_SYSTEM;
	cache_set(recorder, "key", "old");
	cache_pass(recorder, LIFE);
	taker_start_load(&taker, recorder, "key", &source);
	cache_set(recorder, "key", "new");
	gate_open(&source.gate);
	assert_taker_ends(&taker, TW_SYSTEM, NULL);
	assert_holds(recorder, "key", "new");
}

TEST(inline_and_threads, old_values_make_room_before_live_ones)
{
	static const enum tw_cache_policy policies[] = {TW_POLICY_LRU, TW_POLICY_S3FIFO};

	for (int i = 0; i < 2; i++) {
		struct cache_recorder *recorder = open_stale(
			*state, (struct tw_cache_options){.max_entries = 6, .policy = policies[i]});
		struct source source;

		source_open(&source, NULL);
		source.status = TW_SYSTEM;
		cache_set_for(recorder, "x", "x", TW_HOUR);
		cache_set_for(recorder, "y", "y", TW_HOUR);
		cache_set_letters(recorder, "abc");
		assert_holds(recorder, "a", "a"); /* it does not count as used any more */
		cache_pass(recorder, LIFE);
		cache_set_for(recorder, "z", "z", TW_HOUR);
		assert_int_equal(cache_stats(recorder).entries, 6);
		/* An entry that takes can use is as good as a live one. */
		assert_stale(recorder, "b", &source, "b");
		cache_set_for(recorder, "v", "v", TW_HOUR);
		cache_set_for(recorder, "w", "w", TW_HOUR);
		assert_int_equal(cache_stats(recorder).entries, 6);
		assert_not_taken(recorder, "a", &source, TW_SYSTEM);
		assert_not_taken(recorder, "c", &source, TW_SYSTEM);
		assert_stale(recorder, "b", &source, "b");
		assert_holds(recorder, "x", "x");
		assert_holds(recorder, "y", "y");
		assert_holds(recorder, "z", "z");
		cache_settle(recorder);
		assert_int_equal(removal_count_of(recorder, TW_CAUSE_EXPIRED), 2);
		/* A new value of a key is live again. */
		cache_set_for(recorder, "b", "new", TW_HOUR);
		cache_set_for(recorder, "u", "u", TW_HOUR);
		assert_holds(recorder, "b", "new");
		cache_settle(recorder);
		assert_int_equal(removal_count_of(recorder, TW_CAUSE_SIZE), 1);
		cache_recorder_close(recorder);
	}
}

CACHED_BY(inline_and_threads, value_that_has_expired_when_it_is_set_leaves_first,
	  open_stale(*state, (struct tw_cache_options){.max_entries = 4}))
{
	const struct tw_cache_value past = {.data = "past", .size = 4, .deadline = 1};

	for (const char *key = "uvwxyz"; *key; key++)
		assert_status(tw_cache_set_with_expire(recorder->cache, key, 1, key, 1, TW_HOUR),
			      TW_OK);
	cache_advance(recorder, 3 * INTERVAL);
	assert_status(tw_cache_put(recorder->cache, "past", 4, &past, TW_CACHE_PUT_SET), TW_OK);
	cache_settle(recorder);
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_SIZE), 3);
	cache_set_for(recorder, "new", "new", TW_HOUR);
	cache_settle(recorder);
	assert_removed(recorder, "past", TW_CAUSE_EXPIRED);
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_SIZE), 3);
}

CACHED_BY(inline_and_threads, use_of_a_value_counts_from_its_deadline_on,
	  open_stale(*state, (struct tw_cache_options){.max_entries = 3}))
{
	struct source source;

	source_open(&source, NULL);
	source.status = TW_SYSTEM;
	cache_set_for(recorder, "old", "old", LIFE + INTERVAL / 2);
	cache_set_for(recorder, "x", "x", TW_HOUR);
	cache_set_for(recorder, "y", "y", TW_HOUR);
	/* The wheel looks at it at the next tick. */
	cache_advance(recorder, LIFE + INTERVAL / 2);
	assert_stale(recorder, "old", &source, "old");
	cache_pass(recorder, INTERVAL);
	cache_set_for(recorder, "z", "z", TW_HOUR);
	assert_stale(recorder, "old", &source, "old");
}

struct outcome {
	atomic_int times;
	enum tw_status status;
	const struct tw_cache_entry *entry;
};

static void be_answered(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct outcome *outcome = context;

	outcome->status = status;
	outcome->entry = entry ? tw_cache_entry_pin(entry) : NULL;
	atomic_fetch_add(&outcome->times, 1);
}

TEST(threads, takes_of_all_kinds_are_given_the_old_value)
{
	struct source source;
	struct cache_recorder *recorder = open_stale(
		*state, (struct tw_cache_options){.load = source_load, .load_context = &source});
	struct outcome outcome = {.times = 0};
	struct taker takers[TAKERS];
	struct taker first;

	source_open(&source, NULL);
	source.status = TW_SYSTEM;
	cache_set_letters(recorder, "abc");
	cache_pass(recorder, LIFE);
	assert_stale(recorder, "a", &source, "a");
	assert_not_taken(recorder, "x", &source, TW_SYSTEM);
	assert_status(tw_cache_take_async(recorder->cache, "b", 1, be_answered, &outcome), TW_OK);
	WAIT_UNTIL(atomic_load(&outcome.times) == 1);
	assert_status(outcome.status, TW_STALE);
	assert_value(outcome.entry, "b");
	tw_cache_entry_release(outcome.entry);
	/* Takes that wait for another's load get it, too. */
	taker_start_load(&first, recorder, "c", &source);
	start_waiters(takers, recorder, "c", &source);
	gate_open(&source.gate);
	for (int i = -1; i < TAKERS; i++) {
		struct taker *taker = i < 0 ? &first : &takers[i];

		pthread_join(taker->thread, NULL);
		assert_status(taker->status, TW_STALE);
		assert_value(taker->entry, "c");
		tw_cache_entry_release(taker->entry);
	}
	assert_int_equal(cache_stats(recorder).stale, TAKERS + 3);
	cache_recorder_close(recorder);
}

/* A hanging source is no failure; an old value is given even so. */
CACHED_BY(inline_and_threads, take_that_times_out_is_given_the_old_value,
	  open_stale(*state, (struct tw_cache_options){0}))
{
	const struct tw_cache_entry *entry;
	struct taker takers[2];
	struct source source;
	struct source never;

	source_open(&source, "new");
	source_open(&never, "never");
	cache_set(recorder, "key", "old");
	cache_pass(recorder, LIFE);
	taker_start_load(&takers[0], recorder, "key", &source);
	taker_start_load(&takers[1], recorder, "none", &source);
	for (tw_duration wait = 0; wait <= TW_MILLISECOND; wait += TW_MILLISECOND) {
		assert_status(take(recorder, "key", &never, wait, &entry), TW_STALE);
		assert_value(entry, "old");
		tw_cache_entry_release(entry);
		assert_status(take(recorder, "none", &never, wait, &entry), TW_TIMED_OUT);
		assert_null(entry);
	}
	cache_pass(recorder, STALE);
	assert_status(take(recorder, "key", &never, 0, &entry), TW_TIMED_OUT);
	assert_int_equal(cache_stats(recorder).stale, 2);
	assert_int_equal(cache_stats(recorder).wait_timeouts, 3);
	gate_open(&source.gate);
	gate_open(&source.gate);
	assert_taker_ends(&takers[0], TW_OK, "new");
	assert_taker_ends(&takers[1], TW_OK, "new");
	assert_int_equal(never.loads, 0);
}

/* Deadlines are of all kinds, and lookups find them passed; each entry leaves in its own time. */
CACHED_BY(inline_and_threads, many_old_values_leave_each_in_its_time,
	  open_stale(*state, (struct tw_cache_options){.shards = 2}))
{
	enum { COUNT = 2000, SPAN = 300 };
	static tw_duration ends[COUNT];
	uint64_t seed = seed_choose();
	struct random random = random_from(seed, 1);

	for (int i = 0; i < COUNT; i++) {
		tw_duration life = (tw_duration)random_below(&random, SPAN * INTERVAL) + 1;

		assert_status(tw_cache_set_with_expire(recorder->cache, &i, sizeof(i), &i,
						       sizeof(i), life),
			      TW_OK);
		ends[i] = life + STALE;
	}
	for (int step = 0; step < SPAN + STALE / INTERVAL + 3; step++) {
		tw_duration now = tw_now(recorder->wheel);
		uint64_t least = 0;
		uint64_t most = 0;

		for (int i = 0; i < COUNT; i++) {
			least += ends[i] > now;
			most += ends[i] > now - 2 * INTERVAL;
		}
		assert_in_range(cache_stats(recorder).entries, least, most);
		for (int i = 0; i < 50; i++) {
			int key = (int)random_below(&random, COUNT);
			enum tw_status status =
				tw_cache_get(recorder->cache, &key, sizeof(key), NULL, 0, NULL);

			assert_status(status,
				      ends[key] - STALE > now ? TW_TRUNCATED : TW_NOT_FOUND);
		}
		cache_pass(recorder, INTERVAL);
	}
	assert_int_equal(cache_stats(recorder).entries, 0);
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_EXPIRED), COUNT);
}
