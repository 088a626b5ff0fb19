/* SPDX-License-Identifier: MIT */
/*
 * A set of a key that is there is stopped before each of its atomic operations in turn, while
 * another thread looks the key up, and finds it. This uses the library of test_histories_yields.
 */
#include "support/test.h"

#include "support/cache_recorder.h"
#include "support/gate.h"
#include "support/yields/yield.h"

enum { OPERATIONS_LEAST = 8 };

/* The onlooker is the thread that looks the key up. */
static struct onlooker {
	struct cache_recorder *recorder;
	struct gate gate;
	bool ends;
	enum tw_status status;
	/* The call is stopped after this number of operations. */
	int operations;
} onlooker;

static void *onlooker_run(void *unused)
{
	for (gate_pass(&onlooker.gate); !onlooker.ends; gate_pass(&onlooker.gate))
		onlooker.status = cache_get(onlooker.recorder, "key");
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

/* Ten letters and the light value weigh this: each a cell of 64 bytes, and 40. */
enum { BYTES_MOST = 11 * (64 + 40) };

/* Returns whether the set has as many operations. */
static bool is_found_at(const struct variant *variant, enum tw_cache_policy policy, int operation)
{
	struct cache_recorder *recorder = cache_recorder_open_quiet(
		variant, TW_HOUR,
		(struct tw_cache_options){.max_bytes = BYTES_MOST, .policy = policy, .shards = 1});

	onlooker.recorder = recorder;
	/* A thread's first call allocates, and may wait for that. */
	onlooker_goes_on();
	cache_set_letters(recorder, "abcdefghij");
	cache_set(recorder, "key", "old");
	onlooker.status = TW_OK;
	onlooker.operations = operation;
	yield_instead = hold_up;
	cache_set(recorder, "key", "thirty bytes, much more than 3");
	yield_instead = NULL;
	assert_status(onlooker.status, TW_OK);
	cache_recorder_close(recorder);
	return onlooker.operations <= 0;
}

/* Others make room for the new value. */
TEST(inline, key_that_is_set_to_a_heavier_value_is_found_meanwhile)
{
	pthread_t thread;

	gate_init(&onlooker.gate);
	assert_int_equal(pthread_create(&thread, NULL, onlooker_run, NULL), 0);
	gate_await(&onlooker.gate);
	for (int policy = 0; policy < 2; policy++) {
		int operation = 1;

		while (is_found_at(*state, (enum tw_cache_policy)policy, operation))
			operation++;
		assert_true(operation > OPERATIONS_LEAST);
	}
	onlooker.ends = true;
	gate_open(&onlooker.gate);
	pthread_join(thread, NULL);
}
