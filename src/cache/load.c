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
 *
 * Each runner of the queue is an alarm. A load that is added wakes an idle runner. A run takes one
 * load and then, if there is more to do, sets its alarm again, so that other tasks of the pool come
 * in between. Loads that nobody waits for, reloads of values that may still be read, run when no
 * other load waits, and leave one runner free for those, if there are several.
 *
 * An entry knows when it is to be loaded again. The first lookup that meets it later, and finds the
 * shard's lock free, queues a load, and has the entry say "never", so that no other tries. A load
 * that brings a value replaces the entry, which is then new; one that brings none has it say when
 * to try again. The time is written under the shard's lock alone.
 *
 * Invariant: as many runners are awake as loads may run, or none is idle. One that is awake runs or
 * its alarm is set, unless the wheel was stopped.
 */
#include "cache.h"

#include <stdlib.h>

#include "base/thread.h"

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
	struct change change = {.made = NULL};
	struct tw_cache_entry *before = NULL;

	if (!loading || !value_is_valid(value))
		return TW_INVALID;
	loading_lock(loading);
	change.cache = loading->cache;
	if (change.cache) {
		struct entry_plan plan = {
			.key = loading->key, .key_size = loading->key_size, .hash = loading->hash};

		change.shard = loading->shard;
		cache_plan_value(change.cache, &plan, value);
		if (cache_plan(change.cache, &plan)) {
			shard_begin(change.shard);
			(void)change_make(&change, &plan);
			(void)shard_end(change.shard);
		}
		if (change.made) {
			before = loading->given;
			loading->given = change.made;
			loading->life = plan.life;
		}
	}
	/* A destroy that waits for the lock has this value freed before its return. */
	entry_let_go(before, true);
	loading_unlock(loading);
	return change.made ? TW_OK : change.cache ? TW_NO_MEMORY : TW_CLOSED;
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

/* Between begin and end: makes an absence of the key, if that is to be stored. */
static __attribute__((noinline)) void loading_make_absence(struct change *change,
							   struct tw_cache_loading *loading)
	HOLDS(change->shard->lock)
{
	struct entry_plan absence = {.key = loading->key,
				     .key_size = loading->key_size,
				     .hash = loading->hash,
				     .kind = ENTRY_ABSENT};

	if (loading->began > 0 && change->caller)
		caller_count(change->caller, COUNT_LOAD_ERRORS, 1);
	if (load_has_failed(loading->status) || change->cache->options.negative_expire == 0)
		return;
	(void)cache_plan(change->cache, &absence);
	loading->life = change->cache->options.negative_expire;
	/* Without memory the absence is returned, and not stored. */
	(void)change_make(change, &absence);
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
static void loading_pause(const struct change *change, struct tw_cache_loading *loading)
	HOLDS(change->shard->lock)
{
	const struct tw_cache *cache = change->cache;
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

/* Between begin and end: stores what was loaded, and takes the load out of the list. */
static void loading_land(struct change *change, struct tw_cache_loading *loading)
	HOLDS(change->shard->lock)
{
	struct tw_cache *cache = change->cache;
	bool is_current = flight_unlist(loading, &change->shard->flights) &&
			  !shared_is_closed(&cache->shared);
	bool is_stored;

	(void)change_find(change, loading->key, loading->key_size);
	is_stored = change->made && is_current && change_put(change, false) == TW_OK;
	if (loading->is_refresh)
		limit_give(&cache->refreshing);
	if (is_current && load_has_failed(loading->status))
		loading_pause(change, loading);
	/* The source has another value, or none: the old one must not outlive the answer. */
	else if (is_current && !is_stored && change->entry)
		shard_unlink(change->shard, change->slot, TW_CAUSE_EXPLICIT, change->now);
	change->shard->has_flights = change->shard->flights.chained > 0;
}

/* Counts a load that has run, and its time. */
static void loading_count(const struct change *change, const struct tw_cache_loading *loading)
{
	/* The wheel's clock is the real one where it has a coarse clock. */
	tw_duration now = change->cache->shared.coarse_margin > 0
				  ? change->now
				  : clock_read_real(CLOCK_MONOTONIC);

	caller_count(change->caller, COUNT_LOADS_ENDED, 1);
	caller_count(change->caller, COUNT_LOAD_TIME, (uint64_t)(now - loading->began));
}

/* Between begin and end, after the landing: hands the result to threads that wait, with the pin of
 * a value. Returns the old value for functions that do, pinned, or NULL. */
static const struct tw_cache_entry *loading_hand_over(const struct change *change,
						      struct tw_cache_loading *loading)
	HOLDS(change->shard->lock)
{
	if (loading->status == TW_OK)
		loading->entry = change->made;
	flight_wake(loading, &change->shard->lock);
	return load_has_failed(loading->status) && !list_is_empty(&loading->askers)
		       ? cache_pin_stale(change->cache, change->shard, loading->hash, loading->key,
					 loading->key_size, change->now)
		       : NULL;
}

/* Ends a load whose cache the caller has taken away. The lifetime of its value counts from now
 * on. */
static void loading_end(struct tw_cache *cache, struct tw_cache_loading *loading,
			enum tw_status status)
{
	struct change change = {.cache = cache,
				.caller = callers_find(&cache->shared.callers),
				.shard = loading->shard,
				.hash = loading->hash};
	const struct tw_cache_entry *stale;

	/* TW_STALE would promise an entry. */
	if ((status == TW_OK && !loading->given) || status == TW_STALE)
		status = TW_LOAD_FAILED;
	loading->status = status;
	if (status == TW_OK)
		change.made = loading->given;
	else
		entry_let_go(loading->given, true);
	change.weight = change.made ? entry_weight(change.made) : 0;
	shard_begin(change.shard);
	/* It may leave again at once. */
	if (status == TW_OK)
		entry_pin(change.made);
	else
		loading_make_absence(&change, loading);
	change.now = tw_now(cache->shared.wheel);
	/* Without memory for a caller there is no jitter. */
	if (change.made)
		cache_start_life(cache, change.made, change.now,
				 change.caller ? cache_lifetime(cache, change.caller, loading->life)
					       : loading->life);
	loading_land(&change, loading);
	stale = loading_hand_over(&change, loading);
	change.shard->flights.entered += loading->is_kept;
	change_end(&change, true);
	if (loading->began > 0 && change.caller)
		loading_count(&change, loading);
	if (!list_is_empty(&loading->askers))
		load_answer_all(cache, &loading->askers, stale ? TW_STALE : status,
				stale ? stale : loading->entry);
	tw_cache_entry_release(stale);
	if (loading->is_kept)
		load_leave(cache);
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

/* Begins and runs a load that was queued, or ends it with TW_CLOSED if it is refused, and lets go
 * of it. No lock is held. */
static void load_run_queued(struct tw_cache *cache, struct tw_cache_loading *loading,
			    bool is_refused)
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
	load_leave(cache);
	flight_let_go(loading);
}

/* ---- The queue ---- */

/* Runs one load of the queue at a time on the wheel's pool. */
struct load_runner {
	struct tw_cache *cache; /* constant */
	struct tw_alarm alarm;
	/* Under the lock of the queue. */
	bool is_idle;
	struct load_runner *next_idle;
};

/* Returns the list that has the load to run next, or NULL if none may run. */
static struct list *load_queue_next(struct load_queue *queue)
{
	if (!list_is_empty(&queue->misses))
		return &queue->misses;
	return !list_is_empty(&queue->reloads) && queue->reloading < queue->reloading_most
		       ? &queue->reloads
		       : NULL;
}

/* Takes the first load out of a list that has one. */
static struct tw_cache_loading *take_first_load(struct list *list)
{
	struct list *link = list_take_first(list);

	list_init(link);
	return list_entry(link, struct tw_cache_loading, of_queue);
}

static void runner_rest(struct load_runner *runner, struct load_queue *queue)
{
	if (runner->is_idle)
		return;
	runner->is_idle = true;
	runner->next_idle = queue->idle;
	queue->idle = runner;
}

/* Wakes an idle runner. Sets the alarm of another if none is idle, which shows whether the wheel
 * goes on. Returns false if the wheel is stopped. */
static bool load_queue_wake(struct load_queue *queue)
{
	struct load_runner *runner = queue->idle ? queue->idle : queue->runners;

	if (runner->is_idle)
		queue->idle = runner->next_idle;
	runner->is_idle = false;
	return tw_alarm_set(&runner->alarm, 0) == TW_OK;
}

static void runner_run(void *argument)
{
	struct load_runner *runner = argument;
	struct load_queue *queue = &runner->cache->loads;
	struct tw_cache_loading *loading = NULL;
	bool is_reload;
	struct list *list;

	pthread_mutex_lock(&queue->lock);
	/* One that is idle rested after it was woken: another has the load. */
	list = runner->is_idle ? NULL : load_queue_next(queue);
	is_reload = list == &queue->reloads;
	queue->reloading += is_reload;
	if (list)
		loading = take_first_load(list);
	else
		runner_rest(runner, queue);
	pthread_mutex_unlock(&queue->lock);
	if (!loading)
		return;
	load_run_queued(runner->cache, loading, false);
	pthread_mutex_lock(&queue->lock);
	queue->reloading -= is_reload;
	if (load_queue_next(queue))
		(void)tw_alarm_set(&runner->alarm, 0);
	else
		runner_rest(runner, queue);
	pthread_mutex_unlock(&queue->lock);
}

bool load_queue_add(struct tw_cache *cache, struct tw_cache_loading *loading)
{
	struct load_queue *queue = &cache->loads;
	bool is_open;

	pthread_mutex_lock(&queue->lock);
	list_append(loading->is_refresh ? &queue->reloads : &queue->misses, &loading->of_queue);
	is_open = load_queue_wake(queue);
	pthread_mutex_unlock(&queue->lock);
	return is_open;
}

void load_queue_refuse(struct tw_cache *cache)
{
	struct load_queue *queue = &cache->loads;
	struct tw_cache_loading *loading;

	do {
		pthread_mutex_lock(&queue->lock);
		list_append_all(&queue->misses, &queue->reloads);
		loading = list_is_empty(&queue->misses) ? NULL : take_first_load(&queue->misses);
		pthread_mutex_unlock(&queue->lock);
		if (loading)
			load_run_queued(cache, loading, true);
	} while (loading);
}

bool load_queue_take(struct tw_cache *cache, struct tw_cache_loading *loading)
{
	struct load_queue *queue = &cache->loads;
	bool was_there;

	pthread_mutex_lock(&queue->lock);
	was_there = !list_is_empty(&loading->of_queue);
	list_remove(&loading->of_queue);
	list_init(&loading->of_queue);
	pthread_mutex_unlock(&queue->lock);
	if (was_there && loading->is_refresh) {
		limit_give(&cache->refreshing);
		loading->is_refresh = false;
	}
	return was_there;
}

/* ---- Reloads ---- */

struct tw_cache_loading *load_list(struct tw_cache *cache, struct shard *shard,
				   struct caller *loader, uint64_t hash, const void *key,
				   size_t key_size)
{
	struct tw_cache_loading *loading =
		flights_add(&shard->flights, hash, key, key_size, loader);

	if (!loading)
		return NULL;
	loading->cache = cache;
	loading->shard = shard;
	shard->has_flights = true;
	return loading;
}

/* Returns the key's entry if it is to be loaded again now, or NULL. */
static struct tw_cache_entry *refresh_find(struct tw_cache *cache, struct shard *shard,
					   uint64_t hash, const void *key, size_t key_size)
	HOLDS(shard->lock)
{
	tw_duration now = tw_now(cache->shared.wheel);
	const struct tw_cache_loading *loading = flights_find(&shard->flights, hash, key, key_size);
	_Atomic uint64_t *slot;
	struct tw_cache_entry *entry = table_find(shard->table, hash, key, key_size, &slot);

	if (!entry || !entry_wants_refresh(entry, now) || entry_deadline(entry) <= now ||
	    shared_is_closed(&cache->shared) || (loading && loading->state != FLIGHT_PAUSED))
		return NULL;
	return entry;
}

void cache_refresh(struct tw_cache *cache, uint64_t hash, const void *key, size_t key_size)
{
	struct shard *shard = cache_shard(cache, hash);
	struct tw_cache_loading *loading = NULL;
	struct tw_cache_entry *entry;

	if (limit_taken(&cache->refreshing) >= cache->refreshing.most ||
	    !turn_lock_try(&shard->lock))
		return;
	entry = refresh_find(cache, shard, hash, key, key_size);
	if (entry && limit_take(&cache->refreshing)) {
		loading = load_list(cache, shard, NULL, hash, key, key_size);
		if (!loading)
			limit_give(&cache->refreshing);
	}
	if (loading) {
		loading->is_refresh = true;
		time_store(&entry_age(entry)->refresh_at, TW_FOREVER);
		if (!load_queue_add(cache, loading) && load_queue_take(cache, loading)) {
			/* The wheel is stopped. No take has found the load, so it does not end. */
			(void)flight_unlist(loading, &shard->flights);
			flight_let_go(loading);
		}
	}
	turn_lock_let_go(&shard->lock);
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

enum tw_status loads_open(struct tw_cache *cache)
{
	struct load_queue *queue = &cache->loads;
	unsigned count = cache->options.loaders;
	enum tw_status status = TW_OK;

	queue->runners = calloc(count, sizeof(*queue->runners));
	if (!queue->runners)
		return TW_NO_MEMORY;
	queue->count = count;
	queue->reloading_most = count > 1 ? count - 1 : 1;
	pthread_mutex_init(&queue->lock, NULL);
	list_init(&queue->misses);
	list_init(&queue->reloads);
	for (unsigned i = 0; i < count && status == TW_OK; i++) {
		struct load_runner *runner = &queue->runners[i];

		runner->cache = cache;
		runner_rest(runner, queue);
		status = tw_alarm_init(cache->shared.wheel, &runner->alarm, runner_run, runner);
	}
	return status;
}

void loads_stop(struct tw_cache *cache)
{
	for (unsigned i = 0; i < cache->loads.count; i++)
		(void)tw_alarm_destroy(&cache->loads.runners[i].alarm);
}

void loads_close(struct tw_cache *cache)
{
	if (!cache->loads.runners)
		return;
	loads_stop(cache);
	pthread_mutex_destroy(&cache->loads.lock);
	free(cache->loads.runners);
}
