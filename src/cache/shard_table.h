/* SPDX-License-Identifier: MIT */
/*
 * The table of a shard, which is replaced by one of another size in small steps, under the lock.
 *
 * A table of another size is made beside the present one: each change clears or fills a part of it.
 * A change in a bucket that is copied already is made in both. When all buckets are copied, the new
 * table takes the other's place.
 */
#ifndef CACHE_SHARD_TABLE_H
#define CACHE_SHARD_TABLE_H

#include "shard_state.h"

/* Makes room for one entry more. Returns false if out of memory. */
bool shard_reserve(struct shard *shard) HOLDS(shard->lock);
/* Does some steps of filling the next table, which is there. */
void shard_resize_some(struct shard *shard, size_t steps) HOLDS(shard->lock);
/* Gives up the next table, as no thread has seen it. */
void shard_drop_next(struct shard *shard) HOLDS(shard->lock);
/* Begins a smaller table if this one has few entries, unless memory is out. The policy then forgets
 * evicted keys. */
void shard_try_to_shrink(struct shard *shard) HOLDS(shard->lock);
/* Lists up to `most` ≥ 8 entries more, under the lock. May return 0 before the walk is over. */
size_t shard_walk_on(struct shard *shard, struct shard_walk *walk, struct tw_cache_entry **entries,
		     size_t most) HOLDS(shard->lock);

/* Puts in an entry, for which there is room. */
static inline void shard_add(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry)
	HOLDS(shard->lock)
{
	struct table *table = shard_table(shard);
	size_t number = table_add(table, hash, entry);

	if (!shard->next || number >= shard->next_copied)
		return;
	if (table_is_for(shard->next, table->count))
		(void)table_add(shard->next, hash, entry);
	else
		shard_drop_next(shard);
}

/* Takes out the entry in that slot. */
static inline void shard_remove(struct shard *shard, _Atomic uint64_t *slot) HOLDS(shard->lock)
{
	const struct tw_cache_entry *entry = slot_entry(slot_load(slot));
	size_t number = table_remove(shard_table(shard), slot);

	shard->must_tend |= table_is_sparse(shard_table(shard));
	if (shard->next && number < shard->next_copied)
		(void)table_remove(shard->next,
				   table_find_address(shard->next, entry->hash, entry));
}

/* Puts the entry in the slot of `old`, which has the same key. */
static inline void shard_put_in_place(struct shard *shard, _Atomic uint64_t *slot,
				      const struct tw_cache_entry *old,
				      struct tw_cache_entry *entry) HOLDS(shard->lock)
{
	table_replace(slot, entry);
	if (shard->next && table_bucket_number(shard_table(shard), slot) < shard->next_copied)
		table_replace(table_find_address(shard->next, old->hash, old), entry);
}

#endif
