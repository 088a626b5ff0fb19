/* SPDX-License-Identifier: MIT */
/*
 * Values are refreshed before they expire: each lookup gets the old one at once, and one load
 * brings the new one, or keeps the old one.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
#include "support/cache_source.h"

enum { OLD = 160 * INTERVAL, LIFE = 1000 * INTERVAL };

#define REFRESHING(name, text, ...) \
	CACHE_SCRIPT(threads, name, LIFE, text, LOADS, .refresh_after = OLD, __VA_ARGS__)

/* There is one reload for all lookups meanwhile, and the value is new after that. */
#define RELOADED(name, look)                                                                     \
	REFRESHING(name,                                                                         \
		   "set key set; pass 160-1ns;" look " = set; hits = 1; pass 1ns;"               \
		   "source loaded gated;" look " = set; reached; get key = set; over key = set;" \
		   "many key = set; acquire key = set; take key own = set; async b key;"         \
		   "answered b = set; go; await loads_ended 1;" look " = loaded; loads = 1;"     \
		   "refreshes = 1; misses = 0; settle -> set:replaced; source loaded;"           \
		   "pass 160-1ns;" look " = loaded; loads = 1; source again; pass 1ns;" look     \
		   " = loaded; await loads_ended 2;" look " = again")
RELOADED(get_gives_the_old_value_and_reloads_it, "get key")
RELOADED(get_over_the_keys_memory_reloads_too, "over key")
RELOADED(get_of_many_reloads_too, "many key")
RELOADED(acquire_reloads_too, "acquire key")
RELOADED(take_reloads_too, "take key own")
RELOADED(take_with_a_callback_reloads_too, "async a key; answered a")

CACHE_SCRIPT(
	inline_and_threads, peeks_load_nothing, LIFE,
	"source loaded; set key set; pass 160; deadline key = 1000; touch key 1000; each = key;"
	"compute key keep = set; settle; destroy; loads = 0",
	LOADS, .refresh_after = OLD)

/* A reload that brings a value ends the pause. The last lookup is at the last moment before the
 * value's deadline. */
#define LOOK "get key = set; "
REFRESHING(failed_reload_leaves_the_old_value_and_is_tried_ever_later,
	   "set key set; source loaded SYSTEM; pass 160;" LOOK "await loads_ended 1;"
	   "pass 10-1ns;" LOOK "pass 1ns; loads = 1;" LOOK "await loads_ended 2;"
	   "pass 20-1ns;" LOOK "pass 1ns; loads = 2;" LOOK "await loads_ended 3;"
	   "pass 40-1ns;" LOOK "pass 1ns; loads = 3;" LOOK "await loads_ended 4;"
	   "pass 80-1ns;" LOOK "pass 1ns; loads = 4;" LOOK "await loads_ended 5;"
	   "pass 80-1ns;" LOOK "pass 1ns; loads = 5;" LOOK "await loads_ended 6;"
	   "pass 80-1ns;" LOOK "pass 1ns; loads = 6;" LOOK "await loads_ended 7;"
	   "load_errors = 7; misses = 0; source loaded; pass 80;" LOOK "await loads_ended 8;"
	   "get key = loaded; source loaded SYSTEM; pass 160; get key = loaded;"
	   "await loads_ended 9; pass 10; get key = loaded; await loads_ended 10; pass 830-1ns;"
	   "get key = loaded; pass 1ns; get key = NOT_FOUND")

REFRESHING(delete_wins_over_a_reload,
	   "set key old; pass 160; source loaded gated; get key = old; reached; delete key; go;"
	   "await loads_ended 1; get key = NOT_FOUND")
/* A set value is new, and is reloaded when it is old. */
REFRESHING(set_wins_over_a_reload,
	   "set key old; pass 160; source loaded gated; get key = old; reached; set key new; go;"
	   "await loads_ended 1; get key = new; source loaded; pass 160-1ns; get key = new;"
	   "pass 1ns; get key = new; await loads_ended 2; get key = loaded")

REFRESHING(reload_that_waits_is_not_done_for_what_was_set,
	   "set first old; set key old; pass 160; source loaded gated; get first = old; reached;"
	   "get key = old; set key new; source loaded; go; await loads_waiting 0;"
	   "await loads_running 0; loads = 1; get key = new",
	   .loaders = 1)

/* The value has expired while its reload was queued: the load is the take's, and no reload. There
 * is room for another reload. */
REFRESHING(reload_that_a_take_runs_is_its_load,
	   "set key old 161; set beside old; pass 160; source loaded gated; async a first; reached;"
	   "get key = old; advance 1; other mine; take key other = mine;"
	   "counts = hits 1 misses 2 loads_begun 2 inserts 3 entries 2; removed expired = 1;"
	   "get beside = old; loads_waiting = 1; source loaded; go; await loads_ended 3;"
	   "answered a = loaded; refreshes = 1",
	   .loaders = 1, .max_refreshing = 1)

/* One of two threads reloads; the other runs loads with waiters. A reload with waiters is one. */
REFRESHING(loads_that_are_waited_for_come_before_reloads,
	   "letters abc; set short old 161; pass 160; source loaded gated; get a = a; reached;"
	   "source loaded; get b = b; get short = old; get c = c; loads_running = 1;"
	   "loads_waiting = 3; async n new; answered n = loaded; get new = loaded; advance 1;"
	   "get short = NOT_FOUND; async s short; answered s = loaded; get short = loaded;"
	   "loads = 3; loads_waiting = 2; go; await loads_ended 5; await loads_running 0",
	   .loaders = 2)

/* Loads with waiters are not counted. */
REFRESHING(no_more_reloads_run_than_allowed,
	   "letters abc; pass 160; source loaded gated; get a = a; reached; get b = b; reached;"
	   "get c = c; source loaded; async d d; answered d = loaded; get d = loaded; loads = 3;"
	   "get c = c; go; await loads_ended 2; get c = c; await loads_ended 3; go;"
	   "await loads_ended 4; refreshes = 3; get a = loaded; get b = loaded; get c = loaded",
	   .loaders = 4, .max_refreshing = 2)

#define LOSES                                                                          \
	"set key old; pass 160; source NOT_FOUND; get key = old; await loads_ended 1;" \
	"get key = NOT_FOUND; settle -> "
REFRESHING(value_that_the_source_has_no_more_leaves, LOSES "old:explicit; entries = 0")
REFRESHING(value_that_the_source_has_no_more_gives_way_to_its_absence,
	   LOSES "old:replaced; entries = 1", .negative_expire = TW_HOUR)

REFRESHING(take_of_what_expires_meanwhile_waits_for_the_reload,
	   "set key old; pass 1000-1ns; source loaded gated; get key = old; reached; advance 1ns;"
	   "begin t take key other; await load_waits 1; go; ended t = loaded; get key = loaded;"
	   "loads other = 0")

#define FAR_OFF "set key old never; pass 576460752303; get key = old; destroy; loads = 0"
CACHE_SCRIPT(inline_and_threads, refreshing_may_be_far_off, LIFE, FAR_OFF, LOADS, .jitter = 0.5,
	     .refresh_after = TW_FOREVER / 4)
CACHE_SCRIPT(inline_and_threads, refreshing_may_be_as_far_off_as_the_clocks_end, LIFE, FAR_OFF,
	     LOADS, .jitter = 0.5, .refresh_after = TW_FOREVER - 1)
CACHE_SCRIPT(inline_and_threads, refreshing_may_be_never, LIFE, FAR_OFF, LOADS, .jitter = 0.5,
	     .refresh_after = TW_FOREVER)

REFRESHING(stop_and_destroy_end_reloads,
	   "letters ab; pass 160; source loaded gated; get a = a; reached; get b = b; stop; go;"
	   "destroy -> a:shutdown b:shutdown; loads = 1",
	   .loaders = 1)

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
	return cache_stats(recorder).loads_ended;
}

static void be_answered(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	assert_status(status, TW_OK);
	assert_value(entry, context);
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
