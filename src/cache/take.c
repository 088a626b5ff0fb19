/* SPDX-License-Identifier: MIT */
/*
 * The calls that take a key. A take that finds neither an entry nor a load of the key begins one;
 * others that find the load wait for its end. A tw_cache_take runs the loader that it has begun, or
 * that no thread has begun so far, without any lock, and waits in its thread for that of another.
 * A tw_cache_take_async leaves the load to the queue, and its function waits.
 */
#include <stdlib.h>

#include "base/thread.h"
#include "lookup.h"

struct take {
	struct tw_cache *cache;
	struct shard *shard;
	struct caller *caller;
	uint64_t hash;
	const void *key;
	size_t key_size;
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned for the caller, or NULL */
	struct tw_cache_loading *loading;   /* which the take has joined or begun, or NULL */
};

/* What a take does next. */
enum take_next { TAKE_ENDS, TAKE_WAITS, TAKE_LOADS };

/* ---- What is there ---- */

/* Looks the key up, and counts what it finds. Returns false if it is to be loaded. */
static bool take_look(struct take *take)
{
	bool is_there = cache_find(take->cache, take->caller, take->hash, take->key, take->key_size,
				   &take->entry);

	take->status = take->entry ? TW_OK : TW_NOT_FOUND;
	return is_there;
}

/* Between begin and end: does what take_look() does, which most keys that were not found before the
 * lock was taken don't need. */
static bool take_look_again(struct take *take)
{
	_Atomic uint64_t *slot;

	return table_find(take->shard->table, take->hash, take->key, take->key_size, &slot) &&
	       take_look(take);
}

/* The load of the key has failed with that status. The take gets the old value, if there is one. */
static void take_fail(struct take *take, enum tw_status status) HOLDS(take->shard->lock)
{
	take->entry = cache_pin_stale(take->cache, take->shard, take->hash, take->key,
				      take->key_size, tw_now(take->cache->shared.wheel));
	take->status = take->entry ? TW_STALE : status;
	caller_count(take->caller, COUNT_STALE, take->entry != NULL);
}

/* The load takes too long. */
static void take_time_out(struct take *take) HOLDS(take->shard->lock)
{
	take_fail(take, TW_TIMED_OUT);
	caller_count(take->caller, COUNT_WAIT_TIMEOUTS, !take->entry);
}

/* Joins the load of a key that was not found before the lock was taken, or begins one, which the
 * loader's thread runs, or which is to be queued if `loader` is NULL. */
static enum take_next take_join(struct take *take, struct caller *loader) HOLDS(take->shard->lock)
{
	struct tw_cache *cache = take->cache;
	struct tw_cache_loading *loading = NULL;

	if (take_look_again(take))
		return TAKE_ENDS;
	take->status = TW_CLOSED;
	/* tw_cache_destroy waits for loads: no other begins after one that it has waited for. */
	if (shared_is_closed(&cache->shared))
		return TAKE_ENDS;
	caller_count(take->caller, COUNT_MISSES, 1);
	if (take->shard->has_flights)
		loading =
			flights_find(&take->shard->flights, take->hash, take->key, take->key_size);
	take->loading = loading;
	if (loading && loading->state != FLIGHT_PAUSED)
		return TAKE_WAITS;
	if (loading && cache->options.retry_after > 0 &&
	    loading->retry_at > tw_now(cache->shared.wheel)) {
		take_fail(take, loading->status);
		return TAKE_ENDS;
	}
	take->loading =
		load_list(cache, take->shard, loader, take->hash, take->key, take->key_size);
	take->status = TW_NO_MEMORY;
	return take->loading ? TAKE_LOADS : TAKE_ENDS;
}

/* ---- In the thread ---- */

/* Goes on with a load that the take has joined: runs it if it is still queued, or may wait for
 * it. */
static enum take_next take_joined(struct take *take, tw_duration until) HOLDS(take->shard->lock)
{
	struct tw_cache_loading *loading = take->loading;

	if (loading->state == FLIGHT_QUEUED && load_queue_take(take->cache, loading)) {
		flight_begin(loading, &take->shard->flights, take->caller);
		return TAKE_LOADS;
	}
	take->status = TW_INVALID;
	if (loading->loader == take->caller)
		return TAKE_ENDS;
	caller_count(take->caller, COUNT_LOAD_WAITS, 1);
	if (until == 0) {
		take_time_out(take);
		return TAKE_ENDS;
	}
	(void)flight_hold(loading);
	return TAKE_WAITS;
}

/* Waits for the load's end, not at all if `until` is 0, and takes its status, and the old value if
 * it has failed. */
static void take_wait(struct take *take, tw_duration until) HOLDS(take->shard->lock)
{
	struct tw_cache_loading *loading = take->loading;
	bool in_time = until > 0;
	bool is_closed;

	while (!(is_closed = shared_is_closed(&take->cache->shared)) && in_time &&
	       loading->state < FLIGHT_PAUSED)
		in_time = flight_wait(loading, &take->shard->lock, until);
	if (loading->state < FLIGHT_PAUSED && is_closed)
		take->status = TW_CLOSED;
	else if (loading->state < FLIGHT_PAUSED)
		take_time_out(take);
	else if (load_has_failed(loading->status))
		take_fail(take, loading->status);
	else
		take->status = loading->status;
}

/* Takes the result of a load that this thread has run, or waits for. */
static void take_result(struct take *take, bool has_run, tw_duration until)
{
	struct tw_cache_loading *loading = take->loading;
	bool has_ended = has_run && !loading->is_kept;

	if (has_ended && !load_has_failed(loading->status)) {
		take->status = loading->status;
	} else {
		turn_lock_take(&take->shard->lock);
		take_wait(take, until);
		turn_lock_let_go(&take->shard->lock);
	}
	if (take->status == TW_OK)
		take->entry = flight_take_entry(loading);
	load_leave(take->cache);
	flight_let_go(loading);
}

/* Loads a key that was not found. */
static __attribute__((noinline)) void take_missed(struct take *take, tw_cache_load *load,
						  void *argument, tw_duration wait)
{
	struct tw_cache *cache = take->cache;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	tw_duration until = wait > 0 ? time_add(now, wait) : 0;
	enum take_next next;

	turn_lock_take(&take->shard->lock);
	next = take_join(take, take->caller);
	if (next == TAKE_WAITS)
		next = take_joined(take, until);
	take->shard->flights.entered += next != TAKE_ENDS;
	turn_lock_let_go(&take->shard->lock);
	if (next == TAKE_ENDS)
		return;
	if (next == TAKE_LOADS)
		load_run(cache, take->caller, take->loading, now, load ? load : cache->options.load,
			 load ? argument : cache->options.load_context);
	take_result(take, next == TAKE_LOADS, until);
}

/* Begins a take whose cache and key are filled in. Returns false if they are not valid. */
static bool take_begin(struct take *take)
{
	take->status = TW_INVALID;
	if (key_is_valid(take->key, take->key_size))
		take->status = cache_admit(take->cache, &take->caller);
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
	if (!cache || (!load && !cache->options.load))
		return TW_INVALID;
	result = cache_glance(cache, key, key_size, &glance);
	if (__builtin_expect(result == GLANCE_HIT, 1)) {
		*entry = glance_take(&glance);
		if (__builtin_expect(*entry != NULL, 1))
			return TW_OK;
	}
	take = (struct take){.cache = cache, .key = key, .key_size = key_size};
	if (result == GLANCE_MISS) {
		take.caller = glance.caller;
		take.hash = glance.look.hash;
		take.shard = glance.look.shard;
		take_missed(&take, load, argument, wait);
	} else {
		take_any(&take, load, argument, wait);
	}
	*entry = take.entry;
	return take.status;
}

/* ---- Without waiting ---- */

/* Has the asker wait for a key that was not found. Returns false if the result is known. */
static bool take_asks(struct take *take, struct asker *asker)
{
	struct tw_cache *cache = take->cache;
	enum take_next next;
	bool is_open = true;

	turn_lock_take(&take->shard->lock);
	next = take_join(take, NULL);
	if (next != TAKE_ENDS)
		list_append(&take->loading->askers, &asker->link);
	caller_count(take->caller, COUNT_LOAD_WAITS, next == TAKE_WAITS);
	if (next == TAKE_LOADS || (next == TAKE_WAITS && take->loading->is_refresh &&
				   load_queue_take(cache, take->loading)))
		is_open = load_queue_add(cache, take->loading);
	turn_lock_let_go(&take->shard->lock);
	if (!is_open)
		load_queue_refuse(cache);
	return next != TAKE_ENDS;
}

enum tw_status tw_cache_take_async(struct tw_cache *cache, const void *key, size_t key_size,
				   tw_cache_value_fn *on_value, void *context)
{
	struct take take = {.cache = cache, .key = key, .key_size = key_size};
	struct asker *asker;

	if (!cache || !on_value || !cache->options.load)
		return TW_INVALID;
	if (!take_begin(&take))
		return take.status;
	asker = malloc(sizeof(*asker));
	if (!asker)
		return TW_NO_MEMORY;
	*asker = (struct asker){.on_value = on_value, .context = context};
	if (!take_look(&take) && take_asks(&take, asker))
		return TW_OK;
	free(asker);
	load_answer(cache, on_value, context, take.status, take.entry);
	tw_cache_entry_release(take.entry);
	return TW_OK;
}
