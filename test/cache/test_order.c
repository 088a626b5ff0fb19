/* SPDX-License-Identifier: MIT */
/*
 * Several threads use one key: short histories of calls are linearizable, and a timer that fires at
 * the moment of a set removes only the old value.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/history.h"
#include "support/seed.h"
#include "support/wait.h"

/* All threads begin a round at the same moment. */
struct rounds {
	atomic_uint begun; /* rounds */
	atomic_uint ready; /* threads that have ended a round, summed over all rounds */
	unsigned others;   /* threads except the main one */
};

static void spin_until(atomic_uint *number, unsigned value)
{
	for (int spins = 0; (int)(atomic_load(number) - value) < 0; spins++) {
		if (spins > 1000)
			give_way();
	}
}

static void rounds_begin(struct rounds *rounds, unsigned round)
{
	atomic_store(&rounds->begun, round);
}

static void rounds_wait_for_begin(struct rounds *rounds, unsigned round)
{
	spin_until(&rounds->begun, round);
}

static void rounds_end(struct rounds *rounds)
{
	atomic_fetch_add(&rounds->ready, 1);
}

static void rounds_wait_for_end(struct rounds *rounds, unsigned round)
{
	spin_until(&rounds->ready, round * rounds->others);
}

static void linger(struct random *random, unsigned most)
{
	for (volatile uint64_t left = random_below(random, most); left > 0; left--)
		;
}

enum {
	CALLERS = 3,
	CALLS = HISTORY_MOST / CALLERS, /* calls of each thread in a round */
	HISTORIES = TEST_SHARE_OF(30000),
};

struct caller {
	pthread_t thread;
	struct cache_recorder *recorder;
	struct rounds *rounds;
	atomic_ulong *time;
	struct call *calls;
	unsigned first_value;
	struct random random;
};

static unsigned value_in(const struct tw_cache_entry *entry)
{
	unsigned value;

	memcpy(&value, tw_cache_entry_value(entry, NULL), sizeof(value));
	return value;
}

static enum tw_status pop(struct tw_cache *cache, struct call *call)
{
	const struct tw_cache_entry *entry;
	enum tw_status status = tw_cache_pop(cache, "key", 3, &entry);

	if (status == TW_OK)
		call->value = value_in(entry);
	tw_cache_entry_release(entry);
	return status;
}

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_computed *computed)
{
	struct call *call = context;

	call->seen = entry ? value_in(entry) : 0;
	if (call->seen != 0 && call->seen % 2 == 0)
		return TW_CACHE_DELETE;
	computed->value = &call->value;
	computed->value_size = sizeof(call->value);
	return TW_CACHE_REPLACE;
}

static enum tw_status make_call(struct tw_cache *cache, struct call *call)
{
	unsigned value = call->value;

	switch (call->kind) {
	case CALL_GET:
		return tw_cache_get(cache, "key", 3, &call->value, sizeof(value), NULL);
	case CALL_SET:
		return tw_cache_set(cache, "key", 3, &value, sizeof(value));
	case CALL_ADD:
		return put_added(cache, "key", 3, &value, sizeof(value), TW_HOUR);
	case CALL_REPLACE:
		return put_replaced(cache, "key", 3, &value, sizeof(value), TW_HOUR);
	case CALL_DELETE:
		return tw_cache_delete(cache, "key", 3);
	case CALL_POP:
		return pop(cache, call);
	case CALL_COMPUTE:
		return tw_cache_compute(cache, "key", 3, compute, call);
	case CALL_KINDS:
		break;
	}
	return TW_INVALID;
}

static void *caller_run(void *argument)
{
	struct caller *caller = argument;

	for (unsigned round = 1; round <= HISTORIES; round++) {
		rounds_wait_for_begin(caller->rounds, round);
		for (int i = 0; i < CALLS; i++) {
			struct call *call = &caller->calls[i];

			call->kind = (enum call_kind)random_below(&caller->random, CALL_KINDS);
			call->value = call->kind == CALL_GET || call->kind == CALL_DELETE ||
						      call->kind == CALL_POP
					      ? 0
					      : caller->first_value + (unsigned)i;
			linger(&caller->random, 100);
			call->began = atomic_fetch_add(caller->time, 1);
			call->succeeded = make_call(caller->recorder->cache, call) == TW_OK;
			call->ended = atomic_fetch_add(caller->time, 1);
		}
		rounds_end(caller->rounds);
	}
	return NULL;
}

static void print_history(const struct call *calls)
{
	static const char *const names[] = {"get",    "set", "add",    "replace",
					    "delete", "pop", "compute"};

	for (int i = 0; i < HISTORY_MOST; i++)
		print_message("thread %d: %llu to %llu: %s %u: %s, seen %u\n", i / CALLS,
			      (unsigned long long)calls[i].began,
			      (unsigned long long)calls[i].ended, names[calls[i].kind],
			      calls[i].value, calls[i].succeeded ? "yes" : "no", calls[i].seen);
}

static void calls_for_one_key_are_linearizable(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct rounds rounds = {.others = CALLERS};
	struct call calls[HISTORY_MOST];
	struct caller callers[CALLERS];
	uint64_t seed = seed_choose();
	atomic_ulong time = 0;

	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){
			.recorder = recorder,
			.rounds = &rounds,
			.time = &time,
			.calls = calls + i * CALLS,
			.first_value = 1 + i * CALLS,
			.random = random_from(seed, i),
		};
		assert_int_equal(pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]),
				 0);
	}
	for (unsigned round = 1; round <= HISTORIES; round++) {
		rounds_begin(&rounds, round);
		rounds_wait_for_end(&rounds, round);
		if (!history_is_linearizable(calls, HISTORY_MOST)) {
			print_history(calls);
			fail_msg("history %u is not linearizable", round);
		}
		tw_cache_delete(recorder->cache, "key", 3);
	}
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i].thread, NULL);
	cache_settle(recorder);
	cache_recorder_close_balanced(recorder);
}

/* The checker must be able to fail. */
static void histories_that_are_not_linearizable_are_found(void **state)
{
	const struct call lost[] = {{CALL_SET, 1, true, 0, 1, 2}, {CALL_GET, 0, false, 0, 3, 4}};
	const struct call stale[] = {{CALL_SET, 1, true, 0, 1, 2},
				     {CALL_SET, 2, true, 0, 3, 4},
				     {CALL_GET, 1, true, 0, 5, 6}};
	const struct call back_and_forth[] = {{CALL_SET, 1, true, 0, 1, 2},
					      {CALL_SET, 2, true, 0, 3, 10},
					      {CALL_GET, 2, true, 0, 4, 5},
					      {CALL_GET, 1, true, 0, 6, 7}};
	const struct call twice[] = {{CALL_SET, 1, true, 0, 1, 2},
				     {CALL_DELETE, 0, true, 0, 3, 8},
				     {CALL_DELETE, 0, true, 0, 4, 7}};
	const struct call popped_twice[] = {{CALL_SET, 1, true, 0, 1, 2},
					    {CALL_POP, 1, true, 0, 3, 8},
					    {CALL_POP, 1, true, 0, 4, 7}};
	const struct call torn[] = {{CALL_COMPUTE, 1, true, 0, 1, 8},
				    {CALL_COMPUTE, 3, true, 0, 2, 7}};
	const struct call fine[] = {
		{CALL_SET, 1, true, 0, 1, 10},    {CALL_GET, 0, false, 0, 2, 3},
		{CALL_GET, 1, true, 0, 4, 5},     {CALL_ADD, 2, false, 0, 4, 6},
		{CALL_REPLACE, 3, true, 0, 6, 7}, {CALL_COMPUTE, 4, true, 3, 10, 12},
		{CALL_POP, 4, true, 0, 11, 13}};

	assert_false(history_is_linearizable(lost, 2));
	assert_false(history_is_linearizable(stale, 3));
	assert_false(history_is_linearizable(back_and_forth, 4));
	assert_false(history_is_linearizable(twice, 3));
	assert_false(history_is_linearizable(popped_twice, 3));
	assert_false(history_is_linearizable(torn, 2));
	assert_true(history_is_linearizable(fine, 7));
}

enum { MEETINGS = TEST_SHARE_OF(50000) }; /* in each of two variants */

struct ticker {
	pthread_t thread;
	struct cache_recorder *recorder;
	struct rounds *rounds;
	atomic_uint advancing; /* the round in which it is about to advance */
	struct random random;
};

static void *ticker_run(void *argument)
{
	struct ticker *ticker = argument;

	for (unsigned round = 1; round <= MEETINGS; round++) {
		rounds_wait_for_begin(ticker->rounds, round);
		linger(&ticker->random, 500);
		atomic_store(&ticker->advancing, round);
		tw_advance(ticker->recorder->wheel, INTERVAL);
		rounds_end(ticker->rounds);
	}
	return NULL;
}

static void set_value(struct cache_recorder *recorder, unsigned value, tw_duration expire)
{
	assert_status(
		tw_cache_set_with_expire(recorder->cache, "key", 3, &value, sizeof(value), expire),
		TW_OK);
}

/* The old value expires in the next tick; the new one does not. */
static void meet(struct ticker *ticker, struct random *random, unsigned round)
{
	struct cache_recorder *recorder = ticker->recorder;
	unsigned value = 2 * round;
	unsigned found = 0;

	set_value(recorder, value, INTERVAL);
	rounds_begin(ticker->rounds, round);
	/* Most sets come while the clock moves, from the beginning to well after. */
	if (!random_once_in(random, 4))
		spin_until(&ticker->advancing, round);
	linger(random, random_once_in(random, 2) ? 1000 : 20000);
	set_value(recorder, ++value, 3 * INTERVAL);
	rounds_wait_for_end(ticker->rounds, round);
	assert_status(tw_cache_get(recorder->cache, "key", 3, &found, sizeof(found), NULL), TW_OK);
	assert_int_equal(found, value);
}

/* Checks that each old value was removed once, expired or replaced, and each new one replaced. */
static void assert_all_left(struct cache_recorder *recorder)
{
	unsigned char *left = calloc(2 * MEETINGS + 2, 1);

	assert_non_null(left);
	assert_int_equal(removal_count(recorder), 2 * MEETINGS - 1);
	for (size_t i = 0; i < removal_count(recorder); i++) {
		struct removal removal = removal_at(recorder, i);
		unsigned value;

		memcpy(&value, removal.value, sizeof(value));
		assert_true(removal.cause == TW_CAUSE_REPLACED ||
			    (removal.cause == TW_CAUSE_EXPIRED && value % 2 == 0));
		assert_int_equal(left[value]++, 0);
	}
	free(left);
}

static void set_that_meets_the_firing_timer_stays(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct rounds rounds = {.others = 1};
	uint64_t seed = seed_choose();
	struct random random = random_from(seed, 1);
	struct ticker ticker = {
		.recorder = recorder, .rounds = &rounds, .random = random_from(seed, 2)};
	struct tw_cache_stats stats;

	assert_int_equal(pthread_create(&ticker.thread, NULL, ticker_run, &ticker), 0);
	for (unsigned round = 1; round <= MEETINGS; round++)
		meet(&ticker, &random, round);
	pthread_join(ticker.thread, NULL);
	cache_settle(recorder);
	assert_balanced(recorder->cache);
	stats = cache_stats(recorder);
	assert_int_equal(stats.entries, 1);
	print_message("%llu expired first, %llu were replaced first\n",
		      (unsigned long long)stats.removed[TW_CAUSE_EXPIRED],
		      (unsigned long long)stats.removed[TW_CAUSE_REPLACED] - (MEETINGS - 1));
	assert_all_left(recorder);
	cache_recorder_close(recorder);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(histories_that_are_not_linearizable_are_found),
	TEST_IN(levels_inline, calls_for_one_key_are_linearizable),
	TEST_IN(levels_inline, set_that_meets_the_firing_timer_stays),
	TEST_IN(levels_threads, set_that_meets_the_firing_timer_stays),
};

TEST_PROGRAM(tests)
