/* SPDX-License-Identifier: MIT */
/*
 * The calls that take a key. A take that finds neither an entry nor a load of the key begins one;
 * others that find the load wait for its end. A tw_cache_take runs the loader that it has begun, or
 * that no thread has begun so far, without any lock, and waits in its thread for that of another.
 * A tw_cache_take_async leaves the load to the queue, and its function waits.
 */
#include <stdlib.h>

#include "base/thread.h"
#include "callback.h"
#include "load.h"
#include "lookup.h"
#include "pins.h"
#include "refresh.h"

struct take {
	struct tw_cache *cache;
	struct shard *shard;
	struct reader *reader;
	uint64_t hash;
	const void *key;
	size_t key_size;
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned for the caller, or NULL */
	struct tw_cache_loading *loading;   /* which the take has joined or begun, or NULL */
	bool has_begun;
};

/* ---- What is there ---- */

/* Looks the key up, and counts what it finds. Returns false if it is to be loaded. */
static bool take_look(struct take *take)
{
	struct tw_cache_entry *there =
		cache_find(take->cache, take->reader, take->hash, take->key, take->key_size);
	bool is_old;

	if (there)
		take->status = reader_count_find(take->reader, there);
	if (there && take->status == TW_OK) {
		entry_hold(there);
		take->entry = there;
	}
	/* The clock is read for those alone that age. */
	is_old = there && (there->kind & ENTRY_AGING) &&
		 entry_wants_refresh(there, shared_coarse_now(&take->cache->shared));
	reader_leave(take->reader);
	if (is_old)
		cache_refresh(take->cache, take->hash, take->key, take->key_size);
	return there != NULL;
}

/* Between begin and end: does what take_look() does, which most keys that were not found before the
 * lock was taken don't need. */
static bool take_look_again(struct take *take)
{
	_Atomic uint64_t *slot;

	return table_find(shard_table(take->shard), take->hash, take->key, take->key_size, &slot) &&
	       take_look(take);
}

/* Returns whether the key still pauses after a load that failed. Then the take gets the old value,
 * if there is one, or what that load got. */
static bool take_pauses(struct take *take, const struct tw_cache_loading *paused)
	HOLDS(take->shard->lock)
{
	struct tw_cache *cache = take->cache;
	tw_duration now = tw_now(cache->shared.wheel);

	if (cache->retry_after == 0 || paused->retry_at <= now)
		return false;
	take->entry =
		cache_pin_stale(cache, take->shard, take->hash, take->key, take->key_size, now);
	take->status = load_result(paused, take->entry);
	return true;
}

/* Joins the load of a key that was not found before the lock was taken, or begins one at the real
 * time `now`, which the loader's thread runs, or which is to be queued if `loader` is NULL. Returns
 * false if the take ends here. */
static bool take_join(struct take *take, struct reader *loader, tw_duration now)
	HOLDS(take->shard->lock)
{
	struct tw_cache *cache = take->cache;
	struct tw_cache_loading *loading;

	if (take_look_again(take))
		return false;
	take->status = TW_CLOSED;
	/* tw_cache_destroy waits for loads: no other begins after one that it has waited for. */
	if (shared_is_closed(&cache->shared))
		return false;
	reader_count(take->reader, COUNT_MISSES, 1);
	loading = take->shard->has_flights ? flights_find(&take->shard->flights, take->hash,
							  take->key, take->key_size)
					   : NULL;
	if (loading && loading->state == FLIGHT_PAUSED) {
		if (take_pauses(take, loading))
			return false;
		loading = NULL;
	}
	take->has_begun = !loading;
	take->loading = loading ? loading
				: shard_list_load(take->shard, cache, loader, take->hash, take->key,
						  take->key_size, now);
	take->status = TW_NO_MEMORY;
	return take->loading;
}

/* ---- Waiting in the thread ---- */

struct sleeping_take {
	struct waiter waiter;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_done; /* under the lock */
};

static void sleeper_wake(struct waiter *waiter, struct tw_cache *cache)
{
	struct sleeping_take *sleeper = list_entry(waiter, struct sleeping_take, waiter);

	(void)cache;
	pthread_mutex_lock(&sleeper->lock);
	sleeper->is_done = true;
	pthread_cond_signal(&sleeper->wake);
	pthread_mutex_unlock(&sleeper->lock);
}

/* Sleeps until the waiter is called, or until that real time. Returns whether it was called. */
static bool sleeper_sleep(struct sleeping_take *sleeper, tw_duration until)
{
	bool in_time = true;
	bool is_done;

	pthread_mutex_lock(&sleeper->lock);
	while (!sleeper->is_done && in_time)
		in_time = condition_wait(&sleeper->wake, &sleeper->lock, until);
	is_done = sleeper->is_done;
	pthread_mutex_unlock(&sleeper->lock);
	return is_done;
}

/* The load takes too long. The take gets what there is beside it. */
static void take_time_out(struct take *take) HOLDS(take->shard->lock)
{
	struct tw_cache *cache = take->cache;

	take->status = TW_TIMED_OUT;
	if (cache->shared.stale > 0)
		take->entry = cache_pin_stale(cache, take->shard, take->hash, take->key,
					      take->key_size, tw_now(cache->shared.wheel));
	if (take->entry)
		take->status = TW_STALE;
	else
		reader_count(take->reader, COUNT_WAIT_TIMEOUTS, 1);
}

/* Waits for the end of the load. Lets the lock go, and takes it again. */
static void take_sleep(struct take *take, tw_duration until) HOLDS(take->shard->lock)
{
	struct sleeping_take sleeper = {.waiter = {.sleeps = true, .done = sleeper_wake}};
	bool is_called;

	pthread_mutex_init(&sleeper.lock, NULL);
	condition_init(&sleeper.wake);
	flight_add_waiter(take->loading, &sleeper.waiter);
	shard_end_unchanged(take->shard);
	is_called = sleeper_sleep(&sleeper, until);
	shard_begin(take->shard);
	if (!is_called && sleeper.waiter.is_listed) {
		list_remove(&sleeper.waiter.link);
		take_time_out(take);
	} else if (!is_called) {
		/* It is about to be called. */
		shard_end_unchanged(take->shard);
		is_called = sleeper_sleep(&sleeper, TW_FOREVER);
		shard_begin(take->shard);
	}
	if (is_called) {
		take->status = sleeper.waiter.status;
		take->entry = sleeper.waiter.entry;
	}
	pthread_cond_destroy(&sleeper.wake);
	pthread_mutex_destroy(&sleeper.lock);
}

/* Takes the result of a load that this thread has run, and that is over. */
static void take_loaded(struct take *take)
{
	struct tw_cache_loading *loading = take->loading;

	take->entry = loading->entry;
	take->status = load_result(loading, loading->entry);
}

/* Waits for the load of another thread, or for one that this thread has run and that is kept.
 * `until` is a real time; 0 waits not at all. */
static void take_wait(struct take *take, tw_duration until) HOLDS(take->shard->lock)
{
	if (take->loading->loader == take->reader)
		take->status = TW_INVALID;
	else if (shared_is_closed(&take->cache->shared))
		take->status = TW_CLOSED;
	else if (until > 0)
		take_sleep(take, until);
	else
		take_time_out(take);
}

/* Runs the load that the take has begun. */
static void take_run(struct take *take, tw_cache_load *load, void *argument, tw_duration now,
		     tw_duration wait)
{
	struct tw_cache_loading *loading = take->loading;

	load_run(take->cache, take->reader, loading, now, load, argument);
	if (!loading->is_kept) {
		take_loaded(take);
	} else {
		shard_begin(take->shard);
		loading->is_taken = false;
		if (loading->state >= FLIGHT_PAUSED)
			take_loaded(take);
		else
			take_wait(take, wait > 0 ? time_add(now, wait) : 0);
		shard_end_unchanged(take->shard);
	}
	flight_let_go(loading);
}

/* Begins the load that the take has joined if it is queued. Returns whether it was. */
static bool take_takes_over(struct take *take) HOLDS(take->shard->lock)
{
	struct tw_cache_loading *loading = take->loading;

	if (loading->state != FLIGHT_QUEUED || !load_queue_take(&take->cache->loads, loading))
		return false;
	/* The value of a reload can't be read any more. */
	if (loading->is_refresh)
		limit_give(&take->cache->refreshing);
	loading->is_refresh = false;
	flight_begin(loading, &take->shard->flights, take->reader);
	return true;
}

/* Loads a key that was not found. */
static __attribute__((noinline)) void take_missed(struct take *take, tw_cache_load *load,
						  void *argument, tw_duration wait)
{
	struct tw_cache *cache = take->cache;
	struct tw_cache_loading *loading;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	bool runs = false;

	reader_begin_take(take->reader);
	shard_begin(take->shard);
	if (take_join(take, take->reader, now)) {
		loading = take->loading;
		runs = take->has_begun || take_takes_over(take);
		loading->is_taken |= runs;
		if (!runs) {
			reader_count(take->reader, COUNT_LOAD_WAITS,
				     loading->loader != take->reader);
			take_wait(take, wait > 0 ? time_add(now, wait) : 0);
		}
	}
	shard_end_unchanged(take->shard);
	if (runs)
		take_run(take, load ? load : cache->load, load ? argument : cache->load_context,
			 now, wait);
	reader_count(take->reader, COUNT_STALE, take->status == TW_STALE);
	reader_end_take(take->reader);
}

/* Begins a take whose cache and key are filled in. Returns false if they are not valid. */
static bool take_begin(struct take *take)
{
	take->status = TW_INVALID;
	if (key_is_valid(take->key, take->key_size))
		take->status = cache_admit(take->cache, &take->reader);
	if (take->status != TW_OK)
		return false;
	take->hash = key_hash_wide(&take->cache->shared.seed, take->key, take->key_size);
	take->shard = cache_shard(take->cache, take->hash);
	return true;
}

/* Does what tw_cache_take() does, whatever it is asked. */
static __attribute__((noinline)) void take_any(struct take *take, tw_cache_load *load,
					       void *argument, tw_duration wait)
{
	if (take_begin(take) && !take_look(take))
		take_missed(take, load, argument, wait);
}

enum tw_status tw_cache_take(struct tw_cache *cache, const void *key, size_t key_size,
			     tw_cache_load *load, void *argument, tw_duration wait,
			     const struct tw_cache_entry **entry)
{
	enum glance_result result;
	struct glance glance;
	struct take take;

	if (!entry)
		return TW_INVALID;
	*entry = NULL;
	if (!cache || (!load && !cache->load))
		return TW_INVALID;
	result = cache_glance(cache, key, key_size, &glance);
	if (__builtin_expect(result == GLANCE_HIT, 1)) {
		*entry = glance_take(&glance);
		return TW_OK;
	}
	if (result != GLANCE_NONE)
		reader_leave(glance.reader);
	take = (struct take){.cache = cache, .key = key, .key_size = key_size};
	if (result == GLANCE_MISS) {
		take.reader = glance.reader;
		take.hash = glance.hash;
		take.shard = glance.shard;
		take_missed(&take, load, argument, wait);
	} else {
		take_any(&take, load, argument, wait);
	}
	*entry = take.entry;
	return take.status;
}

/* ---- Without waiting ---- */

/* A take whose result its function receives. */
struct asker {
	struct waiter waiter;
	tw_cache_value_fn *on_value;
	void *context;
};

static void asker_call(struct waiter *waiter, struct tw_cache *cache)
{
	struct callback callback
		__attribute__((cleanup(callback_end))) = {.shared = &cache->shared};
	struct asker *asker = list_entry(waiter, struct asker, waiter);
	/* NULL if out of memory. */
	struct reader *reader = epochs_reader(&cache->shared.epochs);

	if (reader) {
		reader_count(reader, COUNT_STALE, waiter->status == TW_STALE);
		reader->callbacks++;
	}
	asker->on_value(asker->context, waiter->status, waiter->entry);
	if (reader)
		reader->callbacks--;
	callback.has_returned = true;
	tw_cache_entry_release(waiter->entry);
	free(asker);
}

/* Has the waiter wait for a key that was not found. Returns false if the result is known. */
static bool take_asks(struct take *take, struct waiter *waiter)
{
	struct load_queue *queue = &take->cache->loads;
	bool is_open = true;
	bool waits;

	shard_begin(take->shard);
	waits = take_join(take, NULL, clock_read_real(CLOCK_MONOTONIC));
	if (waits) {
		flight_add_waiter(take->loading, waiter);
		if (take->has_begun)
			is_open = load_queue_add(queue, take->loading);
		else
			reader_count(take->reader, COUNT_LOAD_WAITS, 1);
		if (!take->has_begun && take->loading->is_refresh)
			is_open = load_queue_prefer(queue, take->loading);
	}
	shard_end_unchanged(take->shard);
	if (!is_open)
		load_queue_refuse(queue);
	return waits;
}

enum tw_status tw_cache_take_async(struct tw_cache *cache, const void *key, size_t key_size,
				   tw_cache_value_fn *on_value, void *context)
{
	struct take take = {.cache = cache, .key = key, .key_size = key_size};
	struct asker *asker;

	if (!cache || !on_value || !cache->load)
		return TW_INVALID;
	if (!take_begin(&take))
		return take.status;
	asker = malloc(sizeof(*asker));
	if (!asker)
		return TW_NO_MEMORY;
	*asker = (struct asker){
		.waiter = {.done = asker_call}, .on_value = on_value, .context = context};
	if (!take_look(&take) && take_asks(&take, &asker->waiter))
		return TW_OK;
	asker->waiter.status = take.status;
	asker->waiter.entry = take.entry;
	asker_call(&asker->waiter, cache);
	return TW_OK;
}
