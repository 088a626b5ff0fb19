/* SPDX-License-Identifier: MIT */
/* A refresh loads a key again while its value may still be read, on the wheel's pool. */
#ifndef CACHE_REFRESH_H
#define CACHE_REFRESH_H

#include "cache.h"

/* Whether a lookup that found this, inside its era, should call cache_refresh() after it. */
static inline bool entry_wants_refresh(const struct tw_cache_entry *entry, tw_duration coarse)
{
	return __builtin_expect(entry->kind & ENTRY_AGING, 0) && entry_refresh_at(entry) <= coarse;
}

/* Returns when an entry that is set now is to be loaded again. */
tw_duration cache_refresh_time(const struct tw_cache *cache, uint32_t hash, tw_duration now);
/* Queues a load of the key if its entry is old, unless there is one, or there are too many. Waits
 * for nothing: also under the shard's lock, where it does nothing. */
void cache_refresh(struct tw_cache *cache, uint64_t hash, const void *key, size_t key_size);
/* Returns how long a key pauses after that many failed loads in a row, at least one. */
tw_duration cache_pause(const struct tw_cache *cache, unsigned failures);

#endif
