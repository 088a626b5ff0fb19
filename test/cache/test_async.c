/* SPDX-License-Identifier: MIT */
/*
 * These are takes with a callback, the cache's own loader on the wheel's pool, and loads that their
 * loader keeps, to be ended by another thread, or never.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
#include "support/cache_source.h"

CACHE_SCRIPT(inline_and_threads, value_that_is_there_is_returned_at_once, TW_HOUR,
	     "set key set; async a key; answers a = 1; thread a = own; answered a = set;"
	     "loads = 0; counts = hits 1 inserts 1 entries 1",
	     LOADS)

CACHE_SCRIPT(threads, value_that_is_not_there_is_loaded_on_the_wheels_pool, TW_HOUR,
	     "source loaded gated; async a key; reached; async 20 b key; answers a = 0; go;"
	     "answered a = loaded; thread a = another; answered b = loaded; get key = loaded;"
	     "loads = 1;"
	     "counts = hits 1 misses 21 loads_begun 1 load_waits 20 inserts 1 entries 1",
	     LOADS)

/* The first load belongs to a thread that waits for it, the second one to the cache. */
CACHE_SCRIPT(threads, takes_of_both_kinds_share_a_load, TW_HOUR,
	     "other own gated; begin t take key other; reached other; async a key; go other;"
	     "ended t = own; answered a = own; source loaded gated; async b second; reached;"
	     "begin t take second other; await load_waits 2; go; ended t = loaded;"
	     "answered b = loaded; loads = 1",
	     LOADS)

CACHE_SCRIPT(threads, errors_and_absences_are_reported, TW_HOUR,
	     "source loaded SYSTEM; async a key; answered a = SYSTEM; source -; async a key;"
	     "answered a = LOAD_FAILED; source NOT_FOUND; async a key; answered a = NOT_FOUND;"
	     "async a key; answers a = 1; answered a = NOT_FOUND; loads = 3;"
	     "counts = misses 3 absent 1 loads_begun 3 load_errors 3 inserts 1 entries 1",
	     LOADS, .negative_expire = TW_HOUR)

CACHE_SCRIPT(inline_and_threads, take_without_a_loader_has_the_caches, TW_HOUR,
	     "source loaded; take key own wait 0 = loaded; loads = 1", LOADS)

/* The one load that may run does, and a waiting take does not wait for it. */
CACHE_SCRIPT(threads, take_runs_a_load_that_waits_for_the_pool, TW_HOUR,
	     "source loaded gated; async a slow; reached; async b key; answers b = 0; other mine;"
	     "take key other = mine; answers b = 1; answered b = mine; go; answered a = loaded;"
	     "get key = mine; loads = 1",
	     LOADS, .loaders = 1)

CACHE_SCRIPT(threads, take_after_a_delete_begins_another_load, TW_HOUR,
	     "source loaded gated; async a key; reached; delete key = NOT_FOUND; async b key;"
	     "reached; go; go; answered a = loaded; answered b = loaded; get key = loaded;"
	     "loads = 2; load_waits = 0",
	     LOADS, .loaders = 2)

CACHE_SCRIPT(inline, where_callers_drive_the_wheel_they_run_the_loads, TW_HOUR,
	     "source loaded; async a a; async b b; async c a; loads = 0; loads_waiting = 2; pass 0;"
	     "answers a = 1; answers b = 1; answers c = 1; thread a = own; thread b = own;"
	     "thread c = own; answered a = loaded; answered b = loaded; answered c = loaded;"
	     "loads = 2",
	     LOADS, .loaders = 1)

/* Nothing runs loads on a wheel that is stopped: what is queued ends, at the latest when more is
 * queued. A take that waits runs its loader itself. */
CACHE_SCRIPT(inline, load_on_a_stopped_wheel_is_closed, TW_HOUR,
	     "source loaded; async a a; wheel_stop; async b b; answered a = CLOSED;"
	     "answered b = CLOSED; loads = 0; loads_waiting = 0; take a = loaded",
	     LOADS, .loaders = 1)

/* A load that no thread has begun is no failure of the source: the key does not pause. */
CACHE_SCRIPT(inline_and_threads, load_that_a_stopped_wheel_refuses_is_no_failure, TW_HOUR,
	     "source loaded; wheel_stop; async a key; answered a = CLOSED; take key = loaded",
	     LOADS, .retry_after = TW_HOUR)

/* A lookup queues no reload then, and ends no load of others. */
CACHE_SCRIPT(
	inline, lookup_on_a_stopped_wheel_calls_no_function, TW_HOUR,
	"source loaded; set key old; pass 2; async a beside; wheel_stop; get key = old;"
	"get key = old; answers a = 0; loads_waiting = 1; stop; answered a = CLOSED; loads = 0",
	LOADS, .refresh_after = INTERVAL)

/* ---- Loads that are kept ---- */

CACHE_SCRIPT(threads, kept_load_ends_when_another_thread_says_so, TW_HOUR,
	     "source kept TIMED_OUT; async a key; reached; begin 20 b take key other;"
	     "await load_waits 20; answers a = 0; give first; give answer never;"
	     "get key = NOT_FOUND; end OK; answers a = 1; answered a = answer; thread a = own;"
	     "ended b = answer; get key = answer; loads other = 0; loads_begun = 1;"
	     "load_errors = 0; loads_ended = 1",
	     LOADS)

/* The next take starts a new load. */
CACHE_SCRIPT(threads, abandoned_load_is_reported_as_failed, TW_HOUR,
	     "source kept; async a key; reached; give ignored; end LOAD_FAILED;"
	     "answered a = LOAD_FAILED; get key = NOT_FOUND; load_errors = 1; async a key; reached;"
	     "end OK; answered a = LOAD_FAILED",
	     LOADS)

CACHE_SCRIPT(
	inline_and_threads, take_waits_for_its_own_load_that_is_kept_as_long_as_it_likes, TW_HOUR,
	"source kept; take key own wait 1 = TIMED_OUT; reached; wait_timeouts = 1; give late;"
	"end OK; get key = late; delete key; begin t take key own; reached; give again; end OK;"
	"ended t = again",
	LOADS)

CACHE_SCRIPT(threads, stop_ends_takes_that_wait, TW_HOUR,
	     "source kept; async a key; async b key; reached; begin t take key other;"
	     "await load_waits 2; stop; answers a = 1; answers b = 1; answered a = CLOSED;"
	     "answered b = CLOSED; ended t = CLOSED; give late; end OK; entries = 0",
	     LOADS)

CACHE_SCRIPT(threads, load_that_is_kept_for_ever_holds_up_no_destroy, TW_HOUR,
	     "source kept; async a key; reached; give given; destroy; answered a = CLOSED;"
	     "give late = CLOSED; keep = INVALID; end OK = CLOSED",
	     LOADS)

CACHE_SCRIPT(threads, destroy_waits_for_the_loader_and_drops_what_is_queued, TW_HOUR,
	     "source loaded gated; async a running; reached; async b queued; stop;"
	     "answered a = CLOSED; answered b = CLOSED; go; destroy; loads = 1",
	     LOADS, .loaders = 1)

/* ---- Functions that call, and races ---- */

/* These are the arguments of a take's callback. */
struct outcome {
	atomic_int times;
	enum tw_status status;
	const struct tw_cache_entry *entry;    /* pinned */
	void (*call)(struct outcome *outcome); /* called inside */
	struct cache_recorder *recorder;       /* for that call */
};

static void be_answered(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct outcome *outcome = context;

	outcome->status = status;
	outcome->entry = entry ? tw_cache_entry_pin(entry) : NULL;
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

/* This loader only sends a request. */
struct request {
	struct tw_cache_loading *loading;
	atomic_int sent;
};

static enum tw_status request_load(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	struct request *request = argument;

	request->loading = loading;
	if (tw_cache_load_keep(loading) != TW_OK)
		return TW_SYSTEM;
	atomic_fetch_add(&request->sent, 1);
	return TW_OK;
}

static struct cache_recorder *open_with_request(void *state, struct request *request)
{
	*request = (struct request){.loading = NULL};
	return cache_recorder_open_with(
		state, TW_HOUR,
		(struct tw_cache_options){.load = request_load, .load_context = request});
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
