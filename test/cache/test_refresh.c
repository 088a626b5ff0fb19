/* SPDX-License-Identifier: MIT */
/*
 * Values are refreshed before they expire: each lookup gets the old one at once, and one load
 * brings the new one, or keeps the old one.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/stats.h"

enum { OLD = 160 * INTERVAL, LIFE = 1000 * INTERVAL };

static struct cache_recorder *open_refreshing(void *state, struct source *source,
					      struct tw_cache_options more)
{
	source_open(source, "loaded");
	more.load = source_load;
	more.load_context = source;
	if (more.refresh_after == 0)
		more.refresh_after = OLD;
	return cache_recorder_open_with(state, LIFE, more);
}

/* Returns the number of ended loads. */
static uint64_t loads_ended(struct cache_recorder *recorder)
{
	return cache_stats(recorder).load_time.count;
}

static void be_answered(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	assert_status(status, TW_OK);
	assert_value(entry, context);
}

enum look {
	LOOK_GET,
	LOOK_GET_OVER_KEY, /* the buffer is the key's memory */
	LOOK_GET_MANY,
	LOOK_ACQUIRE,
	LOOK_TAKE,
	LOOK_ASYNC,
	LOOKS
};

/* Checks the key's value by any call that looks it up. */
static void look(struct cache_recorder *recorder, enum look how, const char *key, char *value)
{
	struct tw_cache *cache = recorder->cache;
	const struct tw_cache_entry *entry = NULL;
	char buffer[16];
	struct tw_cache_lookup lookup = {key, strlen(key), buffer, sizeof(buffer), 0, TW_OK};

	switch (how) {
	case LOOK_GET:
		assert_holds(recorder, key, value);
		break;
	case LOOK_GET_OVER_KEY:
		memcpy(buffer, key, strlen(key));
		assert_status(
			tw_cache_get(cache, buffer, strlen(key), buffer, sizeof(buffer), NULL),
			TW_OK);
		assert_memory_equal(buffer, value, strlen(value));
		break;
	case LOOK_GET_MANY:
		assert_status(tw_cache_get_many(cache, &lookup, 1, NULL), TW_OK);
		assert_int_equal(lookup.value_size, strlen(value));
		assert_memory_equal(buffer, value, strlen(value));
		break;
	case LOOK_ACQUIRE:
		assert_status(tw_cache_acquire(cache, key, strlen(key), 0, &entry), TW_OK);
		break;
	case LOOK_TAKE:
		assert_status(tw_cache_take(cache, key, strlen(key), NULL, NULL, 0, &entry), TW_OK);
		break;
	case LOOK_ASYNC:
		assert_status(tw_cache_take_async(cache, key, strlen(key), be_answered, value),
			      TW_OK);
		break;
	case LOOKS:
		break;
	}
	if (entry)
		assert_value(entry, value);
	tw_cache_entry_release(entry);
}

TEST(threads, old_value_is_given_and_reloaded)
{
	for (int how = 0; how < LOOKS; how++) {
		struct source source;
		struct cache_recorder *recorder =
			open_refreshing(*state, &source, (struct tw_cache_options){0});

		cache_set(recorder, "key", "set");
		cache_pass(recorder, OLD - 1);
		look(recorder, how, "key", "set");
		assert_int_equal(cache_stats(recorder).hits, 1);
		cache_pass(recorder, 1);
		source.gated = true;
		look(recorder, how, "key", "set");
		gate_await(&source.gate);
		/* There is one reload for all lookups meanwhile. */
		for (int other = 0; other < LOOKS; other++)
			look(recorder, other, "key", "set");
		gate_open(&source.gate);
		WAIT_UNTIL(loads_ended(recorder) == 1);
		look(recorder, how, "key", "loaded");
		assert_int_equal(source.loads, 1);
		assert_int_equal(cache_stats(recorder).refreshes, 1);
		assert_int_equal(cache_stats(recorder).misses, 0);
		cache_settle(recorder);
		assert_removed(recorder, "set", TW_CAUSE_REPLACED);
		/* The value is new after that. */
		source.gated = false;
		cache_pass(recorder, OLD - 1);
		look(recorder, how, "key", "loaded");
		assert_int_equal(source.loads, 1);
		source.value = "again";
		cache_pass(recorder, 1);
		look(recorder, how, "key", "loaded");
		WAIT_UNTIL(loads_ended(recorder) == 2);
		look(recorder, how, "key", "again");
		cache_recorder_close(recorder);
	}
}

static int visit_all(void *context, const struct tw_cache_entry *entry)
{
	return 1;
}

static enum tw_cache_verdict keep(void *context, const struct tw_cache_entry *entry,
				  struct tw_cache_value *computed)
{
	return TW_CACHE_KEEP;
}

SOURCED(inline_and_threads, peeks_load_nothing, open_refreshing)
{
	struct tw_cache *cache = recorder->cache;

	cache_set(recorder, "key", "set");
	cache_pass(recorder, OLD);
	assert_true(deadline_of(cache, "key", 3) == LIFE);
	assert_status(touch_key(cache, "key", 3, LIFE), TW_OK);
	assert_status(tw_cache_each(cache, visit_all, NULL), TW_OK);
	assert_status(tw_cache_compute(cache, "key", 3, keep, NULL), TW_OK);
	cache_settle(recorder);
	tw_cache_destroy(cache);
	recorder->cache = NULL;
	assert_int_equal(source->loads, 0);
}

SOURCED(threads, failed_reload_leaves_the_old_value_and_is_tried_ever_later, open_refreshing)
{
	static const int pauses[] = {16, 8, 4, 2, 2, 2};
	uint64_t loads = 1;

	cache_set(recorder, "key", "set");
	source->status = TW_SYSTEM;
	cache_pass(recorder, OLD);
	assert_holds(recorder, "key", "set");
	WAIT_UNTIL(loads_ended(recorder) == loads);
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		tw_duration pause = OLD / pauses[i];

		cache_pass(recorder, pause - 1);
		assert_holds(recorder, "key", "set");
		cache_pass(recorder, 1);
		assert_int_equal(source->loads, loads);
		assert_holds(recorder, "key", "set");
		loads++;
		WAIT_UNTIL(loads_ended(recorder) == loads);
	}
	assert_int_equal(cache_stats(recorder).load_errors, loads);
	assert_int_equal(cache_stats(recorder).misses, 0);
	/* A reload that brings a value ends the pause. */
	source->status = TW_OK;
	cache_pass(recorder, OLD / 2);
	assert_holds(recorder, "key", "set");
	WAIT_UNTIL(loads_ended(recorder) == loads + 1);
	assert_holds(recorder, "key", "loaded");
	source->status = TW_SYSTEM;
	cache_pass(recorder, OLD);
	assert_holds(recorder, "key", "loaded");
	WAIT_UNTIL(loads_ended(recorder) == loads + 2);
	cache_pass(recorder, OLD / 16);
	assert_holds(recorder, "key", "loaded");
	WAIT_UNTIL(loads_ended(recorder) == loads + 3);
	/* This is the last moment before its deadline. */
	cache_pass(recorder, LIFE - OLD - OLD / 16 - 1);
	assert_holds(recorder, "key", "loaded");
	cache_pass(recorder, 1);
	assert_holds_none(recorder, "key");
}

TEST(threads, set_and_delete_win_over_a_reload)
{
	for (int deletes = 0; deletes < 2; deletes++) {
		struct source source;
		struct cache_recorder *recorder =
			open_refreshing(*state, &source, (struct tw_cache_options){0});

		cache_set(recorder, "key", "old");
		cache_pass(recorder, OLD);
		source.gated = true;
		assert_holds(recorder, "key", "old");
		gate_await(&source.gate);
		if (deletes)
			assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
		else
			cache_set(recorder, "key", "new");
		gate_open(&source.gate);
		WAIT_UNTIL(loads_ended(recorder) == 1);
		if (deletes)
			assert_holds_none(recorder, "key");
		else
			assert_holds(recorder, "key", "new");
		/* A set value is new, and is reloaded when it is old. */
		source.gated = false;
		if (!deletes) {
			cache_pass(recorder, OLD - 1);
			assert_holds(recorder, "key", "new");
			cache_pass(recorder, 1);
			assert_holds(recorder, "key", "new");
			WAIT_UNTIL(loads_ended(recorder) == 2);
			assert_holds(recorder, "key", "loaded");
		}
		cache_recorder_close(recorder);
	}
}

SOURCED(threads, reload_that_waits_is_not_done_for_what_was_set, open_refreshing, .loaders = 1)
{
	cache_set(recorder, "first", "old");
	cache_set(recorder, "key", "old");
	cache_pass(recorder, OLD);
	source->gated = true;
	assert_holds(recorder, "first", "old");
	gate_await(&source->gate);
	assert_holds(recorder, "key", "old");
	cache_set(recorder, "key", "new");
	source->gated = false;
	gate_open(&source->gate);
	WAIT_UNTIL(cache_stats(recorder).loads_waiting == 0);
	WAIT_UNTIL(cache_stats(recorder).loads_running == 0);
	assert_int_equal(source->loads, 1);
	assert_holds(recorder, "key", "new");
}

/* The value has expired while its reload was queued: the load is the take's, and no reload. */
SOURCED(threads, reload_that_a_take_runs_is_its_load, open_refreshing, .loaders = 1,
	.max_refreshing = 1)
{
	struct source own;

	cache_set_for(recorder, "key", "old", OLD + INTERVAL);
	cache_set(recorder, "other", "old");
	cache_pass(recorder, OLD);
	source->gated = true;
	assert_status(tw_cache_take_async(recorder->cache, "first", 5, be_answered, "loaded"),
		      TW_OK);
	gate_await(&source->gate);
	assert_holds(recorder, "key", "old");
	cache_advance(recorder, INTERVAL);
	source_open(&own, "own");
	assert_taken(recorder, "key", &own, "own");
	assert_cache_counts(recorder->cache, .hits = 1, .misses = 2, .loads = 2, .inserts = 3,
			    .entries = 2, .removed = {[TW_CAUSE_EXPIRED] = 1});
	/* There is room for another reload. */
	assert_holds(recorder, "other", "old");
	assert_int_equal(cache_stats(recorder).loads_waiting, 1);
	source->gated = false;
	gate_open(&source->gate);
	WAIT_UNTIL(loads_ended(recorder) == 3);
	assert_int_equal(cache_stats(recorder).refreshes, 1);
}

/* One of two threads reloads; the other runs loads with waiters. */
SOURCED(threads, loads_that_are_waited_for_come_before_reloads, open_refreshing, .loaders = 2)
{
	struct tw_cache_stats stats;

	cache_set_letters(recorder, "abc");
	cache_set_for(recorder, "short", "old", OLD + INTERVAL);
	cache_pass(recorder, OLD);
	source->gated = true;
	assert_holds(recorder, "a", "a");
	gate_await(&source->gate);
	source->gated = false;
	assert_holds(recorder, "b", "b");
	assert_holds(recorder, "short", "old");
	assert_holds(recorder, "c", "c");
	stats = cache_stats(recorder);
	assert_int_equal(stats.loads_running, 1);
	assert_int_equal(stats.loads_waiting, 3);
	assert_status(tw_cache_take_async(recorder->cache, "new", 3, be_answered, "loaded"), TW_OK);
	WAIT_UNTIL(cache_get(recorder, "new") == TW_OK);
	/* A reload with waiters is one of these. */
	cache_advance(recorder, INTERVAL);
	assert_holds_none(recorder, "short");
	assert_status(tw_cache_take_async(recorder->cache, "short", 5, be_answered, "loaded"),
		      TW_OK);
	WAIT_UNTIL(cache_get(recorder, "short") == TW_OK);
	assert_int_equal(source->loads, 3);
	assert_int_equal(cache_stats(recorder).loads_waiting, 2);
	gate_open(&source->gate);
	WAIT_UNTIL(loads_ended(recorder) == 5);
	WAIT_UNTIL(cache_stats(recorder).loads_running == 0);
}

static void note_time(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	static atomic_int now;

	assert_status(status, TW_OK);
	assert_value(entry, "loaded");
	/* One thread calls all of these, in order. */
	atomic_store((atomic_int *)context, atomic_fetch_add(&now, 1) + 1);
}

/* Each waiting take of a key would move it behind the others. */
SOURCED(threads, reload_that_is_waited_for_keeps_its_place, open_refreshing, .loaders = 1)
{
	atomic_int hot = 0;
	atomic_int other = 0;
	atomic_int later = 0;

	cache_set_for(recorder, "hot", "old", OLD + INTERVAL);
	cache_pass(recorder, OLD);
	source->gated = true;
	assert_status(tw_cache_take_async(recorder->cache, "first", 5, be_answered, "loaded"),
		      TW_OK);
	gate_await(&source->gate);
	source->gated = false;
	assert_holds(recorder, "hot", "old");
	cache_advance(recorder, INTERVAL);
	assert_status(tw_cache_take_async(recorder->cache, "hot", 3, note_time, &hot), TW_OK);
	assert_status(tw_cache_take_async(recorder->cache, "other", 5, note_time, &other), TW_OK);
	assert_status(tw_cache_take_async(recorder->cache, "hot", 3, note_time, &later), TW_OK);
	gate_open(&source->gate);
	WAIT_UNTIL(atomic_load(&hot) && atomic_load(&other) && atomic_load(&later));
	assert_true(hot < other && later < other);
}

SOURCED(threads, no_more_reloads_run_than_allowed, open_refreshing, .loaders = 4,
	.max_refreshing = 2)
{
	cache_set_letters(recorder, "abc");
	cache_pass(recorder, OLD);
	source->gated = true;
	assert_holds(recorder, "a", "a");
	gate_await(&source->gate);
	assert_holds(recorder, "b", "b");
	gate_await(&source->gate);
	assert_holds(recorder, "c", "c");
	source->gated = false;
	/* Loads with waiters are not counted. */
	assert_status(tw_cache_take_async(recorder->cache, "d", 1, be_answered, "loaded"), TW_OK);
	WAIT_UNTIL(cache_get(recorder, "d") == TW_OK);
	assert_int_equal(source->loads, 3);
	assert_holds(recorder, "c", "c");
	gate_open(&source->gate);
	WAIT_UNTIL(loads_ended(recorder) == 2);
	assert_holds(recorder, "c", "c");
	WAIT_UNTIL(loads_ended(recorder) == 3);
	gate_open(&source->gate);
	WAIT_UNTIL(loads_ended(recorder) == 4);
	assert_int_equal(cache_stats(recorder).refreshes, 3);
	assert_holds(recorder, "a", "loaded");
	assert_holds(recorder, "b", "loaded");
	assert_holds(recorder, "c", "loaded");
}

TEST(threads, value_that_the_source_has_no_more_leaves)
{
	for (int kept = 0; kept < 2; kept++) {
		struct source source;
		struct cache_recorder *recorder = open_refreshing(
			*state, &source,
			(struct tw_cache_options){.negative_expire = kept ? TW_HOUR : 0});

		cache_set(recorder, "key", "old");
		cache_pass(recorder, OLD);
		source.value = NULL;
		source.status = TW_NOT_FOUND;
		assert_holds(recorder, "key", "old");
		WAIT_UNTIL(loads_ended(recorder) == 1);
		assert_holds_none(recorder, "key");
		cache_settle(recorder);
		assert_removed(recorder, "old", kept ? TW_CAUSE_REPLACED : TW_CAUSE_EXPLICIT);
		assert_int_equal(cache_stats(recorder).entries, kept);
		cache_recorder_close(recorder);
	}
}

SOURCED(threads, take_of_what_expires_meanwhile_waits_for_the_reload, open_refreshing)
{
	struct taker taker;
	struct source never;

	cache_set(recorder, "key", "old");
	cache_pass(recorder, LIFE - 1);
	source->gated = true;
	assert_holds(recorder, "key", "old");
	gate_await(&source->gate);
	cache_advance(recorder, 1);
	source_open(&never, "never");
	taker_start(&taker, recorder, "key", &never, TW_FOREVER);
	WAIT_UNTIL(cache_stats(recorder).load_waits == 1);
	gate_open(&source->gate);
	assert_taker_ends(&taker, TW_OK, "loaded");
	assert_holds(recorder, "key", "loaded");
	assert_int_equal(never.loads, 0);
}

static uint64_t weigh_one(void *context, const void *key, size_t key_size, const void *value,
			  size_t value_size)
{
	return 1;
}

static void count_freed(void *value, size_t size, void *context)
{
	++*(int *)context;
}

/* This entry has every optional field before its key. */
TEST(threads, adopted_weighed_and_sliding_value_is_reloaded)
{
	struct source source;
	struct cache_recorder *recorder = open_refreshing(
		*state, &source,
		(struct tw_cache_options){.weigh = weigh_one, .max_bytes = 10, .idle = LIFE});
	static char adopted[] = "adopted";
	int freed = 0;

	assert_status(
		put_adopted(recorder->cache, "key", 3, adopted, 7, 5, count_freed, &freed, LIFE),
		TW_OK);
	assert_int_equal(cache_stats(recorder).bytes, 5);
	cache_pass(recorder, OLD);
	assert_holds(recorder, "key", "adopted");
	WAIT_UNTIL(loads_ended(recorder) == 1);
	assert_holds(recorder, "key", "loaded");
	assert_int_equal(cache_stats(recorder).bytes, 1);
	cache_settle(recorder);
	assert_int_equal(freed, 1);
	cache_recorder_close(recorder);
}

TEST(threads, keys_set_together_are_not_reloaded_together)
{
	enum { COUNT = 100 };
	struct source source;
	struct cache_recorder *recorder = open_refreshing(
		*state, &source,
		(struct tw_cache_options){.jitter = 0.5, .max_refreshing = COUNT, .loaders = 1});
	for (int i = 0; i < COUNT; i++)
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "v", 1), TW_OK);
	cache_pass(recorder, OLD / 2 - 1);
	for (int i = 0; i < COUNT; i++)
		assert_status(tw_cache_get(recorder->cache, &i, sizeof(i), NULL, 0, NULL),
			      TW_TRUNCATED);
	assert_int_equal(source.loads, 0);
	cache_pass(recorder, OLD / 2 + 1);
	for (int i = 0; i < COUNT; i++)
		assert_status(tw_cache_get(recorder->cache, &i, sizeof(i), NULL, 0, NULL),
			      TW_TRUNCATED);
	WAIT_UNTIL(cache_stats(recorder).loads_waiting + cache_stats(recorder).loads_running == 0);
	/* About half is likely; fewer or more than these are far out. */
	assert_in_range(source.loads, COUNT / 5, COUNT - COUNT / 5);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, refreshing_may_be_as_far_off_as_the_clocks_end)
{
	static const tw_duration after[] = {TW_FOREVER / 4, TW_FOREVER - 1, TW_FOREVER};

	for (int i = 0; i < 3; i++) {
		struct source source;
		struct cache_recorder *recorder = open_refreshing(
			*state, &source,
			(struct tw_cache_options){.jitter = 0.5, .refresh_after = after[i]});

		cache_set_for(recorder, "key", "old", TW_FOREVER);
		cache_pass(recorder, TW_FOREVER / 16);
		assert_holds(recorder, "key", "old");
		tw_cache_destroy(recorder->cache);
		recorder->cache = NULL;
		assert_int_equal(source.loads, 0);
		cache_recorder_close(recorder);
	}
}

SOURCED(threads, stop_and_destroy_end_reloads, open_refreshing, .loaders = 1)
{
	cache_set_letters(recorder, "ab");
	cache_pass(recorder, OLD);
	source->gated = true;
	assert_holds(recorder, "a", "a");
	gate_await(&source->gate);
	assert_holds(recorder, "b", "b");
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	gate_open(&source->gate);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_int_equal(source->loads, 1);
	assert_removed(recorder, "a", TW_CAUSE_SHUTDOWN);
}

/* ---- Several threads ---- */

enum { READERS = 2, STEPS = TEST_SHARE_OF(4000), VERSIONED = 4 };

/* The source has this version of the key that is the number. */
struct versions {
	atomic_uint now[VERSIONED];
	atomic_uint loads;
	atomic_bool is_over;
	struct tw_cache *cache;
	atomic_uint wrong;
};

static enum tw_status load_version(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	struct versions *versions = argument;
	unsigned version = atomic_load(&versions->now[*(const unsigned *)key]);

	/* Now and then the source has no version. */
	if (atomic_fetch_add(&versions->loads, 1) % 8 == 7)
		return TW_SYSTEM;
	return give_copied(loading, &version, sizeof(version), 0);
}

/* Checks that a key that is there is found each time, with rising versions. */
static void *reader_run(void *argument)
{
	struct versions *versions = argument;
	unsigned seen[VERSIONED] = {0};

	for (unsigned i = 0; !atomic_load(&versions->is_over); i++) {
		unsigned key = i % VERSIONED;
		unsigned version = 0;
		enum tw_status status = tw_cache_get(versions->cache, &key, sizeof(key), &version,
						     sizeof(version), NULL);

		if (status != TW_OK || version < seen[key])
			atomic_fetch_add(&versions->wrong, 1);
		seen[key] = version;
	}
	return NULL;
}

TEST(threads, no_reload_brings_back_what_was_there_before)
{
	struct versions versions = {.loads = 0};
	struct cache_recorder *recorder =
		cache_recorder_open_quiet(*state, TW_FOREVER,
					  (struct tw_cache_options){.load = load_version,
								    .load_context = &versions,
								    .refresh_after = INTERVAL,
								    .shards = 2});
	pthread_t readers[READERS];

	versions.cache = recorder->cache;
	for (unsigned key = 0; key < VERSIONED; key++)
		assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), &key, sizeof(key)),
			      TW_OK);
	for (unsigned key = 0; key < VERSIONED; key++)
		atomic_store(&versions.now[key], key);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, reader_run, &versions), 0);
	/* This also goes on until the readers have caused some reloads. */
	for (unsigned step = 0; step < STEPS || atomic_load(&versions.loads) <= 20; step++) {
		unsigned key = step % VERSIONED;
		unsigned version = atomic_fetch_add(&versions.now[key], 1) + 1;

		if (step % 3 != 0)
			assert_status(tw_cache_set(recorder->cache, &key, sizeof(key), &version,
						   sizeof(version)),
				      TW_OK);
		assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	}
	atomic_store(&versions.is_over, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	assert_int_equal(versions.wrong, 0);
	assert_int_equal(cache_stats(recorder).misses, 0);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	cache_recorder_close(recorder);
}
