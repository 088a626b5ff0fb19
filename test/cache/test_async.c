/* SPDX-License-Identifier: MIT */
/*
 * These are takes with a callback, the cache's own loader on the wheel's pool, and loads that their
 * loader keeps, to be ended by another thread, or never.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_source.h"
#include "support/stats.h"

/* These are the arguments of a take's callback. */
struct outcome {
	atomic_int times;
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned */
	pthread_t thread;
	void (*call)(struct outcome *outcome); /* called inside */
	struct cache_recorder *recorder;       /* for that call */
};

static void be_answered(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct outcome *outcome = context;

	outcome->status = status;
	outcome->entry = entry ? tw_cache_entry_pin(entry) : NULL;
	outcome->thread = pthread_self();
	if (outcome->call)
		outcome->call(outcome);
	atomic_fetch_add(&outcome->times, 1);
}

static void take_async(struct cache_recorder *recorder, const char *key, struct outcome *outcome)
{
	void (*call)(struct outcome *) = outcome->call;

	*outcome = (struct outcome){.times = 0, .call = call, .recorder = recorder};
	assert_status(tw_cache_take_async(recorder->cache, key, strlen(key), be_answered, outcome),
		      TW_OK);
}

#define assert_answered(outcome, status, value) \
	assert_answered_(outcome, status, value, __FILE__, __LINE__)
static void assert_answered_(struct outcome *outcome, enum tw_status status, const char *value,
			     const char *file, int line)
{
	WAIT_UNTIL(atomic_load(&outcome->times) > 0);
	_assert_int_equal(atomic_load(&outcome->times), 1, file, line);
	_assert_string_equal(tw_status_name(outcome->status), tw_status_name(status), file, line);
	if (value)
		assert_value_(outcome->entry, value, file, line);
	else
		_assert_true(outcome->entry == NULL, "no entry", file, line);
	tw_cache_entry_release(outcome->entry);
	outcome->entry = NULL;
}

static struct cache_recorder *open_with_source(void *state, struct source *source,
					       struct tw_cache_options more)
{
	source_open(source, "loaded");
	more.load = source_load;
	more.load_context = source;
	return cache_recorder_open_with(state, TW_HOUR, more);
}

SOURCED(inline_and_threads, value_that_is_there_is_returned_at_once, open_with_source)
{
	struct outcome outcome = {.call = NULL};

	cache_set(recorder, "key", "set");
	take_async(recorder, "key", &outcome);
	assert_int_equal(outcome.times, 1);
	assert_true(pthread_equal(outcome.thread, pthread_self()));
	assert_answered(&outcome, TW_OK, "set");
	assert_int_equal(source->loads, 0);
	assert_cache_counts(recorder->cache, .hits = 1, .inserts = 1, .entries = 1);
}

SOURCED(threads, value_that_is_not_there_is_loaded_on_the_wheels_pool, open_with_source)
{
	struct outcome outcome = {.call = NULL};
	struct outcome others[TAKERS] = {{.call = NULL}};

	source->gated = true;
	take_async(recorder, "key", &outcome);
	gate_await(&source->gate);
	for (int i = 0; i < TAKERS; i++)
		take_async(recorder, "key", &others[i]);
	assert_int_equal(outcome.times, 0);
	gate_open(&source->gate);
	assert_answered(&outcome, TW_OK, "loaded");
	assert_false(pthread_equal(outcome.thread, pthread_self()));
	for (int i = 0; i < TAKERS; i++)
		assert_answered(&others[i], TW_OK, "loaded");
	assert_holds(recorder, "key", "loaded");
	assert_int_equal(source->loads, 1);
	assert_cache_counts(recorder->cache, .hits = 1, .misses = TAKERS + 1, .loads = 1,
			    .load_waits = TAKERS, .inserts = 1, .entries = 1);
}

SOURCED(threads, takes_of_both_kinds_share_a_load, open_with_source)
{
	struct outcome outcome = {.call = NULL};
	struct taker taker;
	struct source other;

	/* The load belongs to a thread that waits for it. */
	source_open(&other, "by the taker");
	taker_start_load(&taker, recorder, "key", &other);
	take_async(recorder, "key", &outcome);
	gate_open(&other.gate);
	assert_taker_ends(&taker, TW_OK, "by the taker");
	assert_answered(&outcome, TW_OK, "by the taker");
	/* The load belongs to the cache. */
	source->gated = true;
	take_async(recorder, "second", &outcome);
	gate_await(&source->gate);
	taker_start(&taker, recorder, "second", &other, TW_FOREVER);
	WAIT_UNTIL(cache_stats(recorder).load_waits == 2);
	gate_open(&source->gate);
	assert_taker_ends(&taker, TW_OK, "loaded");
	assert_answered(&outcome, TW_OK, "loaded");
	assert_int_equal(source->loads, 1);
}

SOURCED(threads, errors_and_absences_are_reported, open_with_source, .negative_expire = TW_HOUR)
{
	struct outcome outcome = {.call = NULL};

	source->status = TW_SYSTEM;
	take_async(recorder, "key", &outcome);
	assert_answered(&outcome, TW_SYSTEM, NULL);
	source->status = TW_OK;
	source->value = NULL;
	take_async(recorder, "key", &outcome);
	assert_answered(&outcome, TW_LOAD_FAILED, NULL);
	source->status = TW_NOT_FOUND;
	take_async(recorder, "key", &outcome);
	assert_answered(&outcome, TW_NOT_FOUND, NULL);
	take_async(recorder, "key", &outcome);
	assert_int_equal(outcome.times, 1);
	assert_answered(&outcome, TW_NOT_FOUND, NULL);
	assert_int_equal(source->loads, 3);
	assert_cache_counts(recorder->cache, .misses = 3, .absent = 1, .loads = 3, .load_errors = 3,
			    .inserts = 1, .entries = 1);
}

SOURCED(inline_and_threads, take_without_a_loader_has_the_caches, open_with_source)
{
	const struct tw_cache_entry *entry;

	assert_status(tw_cache_take(recorder->cache, "key", 3, NULL, NULL, 0, &entry), TW_OK);
	assert_value(entry, "loaded");
	tw_cache_entry_release(entry);
	assert_int_equal(source->loads, 1);
}

/* The one load that may run does, and a waiting take does not wait for it. */
SOURCED(threads, take_runs_a_load_that_waits_for_the_pool, open_with_source, .loaders = 1)
{
	struct outcome outcome = {.call = NULL};
	struct outcome queued = {.call = NULL};
	struct source own;

	source->gated = true;
	take_async(recorder, "slow", &outcome);
	gate_await(&source->gate);
	take_async(recorder, "key", &queued);
	assert_int_equal(queued.times, 0);
	source_open(&own, "own");
	assert_taken(recorder, "key", &own, "own");
	assert_int_equal(queued.times, 1);
	assert_answered(&queued, TW_OK, "own");
	gate_open(&source->gate);
	assert_answered(&outcome, TW_OK, "loaded");
	assert_holds(recorder, "key", "own");
	assert_int_equal(source->loads, 1);
}

SOURCED(threads, take_after_a_delete_begins_another_load, open_with_source, .loaders = 2)
{
	struct outcome early = {.call = NULL};
	struct outcome late = {.call = NULL};

	source->gated = true;
	take_async(recorder, "key", &early);
	gate_await(&source->gate);
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_NOT_FOUND);
	take_async(recorder, "key", &late);
	gate_await(&source->gate);
	gate_open(&source->gate);
	gate_open(&source->gate);
	assert_answered(&early, TW_OK, "loaded");
	assert_answered(&late, TW_OK, "loaded");
	assert_holds(recorder, "key", "loaded");
	assert_int_equal(source->loads, 2);
	assert_int_equal(cache_stats(recorder).load_waits, 0);
}

static void take_again(struct outcome *outcome)
{
	struct outcome *inner = outcome->recorder->argument;

	assert_status(tw_cache_flush(outcome->recorder->cache), TW_INVALID);
	tw_cache_destroy(outcome->recorder->cache);
	take_async(outcome->recorder, "inner", inner);
}

SOURCED(threads, callback_may_take_and_may_not_destroy, open_with_source)
{
	struct outcome outcome = {.call = take_again};
	struct outcome inner = {.call = NULL};

	recorder->argument = &inner;
	take_async(recorder, "key", &outcome);
	assert_answered(&outcome, TW_OK, "loaded");
	assert_answered(&inner, TW_OK, "loaded");
	assert_holds(recorder, "inner", "loaded");
}

enum { LINKS = 500 };

/* In a chain of takes each callback makes the next take. */
struct chain {
	struct tw_cache *cache;
	int links;
	uintptr_t first; /* address of the first frame */
	uintptr_t last;
};

static void take_next(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct chain *chain = context;
	char here;

	assert_status(status, TW_OK);
	assert_non_null(entry);
	chain->last = (uintptr_t)&here;
	if (chain->links == 0)
		chain->first = chain->last;
	if (++chain->links < LINKS)
		assert_status(tw_cache_take_async(chain->cache, "key", 3, take_next, chain), TW_OK);
}

/* The header has the figure. It includes the callback's own frame. */
SOURCED(inline_and_threads, link_of_a_chain_of_hits_takes_little_of_the_stack, open_with_source)
{
	enum { LEAST = 100, MOST = 500 };
	struct chain chain = {.cache = recorder->cache};

	cache_set(recorder, "key", "set");
	assert_status(tw_cache_take_async(chain.cache, "key", 3, take_next, &chain), TW_OK);
	assert_int_equal(chain.links, LINKS);
	if (!TEST_HAS_SANITIZER && !TEST_IS_EMULATED)
		assert_in_range((chain.first - chain.last) / (LINKS - 1), LEAST, MOST);
}

SOURCED(inline_and_threads, bad_arguments_of_take_async_are_refused, open_with_source)
{
	struct tw_cache_options options = cache_recorder_options(recorder);
	struct tw_cache *cache = recorder->cache;
	struct tw_cache *other;
	struct outcome outcome = {.call = NULL};

	assert_status(tw_cache_take_async(NULL, "k", 1, be_answered, &outcome), TW_INVALID);
	assert_status(tw_cache_take_async(cache, NULL, 1, be_answered, &outcome), TW_INVALID);
	assert_status(tw_cache_take_async(cache, "k", 0, be_answered, &outcome), TW_INVALID);
	assert_status(tw_cache_take_async(cache, "k", 1, NULL, &outcome), TW_INVALID);
	assert_status(tw_cache_create(&other, TW_HOUR, &options), TW_OK);
	assert_status(tw_cache_take_async(other, "k", 1, be_answered, &outcome), TW_INVALID);
	tw_cache_destroy(other);
	options.load = source_load;
	/* Its own wheel has at most TW_WORKERS_MAX workers. */
	options.loaders = TW_CACHE_LOADERS_MAX;
	options.wheel = NULL;
	assert_status(tw_cache_create(&other, TW_HOUR, &options), TW_OK);
	tw_cache_destroy(other);
	assert_status(tw_cache_stop(cache), TW_OK);
	assert_status(tw_cache_take_async(cache, "k", 1, be_answered, &outcome), TW_CLOSED);
	assert_int_equal(outcome.times, 0);
}

SOURCED(inline, where_callers_drive_the_wheel_they_run_the_loads, open_with_source, .loaders = 1)
{
	struct outcome outcomes[3] = {{.call = NULL}};

	take_async(recorder, "a", &outcomes[0]);
	take_async(recorder, "b", &outcomes[1]);
	take_async(recorder, "a", &outcomes[2]);
	assert_int_equal(source->loads, 0);
	assert_int_equal(cache_stats(recorder).loads_waiting, 2);
	cache_pass(recorder, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(outcomes[i].times, 1);
		assert_true(pthread_equal(outcomes[i].thread, pthread_self()));
		assert_answered(&outcomes[i], TW_OK, "loaded");
	}
	assert_int_equal(source->loads, 2);
}

/* Nothing runs loads on a wheel that is stopped: what is queued ends, at the latest when more is
 * queued. A take that waits runs its loader itself. */
SOURCED(inline, load_on_a_stopped_wheel_is_closed, open_with_source, .loaders = 1)
{
	struct outcome before = {.call = NULL};
	struct outcome after = {.call = NULL};

	take_async(recorder, "a", &before);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	take_async(recorder, "b", &after);
	assert_answered(&before, TW_CLOSED, NULL);
	assert_answered(&after, TW_CLOSED, NULL);
	assert_int_equal(source->loads, 0);
	assert_int_equal(cache_stats(recorder).loads_waiting, 0);
	assert_taken(recorder, "a", source, "loaded");
}

/* A load that no thread has begun is no failure of the source: the key does not pause. */
SOURCED(inline_and_threads, load_that_a_stopped_wheel_refuses_is_no_failure, open_with_source,
	.retry_after = TW_HOUR)
{
	struct outcome outcome = {.call = NULL};

	assert_status(tw_stop(recorder->wheel), TW_OK);
	take_async(recorder, "key", &outcome);
	assert_answered(&outcome, TW_CLOSED, NULL);
	assert_taken(recorder, "key", source, "loaded");
}

/* A lookup queues no reload then, and ends no load of others. */
SOURCED(inline, lookup_on_a_stopped_wheel_calls_no_function, open_with_source,
	.refresh_after = INTERVAL)
{
	struct outcome outcome = {.call = NULL};

	cache_set(recorder, "key", "old");
	cache_pass(recorder, 2 * INTERVAL);
	take_async(recorder, "other", &outcome);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	assert_holds(recorder, "key", "old");
	assert_holds(recorder, "key", "old");
	assert_int_equal(outcome.times, 0);
	assert_int_equal(cache_stats(recorder).loads_waiting, 1);
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	assert_answered(&outcome, TW_CLOSED, NULL);
	assert_int_equal(source->loads, 0);
}

/* ---- Loads that are kept ---- */

/* This loader only sends a request. */
struct request {
	struct tw_cache_loading *loading;
	atomic_int sent;
	enum tw_status answer; /* the loader's, which is ignored */
	enum tw_status second; /* status of keeping it a second time */
};

static enum tw_status request_load(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	struct request *request = argument;

	request->loading = loading;
	if (tw_cache_load_keep(loading) != TW_OK)
		return TW_SYSTEM;
	request->second = tw_cache_load_keep(loading);
	atomic_fetch_add(&request->sent, 1);
	return request->answer;
}

static struct cache_recorder *open_with_request(void *state, struct request *request)
{
	*request = (struct request){.answer = TW_TIMED_OUT};
	return cache_recorder_open_with(
		state, TW_HOUR,
		(struct tw_cache_options){.load = request_load, .load_context = request});
}

static void *request_taker_run(void *argument)
{
	struct taker *taker = argument;

	taker->status =
		tw_cache_take(taker->recorder->cache, taker->key, strlen(taker->key), request_load,
			      taker->recorder->argument, taker->wait, &taker->entry);
	return NULL;
}

TEST(threads, kept_load_ends_when_another_thread_says_so)
{
	struct request request;
	struct cache_recorder *recorder = open_with_request(*state, &request);
	struct outcome outcome = {.call = NULL};
	struct taker takers[TAKERS];
	struct source never;

	take_async(recorder, "key", &outcome);
	WAIT_UNTIL(atomic_load(&request.sent) == 1);
	source_open(&never, "never");
	start_waiters(takers, recorder, "key", &never);
	assert_int_equal(outcome.times, 0);
	assert_status(request.second, TW_INVALID);
	assert_status(give_copied(request.loading, "first", 5, 0), TW_OK);
	assert_status(give_copied(request.loading, "answer", 6, TW_FOREVER), TW_OK);
	assert_holds_none(recorder, "key");
	assert_status(tw_cache_load_end(request.loading, TW_OK), TW_OK);
	assert_int_equal(outcome.times, 1);
	assert_answered(&outcome, TW_OK, "answer");
	assert_true(pthread_equal(outcome.thread, pthread_self()));
	assert_takers_end(takers, TW_OK, "answer");
	assert_holds(recorder, "key", "answer");
	assert_int_equal(never.loads, 0);
	assert_int_equal(cache_stats(recorder).loads, 1);
	assert_int_equal(cache_stats(recorder).load_errors, 0);
	assert_int_equal(cache_stats(recorder).load_time.count, 1);
	cache_recorder_close(recorder);
}

/* The callback waits for the take in another thread. */
static void await_the_taker(struct outcome *outcome)
{
	pthread_join(((struct taker *)outcome->recorder->argument)->thread, NULL);
}

TEST(threads, thread_that_waits_does_not_wait_for_callbacks)
{
	struct request request;
	struct cache_recorder *recorder = open_with_request(*state, &request);
	struct outcome outcome = {.call = await_the_taker};
	struct taker taker;
	struct source never;

	take_async(recorder, "key", &outcome);
	WAIT_UNTIL(atomic_load(&request.sent) == 1);
	source_open(&never, "never");
	taker_start(&taker, recorder, "key", &never, TW_FOREVER);
	recorder->argument = &taker;
	WAIT_UNTIL(cache_stats(recorder).load_waits == 1);
	assert_status(give_copied(request.loading, "answer", 6, 0), TW_OK);
	assert_status(tw_cache_load_end(request.loading, TW_OK), TW_OK);
	assert_answered(&outcome, TW_OK, "answer");
	assert_status(taker.status, TW_OK);
	assert_value(taker.entry, "answer");
	tw_cache_entry_release(taker.entry);
	cache_recorder_close(recorder);
}

TEST(threads, abandoned_load_is_reported_as_failed)
{
	struct request request;
	struct cache_recorder *recorder = open_with_request(*state, &request);
	struct outcome outcome = {.call = NULL};

	take_async(recorder, "key", &outcome);
	WAIT_UNTIL(atomic_load(&request.sent) == 1);
	assert_status(give_copied(request.loading, "ignored", 7, 0), TW_OK);
	assert_status(tw_cache_load_end(request.loading, TW_LOAD_FAILED), TW_OK);
	assert_answered(&outcome, TW_LOAD_FAILED, NULL);
	assert_holds_none(recorder, "key");
	assert_int_equal(cache_stats(recorder).load_errors, 1);
	/* The next take starts a new load. */
	take_async(recorder, "key", &outcome);
	WAIT_UNTIL(atomic_load(&request.sent) == 2);
	assert_status(tw_cache_load_end(request.loading, TW_OK), TW_OK);
	assert_answered(&outcome, TW_LOAD_FAILED, NULL);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, take_waits_for_its_own_load_that_is_kept_as_long_as_it_likes)
{
	struct request request;
	struct cache_recorder *recorder = open_with_request(*state, &request);
	const struct tw_cache_entry *entry = (const void *)state;
	struct taker taker = {.recorder = recorder, .key = "key", .wait = TW_FOREVER};

	assert_status(tw_cache_take(recorder->cache, "key", 3, NULL, NULL, TW_MILLISECOND, &entry),
		      TW_TIMED_OUT);
	assert_null(entry);
	assert_int_equal(cache_stats(recorder).wait_timeouts, 1);
	assert_status(give_copied(request.loading, "late", 4, 0), TW_OK);
	assert_status(tw_cache_load_end(request.loading, TW_OK), TW_OK);
	assert_holds(recorder, "key", "late");
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	recorder->argument = &request;
	assert_int_equal(pthread_create(&taker.thread, NULL, request_taker_run, &taker), 0);
	WAIT_UNTIL(atomic_load(&request.sent) == 2);
	assert_status(give_copied(request.loading, "again", 5, 0), TW_OK);
	assert_status(tw_cache_load_end(request.loading, TW_OK), TW_OK);
	assert_taker_ends(&taker, TW_OK, "again");
	cache_recorder_close(recorder);
}

static enum tw_status load_that_ends_itself(void *argument, const void *key, size_t key_size,
					    struct tw_cache_loading *loading)
{
	int *wrong = argument;
	int freed = 0;

	*wrong += give_copied(loading, key, key_size, 0) != TW_OK;
	*wrong += tw_cache_load_end(loading, TW_OK) != TW_OK;
	*wrong += tw_cache_load_end(loading, TW_OK) != TW_CLOSED;
	*wrong += tw_cache_load_keep(loading) != TW_INVALID;
	*wrong += give_copied(loading, "late", 4, 0) != TW_CLOSED;
	*wrong += give_adopted(loading, &freed, 1, 1, NULL, NULL, 0) != TW_CLOSED;
	return TW_SYSTEM;
}

CACHED(inline_and_threads, loader_may_end_its_load_itself, TW_HOUR)
{
	const struct tw_cache_entry *entry;
	int wrong = 0;

	assert_status(
		tw_cache_take(recorder->cache, "key", 3, load_that_ends_itself, &wrong, 0, &entry),
		TW_OK);
	assert_value(entry, "key");
	tw_cache_entry_release(entry);
	assert_int_equal(wrong, 0);
	assert_holds(recorder, "key", "key");
	assert_int_equal(cache_stats(recorder).load_errors, 0);
}

/* ---- The end of the cache ---- */

TEST(threads, stop_ends_takes_that_wait)
{
	struct request request;
	struct cache_recorder *recorder = open_with_request(*state, &request);
	struct outcome outcome = {.call = NULL};
	struct outcome second = {.call = NULL};
	struct taker taker;
	struct source never;

	take_async(recorder, "key", &outcome);
	take_async(recorder, "key", &second);
	WAIT_UNTIL(atomic_load(&request.sent) == 1);
	source_open(&never, "never");
	taker_start(&taker, recorder, "key", &never, TW_FOREVER);
	WAIT_UNTIL(cache_stats(recorder).load_waits == 2);
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	assert_int_equal(outcome.times + second.times, 2);
	assert_answered(&outcome, TW_CLOSED, NULL);
	assert_answered(&second, TW_CLOSED, NULL);
	assert_taker_ends(&taker, TW_CLOSED, NULL);
	assert_status(give_copied(request.loading, "late", 4, 0), TW_OK);
	assert_status(tw_cache_load_end(request.loading, TW_OK), TW_OK);
	assert_int_equal(cache_stats(recorder).entries, 0);
	cache_recorder_close(recorder);
}

TEST(threads, load_that_is_kept_for_ever_holds_up_no_destroy)
{
	struct request request;
	struct cache_recorder *recorder = open_with_request(*state, &request);
	struct outcome outcome = {.call = NULL};

	take_async(recorder, "key", &outcome);
	WAIT_UNTIL(atomic_load(&request.sent) == 1);
	assert_status(give_copied(request.loading, "given", 5, 0), TW_OK);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_answered(&outcome, TW_CLOSED, NULL);
	assert_status(give_copied(request.loading, "late", 4, 0), TW_CLOSED);
	assert_status(tw_cache_load_keep(request.loading), TW_INVALID);
	assert_status(tw_cache_load_end(request.loading, TW_OK), TW_CLOSED);
	cache_recorder_close(recorder);
}

SOURCED(threads, destroy_waits_for_the_loader_and_drops_what_is_queued, open_with_source,
	.loaders = 1)
{
	struct outcome outcome = {.call = NULL};
	struct outcome queued = {.call = NULL};

	source->gated = true;
	take_async(recorder, "running", &outcome);
	gate_await(&source->gate);
	take_async(recorder, "queued", &queued);
	assert_status(tw_cache_stop(recorder->cache), TW_OK);
	assert_answered(&outcome, TW_CLOSED, NULL);
	assert_answered(&queued, TW_CLOSED, NULL);
	gate_open(&source->gate);
	tw_cache_destroy(recorder->cache);
	recorder->cache = NULL;
	assert_int_equal(source->loads, 1);
}

/* One thread ends loads while another destroys the cache. */
enum { RACES = TEST_SHARE_OF(2000), KEPT = 4 };

struct kept {
	struct tw_cache_loading *loading[KEPT];
	atomic_int count;
	atomic_int is_on;
};

static enum tw_status kept_load(void *argument, const void *key, size_t key_size,
				struct tw_cache_loading *loading)
{
	struct kept *kept = argument;

	may_fail(tw_cache_load_keep(loading));
	kept->loading[*(const char *)key - '0'] = loading;
	atomic_fetch_add(&kept->count, 1);
	return TW_OK;
}

static void *kept_ender_run(void *argument)
{
	struct kept *kept = argument;

	while (!atomic_load(&kept->is_on))
		continue;
	for (int i = 0; i < KEPT; i++) {
		(void)give_copied(kept->loading[i], "value", 5, 0);
		(void)tw_cache_load_end(kept->loading[i], TW_OK);
	}
	return NULL;
}

TEST(threads, loads_may_end_while_the_cache_does)
{
	for (int race = 0; race < RACES; race++) {
		struct kept kept = {.count = 0};
		struct cache_recorder *recorder = cache_recorder_open_quiet(
			*state, TW_HOUR,
			(struct tw_cache_options){
				.load = kept_load, .load_context = &kept, .loaders = 1});
		struct outcome outcome[KEPT] = {{.call = NULL}};
		pthread_t ender;

		for (int i = 0; i < KEPT; i++) {
			char key[2] = {(char)('0' + i), 0};

			take_async(recorder, key, &outcome[i]);
		}
		WAIT_UNTIL(atomic_load(&kept.count) == KEPT);
		assert_int_equal(pthread_create(&ender, NULL, kept_ender_run, &kept), 0);
		atomic_store(&kept.is_on, 1);
		for (volatile int i = 0; i < race * 20 % 20000; i++)
			;
		tw_cache_destroy(recorder->cache);
		recorder->cache = NULL;
		pthread_join(ender, NULL);
		for (int i = 0; i < KEPT; i++) {
			assert_int_equal(outcome[i].times, 1);
			assert_true(outcome[i].status == TW_OK || outcome[i].status == TW_CLOSED);
			tw_cache_entry_release(outcome[i].entry);
		}
		cache_recorder_close(recorder);
	}
}

static enum tw_status load_and_see_mask(void *argument, const void *key, size_t key_size,
					struct tw_cache_loading *loading)
{
	pthread_sigmask(SIG_BLOCK, NULL, argument);
	return give_copied(loading, "value", 5, 0);
}

TEST(threads, loader_has_the_signal_mask_of_a_task)
{
	struct outcome outcome = {.call = NULL};
	struct cache_recorder *recorder;
	sigset_t blocked;
	sigset_t before;
	sigset_t seen;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	recorder = cache_recorder_open_quiet(*state, TW_HOUR,
					     (struct tw_cache_options){.load = load_and_see_mask,
								       .load_context = &seen,
								       .loaders = 1});
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	take_async(recorder, "key", &outcome);
	WAIT_UNTIL(atomic_load(&outcome.times) == 1);
	cache_recorder_close(recorder);
	tw_cache_entry_release(outcome.entry);
	assert_true(sigismember(&seen, SIGUSR1));
	assert_false(sigismember(&seen, SIGTERM));
	assert_false(sigismember(&seen, SIGSEGV));
}
