/* SPDX-License-Identifier: MIT */
/*
 * A load keeps nothing if the key was set, deleted or cleared meanwhile; absences have their own
 * lifetime; adopted values stay until their last reader is gone; and a destroy ends loads.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
#include "support/cache_source.h"
#include "support/stats.h"

#define SAY(...)                                                                            \
	cache_script_run(*state, TW_HOUR, (struct tw_cache_options){0}, __FILE__, __LINE__, \
			 __VA_ARGS__)

/* Waiters get the loaded value; the key keeps its new value, or none. */
TEST(inline_and_threads, key_changed_during_its_load_does_not_keep_what_was_loaded)
{
	static const char *const cases[][3] = {
		{"set key set", "set", "set"},
		{"add key set 1h", "set", "set"},
		{"adopt key set 1h", "set", "set"},
		{"delete key = NOT_FOUND", "NOT_FOUND", "loaded"},
		{"set key set; delete key", "NOT_FOUND", "loaded"},
		{"clear", "NOT_FOUND", "loaded"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		SAY("source loaded gated; begin a take key; reached; begin 20 b take key;"
		    "await load_waits 20; %s; go; ended a = loaded; ended b = loaded; get key = %s;"
		    "loads = 1; source loaded; take key = %s; settle",
		    cases[i][0], cases[i][1], cases[i][2]);
}

/* Waiters from before the change get the old value, later ones the new one at once, while the old
 * load runs on. */
TEST(inline_and_threads, take_after_a_change_loads_beside_the_load_from_before_it)
{
	static const char *const cases[][3] = {
		{"old", "delete key = NOT_FOUND", "old"},
		{"old", "clear", "old"},
		{"old", "set key set; delete key", "old"},
		{"- NOT_FOUND", "delete key = NOT_FOUND", "NOT_FOUND"},
		{"- TIMED_OUT", "delete key = NOT_FOUND", "TIMED_OUT"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		SAY("source %s gated; begin a take key; reached; begin 20 b take key;"
		    "await load_waits 20; %s; other new gated; begin c take key other;"
		    "reached other; begin 20 d take key other; await load_waits 40; go other;"
		    "ended c = new; ended d = new; get key = new; go; ended a = %s; ended b = %s;"
		    "get key = new; loads = 1; loads other = 1; misses = 42; hits = 2;"
		    "load_waits = 40; wait_timeouts = 0",
		    cases[i][0], cases[i][1], cases[i][2], cases[i][2]);
}

CACHE_SCRIPT(inline_and_threads, calls_that_change_nothing_let_the_load_be_kept, TW_HOUR,
	     "source loaded gated; begin a take key; reached; replace key x 1h = NOT_FOUND;"
	     "touch key 1h = NOT_FOUND; set key x 0 = INVALID; set beside value; go;"
	     "ended a = loaded; get key = loaded")

/* An error must not change a value that was set meanwhile either. */
#define FAILS(status)                                                                            \
	"source " status " gated; begin a take key; reached; set key set; go; ended a = " status \
	"; get key = set"
CACHE_SCRIPT(inline_and_threads, failed_load_leaves_what_was_set_meanwhile, TW_HOUR,
	     FAILS("SYSTEM"), .negative_expire = TW_MINUTE)
CACHE_SCRIPT(inline_and_threads, absence_leaves_what_was_set_meanwhile, TW_HOUR, FAILS("NOT_FOUND"),
	     .negative_expire = TW_MINUTE)

CACHE_SCRIPT(inline_and_threads, value_too_heavy_is_given_and_not_kept, TW_HOUR,
	     "source 'heavier than the limit in bytes'; take key = heavier than the limit in bytes;"
	     "get key = NOT_FOUND; source light; take key = light; get key = light",
	     .max_bytes = 120)

CACHE_SCRIPT(
	inline_and_threads, absence_is_kept_for_its_own_time, TW_HOUR,
	"source NOT_FOUND; take key = NOT_FOUND; pass 10-1ns; take key = NOT_FOUND;"
	"get key = NOT_FOUND; loads = 1;"
	"counts = misses 1 absent 2 loads_begun 1 load_errors 1 inserts 1 entries 1; pass 1ns;"
	"take key = NOT_FOUND; loads = 2; pass 12; entries = 0; removed expired = 2; settle ->",
	.negative_expire = 10 * INTERVAL)

CACHE_SCRIPT(inline_and_threads, absence_gives_way_to_a_value, TW_HOUR,
	     "source NOT_FOUND; take set = NOT_FOUND; set set value; get set = value;"
	     "take added = NOT_FOUND; replace added v 1h = NOT_FOUND; touch added 1h = NOT_FOUND;"
	     "add added v 1h; get added = v; take deleted = NOT_FOUND; delete deleted = NOT_FOUND;"
	     "source found; take deleted = found; settle ->",
	     .negative_expire = 10 * INTERVAL)

CACHE_SCRIPT(inline_and_threads, absence_is_nobodys_value, TW_HOUR,
	     "source NOT_FOUND; take key = NOT_FOUND; each = none; clear; settle ->;"
	     "removed explicit = 1",
	     .negative_expire = 10 * INTERVAL)

CACHE_SCRIPT(inline_and_threads, absence_is_not_kept_unless_asked_for, TW_HOUR,
	     "source ignored NOT_FOUND; take key = NOT_FOUND; take key = NOT_FOUND; loads = 2;"
	     "entries = 0; inserts = 0")

CACHE_SCRIPT(inline_and_threads, destroy_ends_the_waits_for_a_load_whose_key_was_deleted, TW_HOUR,
	     "source old gated; begin a take key; reached; begin 20 b take key;"
	     "await load_waits 20; delete key = NOT_FOUND; begin d destroy; ended b = CLOSED; go;"
	     "ended a = old; ended d")

/* This loader adopts; its values count how often they are freed. */
struct adopting {
	int freed[2];
	int given; /* values */
	enum tw_status status;
};

static void count_free(void *value, size_t value_size, void *context)
{
	if (value_size != sizeof(int) || context != value)
		abort();
	++*(int *)value;
}

static enum tw_status load_adopted(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	struct adopting *adopting = argument;

	for (int i = 0; i < adopting->given; i++)
		if (give_adopted(loading, &adopting->freed[i], sizeof(int), 100, count_free,
				 &adopting->freed[i], 0) != TW_OK)
			return TW_NO_MEMORY;
	return adopting->status;
}

TEST(inline_and_threads, adopted_load_is_freed_after_its_last_reader)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct adopting adopting = {.given = 2};
	const struct tw_cache_entry *entry;

	assert_status(tw_cache_take(recorder->cache, "key", 3, load_adopted, &adopting, 0, &entry),
		      TW_OK);
	assert_ptr_equal(tw_cache_entry_value(entry, NULL), &adopting.freed[1]);
	assert_int_equal(adopting.freed[0], 1);
	assert_int_equal(cache_stats(recorder).bytes, 100);
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	cache_settle(recorder);
	assert_int_equal(adopting.freed[1], 0);
	tw_cache_entry_release(entry);
	cache_settle(recorder);
	assert_int_equal(adopting.freed[0], 1);
	assert_int_equal(adopting.freed[1], 1);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, value_of_a_failed_load_is_freed)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct adopting adopting = {.given = 1, .status = TW_SYSTEM};
	const struct tw_cache_entry *entry;

	assert_status(tw_cache_take(recorder->cache, "key", 3, load_adopted, &adopting, 0, &entry),
		      TW_SYSTEM);
	assert_null(entry);
	assert_int_equal(adopting.freed[0], 1);
	cache_recorder_close(recorder);
}

static enum tw_status load_described(void *value, const void *key, size_t key_size,
				     struct tw_cache_loading *loading)
{
	return tw_cache_load_give(loading, value);
}

CACHED(inline_and_threads, loaded_value_has_its_own_deadline_and_weight, TW_HOUR, .jitter = 0.5)
{
	tw_duration now = tw_now(recorder->wheel);
	struct tw_cache_value value = {
		.data = "v", .size = 1, .deadline = now + 10 * INTERVAL, .weight = 77};
	const struct tw_cache_entry *entry;

	assert_status(tw_cache_take(recorder->cache, "key", 3, load_described, &value, 0, &entry),
		      TW_OK);
	assert_int_equal(tw_cache_entry_deadline(entry), value.deadline);
	tw_cache_entry_release(entry);
	assert_int_equal(cache_stats(recorder).bytes, 77);
	assert_lives_for(recorder, "key", "v", 10 * INTERVAL);
	/* It is past by now: the take gets it, and nothing else does. */
	assert_status(tw_cache_take(recorder->cache, "late", 4, load_described, &value, 0, &entry),
		      TW_OK);
	tw_cache_entry_release(entry);
	assert_holds_none(recorder, "late");
	value.expire = 1; /* only one of the two may be given */
	assert_status(tw_cache_take(recorder->cache, "bad", 3, load_described, &value, 0, &entry),
		      TW_INVALID);
}

/* A take has the value of its own load. */
CACHE_SCRIPT(
	inline_and_threads, destroy_wakes_waiters_and_waits_for_the_load, TW_HOUR,
	"source loaded gated; begin a take key; reached; begin 20 b take key;"
	"await load_waits 20; begin d destroy; ended b = CLOSED; go; ended a = loaded; ended d")

/* The value's shard may have no other entry to evict. */
CACHED(inline_and_threads, loads_keep_the_limit_of_all_shards, TW_HOUR, .max_entries = 4,
       .shards = 8)
{
	struct source source;

	source_open(&source, "value");
	for (int i = 0; i < 100; i++) {
		char key[2] = {(char)('0' + i / 10), (char)('0' + i % 10)};
		const struct tw_cache_entry *entry;

		assert_status(
			tw_cache_take(recorder->cache, key, 2, source_load, &source, 0, &entry),
			TW_OK);
		tw_cache_entry_release(entry);
		assert_in_range(cache_stats(recorder).entries, 1, 4);
	}
}
