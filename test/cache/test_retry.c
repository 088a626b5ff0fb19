/* SPDX-License-Identifier: MIT */
/* Keys pause after failed loads, each time longer: the source is called once a pause. */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/stats.h"

#include "cache/cache.h"

enum { LIFE = 100 * INTERVAL, PAUSE = 10 * INTERVAL, STALE = 10000 * INTERVAL, FAILURE = 1234 };

static struct cache_recorder *open_pausing(void *state, struct source *source,
					   struct tw_cache_options more)
{
	source_open(source, NULL);
	source->status = (enum tw_status)FAILURE;
	more.load = source_load;
	more.load_context = source;
	more.retry_after = PAUSE;
	more.shards = 1;
	return cache_recorder_open_with(state, LIFE, more);
}

struct outcome {
	atomic_bool is_answered;
	enum tw_status status;
	char value[8];
};

static void be_answered(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct outcome *outcome = context;
	size_t size;

	outcome->status = status;
	if (entry)
		memcpy(outcome->value, tw_cache_entry_value(entry, &size), 3);
	atomic_store(&outcome->is_answered, true);
}

/* Checks that takes of all kinds end that way, and that `loads` of them call the source. */
static void assert_all_end(struct cache_recorder *recorder, struct source *source,
			   enum tw_status status, const char *value, int loads)
{
	const struct tw_cache_entry *entry;
	struct outcome outcome = {.status = TW_OK};
	int before = source->loads;

	assert_int_equal(take(recorder, "key", source, TW_FOREVER, &entry), status);
	assert_int_equal(entry != NULL, value != NULL);
	if (entry)
		assert_value(entry, value);
	tw_cache_entry_release(entry);
	assert_status(tw_cache_take_async(recorder->cache, "key", 3, be_answered, &outcome), TW_OK);
	WAIT_UNTIL(atomic_load(&outcome.is_answered));
	assert_int_equal(outcome.status, status);
	assert_string_equal(outcome.value, value ? value : "");
	assert_int_equal(source->loads - before, loads);
}

/* Doubles the pause with each failure, up to the lifetime. */
static tw_duration pause_after(tw_duration pause)
{
	tw_duration longest = LIFE;

	return 2 * pause < longest ? 2 * pause : longest;
}

SOURCED(inline_and_threads, dead_source_is_asked_once_a_pause, open_pausing)
{
	tw_duration pause = PAUSE;

	for (int i = 0; i < 6; i++) {
		assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
		assert_holds_none(recorder, "key");
		cache_pass(recorder, pause - INTERVAL);
		assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 0);
		cache_pass(recorder, INTERVAL);
		pause = pause_after(pause);
	}
	/* Each try counts two takes and a lookup as misses. */
	assert_cache_counts(recorder->cache, .misses = 6 * 5, .loads = 6, .load_errors = 6);
	source->value = "new";
	source->status = TW_OK;
	assert_taken(recorder, "key", source, "new");
	cache_settle(recorder);
	assert_int_equal(removal_count(recorder), 0);
	/* After a success the first pause is the shortest again. */
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	source->value = NULL;
	source->status = (enum tw_status)FAILURE;
	assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
	cache_pass(recorder, PAUSE);
	assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
}

SOURCED(inline_and_threads, failure_is_forgotten_after_a_while, open_pausing)
{
	for (int i = 0; i < 3; i++) {
		assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
		cache_pass(recorder, PAUSE << i);
	}
	cache_pass(recorder, 4 * PAUSE);
	assert_int_equal(recorder->cache->shards[0].flights.pauses, 0);
	assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
	cache_pass(recorder, PAUSE);
	assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
}

SOURCED(inline_and_threads, only_the_latest_pauses_are_remembered, open_pausing)
{
	enum { MOST = FLIGHTS_PAUSED };

	for (int key = 0; key < MOST + 2; key++) {
		const struct tw_cache_entry *entry;

		assert_int_equal(
			tw_cache_take(recorder->cache, &key, sizeof(key), NULL, NULL, 0, &entry),
			FAILURE);
	}
	assert_int_equal(recorder->cache->shards[0].flights.pauses, MOST);
	/* The two oldest keys are loaded again, the third is not. */
	for (int key = 2; key >= 0; key--) {
		const struct tw_cache_entry *entry;

		assert_int_equal(
			tw_cache_take(recorder->cache, &key, sizeof(key), NULL, NULL, 0, &entry),
			FAILURE);
	}
	assert_int_equal(source->loads, MOST + 4);
	assert_int_equal(cache_stats(recorder).entries, 0);
	cache_pass(recorder, 4 * PAUSE);
	assert_int_equal(recorder->cache->shards[0].flights.pauses, 0);
}

SOURCED(inline_and_threads, old_value_is_given_during_a_pause, open_pausing,
	.stale_if_error = STALE)
{
	tw_duration pause = PAUSE;

	cache_set(recorder, "key", "old");
	cache_pass(recorder, LIFE);
	for (int i = 0; i < 6; i++) {
		assert_all_end(recorder, source, TW_STALE, "old", 1);
		cache_pass(recorder, pause - INTERVAL);
		assert_all_end(recorder, source, TW_STALE, "old", 0);
		cache_pass(recorder, INTERVAL);
		pause = pause_after(pause);
	}
	assert_int_equal(cache_stats(recorder).stale, 6 * 4);
	assert_int_equal(cache_stats(recorder).misses, 6 * 4);
	source->value = "new";
	source->status = TW_OK;
	assert_taken(recorder, "key", source, "new");
	cache_settle(recorder);
	assert_removed(recorder, "old", TW_CAUSE_EXPIRED);
}

SOURCED(inline_and_threads, change_of_the_key_ends_its_pause, open_pausing)
{
	assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_NOT_FOUND);
	assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
	assert_status(put_replaced(recorder->cache, "key", 3, "v", 1, LIFE), TW_NOT_FOUND);
	assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 0);
	assert_status(put_added(recorder->cache, "key", 3, "set", 3, LIFE), TW_OK);
	assert_all_end(recorder, source, TW_OK, "set", 0);
	assert_status(tw_cache_clear(recorder->cache), TW_OK);
	assert_all_end(recorder, source, (enum tw_status)FAILURE, NULL, 1);
}

SOURCED(inline_and_threads, value_that_was_set_during_a_failing_load_does_not_pause, open_pausing,
	.stale_if_error = STALE)
{
	struct taker taker;

	taker_start_load(&taker, recorder, "key", source);
	cache_set(recorder, "key", "set");
	gate_open(&source->gate);
	pthread_join(taker.thread, NULL);
	source->gated = false;
	assert_int_equal(taker.status, FAILURE);
	assert_holds(recorder, "key", "set");
	cache_pass(recorder, LIFE);
	assert_all_end(recorder, source, TW_STALE, "set", 1);
}

SOURCED(threads, reload_pauses_as_long, open_pausing, .refresh_after = LIFE / 4)
{
	cache_set(recorder, "key", "old");
	cache_pass(recorder, LIFE / 4);
	assert_holds(recorder, "key", "old");
	WAIT_UNTIL(cache_stats(recorder).load_time.count == 1);
	cache_pass(recorder, PAUSE - INTERVAL);
	assert_holds(recorder, "key", "old");
	assert_int_equal(cache_stats(recorder).loads_waiting + cache_stats(recorder).loads_running,
			 0);
	assert_int_equal(source->loads, 1);
	cache_pass(recorder, INTERVAL);
	assert_holds(recorder, "key", "old");
	WAIT_UNTIL(cache_stats(recorder).load_time.count == 2);
	cache_pass(recorder, 2 * PAUSE - INTERVAL);
	assert_holds(recorder, "key", "old");
	assert_int_equal(source->loads, 2);
}
