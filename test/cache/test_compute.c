/* SPDX-License-Identifier: MIT */
/* tw_cache_compute reads and changes a key in one step. */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
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

CACHE_SCRIPT(inline_and_threads, key_is_kept_replaced_or_deleted, 10 * INTERVAL,
	     "compute key keep = none; get key = NOT_FOUND; compute key delete = none;"
	     "compute key replace first = none; get key = first;"
	     "compute key replace second 20 = first; settle -> first:replaced;"
	     "compute key keep = second; lives key second 20; compute key keep = none;"
	     "set key third; compute key delete = third; settle -> second:expired third:explicit;"
	     "get key = NOT_FOUND; misses = 3")

static enum tw_cache_verdict compute_null(void *context, const struct tw_cache_entry *entry,
					  struct tw_cache_value *result)
{
	return TW_CACHE_REPLACE;
}

CACHE_SCRIPT(inline_and_threads, computed_value_may_live_for_ever, 10 * INTERVAL,
	     "compute key replace '' never = none; pass 1h; get key = ''")

CACHED(inline_and_threads, computed_value_may_be_empty, 10 * INTERVAL)
{
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

#define OVERRIDES(verdict, left)                                                              \
	"source loaded gated; begin a take key; reached; compute key " verdict " = none; go;" \
	"ended a = loaded; get key = " left
CACHE_SCRIPT(inline_and_threads, compute_that_replaces_the_key_overrides_its_load, TW_HOUR,
	     OVERRIDES("replace computed", "computed"))
CACHE_SCRIPT(inline_and_threads, compute_that_deletes_the_key_overrides_its_load, TW_HOUR,
	     OVERRIDES("delete", "NOT_FOUND"))
CACHE_SCRIPT(inline_and_threads, compute_that_keeps_the_key_lets_its_load_be_kept, TW_HOUR,
	     OVERRIDES("keep", "loaded"))

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

CACHE_SCRIPT(inline_and_threads, popped_entry_is_the_callers_and_gone, 10 * INTERVAL,
	     "pop key = NOT_FOUND; set key value; pop key = value; get key = NOT_FOUND;"
	     "settle -> value:explicit; pop key = NOT_FOUND; set key late; pass 10;"
	     "pop key = NOT_FOUND; hits = 0")

CACHE_SCRIPT(inline_and_threads, remembered_absence_is_no_value_for_any_change, TW_HOUR,
	     "source NOT_FOUND; take key = NOT_FOUND; compute key keep = none;"
	     "take key = NOT_FOUND; loads = 1; pop key = NOT_FOUND; take key = NOT_FOUND;"
	     "loads = 2; delete key = NOT_FOUND; entries = 0; take key = NOT_FOUND;"
	     "add key value 1h; get key = value",
	     .negative_expire = TW_HOUR)
