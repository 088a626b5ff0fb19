/* SPDX-License-Identifier: MIT */
/* These calls have no side effects: acquire without a use, load times, and statistics as text. */
#include "support/test.h"

#include "support/cache_script.h"
#include "support/cache_source.h"
#include "support/stats.h"
#include "support/text.h"

CACHE_SCRIPT(inline_and_threads, acquire_without_a_use_finds_what_may_be_read_and_counts_nothing,
	     10 * INTERVAL,
	     "peek key = NOT_FOUND; set key value; peek key = value; delete key; set key value;"
	     "pass 10; peek key = NOT_FOUND; counts = inserts 2")

CACHE_SCRIPT(inline_and_threads, acquire_without_a_use_keeps_no_entry, TW_HOUR,
	     "letters ab; peek a = a; set c c; peek a = NOT_FOUND; get b = b; set d d;"
	     "get c = NOT_FOUND",
	     .max_entries = 2)

CACHE_SCRIPT(inline_and_threads, acquire_without_a_use_leaves_a_sliding_lifetime_alone, TW_HOUR,
	     "set peeked value; set read value; pass 9; peek peeked = value; get read = value;"
	     "pass 1; peek peeked = NOT_FOUND; get read = value",
	     .idle = 10 * INTERVAL)

CACHE_SCRIPT(inline_and_threads, absence_is_not_peeked_at, TW_HOUR,
	     "source NOT_FOUND; take key = NOT_FOUND; peek key = NOT_FOUND;"
	     "counts = misses 1 loads_begun 1 load_errors 1 inserts 1 entries 1",
	     .negative_expire = TW_HOUR)

CACHED(inline_and_threads, loads_are_timed, TW_HOUR)
{
	struct source source;
	struct taker taker;
	struct tw_cache_stats stats = cache_stats(recorder);
	int64_t began;

	assert_int_equal(stats.loads_ended, 0);
	source_open(&source, "value");
	assert_taken(recorder, "quick", &source, "value");
	source.status = TW_SYSTEM;
	assert_not_taken(recorder, "failed", &source, TW_SYSTEM);
	source.status = TW_OK;
	taker_start_load(&taker, recorder, "slow", &source);
	began = wall_clock();
	WAIT_UNTIL(wall_clock() - began > 5 * TW_MILLISECOND);
	gate_open(&source.gate);
	assert_taker_ends(&taker, TW_OK, "value");
	stats = cache_stats(recorder);
	assert_int_equal(stats.loads_ended, 3);
	assert_true(stats.load_time >= 5 * TW_MILLISECOND);
	assert_true(stats.load_time < 3 * TW_MINUTE);
}

/* A load whose key was deleted meanwhile still counts. */
CACHED(inline_and_threads, loads_that_hang_are_seen, TW_HOUR)
{
	static struct text text;
	struct source source;
	struct taker takers[2];
	struct tw_cache_stats stats = cache_stats(recorder);

	memset(&text, 0, sizeof(text));
	assert_int_equal(stats.loads_running + stats.loads_waiting, 0);
	source_open(&source, "value");
	taker_start_load(&takers[0], recorder, "first", &source);
	taker_start_load(&takers[1], recorder, "second", &source);
	assert_status(tw_cache_delete(recorder->cache, "first", 5), TW_NOT_FOUND);
	stats = cache_stats(recorder);
	assert_int_equal(stats.loads_running, 2);
	assert_int_equal(stats.loads_waiting, 0);
	assert_status(tw_cache_write_metrics(recorder->cache, text_write, &text, NULL), TW_OK);
	assert_true(text_has_line(&text, "tw_cache_loads_running 2"));
	assert_true(text_has_line(&text, "tw_cache_loads_waiting 0"));
	gate_open(&source.gate);
	gate_open(&source.gate);
	assert_taker_ends(&takers[0], TW_OK, "value");
	assert_taker_ends(&takers[1], TW_OK, "value");
	stats = cache_stats(recorder);
	assert_int_equal(stats.loads_running, 0);
}

/* ---- Text ---- */

CACHED(inline_and_threads, statistics_are_written_for_prometheus, TW_HOUR)
{
	static struct text text;
	struct source source;
	double seconds;
	const char *at;

	memset(&text, 0, sizeof(text));
	source_open(&source, "value");
	cache_set_letters(recorder, "ab");
	assert_holds(recorder, "a", "a");
	assert_taken(recorder, "key", &source, "value");
	assert_status(tw_cache_delete(recorder->cache, "b", 1), TW_OK);
	cache_settle(recorder);
	assert_status(tw_cache_write_metrics(recorder->cache, text_write, &text, "shop:users"),
		      TW_OK);
	assert_false(text.is_torn);
	assert_true(text_has_line(&text, "# TYPE shop:users_hits_total counter"));
	assert_true(text_has_line(&text, "shop:users_hits_total 1"));
	assert_true(text_has_line(&text, "shop:users_misses_total 1"));
	assert_true(text_has_line(&text, "shop:users_loads_total 1"));
	assert_true(text_has_line(&text, "shop:users_inserts_total 3"));
	assert_true(text_has_line(&text, "shop:users_removed_total{cause=\"explicit\"} 1"));
	assert_true(text_has_line(&text, "shop:users_removed_total{cause=\"size\"} 0"));
	assert_true(text_has_line(&text, "# TYPE shop:users_entries gauge"));
	assert_true(text_has_line(&text, "shop:users_entries 2"));
	assert_true(text_has_line(&text, "# TYPE shop:users_load_seconds_total counter"));
	assert_true(text_has_line(&text, "shop:users_loads_ended_total 1"));
	at = strstr(text.bytes, "\nshop:users_load_seconds_total ");
	assert_non_null(at);
	seconds = atof(strchr(at, ' '));
	assert_true(seconds > 0 &&
		    seconds * (double)TW_SECOND - (double)cache_stats(recorder).load_time < 1);
	/* Each line is a comment, or a name, a space and a number. */
	for (at = text.bytes; *at; at = strchr(at, '\n') + 1) {
		char *end;

		assert_true(strncmp(at, "# ", 2) == 0 || strncmp(at, "shop:users_", 11) == 0);
		if (*at == '#')
			continue;
		(void)strtod(strchr(at, ' ') + 1, &end);
		assert_int_equal(*end, '\n');
	}
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	assert_status(tw_cache_write_metrics(recorder->cache, text_write, &text, NULL), TW_OK);
	assert_true(text_has_line(&text, "tw_cache_hits_total 1"));
}

CACHED(inline_and_threads, bad_prefixes_are_refused, TW_HOUR)
{
	struct tw_cache *cache = recorder->cache;
	static const char *const bad[] = {"1a", "a b", "a-b", "a\n", "\xc3\xa4"};
	static struct text text;
	char longest[TW_METRICS_PREFIX_MAX + 1];

	memset(&text, 0, sizeof(text));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_status(tw_cache_write_metrics(cache, text_write, &text, bad[i]), TW_INVALID);
	assert_int_equal(text.size, 0);
	memset(longest, 'p', sizeof(longest));
	longest[TW_METRICS_PREFIX_MAX] = '\0';
	assert_status(tw_cache_write_metrics(cache, text_write, &text, longest), TW_OK);
	assert_false(text.is_torn);
	assert_true(text.writes > 1);
}
