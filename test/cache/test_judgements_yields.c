/* SPDX-License-Identifier: MIT */
/*
 * A call is held up before each of its atomic operations in turn, while another thread looks the
 * key up, most often after the key's deadline has passed: what that one has found expired, the call
 * does not find there; and a key that is there all the time it finds. With the library of
 * test_histories_yields.
 */
#include "support/test.h"

#include "support/cache_recorder.h"
#include "support/gate.h"
#include "support/yields/yield.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* The deadline lies between two moments of one tick: no alarm runs in between. */
#define LIFE (INTERVAL * 16 / 5)
#define BEFORE (3 * INTERVAL)
#define AFTER (INTERVAL * 7 / 2)

enum { OPERATIONS_LEAST = 8 };

/* The thread that looks. */
static struct onlooker {
	struct cache_recorder *recorder;
	struct gate gate;
	bool ends;
	enum tw_status (*look)(void);
	tw_duration passes; /* before it looks */
	enum tw_status status;
	/* Of the call: operations until it is held up. */
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

/* The first visit lasts until the call is held up. */
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

/* Of what is held up at an operation. */
struct outcome {
	bool is_held_up; /* false: it has no such operation any more */
	enum tw_status status;
	enum tw_status looked; /* what the onlooker was answered meanwhile */
	bool has_expired;      /* the entry has left as one past its deadline */
};

struct trial {
	enum tw_status (*call)(struct tw_cache *cache);
	void (*judge)(struct outcome);
	tw_duration passes; /* AFTER - BEFORE: the deadline does */
	struct tw_cache_options options;
	bool walks;         /* the onlooker does, instead of looking the key up */
	bool is_of_another; /* key: the call finds it, always */
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

/* At each, until the call is done before it comes to the next. */
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
	/* It has read the clock after its first operations. */
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
	return tw_cache_replace(cache, "key", 3, "new", 3, TW_HOUR);
}

static enum tw_status delete (struct tw_cache *cache) { return tw_cache_delete(cache, "key", 3); }

/* Of a call that has the key live on. */
static void both_find_the_same(struct outcome outcome)
{
	assert_status(outcome.looked, outcome.status);
}

static void entry_leaves_as_answered(struct outcome outcome)
{
	assert_status(outcome.looked, TW_NOT_FOUND);
	assert_int_equal(outcome.has_expired, outcome.status == TW_NOT_FOUND);
}

/* Unless it was the first one visited. */
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

/* What ten letters and the light value weigh: each a cell of 64 bytes, and 40. */
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

/* Of 86 filings 11 are wanted: one entry fewer, and the shard files them anew, in the call. */
static void what_is_filed_anew_may_be_found_expired_meanwhile(void **state)
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
	TEST_IN(levels_inline, what_is_filed_anew_may_be_found_expired_meanwhile),
	TEST_IN(levels_inline, key_that_is_set_to_a_heavier_value_is_found_meanwhile),
};

TEST_PROGRAM(tests)
