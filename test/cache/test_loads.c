/* SPDX-License-Identifier: MIT */
/*
 * A load keeps nothing if the key was set, deleted or cleared meanwhile; absences have their own
 * lifetime; adopted values stay until their last reader is gone; and a destroy ends loads.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/stats.h"

typedef void change_fn(struct cache_recorder *recorder);

static void change_set(struct cache_recorder *recorder)
{
	cache_set(recorder, "key", "set");
}

static void change_add(struct cache_recorder *recorder)
{
	assert_status(put_added(recorder->cache, "key", 3, "set", 3, TW_HOUR), TW_OK);
}

static void change_adopt(struct cache_recorder *recorder)
{
	static char value[] = "set";

	assert_status(put_adopted(recorder->cache, "key", 3, value, 3, 0, NULL, NULL, TW_HOUR),
		      TW_OK);
}

static void change_delete(struct cache_recorder *recorder)
{
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_NOT_FOUND);
}

static void change_set_and_delete(struct cache_recorder *recorder)
{
	cache_set(recorder, "key", "set");
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
}

static void change_clear(struct cache_recorder *recorder)
{
	assert_status(tw_cache_clear(recorder->cache), TW_OK);
}

/* Waiters get the loaded value; the key keeps its new value, or none. */
static void live_through_change(const struct variant *variant, change_fn *change, const char *left)
{
	struct cache_recorder *recorder = cache_recorder_open(variant, TW_HOUR);
	struct load load;

	source_open(&load.source, "loaded");
	load_start(&load, recorder, "key");
	change(recorder);
	assert_load_ends(&load, TW_OK, "loaded");
	if (left != NULL)
		assert_holds(recorder, "key", left);
	else
		assert_holds_none(recorder, "key");
	assert_int_equal(load.source.loads, 1);
	load.source.gated = false;
	assert_taken(recorder, "key", &load.source, left != NULL ? left : "loaded");
	cache_settle(recorder);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, key_changed_during_its_load_does_not_keep_what_was_loaded)
{
	live_through_change(*state, change_set, "set");
	live_through_change(*state, change_add, "set");
	live_through_change(*state, change_adopt, "set");
	live_through_change(*state, change_delete, NULL);
	live_through_change(*state, change_set_and_delete, NULL);
	live_through_change(*state, change_clear, NULL);
}

/* Waiters from before the change get the old value, later ones the new one at once, while the old
 * load runs on. */
static void load_beside_change(const struct variant *variant, enum tw_status old_status,
			       change_fn *change)
{
	struct cache_recorder *recorder = cache_recorder_open(variant, TW_HOUR);
	const char *old_value = old_status == TW_OK ? "old" : NULL;
	struct taker first;
	struct taker second;
	struct taker before[TAKERS];
	struct taker after[TAKERS];
	struct source old;
	struct source new;

	source_open(&old, old_value);
	source_open(&new, "new");
	old.status = old_status;
	taker_start_load(&first, recorder, "key", &old);
	start_waiters(before, recorder, "key", &old);
	change(recorder);
	taker_start_load(&second, recorder, "key", &new);
	start_waiters(after, recorder, "key", &new);
	gate_open(&new.gate);
	assert_taker_ends(&second, TW_OK, "new");
	assert_takers_end(after, TW_OK, "new");
	assert_holds(recorder, "key", "new");
	gate_open(&old.gate);
	assert_taker_ends(&first, old_status, old_value);
	assert_takers_end(before, old_status, old_value);
	assert_holds(recorder, "key", "new");
	assert_int_equal(old.loads, 1);
	assert_int_equal(new.loads, 1);
	assert_int_equal(cache_stats(recorder).misses, 2 * TAKERS + 2);
	assert_int_equal(cache_stats(recorder).hits, 2);
	assert_int_equal(cache_stats(recorder).load_waits, 2 * TAKERS);
	assert_int_equal(cache_stats(recorder).wait_timeouts, 0);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, take_after_a_change_loads_beside_the_load_from_before_it)
{
	load_beside_change(*state, TW_OK, change_delete);
	load_beside_change(*state, TW_OK, change_clear);
	load_beside_change(*state, TW_OK, change_set_and_delete);
	load_beside_change(*state, TW_NOT_FOUND, change_delete);
	load_beside_change(*state, TW_TIMED_OUT, change_delete);
}

CACHED(inline_and_threads, calls_that_change_nothing_let_the_load_be_kept, TW_HOUR)
{
	struct taker taker;
	struct source source;

	source_open(&source, "loaded");
	taker_start_load(&taker, recorder, "key", &source);
	assert_status(put_replaced(recorder->cache, "key", 3, "x", 1, TW_HOUR), TW_NOT_FOUND);
	assert_status(touch_key(recorder->cache, "key", 3, TW_HOUR), TW_NOT_FOUND);
	assert_status(tw_cache_set_with_expire(recorder->cache, "key", 3, "x", 1, 0), TW_INVALID);
	cache_set(recorder, "other", "value");
	gate_open(&source.gate);
	assert_taker_ends(&taker, TW_OK, "loaded");
	assert_holds(recorder, "key", "loaded");
}

/* An error must not change a value that was set meanwhile either. */
TEST(inline_and_threads, failed_load_leaves_what_was_set_meanwhile)
{
	static const enum tw_status answers[] = {TW_SYSTEM, TW_NOT_FOUND};

	for (int i = 0; i < 2; i++) {
		struct cache_recorder *recorder = cache_recorder_open_with(
			*state, TW_HOUR, (struct tw_cache_options){.negative_expire = TW_MINUTE});
		struct taker taker;
		struct source source;

		source_open(&source, NULL);
		source.status = answers[i];
		taker_start_load(&taker, recorder, "key", &source);
		cache_set(recorder, "key", "set");
		gate_open(&source.gate);
		assert_taker_ends(&taker, answers[i], NULL);
		assert_holds(recorder, "key", "set");
		cache_recorder_close(recorder);
	}
}

CACHED(inline_and_threads, value_too_heavy_is_given_and_not_kept, TW_HOUR, .max_bytes = 120)
{
	struct source source;

	source_open(&source, "heavier than the limit in bytes");
	assert_taken(recorder, "key", &source, "heavier than the limit in bytes");
	assert_holds_none(recorder, "key");
	source.value = "light";
	assert_taken(recorder, "key", &source, "light");
	assert_holds(recorder, "key", "light");
	assert_int_equal(cache_stats(recorder).bytes, cache_weight(3, 5));
}

static struct cache_recorder *open_negative(void *state, struct source *source,
					    struct tw_cache_options more)
{
	more.negative_expire = 10 * INTERVAL;
	source_open(source, NULL);
	source->status = TW_NOT_FOUND;
	return cache_recorder_open_with(state, TW_HOUR, more);
}

SOURCED(inline_and_threads, absence_is_kept_for_its_own_time, open_negative)
{
	assert_not_taken(recorder, "key", source, TW_NOT_FOUND);
	cache_pass(recorder, 10 * INTERVAL - 1);
	assert_not_taken(recorder, "key", source, TW_NOT_FOUND);
	assert_holds_none(recorder, "key");
	assert_int_equal(source->loads, 1);
	assert_cache_counts(recorder->cache, .misses = 1, .absent = 2, .loads = 1, .load_errors = 1,
			    .inserts = 1, .entries = 1);
	cache_pass(recorder, 1);
	assert_not_taken(recorder, "key", source, TW_NOT_FOUND);
	assert_int_equal(source->loads, 2);
	cache_pass(recorder, 12 * INTERVAL);
	assert_int_equal(cache_stats(recorder).entries, 0);
	assert_int_equal(cache_stats(recorder).removed[TW_CAUSE_EXPIRED], 2);
	assert_int_equal(removal_count(recorder), 0);
}

SOURCED(inline_and_threads, absence_gives_way_to_a_value, open_negative)
{
	struct tw_cache *cache = recorder->cache;

	assert_not_taken(recorder, "set", source, TW_NOT_FOUND);
	cache_set(recorder, "set", "value");
	assert_holds(recorder, "set", "value");
	assert_not_taken(recorder, "added", source, TW_NOT_FOUND);
	assert_status(put_replaced(cache, "added", 5, "v", 1, TW_HOUR), TW_NOT_FOUND);
	assert_status(touch_key(cache, "added", 5, TW_HOUR), TW_NOT_FOUND);
	assert_status(put_added(cache, "added", 5, "v", 1, TW_HOUR), TW_OK);
	assert_holds(recorder, "added", "v");
	assert_not_taken(recorder, "deleted", source, TW_NOT_FOUND);
	assert_status(tw_cache_delete(cache, "deleted", 7), TW_NOT_FOUND);
	source->value = "found";
	source->status = TW_OK;
	assert_taken(recorder, "deleted", source, "found");
	cache_settle(recorder);
	assert_int_equal(removal_count(recorder), 0);
}

static int count_visit(void *context, const struct tw_cache_entry *entry)
{
	++*(int *)context;
	return 1;
}

SOURCED(inline_and_threads, absence_is_nobodys_value, open_negative)
{
	int visits = 0;

	assert_not_taken(recorder, "key", source, TW_NOT_FOUND);
	assert_status(tw_cache_each(recorder->cache, count_visit, &visits), TW_OK);
	assert_int_equal(visits, 0);
	assert_status(tw_cache_clear(recorder->cache), TW_OK);
	cache_settle(recorder);
	assert_int_equal(cache_stats(recorder).removed[TW_CAUSE_EXPLICIT], 1);
	assert_int_equal(removal_count(recorder), 0);
}

CACHED(inline_and_threads, absence_is_not_kept_unless_asked_for, TW_HOUR)
{
	struct source source;

	source_open(&source, "ignored");
	source.status = TW_NOT_FOUND;
	assert_not_taken(recorder, "key", &source, TW_NOT_FOUND);
	assert_not_taken(recorder, "key", &source, TW_NOT_FOUND);
	assert_int_equal(source.loads, 2);
	assert_int_equal(cache_stats(recorder).entries, 0);
	assert_int_equal(cache_stats(recorder).inserts, 0);
}

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

enum { COUNTING = 8, COUNTED_TAKES = TEST_SHARE_OF(30000), COUNTED_KEYS = 20 };

/* Takers count their results, and a source counts its calls. */
struct counting {
	struct tw_cache *cache;
	atomic_ulong loads;
	atomic_ulong load_errors;
	atomic_ulong timed_out;
	atomic_ulong wrong;
	atomic_uint turn;
};

/* Fails each third load, for varying reasons. */
static enum tw_status load_counted(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	struct counting *counting = argument;
	unsigned turn = atomic_fetch_add(&counting->turn, 1);

	atomic_fetch_add(&counting->loads, 1);
	if (turn % 3 != 0)
		return give_copied(loading, key, key_size, 0);
	atomic_fetch_add(&counting->load_errors, 1);
	return turn % 2 ? TW_SYSTEM : TW_OK;
}

static void *counting_run(void *argument)
{
	struct counting *counting = argument;
	struct random random = random_from(1, atomic_fetch_add(&counting->turn, 1));

	for (int i = 0; i < COUNTED_TAKES; i++) {
		uint64_t key = random_below(&random, COUNTED_KEYS);
		const struct tw_cache_entry *entry;
		enum tw_status status =
			tw_cache_take(counting->cache, &key, sizeof(key), load_counted, counting,
				      random_once_in(&random, 2) ? 0 : TW_FOREVER, &entry);

		atomic_fetch_add(&counting->timed_out, status == TW_TIMED_OUT);
		atomic_fetch_add(&counting->wrong,
				 status == TW_OK && memcmp(tw_cache_entry_value(entry, NULL), &key,
							   sizeof(key)) != 0);
		tw_cache_entry_release(entry);
		if (random_once_in(&random, 4))
			tw_cache_delete(counting->cache, &key, sizeof(key));
	}
	return NULL;
}

struct weighing {
	uint64_t entries;
	uint64_t bytes;
};

static int weigh_visited(void *context, const struct tw_cache_entry *entry)
{
	struct weighing *weighing = context;
	size_t key_size;
	size_t value_size;

	(void)tw_cache_entry_key(entry, &key_size);
	(void)tw_cache_entry_value(entry, &value_size);
	weighing->entries++;
	weighing->bytes += cache_weight(key_size, value_size);
	return 1;
}

CACHED(threads, counts_of_concurrent_takes_are_exact, TW_HOUR)
{
	struct counting counting = {.cache = recorder->cache};
	struct weighing weighing = {0};
	pthread_t threads[COUNTING];
	struct tw_cache_stats stats;

	for (int i = 0; i < COUNTING; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, counting_run, &counting), 0);
	for (int i = 0; i < COUNTING; i++)
		pthread_join(threads[i], NULL);
	stats = cache_stats(recorder);
	assert_int_equal(atomic_load(&counting.wrong), 0);
	assert_int_equal(stats.loads, atomic_load(&counting.loads));
	assert_int_equal(stats.load_errors, atomic_load(&counting.load_errors));
	assert_int_equal(stats.wait_timeouts, atomic_load(&counting.timed_out));
	assert_int_equal(stats.hits + stats.misses, COUNTING * COUNTED_TAKES);
	assert_status(tw_cache_each(recorder->cache, weigh_visited, &weighing), TW_OK);
	assert_int_equal(stats.entries, weighing.entries);
	assert_int_equal(stats.bytes, weighing.bytes);
}

static void *destroy_run(void *argument)
{
	tw_cache_destroy(argument);
	return NULL;
}

CACHED(inline_and_threads, destroy_wakes_waiters_and_waits_for_the_load, TW_HOUR)
{
	struct load load;
	pthread_t destroyer;

	source_open(&load.source, "loaded");
	load_start(&load, recorder, "key");
	assert_int_equal(pthread_create(&destroyer, NULL, destroy_run, recorder->cache), 0);
	assert_takers_end(load.others, TW_CLOSED, NULL);
	wait_for(5 * TW_MILLISECOND);
	gate_open(&load.source.gate);
	assert_int_equal(pthread_join(load.first.thread, NULL), 0);
	assert_int_equal(pthread_join(destroyer, NULL), 0);
	/* A take has the value of its own load. */
	assert_status(load.first.status, TW_OK);
	assert_value(load.first.entry, "loaded");
	tw_cache_entry_release(load.first.entry);
	recorder->cache = NULL;
}

CACHED(inline_and_threads, destroy_ends_the_waits_for_a_load_whose_key_was_deleted, TW_HOUR)
{
	struct taker first;
	struct taker waiters[TAKERS];
	struct source source;
	pthread_t destroyer;

	source_open(&source, "old");
	taker_start_load(&first, recorder, "key", &source);
	start_waiters(waiters, recorder, "key", &source);
	change_delete(recorder);
	assert_int_equal(pthread_create(&destroyer, NULL, destroy_run, recorder->cache), 0);
	assert_takers_end(waiters, TW_CLOSED, NULL);
	gate_open(&source.gate);
	assert_taker_ends(&first, TW_OK, "old");
	pthread_join(destroyer, NULL);
	recorder->cache = NULL;
}

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
