/* SPDX-License-Identifier: MIT */
/*
 * A call is stopped before each of its atomic operations in turn, while another thread looks the
 * key up, mostly after the key's deadline. If that thread found the key expired, the call does not
 * find it; a key that is always there is found. This uses the library of test_histories_yields.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/gate.h"
#include "support/yields/yield.h"

/* The deadline is between two moments of one tick: no alarm runs in between. */
#define LIFE (INTERVAL * 16 / 5)
#define BEFORE (3 * INTERVAL)
#define AFTER (INTERVAL * 7 / 2)

enum { OPERATIONS_LEAST = 8 };

/* The onlooker is the thread that looks the key up. */
static struct onlooker {
	struct cache_recorder *recorder;
	struct gate gate;
	bool ends;
	enum tw_status (*look)(void);
	tw_duration passes; /* before it looks */
	enum tw_status status;
	/* The call is stopped after this number of operations. */
	int operations;
} onlooker;

static void onlooker_pass(void)
{
	if (tw_advance(onlooker.recorder->wheel, onlooker.passes) != TW_OK)
		abort();
}

static enum tw_status look_up(void)
{
	onlooker_pass();
	return cache_get(onlooker.recorder, "key");
}

/* The first visit lasts until the call is stopped. */
/* A thread's first call allocates, and may wait for that. */
static enum tw_status look_first(void)
{
	return cache_get(onlooker.recorder, "none");
}

struct walk {
	int visits;
	enum tw_status status;
};

static int visit(void *argument, const struct tw_cache_entry *entry)
{
	struct walk *walk = argument;
	size_t size;

	(void)tw_cache_entry_key(entry, &size);
	if (size == 3)
		walk->status = TW_OK;
	if (walk->visits++ == 0) {
		gate_pass(&onlooker.gate);
		onlooker_pass();
	}
	return 1;
}

static enum tw_status look_by_walk(void)
{
	struct walk walk = {.status = TW_NOT_FOUND};

	if (tw_cache_each(onlooker.recorder->cache, visit, &walk) != TW_OK)
		abort();
	return walk.status;
}

static void *onlooker_run(void *unused)
{
	for (gate_pass(&onlooker.gate); !onlooker.ends; gate_pass(&onlooker.gate))
		onlooker.status = onlooker.look();
	return unused;
}

static void onlooker_goes_on(void)
{
	gate_open(&onlooker.gate);
	gate_await(&onlooker.gate);
}

static void hold_up(void)
{
	if (--onlooker.operations == 0)
		onlooker_goes_on();
}

/* This is the result of a call that is stopped at an operation. */
struct outcome {
	bool is_held_up; /* false if it has fewer operations */
	enum tw_status status;
	enum tw_status looked; /* the onlooker's status meanwhile */
	bool has_expired;      /* the entry was removed as expired */
};

struct trial {
	enum tw_status (*call)(struct tw_cache *cache);
	void (*judge)(struct outcome);
	tw_duration passes; /* AFTER - BEFORE if the deadline passes meanwhile */
	struct tw_cache_options options;
	bool walks;         /* the onlooker walks instead of looking the key up */
	bool is_of_another; /* the call is of another key, which it always finds */
	int forgotten;      /* keys that were set and deleted before */
};

static struct outcome trial_hold_up_at(const struct trial *trial, const struct variant *variant,
				       int operation)
{
	struct cache_recorder *recorder =
		cache_recorder_open_quiet(variant, TW_HOUR, trial->options);
	struct outcome outcome;

	onlooker.recorder = recorder;
	onlooker.look = look_first;
	onlooker_goes_on();
	onlooker.look = trial->walks ? look_by_walk : look_up;
	onlooker.passes = trial->passes;
	onlooker.operations = operation;
	cache_set_letters(recorder, "abcdefghij");
	cache_set_for(recorder, "key", "old", LIFE);
	for (int i = 0; i < trial->forgotten; i++) {
		cache_set(recorder, "forgotten", "value");
		assert_status(tw_cache_delete(recorder->cache, "forgotten", 9), TW_OK);
	}
	cache_pass(recorder, BEFORE);
	if (trial->walks)
		onlooker_goes_on();
	yield_instead = hold_up;
	outcome.status = trial->call(recorder->cache);
	yield_instead = NULL;
	outcome.is_held_up = onlooker.operations <= 0;
	if (trial->walks && !outcome.is_held_up)
		onlooker_goes_on();
	outcome.looked = onlooker.status;
	outcome.has_expired = cache_stats(recorder).removed[TW_CAUSE_EXPIRED] == 1;
	cache_recorder_close(recorder);
	return outcome;
}

/* Stops at each operation, until the call ends before the next. */
static void trial_run(struct trial trial, const struct variant *variant)
{
	struct outcome outcome;
	pthread_t thread;
	int failed = 0;
	int operation = 1;

	trial.options.shards = 1;
	onlooker.ends = false;
	gate_init(&onlooker.gate);
	assert_int_equal(pthread_create(&thread, NULL, onlooker_run, NULL), 0);
	gate_await(&onlooker.gate);
	for (;; operation++) {
		outcome = trial_hold_up_at(&trial, variant, operation);
		if (!outcome.is_held_up)
			break;
		trial.judge(outcome);
		failed += outcome.status != TW_OK;
	}
	assert_status(outcome.status, TW_OK);
	assert_true(operation > OPERATIONS_LEAST && failed < operation - 1);
	/* The call has read the clock after its first operations. */
	assert_int_equal(failed > 0, trial.passes > 0 && !trial.is_of_another);
	onlooker.ends = true;
	gate_open(&onlooker.gate);
	pthread_join(thread, NULL);
}

static enum tw_status touch(struct tw_cache *cache)
{
	return tw_cache_touch(cache, "key", 3, TW_HOUR);
}

static enum tw_status replace(struct tw_cache *cache)
{
	return put_replaced(cache, "key", 3, "new", 3, TW_HOUR);
}

static enum tw_status delete (struct tw_cache *cache) { return tw_cache_delete(cache, "key", 3); }

/* The call leaves the key there. */
static void both_find_the_same(struct outcome outcome)
{
	assert_status(outcome.looked, outcome.status);
}

static void entry_leaves_as_answered(struct outcome outcome)
{
	assert_status(outcome.looked, TW_NOT_FOUND);
	assert_int_equal(outcome.has_expired, outcome.status == TW_NOT_FOUND);
}

/* The entry may have been visited first. */
static void what_was_not_visited_is_not_found(struct outcome outcome)
{
	assert_true(outcome.looked == TW_OK || outcome.status == TW_NOT_FOUND);
}

static void touch_finds_nothing_that_a_walk_has_found_expired(void **state)
{
	trial_run((struct trial){.call = touch,
				 .judge = what_was_not_visited_is_not_found,
				 .passes = AFTER - BEFORE,
				 .walks = true},
		  *state);
}

static void touch_finds_nothing_that_a_lookup_has_found_expired(void **state)
{
	trial_run((struct trial){.call = touch,
				 .judge = both_find_the_same,
				 .passes = AFTER - BEFORE},
		  *state);
	trial_run((struct trial){.call = touch,
				 .judge = both_find_the_same,
				 .passes = AFTER - BEFORE,
				 .options = {.idle = TW_HOUR}},
		  *state);
}

static void replace_finds_nothing_that_a_lookup_has_found_expired(void **state)
{
	trial_run((struct trial){.call = replace,
				 .judge = both_find_the_same,
				 .passes = AFTER - BEFORE},
		  *state);
	trial_run((struct trial){.call = replace,
				 .judge = both_find_the_same,
				 .passes = AFTER - BEFORE,
				 .options = {.idle = TW_HOUR}},
		  *state);
}

static void delete_finds_nothing_that_a_lookup_has_found_expired(void **state)
{
	trial_run((struct trial){.call = delete,
				 .judge = entry_leaves_as_answered,
				 .passes = AFTER - BEFORE},
		  *state);
}

/* Ten letters and the light value weigh this: each a cell of 64 bytes, and 40. */
enum { BYTES_MOST = 11 * (64 + 40) };

static enum tw_status set_heavier(struct tw_cache *cache)
{
	return tw_cache_set(cache, "key", 3, "thirty bytes, much more than 3", 30);
}

static void key_that_is_set_to_a_heavier_value_is_found_meanwhile(void **state)
{
	static const enum tw_cache_policy policies[] = {TW_POLICY_LRU, TW_POLICY_S3FIFO};

	for (int i = 0; i < 2; i++)
		trial_run(
			(struct trial){.call = set_heavier,
				       .judge = both_find_the_same,
				       .options = {.max_bytes = BYTES_MOST, .policy = policies[i]}},
			*state);
}

static enum tw_status delete_another(struct tw_cache *cache)
{
	return tw_cache_delete(cache, "a", 1);
}

static void key_is_not_found(struct outcome outcome)
{
	assert_status(outcome.looked, TW_NOT_FOUND);
}

/* 11 of 86 filings are needed: with one entry fewer the shard files all again, in the call. */
static void what_is_filed_again_may_be_found_expired_meanwhile(void **state)
{
	trial_run((struct trial){.call = delete_another,
				 .judge = key_is_not_found,
				 .passes = AFTER - BEFORE,
				 .is_of_another = true,
				 .forgotten = 75},
		  *state);
}

static const struct CMUnitTest tests[] = {
	TEST_IN(levels_inline, touch_finds_nothing_that_a_lookup_has_found_expired),
	TEST_IN(levels_inline, touch_finds_nothing_that_a_walk_has_found_expired),
	TEST_IN(levels_inline, replace_finds_nothing_that_a_lookup_has_found_expired),
	TEST_IN(levels_inline, delete_finds_nothing_that_a_lookup_has_found_expired),
	TEST_IN(levels_inline, what_is_filed_again_may_be_found_expired_meanwhile),
	TEST_IN(levels_inline, key_that_is_set_to_a_heavier_value_is_found_meanwhile),
};

TEST_PROGRAM(tests)
