/* SPDX-License-Identifier: MIT */
/*
 * The calls that take keys one by one. A take that finds neither an entry nor a load of the key
 * begins one, and runs the loader without any lock; others that find the load wait for its end. A
 * load that only waits for a thread of the cache a take runs itself.
 */
#include <stdlib.h>

#include "load.h"
#include "lookup.h"
#include "pins.h"
#include "refresh.h"
#include "take.h"
#include "waiter.h"

void take_init(struct take *take, struct tw_cache *cache, struct reader *reader, const void *key,
	       size_t key_size)
{
	*take = (struct take){.cache = cache, .reader = reader, .key = key, .key_size = key_size};
	take->hash = key_hash_wide(&cache->shared.seed, key, key_size);
	take->shard = cache_shard(cache, take->hash);
}

/* The key has no value. Returns whether it is not to be loaded either: it is known to be absent, or
 * pauses after a load that failed. */
static __attribute__((noinline)) bool take_is_absent(struct take *take,
						     struct tw_cache_entry *there)
{
	bool has_failed = entry_has_failed(there);

	if (has_failed && entry_refresh_at(there) <= tw_now(take->cache->shared.wheel))
		return false;
	reader_count(take->reader, has_failed ? COUNT_MISSES : COUNT_ABSENT, 1);
	take->status = has_failed ? (enum tw_status)entry_age(there)->status : TW_NOT_FOUND;
	return true;
}

bool take_look(struct take *take)
{
	struct tw_cache_entry *there;
	bool is_old;

	there = cache_find(take->cache, take->reader, take->hash, take->key, take->key_size);
	if (there && !(there->kind & ENTRY_ABSENT)) {
		reader_count(take->reader, COUNT_HITS, 1);
		entry_hold(there);
		take->entry = there;
		take->status = TW_OK;
	} else if (there && !take_is_absent(take, there)) {
		there = NULL;
	}
	/* The clock is read for those alone that age. */
	is_old = there && (there->kind & ENTRY_AGING) &&
		 entry_wants_refresh(there, shared_coarse_now(&take->cache->shared));
	reader_leave(take->reader);
	if (is_old)
		cache_refresh(take->cache, take->hash, take->key, take->key_size);
	return there != NULL;
}

/* Between begin and end, with a reference to the load. TW_OK: it is over. */
static enum tw_status take_wait(struct take *take, tw_duration until) HOLDS(take->shard->lock)
{
	struct tw_cache_loading *loading = take->loading;
	struct shared_state *shared = &take->cache->shared;
	bool is_over = loading->is_over;

	if (!is_over && loading->loader == take->reader)
		return TW_INVALID;
	if (!take->loads)
		reader_count(take->reader, COUNT_LOAD_WAITS, 1);
	if (is_over)
		return TW_OK;
	if (until > 0)
		return loading_wait(loading, shared, &take->shard->lock, until);
	return shared_is_closed(shared) ? TW_CLOSED : TW_TIMED_OUT;
}

/* Between begin and end: does what take_look() does, which most keys that were not found before the
 * lock was taken don't need. */
static bool take_look_again(struct take *take)
{
	_Atomic uint64_t *slot;

	return table_find(shard_table(take->shard), take->hash, take->key, take->key_size, &slot) &&
	       take_look(take);
}

/* Between begin and end: the load takes too long; what there is beside it. */
static void take_time_out(struct take *take)
{
	struct tw_cache *cache = take->cache;

	if (cache->shared.stale > 0)
		take->entry = cache_pin_stale(cache, take->shard, take->hash, take->key,
					      take->key_size, tw_now(cache->shared.wheel));
	if (take->entry)
		take->status = TW_STALE;
	reader_count(take->reader, take->entry ? COUNT_STALE : COUNT_WAIT_TIMEOUTS, 1);
}

void take_join(struct take *take, tw_duration until)
{
	struct tw_cache_loading *loading = take->loading;
	/* This thread has ended its own one, if it was not kept. */
	bool is_mine = take->loads && !loading->is_kept;

	if (!is_mine) {
		shard_begin(take->shard);
		take->status = take_wait(take, until);
		if (take->status == TW_TIMED_OUT)
			take_time_out(take);
		shard_end_unchanged(take->shard);
	}
	if (is_mine || take->status == TW_OK) {
		take->entry = loading_pin_entry(loading);
		take->status = loading->status;
		if (take->status == TW_STALE)
			reader_count(take->reader, COUNT_STALE, 1);
	}
	take->loading = NULL;
	loading_let_go(loading);
}

/* Between begin and end, where no load is listed: whether the key pauses beside an old value, which
 * the take is given. */
static bool take_pauses(struct take *take)
{
	struct tw_cache *cache = take->cache;
	_Atomic uint64_t *slot;
	const struct tw_cache_entry *old;
	tw_duration now;

	if (cache->retry_after == 0)
		return false;
	now = tw_now(cache->shared.wheel);
	old = table_find_any(shard_table(take->shard), take->hash, take->key, take->key_size,
			     &slot);
	if (!old || (old->kind & ENTRY_FAILED) != ENTRY_AGING || entry_age(old)->failures == 0 ||
	    entry_refresh_at(old) <= now)
		return false;
	take->entry =
		cache_pin_stale(cache, take->shard, take->hash, take->key, take->key_size, now);
	if (!take->entry)
		return false;
	take->status = TW_STALE;
	reader_count(take->reader, COUNT_MISSES, 1);
	return true;
}

/* Between begin and end: joins the load of the key, or begins one. */
static enum take_step take_load_of_key(struct take *take, tw_duration now) HOLDS(take->shard->lock)
{
	struct tw_cache_loading *loading =
		loadings_find(&take->shard->loads, take->hash, take->key, take->key_size);
	/* tw_cache_destroy waits for loads: no other begins after one that it has waited for. */
	bool is_closed = shared_is_closed(&take->cache->shared);

	take->status = is_closed ? TW_CLOSED : TW_NO_MEMORY;
	if (!loading && is_closed)
		return TAKE_ENDS;
	if (!loading && take_pauses(take)) {
		reader_count(take->reader, COUNT_STALE, 1);
		return TAKE_ENDS;
	}
	reader_count(take->reader, COUNT_MISSES, 1);
	take->loading = loading ? loading_hold(loading)
				: shard_begin_load(take->shard, take->cache, take->reader,
						   take->hash, take->key, take->key_size, now);
	if (!take->loading)
		return TAKE_ENDS;
	if (loading && (!loading->is_queued || is_closed))
		return TAKE_WAITS;
	if (loading)
		loading_claim(loading, &take->shard->loads, take->reader);
	take->loads = true;
	return TAKE_LOADS;
}

enum take_step take_begin(struct take *take, tw_duration now)
{
	enum take_step step = TAKE_ENDS;

	shard_begin(take->shard);
	if (!take_look_again(take))
		step = take_load_of_key(take, now);
	shard_end_unchanged(take->shard);
	return step;
}

/* ---- One ---- */

static void take_slowly(struct take *take, tw_cache_load *load, void *argument, tw_duration wait)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	enum take_step step = take_begin(take, now);

	if (step == TAKE_LOADS)
		load_run(take->cache, take->reader, take->loading, now, load, argument);
	if (step != TAKE_ENDS)
		take_join(take, take_until(now, wait));
}

/* Loads a key that was not found. */
static __attribute__((noinline)) void take_missed(struct take *take, tw_cache_load *load,
						  void *argument, tw_duration wait)
{
	struct tw_cache *cache = take->cache;

	cache_begin_take(cache);
	take_slowly(take, load ? load : cache->load, load ? argument : cache->load_context, wait);
	cache_end_take(cache);
}

/* Does what tw_cache_take() does, whatever it is asked. */
static __attribute__((noinline)) enum tw_status take_any(struct take *take, struct tw_cache *cache,
							 const void *key, size_t key_size,
							 tw_cache_load *load, void *argument,
							 tw_duration wait)
{
	struct reader *reader;
	enum tw_status status;

	if (!key_is_valid(key, key_size))
		return TW_INVALID;
	status = cache_admit(cache, &reader);
	if (status != TW_OK)
		return status;
	take_init(take, cache, reader, key, key_size);
	if (!take_look(take))
		take_missed(take, load, argument, wait);
	return take->status;
}

enum tw_status tw_cache_take(struct tw_cache *cache, const void *key, size_t key_size,
			     tw_cache_load *load, void *argument, tw_duration wait,
			     const struct tw_cache_entry **entry)
{
	enum glance_result result;
	struct glance glance;
	struct take take;
	enum tw_status status;

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
		status = take.status;
	} else {
		status = take_any(&take, cache, key, key_size, load, argument, wait);
	}
	*entry = take.entry;
	return status;
}

/* ---- One, without waiting ---- */

/* Between begin and end: the waiter joins the load of the key, or one is begun, to be queued. */
static bool take_joins_waiting(struct take *take, struct waiter *waiter) HOLDS(take->shard->lock)
{
	struct tw_cache_loading *loading =
		loadings_find(&take->shard->loads, take->hash, take->key, take->key_size);

	take->status = TW_CLOSED;
	if (shared_is_closed(&take->cache->shared) || (!loading && take_pauses(take)))
		return false;
	reader_count(take->reader, COUNT_MISSES, 1);
	if (loading) {
		reader_count(take->reader, COUNT_LOAD_WAITS, 1);
		if (loading->is_refresh && loading->is_queued)
			loaders_prefer(&take->cache->loaders, loading);
	} else {
		take->status = TW_NO_MEMORY;
		loading = shard_begin_load(take->shard, take->cache, NULL, take->hash, take->key,
					   take->key_size, clock_read_real(CLOCK_MONOTONIC));
		if (!loading)
			return false;
		take->loading = loading;
	}
	loading_add_waiter(loading, waiter);
	return true;
}

/* Has the waiter wait for a key that was not found. Returns false if the key is known by now, or
 * can't be loaded. */
static bool take_asks(struct take *take, struct waiter *waiter)
{
	bool waits;

	shard_begin(take->shard);
	waits = !take_look_again(take) && take_joins_waiting(take, waiter);
	shard_end_unchanged(take->shard);
	if (take->loading)
		loaders_add(&take->cache->loaders, take->loading);
	return waits;
}

enum tw_status tw_cache_take_async(struct tw_cache *cache, const void *key, size_t key_size,
				   tw_cache_value_fn *on_value, void *context)
{
	struct waiter *waiter;
	struct reader *reader;
	enum tw_status status;
	struct take take;

	if (!cache || !key_is_valid(key, key_size) || !on_value || !cache->load)
		return TW_INVALID;
	status = cache_admit(cache, &reader);
	if (status != TW_OK)
		return status;
	waiter = malloc(sizeof(*waiter));
	if (!waiter)
		return TW_NO_MEMORY;
	*waiter = (struct waiter){.on_value = on_value, .context = context};
	take_init(&take, cache, reader, key, key_size);
	if (take_look(&take) || !take_asks(&take, waiter))
		waiter_call(cache, waiter, take.status, take.entry);
	return TW_OK;
}
