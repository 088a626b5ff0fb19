/* SPDX-License-Identifier: MIT */
/* These calls make and end a cache. */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
	LOADERS_DEFAULT = 2,
	REFRESHING_DEFAULT = 64,
	SHARDS_DEFAULT = 64,
	SHARD_ENTRIES_LEAST = 512, /* with a limit */
	SHARD_BYTES_LEAST = 32768, /* with a limit by weight */
	OWN_SLOTS = 300
};

static const tw_duration own_interval = TW_SECOND;

static bool cache_options_are_valid(const struct tw_cache_options *options)
{
	return options->jitter < 1 && options->policy <= TW_POLICY_LRU && options->idle >= 0 &&
	       options->negative_expire >= 0 && options->shards <= TW_CACHE_SHARDS_MAX &&
	       options->loaders <= TW_CACHE_LOADERS_MAX && options->refresh_after >= 0 &&
	       options->stale_if_error >= 0 && options->retry_after >= 0 &&
	       (options->load || options->refresh_after == 0) && reserved_are_0(options->reserved);
}

static unsigned options_shards(const struct tw_cache_options *options)
{
	uint64_t most = SHARDS_DEFAULT;
	unsigned shards = 1;

	if (options->max_entries > 0 && options->max_entries / SHARD_ENTRIES_LEAST < most)
		most = options->max_entries / SHARD_ENTRIES_LEAST;
	if (options->max_bytes > 0 && options->max_bytes / SHARD_BYTES_LEAST < most)
		most = options->max_bytes / SHARD_BYTES_LEAST;
	while (options->shards > 0 ? shards < options->shards : shards * 2 <= most)
		shards *= 2;
	return shards;
}

/* ---- Own wheel, maintenance ---- */

static enum tw_status cache_open_wheel(struct tw_cache *cache)
{
	const struct tw_cache_options *options = &cache->options;
	/* One worker is for the listeners, called one at a time, and one for the shards. */
	struct tw_options own = {.name = options->name, .workers = 2, .max_workers = 2};
	enum tw_status status = TW_OK;

	/* Others come for loads that block. */
	if (options->load)
		own.max_workers += (int)options->loaders;
	if (own.max_workers > TW_WORKERS_MAX)
		own.max_workers = TW_WORKERS_MAX;
	if (!options->wheel)
		status = tw_create(&cache->own_wheel, own_interval, OWN_SLOTS, NULL, &own);
	cache->shared.wheel = options->wheel ? options->wheel : cache->own_wheel;
	return status;
}

static void cache_maintain(struct tw_cache *cache, bool is_draining)
{
	/* A run does at most this, some 15 ms each: an event loop may drive the wheel. */
	enum { TIDIED = 8192, COMPACTED = 64 << 20 };
	size_t steps = TIDIED;
	bool goes_on;

	/* relaxed: the locks below order it with what is left, as in shared_ask_maintenance(). */
	atomic_store_explicit(&cache->shared.maintenance_is_set, false, memory_order_relaxed);
	for (unsigned i = 0; i <= cache->shard_mask && steps > 0; i++)
		steps = shard_tidy(&cache->shards[i], steps);
	goes_on = steps == 0;
	if (is_draining || cache_compact(cache, COMPACTED, true))
		goes_on = true;
	if (goes_on)
		shared_ask_maintenance(&cache->shared);
}

/* Does what is due, but moves no entries where a 16th of them has left since the last run: then
 * pages become empty by themselves, and what would be moved may be the next to leave. After
 * DRAINS_IN_A_ROW such runs in a row it moves them, so that entries which leave slowly do not keep
 * their memory. The alarm runs this. */
static void cache_run_maintenance(void *argument)
{
	enum { SHARE = 16, DRAINS_IN_A_ROW = 8 };
	struct tw_cache *cache = argument;
	uint64_t entries = counter_read(&cache->shared.entries);
	uint64_t left = cache->entries_before > entries ? cache->entries_before - entries : 0;
	bool is_draining = left > cache->entries_before / SHARE && cache->drains < DRAINS_IN_A_ROW;

	cache->entries_before = entries;
	cache->drains = is_draining ? cache->drains + 1 : 0;
	cache_maintain(cache, is_draining);
}

static enum tw_status cache_open_shards(struct tw_cache *cache)
{
	const struct tw_cache_options *options = &cache->options;
	unsigned count = options_shards(options);
	size_t size = count * sizeof(struct shard);
	enum tw_status status = TW_OK;

	cache->shards = aligned_alloc(_Alignof(struct shard), size);
	if (!cache->shards)
		return TW_NO_MEMORY;
	memset(cache->shards, 0, size);
	cache->shard_mask = count - 1;
	cache->shared.shards = count;
	for (unsigned i = 0; i < count && status == TW_OK; i++) {
		policy_init(&cache->shards[i].policy, options->policy,
			    options->max_entries > 0 || options->max_bytes > 0);
		status = shard_open(&cache->shards[i], &cache->shared, &cache->removals);
	}
	return status;
}

/* ---- Create ---- */

enum { GRANULES_A_TICK = 32 };

static const tw_duration granule_least = TW_MICROSECOND;

/* The coarse clock lags by one step, and by more if the processor that drives it is kept from
 * running. */
static const tw_duration margin_least = 50 * TW_MILLISECOND;

static void cache_init_clock(struct shared_state *shared)
{
	struct timespec step;
	tw_duration interval = tw_interval_of(shared->wheel);
	tw_duration granule = interval / GRANULES_A_TICK;

	shared->tick = interval > granule_least ? interval : granule_least;
	shared->granule = granule > granule_least ? granule : granule_least;
	if (tw_clock_of(shared->wheel) != TW_CLOCK_MONOTONIC ||
	    clock_getres(CLOCK_MONOTONIC_COARSE, &step) != 0)
		return;
	shared->coarse_step = (tw_duration)step.tv_sec * TW_SECOND + step.tv_nsec;
	shared->coarse_margin = 8 * shared->coarse_step;
	if (shared->coarse_margin < margin_least)
		shared->coarse_margin = margin_least;
}

/* Takes over valid options, and sets their defaults. */
static void cache_init(struct tw_cache *cache, tw_duration expire,
		       const struct tw_cache_options *given)
{
	struct tw_cache_options *options = &cache->options;

	cache->expire = expire;
	*options = *given;
	options->loaders += options->loaders == 0 ? LOADERS_DEFAULT : 0;
	options->jitter = given->jitter == 0 ? 0.05 : given->jitter < 0 ? 0 : given->jitter;
	atomic_init(&cache->lookups_are_plain, options->idle == 0);
	cache->has_plain_entries =
		options->refresh_after == 0 && !options->weigh && options->idle == 0;
	cache->refreshing.most =
		options->max_refreshing > 0 ? options->max_refreshing : REFRESHING_DEFAULT;
	cache->shared.stale = options->stale_if_error;
	options->name = given->name ? given->name : "proc";
	snprintf(cache->shared.name, sizeof(cache->shared.name), "%s", options->name);
	key_hash_seed_init(&cache->shared.seed);
}

static enum tw_status cache_open(struct tw_cache *cache)
{
	const struct tw_cache_options *options = &cache->options;
	enum tw_status status = cache_open_wheel(cache);

	if (status != TW_OK)
		return status;
	cache_init_clock(&cache->shared);
	cache->shared.pool = pool_create();
	if (!cache->shared.pool || !callers_init(&cache->shared.callers))
		return TW_NO_MEMORY;
	cache_set_limits(cache, options->max_entries, options->max_bytes);
	status = removals_open(&cache->removals, &cache->shared, options);
	if (status == TW_OK)
		status = tw_alarm_init(cache->shared.wheel, &cache->shared.maintenance,
				       cache_run_maintenance, cache);
	if (status == TW_OK)
		status = cache_open_shards(cache);
	if (status == TW_OK && options->load)
		status = loads_open(cache);
	return status;
}

/* Closes what has been opened, as far as that came. No alarm of a shard is set. */
static void cache_close(struct tw_cache *cache)
{
	loads_close(cache);
	removals_close(&cache->removals);
	tw_alarm_destroy(&cache->shared.maintenance);
	for (unsigned i = 0; cache->shards && i <= cache->shard_mask; i++)
		if (cache->shards[i].shared)
			shard_close(&cache->shards[i]);
	free(cache->shards);
	callers_destroy(&cache->shared.callers);
	if (cache->shared.pool)
		pool_close(cache->shared.pool);
	tw_destroy(cache->own_wheel);
	free(cache);
}

enum tw_status tw_cache_create(struct tw_cache **result, tw_duration expire,
			       const struct tw_cache_options *options)
{
	static const struct tw_cache_options defaults;
	struct tw_cache *cache;
	enum tw_status status;

	if (!result)
		return TW_INVALID;
	*result = NULL;
	if (!options)
		options = &defaults;
	if (expire <= 0 || !cache_options_are_valid(options))
		return TW_INVALID;
	cache = aligned_alloc(_Alignof(struct tw_cache), sizeof(*cache));
	if (!cache)
		return TW_NO_MEMORY;
	memset(cache, 0, sizeof(*cache));
	cache_init(cache, expire, options);
	status = cache_open(cache);
	if (status == TW_OK)
		*result = cache;
	else
		cache_close(cache);
	return status;
}

/* ---- Stop ---- */

/* Wakes the threads that wait, which find the cache closed, and takes the askers. */
static void shard_dismiss_takes(struct shard *shard, struct list *askers) HOLDS(shard->lock)
{
	for (struct list *link = shard->flights.all.next; link != &shard->flights.all;
	     link = link->next) {
		struct tw_cache_loading *loading =
			list_entry(link, struct tw_cache_loading, of_shard);

		flight_wake(loading, &shard->lock);
		list_append_all(askers, &loading->askers);
	}
}

enum tw_status tw_cache_stop(struct tw_cache *cache)
{
	struct list askers;

	if (!cache)
		return TW_INVALID;
	list_init(&askers);
	/* relaxed: lookups look at is_closed then, and the exchange publishes it. */
	atomic_store_explicit(&cache->lookups_are_plain, false, memory_order_relaxed);
	/* acq_rel: pairs with shared_is_closed(), and itself. */
	if (atomic_exchange_explicit(&cache->shared.is_closed, true, memory_order_acq_rel))
		return TW_CLOSED;
	/* Calls that found the cache open under a shard's lock are over on return. */
	for (unsigned i = 0; i <= cache->shard_mask; i++) {
		turn_lock_take(&cache->shards[i].lock);
		shard_dismiss_takes(&cache->shards[i], &askers);
		turn_lock_let_go(&cache->shards[i].lock);
	}
	load_answer_all(cache, &askers, TW_CLOSED, NULL);
	return TW_OK;
}

/* ---- Destroy ---- */

static bool cache_is_in_callback(struct tw_cache *cache)
{
	struct caller *caller = callers_find(&cache->shared.callers);

	return caller && caller->callbacks > 0;
}

void tw_cache_destroy(struct tw_cache *cache)
{
	if (!cache || cache_is_in_callback(cache))
		return;
	(void)tw_cache_stop(cache);
	loads_stop(cache);
	loads_end(cache);
	/* A listener's call that comes later sets none of them. */
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		tw_alarm_destroy(&cache->shards[i].alarm);
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		shard_clear(&cache->shards[i], TW_CAUSE_SHUTDOWN);
	(void)removals_wait(&cache->removals);
	removals_tell_here(&cache->removals);
	cache_close(cache);
}

/* ---- Flush ---- */

enum tw_status tw_cache_flush(struct tw_cache *cache)
{
	enum tw_status status;

	/* In a task of the wheel an idle wait is invalid, be it that a task of another wheel,
	 * driven in that one, calls; elsewhere this one has timed out. */
	if (!cache || cache_is_in_callback(cache) ||
	    tw_wait_idle_until(cache->shared.wheel, 0) == TW_INVALID)
		return TW_INVALID;
	if (shared_is_closed(&cache->shared))
		return TW_CLOSED;
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		shard_expire(&cache->shards[i]);
	status = removals_wait(&cache->removals);
	cache_maintain(cache, false);
	return status;
}
