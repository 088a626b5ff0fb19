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
#include "change.h"
#include "load_queue.h"

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

		cache_plan_value(cache, &plan, value);
		if (cache_plan(cache, &plan)) {
			shard_begin(loading->shard);
			entry = shard_make(loading->shard, &plan);
			(void)shard_end(loading->shard);
		}
		if (!entry)
			entry_plan_unmap(&plan, cache->shared.pool);
		if (entry) {
			before = loading->given;
			loading->given = entry;
			loading->life = plan.life;
		}
	}
	/* A destroy that waits for the lock has this value freed before its return. */
	entry_let_go(before, true);
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

/* Between begin and end: returns an absence of the key, or NULL if that is not to be stored. */
static __attribute__((noinline)) struct tw_cache_entry *loading_absence(
	struct tw_cache *cache, struct shard *shard, struct tw_cache_loading *loading,
	struct caller *caller) HOLDS(shard->lock)
{
	struct entry_plan absence = {.key = loading->key,
				     .key_size = loading->key_size,
				     .hash = loading->hash,
				     .kind = ENTRY_ABSENT};

	if (loading->began > 0 && caller)
		caller_count(caller, COUNT_LOAD_ERRORS, 1);
	if (load_has_failed(loading->status) || cache->options.negative_expire == 0)
		return NULL;
	(void)cache_plan(cache, &absence);
	loading->life = cache->options.negative_expire;
	/* Without memory the absence is returned, and not stored. */
	return shard_make(shard, &absence);
}

/* Returns how long a key pauses after that many failed loads in a row, at least one. */
static tw_duration cache_pause(const struct tw_cache *cache, unsigned failures)
{
	/* Without retry_after, a reload that failed is tried again after this part. */
	enum { FIRST_PART = 16 };
	bool has_own = cache->options.retry_after > 0;
	tw_duration first =
		has_own ? cache->options.retry_after : cache->options.refresh_after / FIRST_PART;
	tw_duration most = has_own ? cache->expire : cache->options.refresh_after / 2;

	while (--failures > 0 && first < most)
		first = first <= most / 2 ? first * 2 : most;
	return first;
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

	if (cache->options.retry_after == 0 && !is_reloaded)
		return;
	if (loading->failures < UINT16_MAX)
		loading->failures++;
	pause = cache_pause(cache, loading->failures);
	loading->retry_at = deadline_after(change->now, pause);
	/* The number of failures outlives the pause, so that the next one is longer. */
	loading->forget_at = deadline_after(loading->retry_at, pause);
	if (is_reloaded)
		time_store(&entry_age(entry)->refresh_at, loading->retry_at);
	/* A source that was not asked has not failed. */
	if (loading->began == 0)
		return;
	flight_pause(loading, &change->shard->flights);
	shard_arm(change->shard, shard_tick_of(change->shard, loading->forget_at));
}

/* Between begin and end: stores what was loaded, and takes the load out of the list. Returns
 * whether the entry was stored. */
static bool loading_land(struct tw_cache *cache, struct tw_cache_loading *loading,
			 struct change *change, struct tw_cache_entry *entry)
	HOLDS(change->shard->lock)
{
	bool is_current = flight_unlist(loading, &change->shard->flights) &&
			  !shared_is_closed(&cache->shared);
	bool is_stored;

	(void)change_find(change, loading->key, loading->key_size);
	is_stored = entry && is_current && change_put(change, cache, entry, false) == TW_OK;
	if (loading->is_refresh)
		limit_give(&cache->refreshing);
	if (is_current && load_has_failed(loading->status))
		loading_pause(cache, loading, change);
	/* The source has another value, or none: the old one must not outlive the answer. */
	else if (is_current && !is_stored && change->entry)
		shard_unlink(change->shard, change->slot, TW_CAUSE_EXPLICIT, change->now);
	change->shard->has_flights = change->shard->flights.chained > 0;
	return is_stored;
}

/* Between begin and end, after the landing: hands the result to threads that wait, with the pin of
 * a value. Returns the old value for functions that do, pinned, or NULL. */
static const struct tw_cache_entry *loading_hand_over(struct tw_cache *cache,
						      struct tw_cache_loading *loading,
						      const struct change *change,
						      struct tw_cache_entry *entry)
	HOLDS(change->shard->lock)
{
	if (loading->status == TW_OK)
		loading->entry = entry;
	flight_wake(loading, &change->shard->lock);
	return load_has_failed(loading->status) && !list_is_empty(&loading->askers)
		       ? cache_pin_stale(cache, change->shard, loading->hash, loading->key,
					 loading->key_size, change->now)
		       : NULL;
}

/* Ends a load whose cache the caller has taken away. The lifetime of its value counts from now
 * on. */
static void loading_end(struct tw_cache *cache, struct tw_cache_loading *loading,
			enum tw_status status)
{
	struct change change = {.shard = loading->shard, .hash = loading->hash};
	struct caller *caller = callers_find(&cache->shared.callers);
	const struct tw_cache_entry *stale;
	struct tw_cache_entry *entry;
	uint64_t weight;
	bool is_stored;
	size_t taken;

	/* TW_STALE would promise an entry. */
	if ((status == TW_OK && !loading->given) || status == TW_STALE)
		status = TW_LOAD_FAILED;
	loading->status = status;
	if (status != TW_OK)
		entry_let_go(loading->given, true);
	shard_begin(change.shard);
	entry = status == TW_OK ? loading->given
				: loading_absence(cache, change.shard, loading, caller);
	weight = entry ? entry_weight(entry) : 0;
	change.now = tw_now(cache->shared.wheel);
	if (entry)
		cache_start_life(cache, entry, change.now,
				 cache_lifetime(cache, caller, loading->life));
	/* It may have left again at once. */
	if (status == TW_OK)
		entry_pin(entry);
	is_stored = loading_land(cache, loading, &change, entry);
	stale = loading_hand_over(cache, loading, &change, entry);
	change.shard->flights.entered += loading->is_kept;
	taken = shard_end(change.shard);
	cache_end_sets(cache, taken, is_stored ? weight : 0, entry);
	if (!is_stored)
		entry_let_go(entry, true);
	/* The wheel's clock is the real one where it has a coarse clock. */
	loading->took =
		(cache->shared.has_coarse_clock ? change.now : clock_read_real(CLOCK_MONOTONIC)) -
		loading->began;
	if (!list_is_empty(&loading->askers))
		load_answer_all(cache, &loading->askers, stale ? TW_STALE : status,
				stale ? stale : loading->entry);
	tw_cache_entry_release(stale);
	if (loading->is_kept)
		load_leave(cache, loading);
}

/* Takes the load's cache away, and returns it. Only one call gets it, and has to end the load. */
static struct tw_cache *loading_take_cache(struct tw_cache_loading *loading)
{
	struct tw_cache *cache;

	loading_lock(loading);
	cache = loading->cache;
	loading->cache = NULL;
	loading_unlock(loading);
	return cache;
}

enum tw_status tw_cache_load_end(struct tw_cache_loading *loading, enum tw_status status)
{
	struct tw_cache *cache;
	bool is_kept;

	if (!loading)
		return TW_INVALID;
	is_kept = loading->is_kept;
	cache = loading_take_cache(loading);
	if (cache)
		loading_end(cache, loading, status);
	if (is_kept)
		flight_let_go(loading);
	return cache ? TW_OK : TW_CLOSED;
}

/* ---- Answers ---- */

void load_answer(struct tw_cache *cache, tw_cache_value_fn *on_value, void *context,
		 enum tw_status status, const struct tw_cache_entry *entry)
{
	struct callback callback __attribute__((cleanup(callback_end))) =
		callback_begin(&cache->shared);

	on_value(context, status, entry);
	callback.has_returned = true;
}

void load_answer_all(struct tw_cache *cache, struct list *askers, enum tw_status status,
		     const struct tw_cache_entry *entry)
{
	struct caller *caller;
	struct list *link;

	while ((link = list_take_first(askers))) {
		struct asker *asker = list_entry(link, struct asker, link);

		caller = callers_find(&cache->shared.callers);
		if (caller)
			caller_count(caller, COUNT_STALE, status == TW_STALE);
		load_answer(cache, asker->on_value, asker->context, status, entry);
		free(asker);
	}
}

/* ---- Running ---- */

void load_run(struct tw_cache *cache, struct caller *caller, struct tw_cache_loading *loading,
	      tw_duration now, tw_cache_load *load, void *argument)
{
	struct callback callback
		__attribute__((cleanup(callback_end))) = {.shared = &cache->shared};
	enum tw_status status;

	caller_count(caller, COUNT_LOADS, 1);
	if (loading->is_refresh)
		caller_count(caller, COUNT_REFRESHES, 1);
	loading->began = now;
	caller->callbacks++;
	status = load(argument, loading->key, loading->key_size, loading);
	caller->callbacks--;
	callback.has_returned = true;
	if (!loading->is_kept) {
		(void)tw_cache_load_end(loading, status);
		return;
	}
	/* This thread may wait for the load now. */
	turn_lock_take(&loading->shard->lock);
	loading->loader = NULL;
	turn_lock_let_go(&loading->shard->lock);
}

void load_run_queued(struct tw_cache *cache, struct tw_cache_loading *loading, bool is_refused)
{
	struct shard *shard = loading->shard;
	struct caller *caller = callers_find(&cache->shared.callers);
	bool is_closed = is_refused || shared_is_closed(&cache->shared);

	turn_lock_take(&shard->lock);
	flight_begin(loading, &shard->flights, caller);
	shard->flights.entered++;
	/* The value was set or deleted meanwhile, and no take waits. */
	if (loading->is_refresh && !flight_is_current(loading, &shard->flights) &&
	    !loading->is_awaited && list_is_empty(&loading->askers))
		is_closed = true;
	turn_lock_let_go(&shard->lock);
	if (caller && !is_closed)
		load_run(cache, caller, loading, clock_read_real(CLOCK_MONOTONIC),
			 cache->options.load, cache->options.load_context);
	else
		(void)tw_cache_load_end(loading, is_closed ? TW_CLOSED : TW_NO_MEMORY);
	load_leave(cache, loading->is_kept ? NULL : loading);
	flight_let_go(loading);
}

/* ---- The end of the cache ---- */

/* Ends the shard's oldest load if it is queued or kept, unless a thread has it. Returns false if
 * the shard has none: then all calls have entered, and are added to *entered. */
static bool shard_end_load(struct tw_cache *cache, struct shard *shard, uint64_t *entered)
{
	struct tw_cache_loading *loading = NULL;
	bool was_queued = false;
	bool is_kept = false;

	turn_lock_take(&shard->lock);
	if (!list_is_empty(&shard->flights.all)) {
		loading = flight_hold(
			list_entry(shard->flights.all.next, struct tw_cache_loading, of_shard));
		was_queued = loading->state == FLIGHT_QUEUED && load_queue_take(cache, loading);
		/* Its loader has returned. */
		is_kept = loading->state == FLIGHT_RUNNING && !loading->loader;
	} else {
		*entered += shard->flights.entered;
	}
	turn_lock_let_go(&shard->lock);
	if (!loading)
		return false;
	if ((was_queued || is_kept) && loading_take_cache(loading))
		loading_end(cache, loading, TW_CLOSED);
	if (was_queued)
		flight_let_go(loading);
	flight_let_go(loading);
	return true;
}

void loads_end(struct tw_cache *cache)
{
	uint64_t entered = 0;
	unsigned tries = 0;

	for (unsigned i = 0; i <= cache->shard_mask; i++)
		while (shard_end_load(cache, &cache->shards[i], &entered))
			thread_back_off(&tries);
	while (!loads_have_left(cache, entered))
		thread_back_off(&tries);
}
