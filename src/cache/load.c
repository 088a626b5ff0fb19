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

#include "change.h"
#include "refresh.h"

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
	/* relaxed: the exchange tells. */
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
		pthread_cond_wait(&cache->takes_are_over, &cache->takes_lock);
		takes = atomic_load_explicit(&cache->takes, memory_order_acquire);
	}
	pthread_mutex_unlock(&cache->takes_lock);
}

static void cache_count_load_time(struct tw_cache *cache, tw_duration time)
{
	pthread_mutex_lock(&cache->takes_lock);
	histogram_record(&cache->load_times, time);
	counter_add(&cache->load_time, (uint64_t)time);
	pthread_mutex_unlock(&cache->takes_lock);
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

static enum tw_status loading_give(struct tw_cache_loading *loading, struct entry_plan *plan,
				   tw_duration expire)
{
	struct tw_cache_entry *before = NULL;
	enum tw_status status = TW_CLOSED;
	struct tw_cache *cache;

	loading_lock(loading);
	cache = loading->cache;
	if (cache) {
		struct retiring_reader *thread;
		struct tw_cache_entry *entry;

		plan->key = loading->key;
		plan->key_size = loading->key_size;
		plan->hash = loading->hash;
		cache_plan(cache, plan);
		thread = retire_begin(&cache->shared);
		entry = entry_from(thread, &cache->shared, plan);
		retire_end(thread, &cache->shared);
		status = entry ? TW_OK : TW_NO_MEMORY;
		if (entry) {
			before = loading->given;
			loading->given = entry;
			loading->expire = expire > 0 ? expire : cache->expire;
		}
	}
	loading_unlock(loading);
	entry_let_go(before);
	return status;
}

enum tw_status tw_cache_load_copy(struct tw_cache_loading *loading, const void *value,
				  size_t value_size, tw_duration expire)
{
	struct entry_plan plan = {.value = value, .value_size = value_size};

	if (!loading || (!value && value_size > 0) || value_size > UINT32_MAX || expire < 0)
		return TW_INVALID;
	return loading_give(loading, &plan, expire);
}

enum tw_status tw_cache_load_adopt(struct tw_cache_loading *loading, void *value, size_t value_size,
				   uint64_t weight,
				   void (*free_value)(void *value, size_t value_size,
						      void *context),
				   void *context, tw_duration expire)
{
	struct entry_adopted adopted = {value, value_size, free_value, context};
	struct entry_plan plan = {.adopted = &adopted, .weight = weight};

	if (!loading || (!value && value_size > 0) || expire < 0)
		return TW_INVALID;
	return loading_give(loading, &plan, expire);
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

bool load_has_value(struct tw_cache_loading *loading)
{
	bool has_value;

	loading_lock(loading);
	has_value = loading->given || !loading->cache;
	loading_unlock(loading);
	return has_value;
}

/* ---- Waiters ---- */

void waiter_tell(struct tw_cache *cache, struct waiter *waiter, enum tw_status status,
		 const struct tw_cache_entry *entry)
{
	struct reader *reader = epochs_reader(&cache->shared.epochs);
	int state;

	/* A cancelled thread would leave the others untold. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (reader && status == TW_STALE)
		reader_count(reader, COUNT_STALE, 1);
	if (reader)
		reader->callbacks++;
	waiter->on_value(waiter->context, status, entry);
	if (reader)
		reader->callbacks--;
	pthread_setcancelstate(state, &state);
	free(waiter);
}

void waiters_tell(struct tw_cache *cache, struct list *waiters, enum tw_status status,
		  const struct tw_cache_entry *entry)
{
	struct list *link;

	while ((link = list_take_first(waiters)))
		waiter_tell(cache, list_entry(link, struct waiter, of_load), status, entry);
}

/* ---- The end ---- */

/* The loader's status and what it gave agree then. What is to be kept, or NULL. */
static struct tw_cache_entry *loading_judge(struct tw_cache *cache,
					    struct tw_cache_loading *loading,
					    struct retiring_reader *thread, enum tw_status *status)
{
	struct entry_plan absence = {.key = loading->key,
				     .key_size = loading->key_size,
				     .hash = loading->hash,
				     .kind = ENTRY_ABSENT};

	/* TW_STALE would promise an entry. */
	if ((*status == TW_OK && !loading->given) || *status == TW_STALE)
		*status = TW_LOAD_FAILED;
	if (*status == TW_OK)
		return loading->given;
	if (loading->began > 0)
		reader_count(&thread->reader, COUNT_LOAD_ERRORS, 1);
	if (*status != TW_NOT_FOUND || cache->negative_expire == 0)
		return NULL;
	cache_plan(cache, &absence);
	loading->expire = cache->negative_expire;
	/* Without memory the absence is told, and not kept. */
	return entry_from(thread, &cache->shared, &absence);
}

/* Between begin and end: the key has no value any more. */
static void loading_remove_old(struct tw_cache_loading *loading, tw_duration now)
{
	_Atomic uint64_t *slot;
	struct tw_cache_entry *old = table_find(shard_table(loading->shard), loading->hash,
						loading->key, loading->key_size, &slot);

	if (old && !shared_is_closed(loading->shard->shared))
		(void)shard_unlink(loading->shard, slot, TW_CAUSE_EXPLICIT, now);
}

/* Between begin and end: the load has failed, and an old value may do. Returns the status. */
static enum tw_status loading_fall_back(struct tw_cache *cache, struct tw_cache_loading *loading,
					enum tw_status status, tw_duration now)
{
	struct tw_cache_entry *old;
	_Atomic uint64_t *slot;
	tw_duration deadline;

	if (cache->shared.stale == 0 || shared_is_closed(&cache->shared))
		return status;
	old = table_find(shard_table(loading->shard), loading->hash, loading->key,
			 loading->key_size, &slot);
	if (!old || !entry_try_to_expire(old, now, &deadline) ||
	    !entry_is_stale(old, deadline, now, cache->shared.stale))
		return status;
	shard_use(loading->shard, old, loading->hash);
	loading->entry = tw_cache_entry_pin(old);
	return TW_STALE;
}

/* Between begin and end: keeps what was loaded, and ends the load. True: it was kept. */
static bool loading_land(struct tw_cache *cache, struct tw_cache_loading *loading,
			 struct tw_cache_entry *entry, enum tw_status status, tw_duration now)
{
	bool is_current = loading_is_current(loading, &loading->shard->loads);
	bool is_kept =
		entry && is_current &&
		cache_put(cache, loading->shard, loading->hash, entry, PUT_LOADED, now) == TW_OK;

	if (is_kept && status == TW_NOT_FOUND)
		(void)shard_limit_absences(loading->shard, entry, now);
	/* The source has another value, or none: the old one must not outlive the answer. */
	if ((status == TW_OK || status == TW_NOT_FOUND) && !is_kept && is_current)
		loading_remove_old(loading, now);
	if (loading->is_refresh)
		cache_end_refresh(cache, loading, now);
	if (status == TW_OK)
		loading->entry = tw_cache_entry_pin(entry);
	else if (status != TW_NOT_FOUND)
		status = loading_fall_back(cache, loading, status, now);
	loading->status = status;
	shard_unlist_load(loading->shard, loading);
	return is_kept;
}

/* By the one thread that ends it. Its lifetime counts from now on. */
static void loading_end(struct tw_cache *cache, struct tw_cache_loading *loading,
			enum tw_status status)
{
	struct retiring_reader *thread = retire_begin(&cache->shared);
	struct tw_cache_entry *entry = loading_judge(cache, loading, thread, &status);
	uint64_t weight = entry ? entry_weight(entry) : 0;
	struct list waiters;
	bool is_kept;
	tw_duration now;

	list_init(&waiters);
	shard_begin(loading->shard);
	now = tw_now(cache->shared.wheel);
	if (entry)
		cache_start_life(cache, entry, now,
				 cache_lifetime(cache, &thread->reader, loading->expire));
	is_kept = loading_land(cache, loading, entry, status, now);
	list_append_all(&waiters, &loading->waiters);
	shard_end_in(loading->shard, thread);
	cache_end_sets(cache, thread, is_kept ? weight : 0, entry);
	if (!is_kept)
		entry_let_go(entry);
	if (loading->given && loading->given != entry)
		entry_let_go(loading->given);
	loading->given = NULL;
	if (loading->began > 0)
		cache_count_load_time(cache, clock_read_real(CLOCK_MONOTONIC) - loading->began);
	waiters_tell(cache, &waiters, loading->status, loading->entry);
	loading_let_go(loading);
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
	if (cache)
		loading_end(cache, loading, status);
	if (cache && is_kept)
		cache_end_take(cache);
	if (is_kept)
		loading_let_go(loading);
	return cache ? TW_OK : TW_CLOSED;
}

/* Ends it, unless another thread does already: false. */
static bool loading_cancel(struct tw_cache *cache, struct tw_cache_loading *loading)
{
	bool is_mine;

	loading_lock(loading);
	is_mine = loading->cache;
	loading->cache = NULL;
	loading_unlock(loading);
	if (is_mine)
		loading_end(cache, loading, TW_CLOSED);
	return is_mine;
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

void load_claim(struct tw_cache *cache, struct reader *reader, struct tw_cache_loading *loading)
{
	loading_set_loader(loading, &cache->shared, reader);
}

void load_note_begin(struct reader *reader, struct tw_cache_loading *loading, tw_duration now)
{
	reader_count(reader, COUNT_LOADS, 1);
	if (loading->is_refresh)
		reader_count(reader, COUNT_REFRESHES, 1);
	loading->began = now;
}

void load_return(struct tw_cache *cache, struct tw_cache_loading *loading, enum tw_status status)
{
	if (!loading->is_kept) {
		(void)tw_cache_load_end(loading, status);
		return;
	}
	pthread_mutex_lock(&cache->shared.waits_lock);
	loading->loader = NULL;
	pthread_mutex_unlock(&cache->shared.waits_lock);
}

/* A loader's call. */
struct load_call {
	struct tw_cache *cache;
	struct reader *reader;
	struct tw_cache_loading *loading;
};

/* The thread ends in its loader. */
static void load_abandon(void *argument)
{
	struct load_call *call = argument;

	call->reader->callbacks--;
	load_return(call->cache, call->loading, TW_LOAD_FAILED);
}

void load_run(struct tw_cache *cache, struct reader *reader, struct tw_cache_loading *loading,
	      tw_cache_load *load, void *argument)
{
	struct load_call call = {cache, reader, loading};
	enum tw_status status;

	load_note_begin(reader, loading, clock_read_real(CLOCK_MONOTONIC));
	reader->callbacks++;
	pthread_cleanup_push(load_abandon, &call);
	status = load(argument, loading->key, loading->key_size, loading);
	pthread_cleanup_pop(0);
	reader->callbacks--;
	load_return(cache, loading, status);
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
		load_claim(cache, reader, loading);
	/* The value was set or deleted meanwhile, and no take waits. */
	if (loading->is_refresh && !loading_is_current(loading, &loading->shard->loads) &&
	    list_is_empty(&loading->waiters))
		is_closed = true;
	shard_end_unchanged(loading->shard);
	if (!is_mine)
		return;
	if (reader && !is_closed)
		load_run(cache, reader, loading, cache->load, cache->load_context);
	else
		(void)tw_cache_load_end(loading, is_closed ? TW_CLOSED : TW_NO_MEMORY);
}

/* What a look for a waiter has found, if it is told at once. */
struct answer {
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned */
};

/* Between begin and end. False: it waits for a load; *queued is one to be added to the loaders. */
static bool waiter_look(struct tw_cache *cache, struct reader *reader, struct shard *shard,
			uint64_t hash, const void *key, size_t key_size, struct waiter *waiter,
			struct answer *answer, struct tw_cache_loading **queued)
{
	struct tw_cache_entry *there = cache_find(cache, reader, hash, key, key_size);
	struct tw_cache_loading *loading;

	*answer = (struct answer){TW_NOT_FOUND, NULL};
	if (there && !(there->kind & ENTRY_ABSENT))
		*answer = (struct answer){TW_OK, tw_cache_entry_pin(there)};
	reader_leave(reader);
	if (there)
		return true;
	answer->status = TW_CLOSED;
	if (shared_is_closed(&cache->shared))
		return true;
	loading = loadings_find(&shard->loads, hash, key, key_size);
	if (loading) {
		reader_count(reader, COUNT_LOAD_WAITS, 1);
	} else {
		answer->status = TW_NO_MEMORY;
		loading = shard_begin_load(shard, cache, NULL, hash, key, key_size);
		if (!loading)
			return true;
		*queued = loading;
	}
	list_append(&loading->waiters, &waiter->of_load);
	return false;
}

void load_for_waiter(struct tw_cache *cache, uint64_t hash, const void *key, size_t key_size,
		     struct waiter *waiter)
{
	struct reader *reader = epochs_reader(&cache->shared.epochs);
	struct shard *shard = cache_shard(cache, hash);
	struct tw_cache_loading *queued = NULL;
	struct answer answer = {TW_NO_MEMORY, NULL};
	bool is_told = true;

	if (reader) {
		shard_begin(shard);
		is_told = waiter_look(cache, reader, shard, hash, key, key_size, waiter, &answer,
				      &queued);
		shard_end_unchanged(shard);
	}
	if (queued)
		loaders_add(&cache->loaders, queued);
	if (is_told)
		waiter_tell(cache, waiter, answer.status, answer.entry);
	tw_cache_entry_release(answer.entry);
}
