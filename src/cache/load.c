/* SPDX-License-Identifier: MIT */
/*
 * A load is listed in the key's shard from the moment that a caller wants the key loaded to the
 * load's end. Takes of the key join it, so there is one for a key at a time. A take begins it and
 * runs its own loader; or it is queued for the wheel's pool, until a runner of the queue, or a take
 * that came before it, begins it. It ends once: when the loader returns; by tw_cache_load_end; or
 * by tw_cache_destroy. The first of these that finds the load's cache set takes that away and ends
 * the load. A load that is not kept is its thread's alone until then; one that is kept has a lock.
 *
 * At the end the value is put into the table, the load taken out of the list, and its result handed
 * to those that wait, all under the shard's lock; so a look that finds neither entry nor load knows
 * that no thread loads. Then the waiters are called, with no lock held.
 *
 * A set or delete of the key detaches its load under the same lock: what it loads goes to those
 * that wait already, and is not stored. A take that comes later begins another load.
 */
#include "load.h"

#include <stdlib.h>

#include "base/thread.h"
#include "callback.h"
#include "change.h"
#include "pins.h"
#include "refresh.h"

/* ---- What the loader gives ---- */

static void loading_lock(struct tw_cache_loading *loading)
{
	if (loading->is_kept)
		own_lock_take(&loading->lock);
}

static void loading_unlock(struct tw_cache_loading *loading)
{
	if (loading->is_kept)
		own_lock_let_go(&loading->lock);
}

enum tw_status tw_cache_load_give(struct tw_cache_loading *loading,
				  const struct tw_cache_value *value)
{
	struct tw_cache_entry *entry = NULL;
	struct tw_cache_entry *before = NULL;
	struct tw_cache *cache;

	if (!loading || !value_is_valid(value))
		return TW_INVALID;
	loading_lock(loading);
	cache = loading->cache;
	if (cache) {
		struct entry_plan plan = {
			.key = loading->key, .key_size = loading->key_size, .hash = loading->hash};
		struct retiring_reader *thread;

		cache_plan_value(cache, &plan, value);
		cache_plan(cache, &plan);
		thread = retire_begin(&cache->shared);
		entry = entry_from(thread, &cache->shared, &plan);
		retire_end(thread, &cache->shared);
		if (entry) {
			before = loading->given;
			loading->given = entry;
			loading->life = plan.life;
		}
	}
	/* A destroy that waits for the lock has this value freed before its return. */
	entry_let_go(before);
	loading_unlock(loading);
	return entry ? TW_OK : cache ? TW_NO_MEMORY : TW_CLOSED;
}

enum tw_status tw_cache_load_keep(struct tw_cache_loading *loading)
{
	if (!loading || loading->is_kept || !loading->cache)
		return TW_INVALID;
	loading->is_kept = true;
	(void)flight_hold(loading);
	return TW_OK;
}

/* ---- The end ---- */

static bool is_failure(enum tw_status status)
{
	return status != TW_OK && status != TW_NOT_FOUND;
}

/* Returns an absence of the key, or NULL if that is not to be stored. */
static __attribute__((noinline)) struct tw_cache_entry *loading_absence(
	struct tw_cache *cache, struct tw_cache_loading *loading, struct retiring_reader *thread)
{
	struct entry_plan absence = {.key = loading->key,
				     .key_size = loading->key_size,
				     .hash = loading->hash,
				     .kind = ENTRY_ABSENT};

	if (loading->began > 0)
		reader_count(&thread->reader, COUNT_LOAD_ERRORS, 1);
	if (is_failure(loading->status) || cache->negative_expire == 0)
		return NULL;
	cache_plan(cache, &absence);
	loading->life = cache->negative_expire;
	/* Without memory the absence is returned, and not stored. */
	return entry_from(thread, &cache->shared, &absence);
}

/* Sets the load's status, so that it agrees with what was given. Returns what is to be stored, or
 * NULL. */
static struct tw_cache_entry *loading_judge(struct tw_cache *cache,
					    struct tw_cache_loading *loading,
					    struct retiring_reader *thread, enum tw_status status)
{
	/* TW_STALE would promise an entry. */
	if ((status == TW_OK && !loading->given) || status == TW_STALE)
		status = TW_LOAD_FAILED;
	loading->status = status;
	return status == TW_OK ? loading->given : loading_absence(cache, loading, thread);
}

/* Between begin and end: the load has failed and is unlisted, and its key, which has that entry or
 * NULL, pauses, if it is to. */
static void loading_pause(struct tw_cache *cache, struct tw_cache_loading *loading,
			  const struct change *change) HOLDS(change->shard->lock)
{
	struct tw_cache_entry *entry = change->entry;
	bool is_reloaded =
		entry && (entry->kind & ENTRY_AGING) && entry_deadline(entry) > change->now;
	tw_duration pause;

	if (cache->retry_after == 0 && !is_reloaded)
		return;
	if (loading->failures < UINT16_MAX)
		loading->failures++;
	pause = cache_pause(cache, loading->failures);
	loading->retry_at = deadline_after(change->now, pause);
	/* The number of failures outlives the pause, so that the next one is longer. */
	loading->forget_at = deadline_after(loading->retry_at, pause);
	if (is_reloaded)
		entry_set_refresh_at(entry, loading->retry_at);
	/* A source that was not asked has not failed. */
	if (loading->began == 0)
		return;
	flight_pause(loading, &change->shard->flights);
	shard_arm_for_flights(change->shard);
}

/* Between begin and end: returns the loaded entry, pinned for those that wait. */
static const struct tw_cache_entry *loading_pin(const struct tw_cache_loading *loading,
						const struct tw_cache_entry *entry, bool is_stored,
						const struct reader *thread)
{
	/* A hazard is as good as in an era: this thread retires the entry, if it has left again. */
	if (is_stored && loading->loader == thread)
		entry_hold(entry);
	else
		entry_pin(entry);
	return entry;
}

/* Between begin and end: stores what was loaded, and takes the load out of the list. Returns
 * whether the entry was stored. */
static bool loading_land(struct tw_cache *cache, struct tw_cache_loading *loading,
			 struct change *change, struct tw_cache_entry *entry)
	HOLDS(change->shard->lock)
{
	bool is_current = flight_unlist(loading, &change->shard->flights);
	bool is_closed = shared_is_closed(&cache->shared);
	bool is_stored;

	(void)change_find(change, loading->key, loading->key_size);
	is_stored = entry && is_current && !is_closed &&
		    change_put(change, cache, entry, false) == TW_OK;
	if (loading->is_refresh)
		limit_give(&cache->refreshing);
	if (is_failure(loading->status) && is_current)
		loading_pause(cache, loading, change);
	/* The source has another value, or none: the old one must not outlive the answer. */
	else if (!is_stored && is_current && !is_closed && change->entry)
		shard_unlink(change->shard, change->slot, TW_CAUSE_EXPLICIT, change->now);
	change->shard->has_flights = change->shard->flights.chained > 0;
	return is_stored;
}

static void cache_count_load_time(struct tw_cache *cache, tw_duration time)
{
	own_lock_take(&cache->load_times_lock);
	histogram_record(&cache->load_times, time);
	counter_add(&cache->load_time, (uint64_t)time);
	own_lock_let_go(&cache->load_times_lock);
}

enum tw_status load_result(const struct tw_cache_loading *loading,
			   const struct tw_cache_entry *entry)
{
	return is_failure(loading->status) && entry ? TW_STALE : loading->status;
}

/* Hands the result to waiters that the end has left over, and calls all. */
static __attribute__((noinline)) void loading_call_waiters(struct tw_cache *cache,
							   struct tw_cache_loading *loading,
							   const struct tw_cache_entry *entry,
							   struct list *waiters, bool goes_on)
{
	while (goes_on) {
		shard_begin(loading->shard);
		goes_on = flight_take_waiters(loading, load_result(loading, entry), entry, waiters);
		shard_end_unchanged(loading->shard);
	}
	waiters_call(cache, waiters);
}

/* Ends a load whose cache the caller has taken away. The lifetime of its value counts from now
 * on. */
static void loading_end(struct tw_cache *cache, struct tw_cache_loading *loading,
			enum tw_status status)
{
	struct retiring_reader *thread = retire_begin(&cache->shared);
	struct tw_cache_entry *entry = loading_judge(cache, loading, thread, status);
	uint64_t weight = entry ? entry_weight(entry) : 0;
	const struct tw_cache_entry *pinned = NULL;
	struct change change = {.shard = loading->shard, .hash = loading->hash};
	struct list waiters;
	bool is_stored;
	bool goes_on;

	list_init(&waiters);
	shard_begin_in(change.shard, thread);
	change.now = tw_now(cache->shared.wheel);
	if (entry)
		cache_start_life(cache, entry, change.now,
				 cache_lifetime(cache, &thread->reader, loading->life));
	is_stored = loading_land(cache, loading, &change, entry);
	if ((loading->is_taken || !list_is_empty(&loading->waiters)) &&
	    loading->status != TW_NOT_FOUND)
		pinned = loading->status == TW_OK
				 ? loading_pin(loading, entry, is_stored, &thread->reader)
				 : cache_pin_stale(cache, change.shard, loading->hash, loading->key,
						   loading->key_size, change.now);
	goes_on = !list_is_empty(&loading->waiters) &&
		  flight_take_waiters(loading, load_result(loading, pinned), pinned, &waiters);
	if (loading->is_taken && pinned) {
		loading->entry = pinned;
		pinned = goes_on ? tw_cache_entry_pin(pinned) : NULL;
	}
	shard_end_in(change.shard);
	cache_end_sets(cache, thread, is_stored ? weight : 0, entry);
	if (!is_stored)
		entry_let_go(entry);
	if (loading->given && loading->given != entry)
		entry_let_go(loading->given);
	loading->given = NULL;
	if (loading->began > 0)
		cache_count_load_time(cache, clock_read_real(CLOCK_MONOTONIC) - loading->began);
	if (!list_is_empty(&waiters))
		loading_call_waiters(cache, loading, pinned, &waiters, goes_on);
	tw_cache_entry_release(pinned);
}

enum tw_status tw_cache_load_end(struct tw_cache_loading *loading, enum tw_status status)
{
	struct reader *reader = NULL;
	struct tw_cache *cache;
	bool is_kept;

	if (!loading)
		return TW_INVALID;
	is_kept = loading->is_kept;
	loading_lock(loading);
	cache = loading->cache;
	loading->cache = NULL;
	/* The load is listed still, so loads_end() comes after this. */
	if (cache && is_kept)
		reader = cache_begin_end(cache);
	loading_unlock(loading);
	if (cache)
		loading_end(cache, loading, status);
	if (is_kept)
		flight_let_go(loading);
	if (reader)
		reader_end_end(reader);
	return cache ? TW_OK : TW_CLOSED;
}

/* ---- Running ---- */

void load_run(struct tw_cache *cache, struct reader *reader, struct tw_cache_loading *loading,
	      tw_duration now, tw_cache_load *load, void *argument)
{
	struct callback callback
		__attribute__((cleanup(callback_end))) = {.shared = &cache->shared};
	enum tw_status status;

	reader_count(reader, COUNT_LOADS, 1);
	if (loading->is_refresh)
		reader_count(reader, COUNT_REFRESHES, 1);
	loading->began = now;
	reader->callbacks++;
	status = load(argument, loading->key, loading->key_size, loading);
	reader->callbacks--;
	callback.has_returned = true;
	if (!loading->is_kept) {
		(void)tw_cache_load_end(loading, status);
		return;
	}
	/* This thread may wait for the load now. */
	shard_begin(loading->shard);
	loading->loader = NULL;
	shard_end_unchanged(loading->shard);
}

void load_run_queued(struct tw_cache *cache, struct tw_cache_loading *loading, bool is_refused)
{
	struct shard *shard = loading->shard;
	struct reader *reader = epochs_reader(&cache->shared.epochs);
	bool is_closed = is_refused || shared_is_closed(&cache->shared);

	shard_begin(shard);
	flight_begin(loading, &shard->flights, reader);
	/* The value was set or deleted meanwhile, and no take waits. */
	if (loading->is_refresh && !flight_is_current(loading, &shard->flights) &&
	    list_is_empty(&loading->waiters))
		is_closed = true;
	shard_end_unchanged(shard);
	if (reader && !is_closed)
		load_run(cache, reader, loading, clock_read_real(CLOCK_MONOTONIC), cache->load,
			 cache->load_context);
	else
		(void)tw_cache_load_end(loading, is_closed ? TW_CLOSED : TW_NO_MEMORY);
	flight_let_go(loading);
}

/* ---- The end of the cache ---- */

static bool cache_has_takes(struct tw_cache *cache)
{
	struct epochs *epochs = &cache->shared.epochs;
	struct reader *reader = epochs_begin_walk(epochs);
	unsigned takes = 0;

	for (; reader; reader = reader->next)
		/* acquire: what takes have done; pairs with reader_end_take() and
		 * reader_end_end(). */
		takes |= atomic_load_explicit(&reader->takes, memory_order_acquire);
	epochs_end_walk(epochs);
	return takes > 0;
}

static void cache_wait_for_takes(struct tw_cache *cache)
{
	unsigned tries = 0;

	while (cache_has_takes(cache))
		thread_back_off(&tries);
}

/* Ends a load, held by the caller, that is queued or kept. Returns false if another thread does. */
static bool loading_cancel(struct tw_cache *cache, struct tw_cache_loading *loading)
{
	bool is_mine;

	/* The thread that has taken it out of the queue ends it. */
	if (!loading->is_kept && !load_queue_take(&cache->loads, loading))
		return false;
	loading_lock(loading);
	is_mine = loading->cache;
	loading->cache = NULL;
	loading_unlock(loading);
	if (is_mine)
		loading_end(cache, loading, TW_CLOSED);
	if (!loading->is_kept)
		flight_let_go(loading);
	return is_mine;
}

/* Returns the oldest load of the shard, held, or NULL. */
static struct tw_cache_loading *shard_hold_load(struct shard *shard)
{
	struct tw_cache_loading *loading = NULL;

	shard_begin(shard);
	if (!list_is_empty(&shard->flights.all))
		loading = flight_hold(
			list_entry(shard->flights.all.next, struct tw_cache_loading, of_shard));
	shard_end_unchanged(shard);
	return loading;
}

void loads_end(struct tw_cache *cache)
{
	cache_wait_for_takes(cache);
	for (unsigned i = 0; i <= cache->shard_mask; i++) {
		struct tw_cache_loading *loading;
		unsigned tries = 0;

		while ((loading = shard_hold_load(&cache->shards[i]))) {
			if (!loading_cancel(cache, loading))
				thread_back_off(&tries);
			flight_let_go(loading);
		}
	}
	/* An end that began since then has its load out of the list before it is over. */
	cache_wait_for_takes(cache);
}
