/* SPDX-License-Identifier: MIT */
/*
 * An entry knows when it is to be loaded again. The first lookup that meets it later, and finds the
 * shard's lock free, queues a load for the wheel's pool, and has the entry say "never", so that
 * no other tries. A load that brings a value replaces the entry, which is then new; one that brings
 * none has it say when to try again. The time is written under the shard's lock alone.
 */
#include "refresh.h"

#include "cache.h"

/* Without retry_after, a reload that failed is tried again after this part of refresh_after. */
enum { FIRST_PART = 16 };

tw_duration cache_refresh_time(const struct tw_cache *cache, uint32_t hash, tw_duration now)
{
	/* A key's own part of the jitter: -1 to 1. */
	double part = (double)hash / (double)(1u << 31) - 1;
	double after = (double)cache->refresh_after * (1 + cache->jitter * part);

	return cache->refresh_after == 0 || after >= (double)DEADLINE_LAST
		       ? TW_FOREVER
		       : deadline_after(now, (tw_duration)after);
}

/* Returns the key's entry if it is to be loaded again now, or NULL; between begin and end. */
static struct tw_cache_entry *refresh_find(struct tw_cache *cache, struct shard *shard,
					   uint64_t hash, const void *key, size_t key_size)
	HOLDS(shard->lock)
{
	tw_duration now = tw_now(cache->shared.wheel);
	const struct tw_cache_loading *loading = flights_find(&shard->flights, hash, key, key_size);
	_Atomic uint64_t *slot;
	struct tw_cache_entry *entry = table_find(shard_table(shard), hash, key, key_size, &slot);

	if (!entry || !entry_wants_refresh(entry, now) || entry_deadline(entry) <= now ||
	    shared_is_closed(&cache->shared) || (loading && loading->state != FLIGHT_PAUSED))
		return NULL;
	return entry;
}

/* Queues a load of the key if it is to be loaded again, and there is room. A wheel that is stopped
 * reloads nothing more. */
static void refresh_begin(struct tw_cache *cache, struct shard *shard, uint64_t hash,
			  const void *key, size_t key_size) HOLDS(shard->lock)
{
	struct tw_cache_entry *entry = refresh_find(cache, shard, hash, key, key_size);
	struct tw_cache_loading *loading;

	if (!entry || !limit_take(&cache->refreshing))
		return;
	loading = shard_list_load(shard, cache, NULL, hash, key, key_size,
				  clock_read_real(CLOCK_MONOTONIC));
	if (!loading) {
		limit_give(&cache->refreshing);
		return;
	}
	loading->is_refresh = true;
	entry_set_refresh_at(entry, TW_FOREVER);
	if (load_queue_add(&cache->loads, loading) || !load_queue_take(&cache->loads, loading))
		return;
	/* No take has found it, so it is not a load that ends: the caller may be inside an era. */
	(void)flight_unlist(loading, &shard->flights);
	shard->has_flights = shard->flights.chained > 0;
	limit_give(&cache->refreshing);
	flight_let_go(loading);
}

void cache_refresh(struct tw_cache *cache, uint64_t hash, const void *key, size_t key_size)
{
	struct shard *shard = cache_shard(cache, hash);

	if (limit_taken(&cache->refreshing) >= cache->refreshing.most || !shard_try_begin(shard))
		return;
	refresh_begin(cache, shard, hash, key, key_size);
	shard_end_unchanged(shard);
}

tw_duration cache_pause(const struct tw_cache *cache, unsigned failures)
{
	bool has_own = cache->retry_after > 0;
	tw_duration first = has_own ? cache->retry_after : cache->refresh_after / FIRST_PART;
	tw_duration most = has_own ? cache->expire : cache->refresh_after / 2;

	while (--failures > 0 && first < most)
		first = first <= most / 2 ? first * 2 : most;
	return first;
}
