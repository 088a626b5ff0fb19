/* SPDX-License-Identifier: MIT */
/*
 * An entry knows when it is to be loaded anew. The first lookup that meets it later, and finds the
 * shard's lock free, queues a load for the cache's threads, and has the entry say "never", so that
 * no other tries. A load that brings a value replaces the entry, which is then new; one that brings
 * none has it say when to try again. The time is written under the shard's lock alone.
 */
#include "refresh.h"

#include "cache.h"
#include "loaders.h"

/* A reload that failed is tried again after this part of refresh_after; twice as long each time. */
enum { FIRST_PART_LOG2 = 4 };

tw_duration cache_refresh_time(const struct tw_cache *cache, uint32_t hash, tw_duration now)
{
	/* A key's own part of the jitter: -1 to 1. */
	double part = (double)hash / (double)(1u << 31) - 1;
	double after = (double)cache->refresh_after * (1 + cache->jitter * part);

	return after >= (double)DEADLINE_LAST ? TW_FOREVER
					      : deadline_after(now, (tw_duration)after);
}

/* Between begin and end: lists a load of the key, with a reference for the caller. NULL: none. */
static struct tw_cache_loading *refresh_begin(struct tw_cache *cache, struct shard *shard,
					      uint64_t hash, const void *key, size_t key_size)
{
	tw_duration now = tw_now(cache->shared.wheel);
	_Atomic uint64_t *slot;
	struct tw_cache_entry *entry = table_find(shard_table(shard), hash, key, key_size, &slot);
	struct tw_cache_loading *loading;

	if (!entry || !entry_wants_refresh(entry, now) || entry_deadline(entry) <= now ||
	    shared_is_closed(&cache->shared) || loadings_find(&shard->loads, hash, key, key_size) ||
	    !limit_take(&cache->refreshing))
		return NULL;
	loading = shard_begin_load(shard, cache, NULL, hash, key, key_size);
	if (!loading) {
		limit_give(&cache->refreshing, 1);
		return NULL;
	}
	loading->is_refresh = true;
	entry_set_refresh_at(entry, TW_FOREVER);
	return loading;
}

void cache_refresh(struct tw_cache *cache, uint64_t hash, const void *key, size_t key_size)
{
	struct shard *shard = cache_shard(cache, hash);
	struct tw_cache_loading *loading;

	if (limit_taken(&cache->refreshing) >= cache->refreshing.most || !shard_try_begin(shard))
		return;
	loading = refresh_begin(cache, shard, hash, key, key_size);
	shard_end_unchanged(shard);
	if (loading)
		loaders_add(&cache->loaders, loading);
}

void cache_end_refresh(struct tw_cache *cache, struct tw_cache_loading *loading, tw_duration now)
{
	struct tw_cache_entry *entry;
	_Atomic uint64_t *slot;
	struct entry_age *age;
	tw_duration pause;

	limit_give(&cache->refreshing, 1);
	if (!loading_is_current(loading, &loading->shard->loads))
		return;
	entry = table_find(shard_table(loading->shard), loading->hash, loading->key,
			   loading->key_size, &slot);
	/* Else another is there by now, which is new. */
	if (!entry || !(entry->kind & ENTRY_AGING) || entry_refresh_at(entry) != TW_FOREVER)
		return;
	age = entry_age(entry);
	if (age->failures < FIRST_PART_LOG2)
		age->failures++;
	pause = cache->refresh_after >> (FIRST_PART_LOG2 + 1 - age->failures);
	entry_set_refresh_at(entry, deadline_after(now, pause));
}
