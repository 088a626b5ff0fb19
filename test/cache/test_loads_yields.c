/* SPDX-License-Identifier: MIT */
/*
 * The end of a load has begun another, for a take that looks again, and is held up before it queues
 * that for the loaders, before each of its atomic operations in turn, while another thread destroys
 * the cache: the load that it queues then is let go of. With the library of test_histories_yields.
 */
#include "support/test.h"

#include "cache/cache.h"
#include "support/blocked_call.h"
#include "support/cache_recorder.h"
#include "support/wait.h"
#include "support/yields/yield.h"

#include <pthread.h>
#include <stdatomic.h>

/* The deadline lies between two moments of one tick: no alarm runs in between. */
#define LIFE (INTERVAL * 16 / 5)
#define BEFORE (3 * INTERVAL)
#define AFTER (INTERVAL * 7 / 2)

/* Of so many filings one more, or one entry fewer, and the shard files its entries anew, some at
 * each change: those that have expired leave there, and are retired behind the lock. */
enum { ENTRIES = 100, FORGOTTEN = 2 * ENTRIES + 64 - ENTRIES };
enum { LOOKS = 20 };

static struct trial {
	struct cache_recorder *recorder;
	struct tw_cache_loading *kept;
	atomic_int loads;
	atomic_int told;
	int operations;
	struct tw_cache_loading *queued; /* the load that its end has begun */
	struct blocked_call destroyer;
} trial;

/* Keeps its first load. */
static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	(void)argument;
	(void)key;
	(void)key_size;
	if (atomic_load(&trial.loads) == 0) {
		(void)tw_cache_load_keep(loading);
		trial.kept = loading;
	}
	atomic_fetch_add(&trial.loads, 1);
	return TW_SYSTEM;
}

static void be_told(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	(void)context;
	(void)status;
	(void)entry;
	atomic_fetch_add(&trial.told, 1);
}

static void destroy(void *cache)
{
	tw_cache_destroy(cache);
}

/* Until the other thread can go no further. */
static void await_destroyer(void)
{
	for (int looks = 0; looks < LOOKS && !blocked_call_has_returned(&trial.destroyer);) {
		looks = blocked_call_is_asleep(&trial.destroyer) ? looks + 1 : 0;
		give_way();
	}
}

/* Another than the one that is kept; NULL: there is none, or the shard's lock is held. */
static struct tw_cache_loading *listed_load(void)
{
	struct shard *shard = &trial.recorder->cache->shards[0];
	struct tw_cache_loading *loading;

	if (!turn_lock_try(&shard->lock))
		return NULL;
	loading = shard->loadings && shard->loadings != trial.kept ? loading_hold(shard->loadings)
								   : NULL;
	turn_lock_let_go(&shard->lock);
	return loading;
}

static void hold_up(void)
{
	/* Once it was held up, the cache may be gone. */
	struct tw_cache_loading *loading = trial.queued ? NULL : listed_load();

	if (!loading || --trial.operations != 0) {
		loading_let_go(loading);
		return;
	}
	trial.queued = loading;
	blocked_call_start(&trial.destroyer, destroy, trial.recorder->cache);
	await_destroyer();
}

static void take_async(void)
{
	assert_status(tw_cache_take_async(trial.recorder->cache, "key", 3, be_told, NULL), TW_OK);
}

/* One load is kept, and a take waits that will look again after it. */
static void trial_open(const struct variant *variant, int operation)
{
	struct tw_cache_options options = {.shards = 1, .load = load, .loaders = 1};

	trial = (struct trial){.operations = operation};
	trial.recorder = cache_recorder_open_quiet(variant, TW_HOUR, options);
	take_async();
	WAIT_UNTIL(atomic_load(&trial.loads) == 1);
	for (char name[] = {1, 0}; name[0] <= ENTRIES; name[0]++)
		cache_set_for(trial.recorder, name, "value", LIFE);
	for (int i = 0; i < FORGOTTEN; i++) {
		cache_set(trial.recorder, "forgotten", "value");
		assert_status(tw_cache_delete(trial.recorder->cache, "forgotten", 9), TW_OK);
	}
	cache_pass(trial.recorder, BEFORE);
	assert_status(tw_cache_delete(trial.recorder->cache, "key", 3), TW_NOT_FOUND);
	take_async();
	assert_status(tw_advance(trial.recorder->wheel, AFTER - BEFORE), TW_OK);
	assert_status(tw_cache_delete(trial.recorder->cache, "\1", 1), TW_NOT_FOUND);
}

/* False: the end of the load has no such operation any more. */
static bool trial_hold_up_at(const struct variant *variant, int operation)
{
	trial_open(variant, operation);
	yield_instead = hold_up;
	(void)tw_cache_load_end(trial.kept, TW_SYSTEM);
	yield_instead = NULL;
	if (trial.queued) {
		blocked_call_end(&trial.destroyer);
		trial.recorder->cache = NULL;
		assert_int_equal(atomic_load(&trial.queued->references), 1);
		loading_let_go(trial.queued);
	}
	cache_recorder_close(trial.recorder);
	assert_int_equal(atomic_load(&trial.told), 2);
	return trial.queued;
}

static void load_queued_while_the_cache_is_destroyed_is_let_go(void **state)
{
	int operation = 1;
	bool held_up;

	/* After the load was queued the loader's thread may have the shard's lock: then this one
	 * does not see whether a load is listed, and there are fewer operations, maybe none. */
	do {
		held_up = trial_hold_up_at(*state, operation);
		operation += held_up;
	} while (held_up || operation == 1);
}

static const struct CMUnitTest tests[] = {
	TEST_IN(levels_inline, load_queued_while_the_cache_is_destroyed_is_let_go),
};

TEST_PROGRAM(tests)
