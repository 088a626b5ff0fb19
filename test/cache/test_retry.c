/* SPDX-License-Identifier: MIT */
/* Keys pause after failed loads, each time longer: the source is called once a pause. */
#include "support/test.h"

#include "support/cache_script.h"
#include "support/cache_source.h"

#include "cache/cache.h"

enum { LIFE = 100 * INTERVAL, PAUSE = 10 * INTERVAL, STALE = 10000 * INTERVAL, FAILURE = 1234 };

#define PAUSING(kind, name, text, ...)                                                   \
	CACHE_SCRIPT(kind, name, LIFE, "source 1234;" text, LOADS, .retry_after = PAUSE, \
		     .shards = 1, __VA_ARGS__)

/* Takes of both kinds end so, and that many loads have called the source. */
#define FAILS "take key = 1234; async a key; answered a = 1234; loads = "
#define GIVES_OLD "take key = STALE old; async a key; answered a = STALE old; loads = "

/* The pause doubles with each failure, up to the lifetime. After a success it is the shortest. */
PAUSING(inline_and_threads, dead_source_is_asked_once_a_pause,
	FAILS "1; pass 9;" FAILS "1; pass 1;" FAILS "2; pass 19;" FAILS "2; pass 1;" FAILS
	      "3; pass 39;" FAILS "3; pass 1;" FAILS "4; pass 79;" FAILS "4; pass 1;" FAILS
	      "5; pass 99;" FAILS "5; pass 1;" FAILS "6; pass 99;" FAILS "6; pass 1;"
	      "get key = NOT_FOUND; counts = misses 25 loads_begun 6 load_errors 6; source new;"
	      "take key = new; settle ->; delete key; source 1234;" FAILS "8; pass 10;" FAILS "9")

PAUSING(inline_and_threads, old_value_is_given_during_a_pause,
	"set key old; pass 100;" GIVES_OLD "1; pass 9;" GIVES_OLD "1; pass 1;" GIVES_OLD
	"2; pass 19;" GIVES_OLD "2; pass 1;" GIVES_OLD "3; pass 39;" GIVES_OLD
	"3; pass 1;" GIVES_OLD "4; pass 79;" GIVES_OLD "4; pass 1;" GIVES_OLD
	"5; pass 99;" GIVES_OLD "5; pass 1;" GIVES_OLD "6; pass 99;" GIVES_OLD
	"6; pass 1; stale = 24; misses = 24; source new; take key = new -> old:expired",
	.stale_if_error = STALE)

PAUSING(inline_and_threads, change_of_the_key_ends_its_pause,
	FAILS "1; delete key = NOT_FOUND;" FAILS "2; replace key v 100 = NOT_FOUND;" FAILS
	      "2; add key set 100; take key = set; async a key; answered a = set; loads = 2;"
	      "clear;" FAILS "3")

PAUSING(inline_and_threads, value_that_was_set_during_a_failing_load_does_not_pause,
	"source 1234 gated; begin t take key; reached; set key set; go; ended t = 1234;"
	"source 1234; get key = set; pass 100; take key = STALE set; async a key;"
	"answered a = STALE set; loads = 2",
	.stale_if_error = STALE)

PAUSING(threads, reload_pauses_as_long,
	"set key old; pass 25; get key = old; await loads_ended 1; pass 9; get key = old;"
	"loads_waiting = 0; loads_running = 0; loads = 1; pass 1; get key = old;"
	"await loads_ended 2; pass 19; get key = old; loads = 2",
	.refresh_after = LIFE / 4)

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

SOURCED(inline_and_threads, failure_is_forgotten_after_a_while, open_pausing)
{
	for (int i = 0; i < 3; i++) {
		assert_not_taken(recorder, "key", source, (enum tw_status)FAILURE);
		cache_pass(recorder, PAUSE << i);
	}
	cache_pass(recorder, 4 * PAUSE);
	assert_int_equal(recorder->cache->shards[0].flights.pauses, 0);
	assert_not_taken(recorder, "key", source, (enum tw_status)FAILURE);
	cache_pass(recorder, PAUSE);
	assert_not_taken(recorder, "key", source, (enum tw_status)FAILURE);
	assert_int_equal(source->loads, 5);
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
