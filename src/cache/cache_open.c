/* SPDX-License-Identifier: MIT */
/* Making and ending a cache. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

#include "flight.h"
#include "stash.h"

enum {
	SHARDS_DEFAULT = 64,
	SHARD_ENTRIES_LEAST = 512, /* with a limit */
	OWN_SLOTS = 300
};

static const tw_duration own_interval = TW_SECOND;
static const tw_duration granule_least = TW_MICROSECOND;

/* The coarse clock lags by one step; more where the processor that drives it is kept from
 * running. */
static const tw_duration margin_least = 50 * TW_MILLISECOND;

static bool options_are_valid(const struct tw_cache_options *options)
{
	return options->jitter < 1 && options->policy <= TW_POLICY_S3FIFO && options->idle >= 0 &&
	       options->negative_expire >= 0 && options->stats_interval >= 0 &&
	       options->shards <= TW_CACHE_SHARDS_MAX;
}

static unsigned options_shards(const struct tw_cache_options *options)
{
	uint64_t wanted = options->shards;
	unsigned shards = 1;

	if (wanted == 0) {
		wanted = SHARDS_DEFAULT;
		if (options->max_entries > 0 &&
		    options->max_entries / SHARD_ENTRIES_LEAST < SHARDS_DEFAULT)
			wanted = options->max_entries / SHARD_ENTRIES_LEAST;
		while (shards * 2 <= wanted)
			shards *= 2;
		return shards;
	}
	while (shards < wanted)
		shards *= 2;
	return shards;
}

/* ---- Own wheel, clock, upkeep, statistics ---- */

static void nothing(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

static enum tw_status cache_open_wheel(struct tw_cache *cache,
				       const struct tw_cache_options *options)
{
	/* A worker for the listeners, of which one is called at a time, and one for the shards. */
	struct tw_options own = {
		.name = options->name ? options->name : "proc", .workers = 2, .max_workers = 2};
	enum tw_status status = TW_OK;

	cache->wheel = options->wheel;
	if (!cache->wheel) {
		status = tw_create(&cache->own_wheel, own_interval, OWN_SLOTS, nothing, &own);
		cache->wheel = cache->own_wheel;
	}
	return status;
}

static void cache_init_clock(struct tw_cache *cache)
{
	struct timespec step;
	tw_duration interval = tw_interval_of(cache->wheel);

	cache->granule = interval > granule_least ? interval : granule_least;
	if (tw_clock_of(cache->wheel) != TW_CLOCK_MONOTONIC ||
	    clock_getres(CLOCK_MONOTONIC_COARSE, &step) != 0)
		return;
	cache->has_coarse_clock = true;
	cache->coarse_step = (tw_duration)step.tv_sec * TW_SECOND + step.tv_nsec;
	cache->coarse_margin = 8 * cache->coarse_step;
	if (cache->coarse_margin < margin_least)
		cache->coarse_margin = margin_least;
}

/* False: something is left in one. */
static bool cache_clear_stashes(struct tw_cache *cache)
{
	struct reader *reader = epochs_first_reader(&cache->epochs);
	bool is_done = true;

	for (; reader; reader = reader->next)
		is_done &= stash_clear(reader_stash(reader), cache);
	return is_done;
}

static void cache_close_stashes(struct tw_cache *cache)
{
	struct reader *reader = epochs_first_reader(&cache->epochs);

	for (; reader; reader = reader->next)
		stash_close(reader_stash(reader));
}

static void cache_run_upkeep(void *argument)
{
	struct tw_cache *cache = argument;

	/* seq_cst: a caller that asks from here on is served by another run; and before the look at
	 * the list of readers: one that comes into it later finds this, when it asks. Pairs with
	 * the load in cache_ask_upkeep(). */
	atomic_store_explicit(&cache->upkeep_is_set, false, memory_order_seq_cst);
	if (!cache_clear_stashes(cache))
		cache_ask_upkeep(cache);
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		shard_reclaim(&cache->shards[i]);
}

void cache_ask_upkeep(struct tw_cache *cache)
{
	/* seq_cst: after this thread came into the list of readers; pairs with the store in
	 * cache_run_upkeep(). relaxed: of those who ask at once one sets it, nothing else. */
	if (atomic_load_explicit(&cache->upkeep_is_set, memory_order_seq_cst) ||
	    atomic_exchange_explicit(&cache->upkeep_is_set, true, memory_order_relaxed))
		return;
	(void)tw_alarm_set(cache->upkeep, cache->granule);
}

static void cache_tell_stats(struct tw_cache *cache)
{
	struct reader *reader = epochs_reader(&cache->epochs);
	struct tw_cache_stats stats;

	cache_sum_stats(cache, &stats);
	if (reader)
		reader->callbacks++;
	cache->on_stats(cache->context, &stats);
	if (reader)
		reader->callbacks--;
}

static void cache_run_stats(void *argument)
{
	struct tw_cache *cache = argument;
	tw_duration now = tw_now(cache->wheel);

	cache_tell_stats(cache);
	/* What was missed is missed, and the times don't drift. */
	cache->stats_due =
		time_add(cache->stats_due, ((now - cache->stats_due) / cache->stats_interval + 1) *
						   cache->stats_interval);
	(void)tw_alarm_set_at(cache->stats, cache->stats_due);
}

static enum tw_status cache_open_stats(struct tw_cache *cache,
				       const struct tw_cache_options *options)
{
	enum tw_status status;

	cache->stats_interval = options->stats_interval > 0 ? options->stats_interval : TW_MINUTE;
	if (!options->on_stats)
		return TW_OK;
	status = tw_alarm_create(cache->wheel, cache_run_stats, cache, &cache->stats);
	if (status != TW_OK)
		return status;
	cache->stats_due = time_add(tw_now(cache->wheel), cache->stats_interval);
	(void)tw_alarm_set_at(cache->stats, cache->stats_due);
	return TW_OK;
}

/* ---- Shards ---- */

static void cache_close_shards(struct tw_cache *cache, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		shard_stop(&cache->shards[i]);
	for (unsigned i = 0; i < count; i++)
		shard_close(&cache->shards[i]);
	free(cache->shards);
}

static enum tw_status cache_open_shards(struct tw_cache *cache,
					const struct tw_cache_options *options)
{
	unsigned count = options_shards(options);
	size_t size = count * sizeof(struct shard);
	enum tw_status status = TW_OK;

	cache->shard_mask = count - 1;
	cache->shards = aligned_alloc(_Alignof(struct shard), size);
	if (!cache->shards)
		return TW_NO_MEMORY;
	memset(cache->shards, 0, size);
	for (unsigned i = 0; i < count; i++) {
		policy_init(&cache->shards[i].policy, options->policy);
		if (options->max_entries > 0 || options->max_bytes > 0)
			policy_turn_on(&cache->shards[i].policy);
		status = shard_open(&cache->shards[i], cache);
		if (status != TW_OK) {
			cache_close_shards(cache, i);
			break;
		}
	}
	return status;
}

/* ---- Create ---- */

static void cache_init(struct tw_cache *cache, tw_duration expire,
		       const struct tw_cache_options *options)
{
	cache->expire = expire;
	cache->idle = options->idle;
	cache->lookups_are_plain = options->idle == 0;
	cache->is_lru = options->policy == TW_POLICY_LRU;
	cache->negative_expire = options->negative_expire;
	cache->jitter = options->jitter == 0 ? 0.05 : options->jitter < 0 ? 0 : options->jitter;
	cache->weigh = options->weigh;
	cache->context = options->context;
	cache->on_stats = options->on_stats;
	atomic_init(&cache->max_entries, cache_usable_limit(options->max_entries));
	atomic_init(&cache->max_bytes, cache_usable_limit(options->max_bytes));
	atomic_init(&cache->counts_uses, options->max_entries > 0 || options->max_bytes > 0);
	key_hash_seed_init(&cache->seed);
	pthread_mutex_init(&cache->waits_lock, NULL);
	pthread_mutex_init(&cache->takes_lock, NULL);
	pthread_cond_init(&cache->takes_are_over, NULL);
}

static void cache_free(struct tw_cache *cache)
{
	pthread_cond_destroy(&cache->takes_are_over);
	pthread_mutex_destroy(&cache->takes_lock);
	pthread_mutex_destroy(&cache->waits_lock);
	free(cache);
}

/* On a cache with its wheel and clock. */
static enum tw_status cache_open(struct tw_cache *cache, const struct tw_cache_options *options)
{
	enum tw_status status = TW_NO_MEMORY;

	cache->arena = arena_create();
	if (!cache->arena)
		return status;
	if (!epochs_init(&cache->epochs, sizeof(struct stash)))
		goto release_arena;
	status = notices_open(&cache->notices, cache->wheel, options, cache);
	if (status != TW_OK)
		goto close_epochs;
	status = tw_alarm_create(cache->wheel, cache_run_upkeep, cache, &cache->upkeep);
	if (status != TW_OK)
		goto close_notices;
	status = cache_open_shards(cache, options);
	if (status != TW_OK)
		goto close_upkeep;
	status = cache_open_stats(cache, options);
	if (status == TW_OK)
		return status;
	cache_close_shards(cache, cache->shard_mask + 1);
close_upkeep:
	tw_alarm_destroy(cache->upkeep);
close_notices:
	notices_close(&cache->notices);
close_epochs:
	epochs_destroy(&cache->epochs);
release_arena:
	arena_release(cache->arena);
	return status;
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
	if (expire <= 0 || !options_are_valid(options))
		return TW_INVALID;
	cache = aligned_alloc(_Alignof(struct tw_cache), sizeof(*cache));
	if (!cache)
		return TW_NO_MEMORY;
	memset(cache, 0, sizeof(*cache));
	cache_init(cache, expire, options);
	status = cache_open_wheel(cache, options);
	if (status == TW_OK) {
		cache_init_clock(cache);
		status = cache_open(cache, options);
	}
	if (status != TW_OK) {
		tw_destroy(cache->own_wheel);
		cache_free(cache);
		return status;
	}
	*result = cache;
	return TW_OK;
}

/* ---- Destroy ---- */

static void cache_end_takes(struct tw_cache *cache)
{
	/* release: pairs with cache_is_closed(). */
	atomic_store_explicit(&cache->is_closed, true, memory_order_release);
	for (unsigned i = 0; i <= cache->shard_mask; i++) {
		shard_begin(&cache->shards[i]);
		flights_wake(&cache->shards[i]);
		shard_end(&cache->shards[i]);
	}
	pthread_mutex_lock(&cache->takes_lock);
	while (cache->takes > 0)
		pthread_cond_wait(&cache->takes_are_over, &cache->takes_lock);
	pthread_mutex_unlock(&cache->takes_lock);
}

static bool cache_is_in_callback(struct tw_cache *cache)
{
	struct reader *reader = epochs_reader(&cache->epochs);

	return reader && reader->callbacks > 0;
}

void tw_cache_destroy(struct tw_cache *cache)
{
	int state;

	if (!cache || cache_is_in_callback(cache))
		return;
	/* A cancelled thread would leave half a cache. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	cache_end_takes(cache);
	tw_alarm_destroy(cache->stats);
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		shard_stop(&cache->shards[i]);
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		shard_clear(&cache->shards[i], TW_CAUSE_SHUTDOWN);
	if (notices_wait(&cache->notices, true) != TW_OK)
		notices_tell_here(&cache->notices);
	notices_close(&cache->notices);
	tw_alarm_destroy(cache->upkeep);
	cache_close_stashes(cache);
	cache_close_shards(cache, cache->shard_mask + 1);
	epochs_destroy(&cache->epochs);
	arena_release(cache->arena);
	tw_destroy(cache->own_wheel);
	cache_free(cache);
	pthread_setcancelstate(state, &state);
}

/* ---- Flush ---- */

enum tw_status tw_cache_flush(struct tw_cache *cache)
{
	enum tw_status status;

	if (!cache || cache_is_in_callback(cache) || tw_is_in_task(cache->wheel))
		return TW_INVALID;
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		shard_expire(&cache->shards[i]);
	status = notices_wait(&cache->notices, false);
	cache_run_upkeep(cache);
	return status;
}
