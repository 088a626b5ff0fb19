/* SPDX-License-Identifier: MIT */
/* A timer that fires at the moment of a set removes only the old value. */
#include "support/test.h"

#include "support/cache_recorder.h"

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

CACHED(inline_and_threads, set_that_meets_the_firing_timer_stays, TW_HOUR)
{
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
}
