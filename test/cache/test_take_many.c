/* SPDX-License-Identifier: MIT */
/* tw_cache_take_many calls one loader for all missing keys, and treats each like a single one. */
#include "support/test.h"

#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/seed.h"
#include "support/stats.h"
#include "support/wait.h"

enum { KEYS_MOST = 64 };

/* This source is asked for many keys at once; each value is the key, except for those left out. */
struct bulk {
	const char *absent; /* keys of one letter without a value */
	const char *failed; /* those that it ends with TW_SYSTEM */
	const char *kept;   /* those that it keeps */
	enum tw_status status;
	bool gated;
	bool dies;
	struct gate gate;
	atomic_int calls;
	char asked[KEYS_MOST + 1];        /* first letters of the last call */
	struct tw_cache_loading *loading; /* the last that was kept */
};

static bool is_among(const char *letters, const struct tw_cache_missing *missing)
{
	return letters && strchr(letters, *(const char *)missing->key);
}

static enum tw_status bulk_load(void *argument, struct tw_cache_missing *missing, size_t n)
{
	struct bulk *bulk = argument;

	atomic_fetch_add(&bulk->calls, 1);
	for (size_t i = 0; i < n && i < KEYS_MOST; i++)
		bulk->asked[i] = *(const char *)missing[i].key;
	bulk->asked[n < KEYS_MOST ? n : KEYS_MOST] = '\0';
	if (bulk->gated)
		gate_pass(&bulk->gate);
	for (size_t i = 0; i < n; i++) {
		enum tw_status status = TW_OK;

		if (is_among(bulk->failed, &missing[i]))
			status = tw_cache_load_end(missing[i].loading, TW_SYSTEM);
		else if (is_among(bulk->kept, &missing[i]))
			status = tw_cache_load_keep(bulk->loading = missing[i].loading);
		else if (!is_among(bulk->absent, &missing[i]))
			status = tw_cache_load_copy(missing[i].loading, missing[i].key,
						    missing[i].key_size, 0);
		if (status != TW_OK)
			return status;
	}
	if (bulk->dies)
		pthread_exit(NULL);
	return bulk->status;
}

static void bulk_open(struct bulk *bulk)
{
	memset(bulk, 0, sizeof(*bulk));
	gate_init(&bulk->gate);
}

/* Each letter is taken as a key. */
struct taking {
	pthread_t thread;
	struct cache_recorder *recorder;
	struct bulk *bulk;
	const char *letters;
	struct tw_cache_taking items[KEYS_MOST];
	size_t found;
	enum tw_status status;
};

static void *taking_run(void *argument)
{
	struct taking *taking = argument;
	size_t n = strlen(taking->letters);

	for (size_t i = 0; i < n; i++)
		taking->items[i] = (struct tw_cache_taking){
			.key = &taking->letters[i], .key_size = 1, .status = TW_TRUNCATED};
	taking->status = tw_cache_take_many(taking->recorder->cache, taking->items, n, bulk_load,
					    taking->bulk, TW_FOREVER, &taking->found);
	return NULL;
}

static struct taking taking_of(struct cache_recorder *recorder, struct bulk *bulk,
			       const char *letters)
{
	return (struct taking){.recorder = recorder, .bulk = bulk, .letters = letters};
}

/* Checks that the letters of `none` have this status, and the others their values. */
#define assert_taking(taking, none, status) assert_taking_(taking, none, status, __FILE__, __LINE__)
static void assert_taking_(struct taking *taking, const char *none, enum tw_status status,
			   const char *file, int line)
{
	size_t expected = 0;

	_assert_int_equal(taking->status, TW_OK, file, line);
	for (size_t i = 0; i < strlen(taking->letters); i++) {
		struct tw_cache_taking *item = &taking->items[i];
		char value[2] = {taking->letters[i], '\0'};

		if (strchr(none, value[0])) {
			_assert_string_equal(tw_status_name(item->status), tw_status_name(status),
					     file, line);
			_assert_true(item->entry == NULL, "no entry", file, line);
			continue;
		}
		_assert_string_equal(tw_status_name(item->status), "TW_OK", file, line);
		assert_value_(item->entry, value, file, line);
		tw_cache_entry_release(item->entry);
		expected++;
	}
	_assert_int_equal(taking->found, expected, file, line);
}

static void missing_keys_are_loaded_by_one_call_in_order(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct taking taking;
	struct bulk bulk;

	bulk_open(&bulk);
	cache_set_letters(recorder, "ceg");
	taking = taking_of(recorder, &bulk, "gfedcbahijklmnopqrstuvwxyz");
	taking_run(&taking);
	assert_taking(&taking, "", TW_OK);
	assert_int_equal(bulk.calls, 1);
	assert_string_equal(bulk.asked, "fdbahijklmnopqrstuvwxyz");
	assert_cache_counts(recorder->cache, .hits = 3, .misses = 23, .loads = 23, .inserts = 26,
			    .entries = 26);
	assert_int_equal(cache_stats(recorder).load_time.count, 23);
	taking_run(&taking);
	assert_taking(&taking, "", TW_OK);
	assert_int_equal(bulk.calls, 1);
	cache_recorder_close_balanced(recorder);
}

static void keys_that_were_not_answered_are_absent(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open_with(
		*state, TW_HOUR, (struct tw_cache_options){.negative_expire = TW_HOUR});
	struct taking taking;
	struct bulk bulk;

	bulk_open(&bulk);
	bulk.absent = "bd";
	taking = taking_of(recorder, &bulk, "abcde");
	for (int i = 0; i < 2; i++) {
		taking_run(&taking);
		assert_taking(&taking, "bd", TW_NOT_FOUND);
		assert_int_equal(bulk.calls, 1);
	}
	assert_cache_counts(recorder->cache, .hits = 3, .misses = 5, .absent = 2, .loads = 5,
			    .load_errors = 2, .inserts = 5, .entries = 5);
	cache_recorder_close_balanced(recorder);
}

static void error_holds_for_what_was_not_ended(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct taking taking;
	struct bulk bulk;

	bulk_open(&bulk);
	cache_set(recorder, "a", "a");
	bulk.status = TW_TIMED_OUT;
	taking = taking_of(recorder, &bulk, "abc");
	taking_run(&taking);
	assert_taking(&taking, "bc", TW_TIMED_OUT);
	assert_int_equal(tw_cache_count(recorder->cache), 1);
	bulk.status = TW_OK;
	bulk.failed = "c";
	taking_run(&taking);
	assert_taking(&taking, "c", TW_SYSTEM);
	assert_holds(recorder, "b", "b");
	assert_int_equal(bulk.calls, 2);
	cache_recorder_close_balanced(recorder);
}

static void one_key_may_stand_there_more_than_once(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct taking taking;
	struct bulk bulk;

	bulk_open(&bulk);
	taking = taking_of(recorder, &bulk, "abaab");
	taking_run(&taking);
	assert_taking(&taking, "", TW_OK);
	assert_string_equal(bulk.asked, "ab");
	assert_int_equal(bulk.calls, 1);
	cache_recorder_close_balanced(recorder);
}

static void loads_of_others_are_waited_for_after_the_own(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct taking first;
	struct taking second;
	struct bulk bulks[2];

	/* Each wants the key that the other loads. */
	for (int i = 0; i < 2; i++) {
		bulk_open(&bulks[i]);
		bulks[i].gated = true;
	}
	first = taking_of(recorder, &bulks[0], "abc");
	second = taking_of(recorder, &bulks[1], "xcbay");
	assert_int_equal(pthread_create(&first.thread, NULL, taking_run, &first), 0);
	gate_await(&bulks[0].gate);
	assert_int_equal(pthread_create(&second.thread, NULL, taking_run, &second), 0);
	gate_await(&bulks[1].gate);
	assert_string_equal(bulks[1].asked, "xy");
	gate_open(&bulks[1].gate);
	WAIT_UNTIL(cache_get(recorder, "y") == TW_OK);
	gate_open(&bulks[0].gate);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_taking(&first, "", TW_OK);
	assert_taking(&second, "", TW_OK);
	assert_int_equal(cache_stats(recorder).loads, 5);
	assert_int_equal(cache_stats(recorder).load_waits, 3);
	cache_recorder_close_balanced(recorder);
}

static void key_deleted_while_another_loads_it_is_loaded_by_the_same_call(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct taking taking;
	struct taker taker;
	struct source source;
	struct bulk bulk;

	bulk_open(&bulk);
	source_open(&source, "old");
	taker_start_load(&taker, recorder, "b", &source);
	assert_status(tw_cache_delete(recorder->cache, "b", 1), TW_NOT_FOUND);
	taking = taking_of(recorder, &bulk, "abc");
	taking_run(&taking);
	assert_taking(&taking, "", TW_OK);
	assert_int_equal(bulk.calls, 1);
	assert_string_equal(bulk.asked, "abc");
	gate_open(&source.gate);
	assert_taker_ends(&taker, TW_OK, "old");
	assert_int_equal(cache_stats(recorder).load_waits, 0);
	cache_recorder_close_balanced(recorder);
}

static void key_that_the_loader_keeps_is_waited_for(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct taking taking;
	struct tw_cache_taking item = {.key = "b", .key_size = 1};
	struct bulk bulk;

	bulk_open(&bulk);
	bulk.kept = "b";
	taking = taking_of(recorder, &bulk, "abc");
	assert_int_equal(pthread_create(&taking.thread, NULL, taking_run, &taking), 0);
	WAIT_UNTIL(cache_get(recorder, "c") == TW_OK);
	assert_status(tw_cache_take_many(recorder->cache, &item, 1, bulk_load, &bulk, 0, NULL),
		      TW_OK);
	assert_status(item.status, TW_TIMED_OUT);
	assert_status(tw_cache_load_copy(bulk.loading, "b", 1, 0), TW_OK);
	assert_status(tw_cache_load_end(bulk.loading, TW_OK), TW_OK);
	pthread_join(taking.thread, NULL);
	assert_taking(&taking, "", TW_OK);
	assert_int_equal(bulk.calls, 1);
	cache_recorder_close_balanced(recorder);
}

static void loader_of_many_that_ends_its_thread_has_failed(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct taking taking;
	struct taker takers[TAKERS];
	struct source never;
	struct bulk bulk;

	bulk_open(&bulk);
	bulk.dies = bulk.gated = true;
	source_open(&never, "never");
	cache_set(recorder, "a", "a");
	taking = taking_of(recorder, &bulk, "abc");
	assert_int_equal(pthread_create(&taking.thread, NULL, taking_run, &taking), 0);
	gate_await(&bulk.gate);
	start_waiters(takers, recorder, "c", &never);
	gate_open(&bulk.gate);
	pthread_join(taking.thread, NULL);
	assert_takers_end(takers, TW_LOAD_FAILED, NULL);
	assert_int_equal(tw_cache_count(recorder->cache), 1);
	assert_status(tw_cache_delete(recorder->cache, "a", 1), TW_OK);
	cache_recorder_close_balanced(recorder);
}

static void bad_arguments_of_take_many_are_refused(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct tw_cache *cache = recorder->cache;
	struct tw_cache_taking items[] = {{.key = "", .key_size = 0}, {.key = "b", .key_size = 1}};
	size_t found = 4711;
	struct bulk bulk;

	bulk_open(&bulk);
	assert_status(tw_cache_take_many(NULL, items, 2, bulk_load, &bulk, 0, &found), TW_INVALID);
	assert_int_equal(found, 0);
	assert_status(tw_cache_take_many(cache, NULL, 2, bulk_load, &bulk, 0, NULL), TW_INVALID);
	assert_status(tw_cache_take_many(cache, items, 2, NULL, &bulk, 0, NULL), TW_INVALID);
	assert_status(tw_cache_take_many(cache, NULL, 0, bulk_load, &bulk, 0, NULL), TW_OK);
	assert_status(tw_cache_take_many(cache, items, 2, bulk_load, &bulk, 0, &found), TW_OK);
	assert_int_equal(found, 1);
	assert_status(items[0].status, TW_INVALID);
	assert_null(items[0].entry);
	assert_value(items[1].entry, "b");
	tw_cache_entry_release(items[1].entry);
	assert_status(tw_cache_stop(cache), TW_OK);
	assert_status(tw_cache_take_many(cache, items, 2, bulk_load, &bulk, 0, &found), TW_CLOSED);
	cache_recorder_close(recorder);
}

/* Threads take and delete overlapping sets: none waits for ever, and all values are right. */
enum { THREADS = 4, ROUNDS = TEST_SHARE_OF(3000) };

struct mixer {
	pthread_t thread;
	struct cache_recorder *recorder;
	struct random random;
	unsigned wrong;
};

static void *mixer_run(void *argument)
{
	struct mixer *mixer = argument;
	char letters[9];
	struct bulk bulk;
	struct taking taking;

	bulk_open(&bulk);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 8; i++)
			letters[i] = (char)('a' + random_below(&mixer->random, 20));
		letters[8] = '\0';
		taking = taking_of(mixer->recorder, &bulk, letters);
		taking_run(&taking);
		mixer->wrong += taking.status != TW_OK || taking.found != 8;
		for (int i = 0; i < 8; i++) {
			const struct tw_cache_entry *entry = taking.items[i].entry;

			mixer->wrong += !entry || *(const char *)tw_cache_entry_value(
							  entry, NULL) != letters[i];
			tw_cache_entry_release(entry);
		}
		for (int i = 0; i < 3; i++)
			(void)tw_cache_delete(mixer->recorder->cache, &letters[i], 1);
	}
	return NULL;
}

static void overlapping_takes_of_many_all_end(void **state)
{
	struct cache_recorder *recorder =
		cache_recorder_open_quiet(*state, TW_HOUR, (struct tw_cache_options){.shards = 2});
	struct mixer mixers[THREADS];
	uint64_t seed = seed_choose();

	for (unsigned i = 0; i < THREADS; i++) {
		mixers[i] = (struct mixer){.recorder = recorder, .random = random_from(seed, i)};
		assert_int_equal(pthread_create(&mixers[i].thread, NULL, mixer_run, &mixers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(mixers[i].thread, NULL);
		assert_int_equal(mixers[i].wrong, 0);
	}
	cache_settle(recorder);
	cache_recorder_close_balanced(recorder);
}

static const struct CMUnitTest tests[] = {
	TEST_CACHE(missing_keys_are_loaded_by_one_call_in_order),
	TEST_CACHE(keys_that_were_not_answered_are_absent),
	TEST_CACHE(error_holds_for_what_was_not_ended),
	TEST_CACHE(one_key_may_stand_there_more_than_once),
	TEST_CACHE(loads_of_others_are_waited_for_after_the_own),
	TEST_CACHE(key_deleted_while_another_loads_it_is_loaded_by_the_same_call),
	TEST_CACHE(key_that_the_loader_keeps_is_waited_for),
	TEST_CACHE(loader_of_many_that_ends_its_thread_has_failed),
	TEST_CACHE(bad_arguments_of_take_many_are_refused),
	TEST_IN(levels_threads, overlapping_takes_of_many_all_end),
};

TEST_PROGRAM(tests)
