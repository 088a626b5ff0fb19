/* SPDX-License-Identifier: MIT */
/*
 * A load is listed in the key's shard from the moment that a caller wants the key loaded to the
 * load's end. Takes of the key join it, so there is one for a key at a time. A take begins it and
 * runs its own loader; or it is queued for the threads of the cache, until one of these, or a take
 * that came before it, begins it. It ends once: when the loader returns, or, where the loader keeps
 * it, by tw_cache_load_end or by tw_cache_destroy. The first of these that finds the load's cache
 * set, under the load's lock, takes that away and ends the load.
 *
 * At the end the value is put into the table, the load taken out of the list, and its result left
 * in it for the threads that wait, all under the shard's lock; so a look that finds neither entry
 * nor load knows that no thread loads. Then waiters without a thread are called, with no lock held.
 *
 * A set or delete of the key detaches its load under the same lock: what it loads goes to those
 * that wait already, and is not stored. A take that comes later begins another load.
 */
#include "load.h"

#include <stdlib.h>

#include "base/thread.h"
#include "callback.h"
#include "change.h"
#include "refresh.h"
#include "waiter.h"

/* ---- Takes ---- */

/* Set once tw_cache_destroy waits for them: from then on a take ends under the lock, for after its
 * count is given up the cache may be gone. */
#define TAKES_ARE_AWAITED (1u << 31)

void cache_begin_take(struct tw_cache *cache)
{
	/* relaxed: the caller may use the cache; what takes that from it, a load's end or a stop,
	 * comes before the wait. */
	atomic_fetch_add_explicit(&cache->takes, 1, memory_order_relaxed);
}

static __attribute__((noinline)) void cache_end_awaited_take(struct tw_cache *cache)
{
	pthread_mutex_lock(&cache->takes_lock);
	/* relaxed: under the lock that the wait takes. */
	atomic_fetch_sub_explicit(&cache->takes, 1, memory_order_relaxed);
	pthread_cond_broadcast(&cache->takes_are_over);
	pthread_mutex_unlock(&cache->takes_lock);
}

void cache_end_take(struct tw_cache *cache)
{
	/* relaxed: the exchange decides. */
	unsigned takes = atomic_load_explicit(&cache->takes, memory_order_relaxed);

	do
		if (takes & TAKES_ARE_AWAITED) {
			cache_end_awaited_take(cache);
			return;
		}
	/* release: the take is done with the cache; pairs with cache_wait_for_takes(). relaxed: it
	 * looks again. */
	while (!atomic_compare_exchange_weak_explicit(&cache->takes, &takes, takes - 1,
						      memory_order_release, memory_order_relaxed));
}

void cache_wait_for_takes(struct tw_cache *cache)
{
	unsigned takes;

	pthread_mutex_lock(&cache->takes_lock);
	/* acquire, here and below: what takes have done; pairs with cache_end_take(). */
	takes = atomic_fetch_or_explicit(&cache->takes, TAKES_ARE_AWAITED, memory_order_acquire);
	while ((takes & ~TAKES_ARE_AWAITED) > 0) {
		(void)condition_wait(&cache->takes_are_over, &cache->takes_lock, TW_FOREVER);
		takes = atomic_load_explicit(&cache->takes, memory_order_acquire);
	}
	pthread_mutex_unlock(&cache->takes_lock);
}

static void cache_count_load_time(struct tw_cache *cache, tw_duration time)
{
	own_lock_take(&cache->load_times_lock);
	histogram_record(&cache->load_times, time);
	counter_add(&cache->load_time, (uint64_t)time);
	own_lock_let_go(&cache->load_times_lock);
}

/* ---- What the loader gives ---- */

/* A load that is not kept is its loader's thread's alone, or at last the destroying one's; others
 * know what is under the shard's lock. */
static void loading_lock(struct tw_cache_loading *loading)
{
	if (loading->is_kept)
		pthread_mutex_lock(&loading->lock);
}

static void loading_unlock(struct tw_cache_loading *loading)
{
	if (loading->is_kept)
		pthread_mutex_unlock(&loading->lock);
}

/* Under the load's lock. *before becomes what was given before that. */
static enum tw_status loading_replace_given(struct tw_cache_loading *loading,
					    const struct tw_cache_value *value,
					    struct tw_cache_entry **before)
{
	struct tw_cache *cache = loading->cache;
	struct entry_plan plan = {
		.key = loading->key, .key_size = loading->key_size, .hash = loading->hash};
	struct retiring_reader *thread;
	struct tw_cache_entry *entry;

	if (!cache)
		return TW_CLOSED;
	cache_plan_value(cache, &plan, value);
	cache_plan(cache, &plan);
	thread = retire_begin(&cache->shared);
	entry = entry_from(thread, &cache->shared, &plan);
	retire_end(thread, &cache->shared);
	if (!entry)
		return TW_NO_MEMORY;
	*before = loading->given;
	loading->given = entry;
	loading->life = plan.life;
	return TW_OK;
}

static enum tw_status loading_give(struct tw_cache_loading *loading,
				   const struct tw_cache_value *value)
{
	struct tw_cache_entry *before = NULL;
	enum tw_status status;

	if (!loading || !value_is_valid(value))
		return TW_INVALID;
	loading_lock(loading);
	status = loading_replace_given(loading, value, &before);
	loading_unlock(loading);
	entry_let_go(before);
	return status;
}

enum tw_status tw_cache_load_copy(struct tw_cache_loading *loading, const void *value,
				  size_t value_size, tw_duration expire)
{
	const struct tw_cache_value given = {.data = value, .size = value_size, .expire = expire};

	return loading_give(loading, &given);
}

static void value_outlives(void *value, size_t value_size, void *context)
{
	(void)value;
	(void)value_size;
	(void)context;
}

enum tw_status tw_cache_load_adopt(struct tw_cache_loading *loading, void *value, size_t value_size,
				   uint64_t weight,
				   void (*free_value)(void *value, size_t value_size,
						      void *context),
				   void *context, tw_duration expire)
{
	const struct tw_cache_value given = {.data = value,
					     .size = value_size,
					     .expire = expire,
					     .weight = weight,
					     .free_value = free_value ? free_value : value_outlives,
					     .context = context};

	return loading_give(loading, &given);
}

enum tw_status tw_cache_load_keep(struct tw_cache_loading *loading)
{
	if (!loading || loading->is_kept || !loading->cache)
		return TW_INVALID;
	(void)loading_hold(loading);
	pthread_mutex_init(&loading->lock, NULL);
	loading->is_kept = true;
	return TW_OK;
}

/* ---- The end ---- */

static bool is_failure(enum tw_status status)
{
	return status != TW_OK && status != TW_NOT_FOUND;
}

/* The loader's status and what it gave agree then. Returns what is to be kept, or NULL. */
static struct tw_cache_entry *loading_judge(struct tw_cache *cache,
					    struct tw_cache_loading *loading,
					    struct retiring_reader *thread, enum tw_status *status)
{
	struct entry_plan absence = {.key = loading->key,
				     .key_size = loading->key_size,
				     .hash = loading->hash,
				     .kind = ENTRY_ABSENT};
	struct tw_cache_entry *entry;

	/* TW_STALE would promise an entry. */
	if ((*status == TW_OK && !loading->given) || *status == TW_STALE)
		*status = TW_LOAD_FAILED;
	if (*status == TW_OK)
		return loading->given;
	if (loading->began > 0)
		reader_count(&thread->reader, COUNT_LOAD_ERRORS, 1);
	if ((is_failure(*status) ? cache->retry_after : cache->negative_expire) == 0)
		return NULL;
	if (is_failure(*status))
		absence.kind |= ENTRY_FAILED;
	cache_plan(cache, &absence);
	loading->life = cache->negative_expire;
	/* Without memory the absence or failure is returned, and not kept. */
	entry = entry_from(thread, &cache->shared, &absence);
	if (entry && is_failure(*status))
		entry_age(entry)->status = (int32_t)*status;
	return entry;
}

/* Between begin and end: the load has failed, and the key pauses. Returns whether `failure`, an
 * entry or NULL, is to stand for that, because no value can. */
static bool loading_pause(struct tw_cache *cache, struct tw_cache_loading *loading,
			  struct tw_cache_entry *failure, tw_duration now)
	HOLDS(loading->shard->lock)
{
	_Atomic uint64_t *slot;
	struct tw_cache_entry *old = table_find_any(shard_table(loading->shard), loading->hash,
						    loading->key, loading->key_size, &slot);
	bool has_age = old && (old->kind & ENTRY_AGING);
	bool has_value =
		loading->entry || (old && !(old->kind & ENTRY_ABSENT) && entry_deadline(old) > now);
	unsigned failures = has_age ? entry_age(old)->failures : 0;
	struct tw_cache_entry *paused = has_value ? old : failure;
	tw_duration pause;

	failures += failures < UINT16_MAX;
	pause = cache_pause(cache, failures);
	/* The number of failures outlives the pause, so that the next one is longer. */
	if (!has_value && failure)
		cache_start_life(cache, failure, now, time_add(pause, pause));
	if (paused && (!has_value || has_age)) {
		entry_age(paused)->failures = (uint16_t)failures;
		entry_set_refresh_at(paused, deadline_after(now, pause));
	}
	return !has_value && failure;
}

/* Between begin and end: the key has no value any more. */
static void loading_remove_old(struct tw_cache_loading *loading, tw_duration now)
	HOLDS(loading->shard->lock)
{
	_Atomic uint64_t *slot;
	struct tw_cache_entry *old = table_find_any(shard_table(loading->shard), loading->hash,
						    loading->key, loading->key_size, &slot);

	if (old && !shared_is_closed(loading->shard->shared))
		(void)shard_unlink(loading->shard, slot, TW_CAUSE_EXPLICIT, now);
}

/* Keeps what was loaded, and ends the load; between begin and end. Returns whether it was kept. */
static bool loading_land(struct tw_cache *cache, struct tw_cache_loading *loading,
			 struct tw_cache_entry *entry, enum tw_status status, tw_duration now)
	HOLDS(loading->shard->lock)
{
	bool is_current = loading_is_current(loading, &loading->shard->loads);
	bool is_kept;

	if (loading->is_refresh)
		limit_give(&cache->refreshing);
	if (is_failure(status)) {
		loading->entry = cache_pin_stale(cache, loading->shard, loading->hash, loading->key,
						 loading->key_size, now);
		is_current = is_current && loading_pause(cache, loading, entry, now);
	}
	is_kept = entry && is_current &&
		  cache_put(cache, loading->shard, loading->hash, entry, PUT_LOADED, now) == TW_OK;
	/* The source has another value, or none: the old one must not outlive the answer. */
	if (!is_failure(status) && !is_kept && is_current)
		loading_remove_old(loading, now);
	if (status == TW_OK)
		loading->entry = tw_cache_entry_pin(entry);
	loading->status = is_failure(status) && loading->entry ? TW_STALE : status;
	shard_unlist_load(loading->shard, loading);
	return is_kept;
}

/* The one thread that ends it calls this. Its lifetime counts from now on. Returns whether waiters
 * are to be called. */
static bool loading_end(struct tw_cache *cache, struct tw_cache_loading *loading,
			enum tw_status status)
{
	struct retiring_reader *thread = retire_begin(&cache->shared);
	struct tw_cache_entry *entry = loading_judge(cache, loading, thread, &status);
	uint64_t weight = entry ? entry_weight(entry) : 0;
	bool is_kept;
	bool has_waiters;
	tw_duration now;

	shard_begin_in(loading->shard, thread);
	now = tw_now(cache->shared.wheel);
	if (entry)
		cache_start_life(cache, entry, now,
				 cache_lifetime(cache, &thread->reader, loading->life));
	is_kept = loading_land(cache, loading, entry, status, now);
	has_waiters = !list_is_empty(&loading->waiters);
	shard_end_in(loading->shard);
	cache_end_sets(cache, thread, is_kept ? weight : 0, entry);
	if (!is_kept)
		entry_let_go(entry);
	if (loading->given && loading->given != entry)
		entry_let_go(loading->given);
	loading->given = NULL;
	if (loading->began > 0)
		cache_count_load_time(cache, clock_read_real(CLOCK_MONOTONIC) - loading->began);
	return has_waiters;
}

/* Calls the functions of those that wait for what has ended. */
static __attribute__((noinline)) void loading_call_waiters(struct tw_cache *cache,
							   struct tw_cache_loading *loading)
{
	struct list waiters;
	bool goes_on;

	list_init(&waiters);
	do {
		shard_begin(loading->shard);
		goes_on = loading_take_waiters(loading, loading->status, &waiters);
		shard_end_unchanged(loading->shard);
	} while (goes_on);
	waiters_call(cache, &waiters);
}

enum tw_status tw_cache_load_end(struct tw_cache_loading *loading, enum tw_status status)
{
	struct tw_cache *cache;
	bool is_kept;

	if (!loading)
		return TW_INVALID;
	is_kept = loading->is_kept;
	loading_lock(loading);
	cache = loading->cache;
	loading->cache = NULL;
	/* The cache is there until this is over: of what is not kept, its loader's thread sees to
	 * that. */
	if (cache && is_kept)
		cache_begin_take(cache);
	loading_unlock(loading);
	if (cache && loading_end(cache, loading, status))
		loading_call_waiters(cache, loading);
	if (cache)
		loading_let_go(loading);
	/* This may free a value: the cache is still there, and so is the value's context. */
	if (is_kept)
		loading_let_go(loading);
	if (is_kept && cache)
		cache_end_take(cache);
	return cache ? TW_OK : TW_CLOSED;
}

/* Ends it, unless another thread does already: returns false. The stop has called the waiters. */
static bool loading_cancel(struct tw_cache *cache, struct tw_cache_loading *loading)
{
	bool is_mine;

	loading_lock(loading);
	is_mine = loading->cache;
	loading->cache = NULL;
	loading_unlock(loading);
	if (!is_mine)
		return false;
	(void)loading_end(cache, loading, TW_CLOSED);
	loading_let_go(loading);
	return true;
}

bool loads_cancel(struct tw_cache *cache)
{
	bool was_any = false;

	for (unsigned i = 0; i <= cache->shard_mask; i++) {
		struct shard *shard = &cache->shards[i];
		struct tw_cache_loading *loading;
		bool goes_on;

		do {
			shard_begin(shard);
			loading = loadings_hold_first(&shard->loads);
			shard_end_unchanged(shard);
			goes_on = loading && loading_cancel(cache, loading);
			was_any |= loading != NULL;
			loading_let_go(loading);
		} while (goes_on);
	}
	return was_any;
}

/* ---- Running ---- */

static void load_note_begin(struct reader *reader, struct tw_cache_loading *loading,
			    tw_duration now)
{
	reader_count(reader, COUNT_LOADS, 1);
	if (loading->is_refresh)
		reader_count(reader, COUNT_REFRESHES, 1);
	loading->began = now;
}

static void load_return(struct tw_cache_loading *loading, enum tw_status status)
{
	if (!loading->is_kept) {
		(void)tw_cache_load_end(loading, status);
		return;
	}
	/* The thread that ran the loader may wait for it now. */
	shard_begin(loading->shard);
	loading->loader = NULL;
	shard_end_unchanged(loading->shard);
}

void load_run(struct tw_cache *cache, struct reader *reader, struct tw_cache_loading *loading,
	      tw_duration now, tw_cache_load *load, void *argument)
{
	struct callback callback
		__attribute__((cleanup(callback_end))) = {.shared = &cache->shared};
	enum tw_status status;

	load_note_begin(reader, loading, now);
	reader->callbacks++;
	status = load(argument, loading->key, loading->key_size, loading);
	reader->callbacks--;
	callback.has_returned = true;
	load_return(loading, status);
}

/* ---- On the cache's threads ---- */

void load_run_queued(struct tw_cache *cache, struct tw_cache_loading *loading)
{
	struct reader *reader = epochs_reader(&cache->shared.epochs);
	bool is_closed = shared_is_closed(&cache->shared);
	bool is_mine;

	shard_begin(loading->shard);
	is_mine = loading->is_queued;
	if (is_mine)
		loading_claim(loading, &loading->shard->loads, reader);
	/* The value was set or deleted meanwhile, and no take waits. */
	if (loading->is_refresh && !loading_is_current(loading, &loading->shard->loads) &&
	    list_is_empty(&loading->waiters))
		is_closed = true;
	shard_end_unchanged(loading->shard);
	if (!is_mine)
		return;
	if (reader && !is_closed)
		load_run(cache, reader, loading, clock_read_real(CLOCK_MONOTONIC), cache->load,
			 cache->load_context);
	else
		(void)tw_cache_load_end(loading, is_closed ? TW_CLOSED : TW_NO_MEMORY);
}
