/* SPDX-License-Identifier: MIT */
/* tw_cache_compute reads and changes a key in one step. */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/stats.h"

/* This has the function's result, and the arguments that it was called with. */
struct computer {
	enum tw_cache_verdict verdict;
	const char *value;
	tw_duration expire;
	unsigned calls;
	char seen[32]; /* "" if none */
	const struct tw_cache_entry *pinned;
};

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_value *computed)
{
	struct computer *computer = context;
	size_t size = 0;

	computer->calls++;
	if (entry) {
		const void *value = tw_cache_entry_value(entry, &size);

		memcpy(computer->seen, value, size);
		if (!computer->pinned)
			computer->pinned = tw_cache_entry_pin(entry);
	}
	computer->seen[size] = '\0';
	computed->data = computer->value;
	computed->size = computer->value ? strlen(computer->value) : 0;
	computed->expire = computer->expire;
	return computer->verdict;
}

static enum tw_status computed(struct cache_recorder *recorder, struct computer *computer)
{
	return tw_cache_compute(recorder->cache, "key", 3, compute, computer);
}

CACHED(inline_and_threads, key_is_kept_replaced_or_deleted, 10 * INTERVAL)
{
	struct computer computer = {.verdict = TW_CACHE_KEEP, .value = "no"};

	assert_status(computed(recorder, &computer), TW_OK);
	assert_string_equal(computer.seen, "");
	assert_holds_none(recorder, "key");
	computer.verdict = TW_CACHE_DELETE;
	assert_status(computed(recorder, &computer), TW_OK);
	computer.verdict = TW_CACHE_REPLACE;
	computer.value = "first";
	assert_status(computed(recorder, &computer), TW_OK);
	assert_string_equal(computer.seen, "");
	assert_holds(recorder, "key", "first");
	computer.value = "second";
	computer.expire = 20 * INTERVAL;
	assert_status(computed(recorder, &computer), TW_OK);
	assert_string_equal(computer.seen, "first");
	cache_settle(recorder);
	assert_removed(recorder, "first", TW_CAUSE_REPLACED);
	computer.verdict = TW_CACHE_KEEP;
	assert_status(computed(recorder, &computer), TW_OK);
	assert_string_equal(computer.seen, "second");
	assert_lives_for(recorder, "key", "second", 20 * INTERVAL);
	assert_status(computed(recorder, &computer), TW_OK);
	assert_string_equal(computer.seen, "");
	cache_set(recorder, "key", "third");
	computer.verdict = TW_CACHE_DELETE;
	assert_status(computed(recorder, &computer), TW_OK);
	assert_string_equal(computer.seen, "third");
	cache_settle(recorder);
	assert_removed(recorder, "third", TW_CAUSE_EXPLICIT);
	assert_holds_none(recorder, "key");
	assert_value(computer.pinned, "first");
	tw_cache_entry_release(computer.pinned);
	assert_int_equal(cache_stats(recorder).misses, 3);
}

static enum tw_cache_verdict compute_null(void *context, const struct tw_cache_entry *entry,
					  struct tw_cache_value *result)
{
	return TW_CACHE_REPLACE;
}

CACHED(inline_and_threads, computed_value_may_be_empty_or_live_for_ever, 10 * INTERVAL)
{
	struct computer computer = {.verdict = TW_CACHE_REPLACE, .expire = TW_FOREVER};

	assert_status(computed(recorder, &computer), TW_OK);
	cache_pass(recorder, TW_HOUR);
	assert_holds(recorder, "key", "");
	assert_status(tw_cache_compute(recorder->cache, "null", 4, compute_null, NULL), TW_OK);
	assert_holds(recorder, "null", "");
}

CACHED(inline_and_threads, failed_compute_changes_nothing, TW_HOUR, .max_bytes = 1000, .shards = 1)
{
	static char large[2001];
	struct computer computer = {.verdict = TW_CACHE_REPLACE, .value = large};

	memset(large, 'l', sizeof(large) - 1);
	cache_set(recorder, "key", "value");
	assert_status(computed(recorder, &computer), TW_FULL);
	computer.value = "other";
	computer.expire = -1;
	assert_status(computed(recorder, &computer), TW_INVALID);
	computer.verdict = (enum tw_cache_verdict)4;
	computer.expire = 0;
	assert_status(computed(recorder, &computer), TW_INVALID);
	assert_int_equal(computer.calls, 3);
	assert_holds(recorder, "key", "value");
	tw_cache_entry_release(computer.pinned);
}

/* Calls the cache inside a compute. */
static enum tw_cache_verdict compute_inside(void *context, const struct tw_cache_entry *entry,
					    struct tw_cache_value *computed)
{
	struct cache_recorder *recorder = context;
	struct tw_cache *cache = recorder->cache;
	char value[8];
	size_t size;

	assert_status(tw_cache_set(cache, "key", 3, "v", 1), TW_INVALID);
	assert_status(tw_cache_get(cache, "key", 3, value, sizeof(value), &size), TW_INVALID);
	assert_status(tw_cache_delete(cache, "key", 3), TW_INVALID);
	assert_status(tw_cache_acquire(cache, "key", 3, 0, &entry), TW_INVALID);
	assert_status(tw_cache_compute(cache, "other", 5, compute_null, NULL), TW_INVALID);
	assert_status(tw_cache_take(cache, "key", 3, source_load, NULL, 0, &entry), TW_INVALID);
	return TW_CACHE_KEEP;
}

CACHED(inline_and_threads, call_inside_a_compute_is_refused, TW_HOUR)
{
	struct tw_cache *other;

	cache_set(recorder, "key", "value");
	for (int i = 0; i < 2; i++) {
		assert_status(tw_cache_compute(recorder->cache, "key", 3, compute_inside, recorder),
			      TW_OK);
		assert_holds(recorder, "key", "value");
	}
	/* The thread used another cache last. */
	assert_status(tw_cache_create(&other, TW_HOUR, NULL), TW_OK);
	assert_status(tw_cache_set(other, "key", 3, "v", 1), TW_OK);
	assert_status(tw_cache_compute(recorder->cache, "key", 3, compute_inside, recorder), TW_OK);
	assert_status(tw_cache_delete(other, "key", 3), TW_OK);
	tw_cache_destroy(other);
}

/* Several threads count in one key, and no step is lost. */
enum { COUNTERS = 4, COUNTS = TEST_SHARE_OF(20000) };

static enum tw_cache_verdict compute_next(void *context, const struct tw_cache_entry *entry,
					  struct tw_cache_value *computed)
{
	unsigned *count = context;

	*count = entry ? *(const unsigned *)tw_cache_entry_value(entry, NULL) + 1 : 1;
	computed->data = count;
	computed->size = sizeof(*count);
	return TW_CACHE_REPLACE;
}

static void *counter_run(void *argument)
{
	struct cache_recorder *recorder = argument;
	unsigned count;

	for (int i = 0; i < COUNTS; i++)
		if (tw_cache_compute(recorder->cache, "count", 5, compute_next, &count) != TW_OK)
			return argument;
	return NULL;
}

CACHED_QUIET(threads, computes_of_several_threads_lose_nothing, TW_HOUR)
{
	pthread_t threads[COUNTERS];
	unsigned count = 0;
	void *failed;

	for (int i = 0; i < COUNTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, counter_run, recorder), 0);
	for (int i = 0; i < COUNTERS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_status(tw_cache_get(recorder->cache, "count", 5, &count, sizeof(count), NULL),
		      TW_OK);
	assert_int_equal(count, COUNTERS * COUNTS);
}

TEST(inline_and_threads, compute_that_changes_the_key_overrides_its_load)
{
	static const enum tw_cache_verdict verdicts[] = {TW_CACHE_REPLACE, TW_CACHE_DELETE,
							 TW_CACHE_KEEP};

	for (int i = 0; i < 3; i++) {
		struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
		struct computer computer = {.verdict = verdicts[i], .value = "computed"};
		struct taker taker;
		struct source source;

		source_open(&source, "loaded");
		taker_start_load(&taker, recorder, "key", &source);
		assert_status(computed(recorder, &computer), TW_OK);
		assert_string_equal(computer.seen, "");
		gate_open(&source.gate);
		assert_taker_ends(&taker, TW_OK, "loaded");
		if (verdicts[i] == TW_CACHE_REPLACE)
			assert_holds(recorder, "key", "computed");
		else if (verdicts[i] == TW_CACHE_DELETE)
			assert_holds_none(recorder, "key");
		else
			assert_holds(recorder, "key", "loaded");
		cache_recorder_close(recorder);
	}
}

/* The function's verdict and value are the context's. */
struct answer {
	enum tw_cache_verdict verdict;
	struct tw_cache_value value;
};

static enum tw_cache_verdict give_answer(void *context, const struct tw_cache_entry *entry,
					 struct tw_cache_value *value)
{
	const struct answer *answer = context;

	*value = answer->value;
	return answer->verdict;
}

static void count_free(void *value, size_t size, void *freed)
{
	++*(int *)freed;
}

TEST(inline_and_threads, computed_value_may_be_adopted)
{
	struct cache_recorder *recorder = cache_recorder_open_with(
		*state, TW_HOUR, (struct tw_cache_options){.max_bytes = 1000, .shards = 1});
	struct tw_cache *cache = recorder->cache;
	static char own[] = "own";
	int freed = 0;
	struct answer answer = {TW_CACHE_REPLACE,
				{.data = own,
				 .size = 3,
				 .weight = 1001,
				 .free_value = count_free,
				 .context = &freed}};
	const struct tw_cache_entry *entry;

	assert_status(tw_cache_compute(cache, "key", 3, give_answer, &answer), TW_FULL);
	answer.value.reserved[1] = 1;
	assert_status(tw_cache_compute(cache, "key", 3, give_answer, &answer), TW_INVALID);
	answer.value.reserved[1] = 0;
	answer.value.weight = 1;
	assert_status(tw_cache_compute(cache, "key", 3, give_answer, &answer), TW_OK);
	assert_int_equal(cache_stats(recorder).bytes, 1);
	entry = cache_pinned(recorder, "key");
	assert_ptr_equal(tw_cache_entry_value(entry, NULL), own);
	assert_status(tw_cache_delete(cache, "key", 3), TW_OK);
	cache_settle(recorder);
	assert_int_equal(freed, 0);
	tw_cache_entry_release(entry);
	assert_int_equal(freed, 1);
	cache_recorder_close(recorder);
}

CACHED(inline_and_threads, compute_gives_an_entry_another_life, 50 * INTERVAL)
{
	struct tw_cache *cache = recorder->cache;
	struct answer touch = {TW_CACHE_TOUCH, {.deadline = 20 * INTERVAL}};

	assert_status(tw_cache_compute(cache, "key", 3, give_answer, &touch), TW_NOT_FOUND);
	cache_set(recorder, "key", "value");
	assert_status(tw_cache_compute(cache, "key", 3, give_answer, &touch), TW_OK);
	assert_int_equal(deadline_of(cache, "key", 3), 20 * INTERVAL);
	cache_pass(recorder, 10 * INTERVAL);
	touch.value.deadline = 0;
	assert_status(tw_cache_compute(cache, "key", 3, give_answer, &touch), TW_OK);
	assert_int_equal(deadline_of(cache, "key", 3), 60 * INTERVAL);
	touch.value.deadline = 10 * INTERVAL;
	touch.value.expire = INTERVAL;
	assert_status(tw_cache_compute(cache, "key", 3, give_answer, &touch), TW_INVALID);
	assert_int_equal(deadline_of(cache, "key", 3), 60 * INTERVAL);
	/* A deadline that is past ends the entry. */
	touch.value.expire = 0;
	assert_status(tw_cache_compute(cache, "key", 3, give_answer, &touch), TW_OK);
	assert_holds_none(recorder, "key");
	cache_pass(recorder, 2 * INTERVAL);
	assert_removed(recorder, "value", TW_CAUSE_EXPIRED);
}

TEST(inline_and_threads, popped_entry_is_the_callers_and_gone)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, 10 * INTERVAL);
	const struct tw_cache_entry *entry = (const void *)state;

	assert_status(pop_key(recorder->cache, "key", 3, &entry), TW_NOT_FOUND);
	assert_null(entry);
	cache_set(recorder, "key", "value");
	assert_status(pop_key(recorder->cache, "key", 3, &entry), TW_OK);
	assert_value(entry, "value");
	assert_holds_none(recorder, "key");
	cache_settle(recorder);
	assert_removed(recorder, "value", TW_CAUSE_EXPLICIT);
	tw_cache_entry_release(entry);
	assert_status(pop_key(recorder->cache, "key", 3, &entry), TW_NOT_FOUND);
	cache_set(recorder, "key", "late");
	cache_pass(recorder, 10 * INTERVAL);
	assert_status(pop_key(recorder->cache, "key", 3, &entry), TW_NOT_FOUND);
	assert_null(entry);
	assert_int_equal(cache_stats(recorder).hits, 0);
	cache_recorder_close(recorder);
}

CACHED(inline_and_threads, remembered_absence_is_no_value_for_any_change, TW_HOUR,
       .negative_expire = TW_HOUR)
{
	struct tw_cache *cache = recorder->cache;
	struct computer computer = {.verdict = TW_CACHE_KEEP};
	const struct tw_cache_entry *entry;
	struct source source;

	source_open(&source, NULL);
	source.status = TW_NOT_FOUND;
	assert_not_taken(recorder, "key", &source, TW_NOT_FOUND);
	assert_status(computed(recorder, &computer), TW_OK);
	assert_string_equal(computer.seen, "");
	assert_not_taken(recorder, "key", &source, TW_NOT_FOUND);
	assert_int_equal(source.loads, 1);
	assert_status(pop_key(cache, "key", 3, &entry), TW_NOT_FOUND);
	assert_not_taken(recorder, "key", &source, TW_NOT_FOUND);
	assert_int_equal(source.loads, 2);
	assert_status(tw_cache_delete(cache, "key", 3), TW_NOT_FOUND);
	assert_int_equal(entries_of(cache), 0);
	assert_not_taken(recorder, "key", &source, TW_NOT_FOUND);
	assert_status(put_added(cache, "key", 3, "value", 5, TW_HOUR), TW_OK);
	assert_holds(recorder, "key", "value");
}
