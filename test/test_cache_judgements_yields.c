/* SPDX-License-Identifier: MIT */
/*
 * A call is held up before each of its atomic operations in turn, while the key's deadline passes
 * and another thread looks the key up: what that one has found expired, the call does not find
 * there. With the library of test_histories_yields.
 */
#include "support/test.h"

#include "support/cache_recorder.h"
#include "support/gate.h"
#include "yields/yield.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* The deadline lies between two moments of one tick: no alarm runs in between. */
#define LIFE (INTERVAL * 6 / 5)
#define BEFORE INTERVAL
#define AFTER (INTERVAL * 3 / 2)

enum { OPERATIONS_LEAST = 8 };

/* The thread that looks. */
static struct onlooker {
	struct cache_recorder *recorder;
	struct gate gate;
	bool ends;
	enum tw_status status;
	/* Of the call: operations until it is held up. */
	int operations;
} onlooker;

static void *onlooker_run(void *unused)
{
	for (gate_pass(&onlooker.gate); !onlooker.ends; gate_pass(&onlooker.gate)) {
		if (tw_advance(onlooker.recorder->wheel, AFTER - BEFORE) != TW_OK)
			abort();
		onlooker.status = cache_get(onlooker.recorder, "key");
	}
	return unused;
}

static void hold_up(void)
{
	if (--onlooker.operations != 0)
		return;
	gate_open(&onlooker.gate);
	gate_await(&onlooker.gate);
}

typedef enum tw_status changing_call(struct tw_cache *cache);

/* Of what is held up there. */
struct outcome {
	bool is_held_up; /* false: it has no such operation any more */
	enum tw_status status;
	enum tw_status looked; /* what the onlooker was answered meanwhile */
	bool has_expired;      /* the entry has left as one past its deadline */
};

static struct outcome hold_up_at(int operation, changing_call *call, const struct variant *variant,
				 tw_duration idle)
{
	struct cache_recorder *recorder = cache_recorder_open_quiet(
		variant, TW_HOUR, (struct tw_cache_options){.shards = 1, .idle = idle});
	struct outcome outcome;

	onlooker.recorder = recorder;
	onlooker.operations = operation;
	cache_set_for(recorder, "key", "old", LIFE);
	cache_pass(recorder, BEFORE);
	yield_instead = hold_up;
	outcome.status = call(recorder->cache);
	yield_instead = NULL;
	outcome.is_held_up = onlooker.operations <= 0;
	outcome.looked = onlooker.status;
	outcome.has_expired = cache_stats(recorder).removed[TW_CAUSE_EXPIRED] == 1;
	cache_recorder_close(recorder);
	return outcome;
}

/* Until the call is done without. It finds the key there at some, and not at others. */
static void hold_up_everywhere(changing_call *call, void (*judge)(struct outcome),
			       const struct variant *variant, tw_duration idle)
{
	struct outcome outcome;
	pthread_t thread;
	int found = 0;
	int operation = 1;

	onlooker.ends = false;
	gate_init(&onlooker.gate);
	assert_int_equal(pthread_create(&thread, NULL, onlooker_run, NULL), 0);
	gate_await(&onlooker.gate);
	for (;; operation++) {
		outcome = hold_up_at(operation, call, variant, idle);
		if (!outcome.is_held_up)
			break;
		judge(outcome);
		found += outcome.status == TW_OK;
	}
	assert_status(outcome.status, TW_OK);
	assert_true(operation > OPERATIONS_LEAST && found > 0 && found < operation - 1);
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

static void touch_finds_nothing_that_a_lookup_has_found_expired(void **state)
{
	hold_up_everywhere(touch, both_find_the_same, *state, 0);
	hold_up_everywhere(touch, both_find_the_same, *state, TW_HOUR);
}

static void replace_finds_nothing_that_a_lookup_has_found_expired(void **state)
{
	hold_up_everywhere(replace, both_find_the_same, *state, 0);
	hold_up_everywhere(replace, both_find_the_same, *state, TW_HOUR);
}

static void delete_finds_nothing_that_a_lookup_has_found_expired(void **state)
{
	hold_up_everywhere(delete, entry_leaves_as_answered, *state, 0);
}

static const struct CMUnitTest tests[] = {
	TEST_IN(levels_inline, touch_finds_nothing_that_a_lookup_has_found_expired),
	TEST_IN(levels_inline, replace_finds_nothing_that_a_lookup_has_found_expired),
	TEST_IN(levels_inline, delete_finds_nothing_that_a_lookup_has_found_expired),
};

TEST_PROGRAM(tests)
