/* SPDX-License-Identifier: MIT */
/*
 * What a shard files of its entries: hashes by the ticks of deadlines, for one alarm; and how
 * entries leave, as most do when their hashes come up. All of it is under the lock.
 *
 * An entry knows where its hash is filed. A hash that comes up too early is filed again. The alarm
 * is set when the first tick becomes sooner; when it runs, it sets itself. A change that must make
 * room between two runs first examines the hashes that came up since the last run, so expired
 * entries leave before live ones. An expired entry kept for stale_if_error makes room before live
 * ones (policy.c), and its hash is filed again, under the end of that time. If the alarm is two
 * ticks late, because all workers are busy, each change of a key does a part of its work first: so
 * memory does not grow with what has expired. While more filed hashes are of no use than of use,
 * each change examines a block of them early. No reader depends on it: lookups judge deadlines
 * themselves.
 */
#ifndef CACHE_SHARD_FILING_H
#define CACHE_SHARD_FILING_H

#include "shard_table.h"

/* Files the hash at a place that is not 0. Returns false if out of memory. */
bool shard_file(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, unsigned place)
	HOLDS(shard->lock);
/* Removes an entry that the table and the policy do not have any more. Only this function removes
 * entries. */
static inline void shard_drop(struct shard *shard, struct tw_cache_entry *entry,
			      enum tw_cache_cause cause, tw_duration now) HOLDS(shard->lock)
{
	tw_duration deadline;

	if (cause != TW_CAUSE_SHUTDOWN && cause != TW_CAUSE_EXPIRED &&
	    entry_deadline(entry) <= now && entry_try_to_expire(entry, now, &deadline))
		cause = TW_CAUSE_EXPIRED;
	entry_set_state(entry, (entry_state(entry) & ~(unsigned)(ENTRY_LINKED | ENTRY_CAUSE)) |
				       (unsigned)cause << ENTRY_CAUSE_SHIFT);
	shard->removed[cause]++;
	if (shard->removals->on_remove && !(entry->kind & ENTRY_ABSENT)) {
		entry_pin(entry);
		removal_list_add(&shard->to_tell, entry);
	}
	retired_add(&shard->retiring->fresh, entry);
}

/* Takes out the entry in that slot. */
void shard_unlink(struct shard *shard, _Atomic uint64_t *slot, enum tw_cache_cause cause,
		  tw_duration now) HOLDS(shard->lock);
/* Retires an entry whose slot another one has. on_remove is not called for it. */
void shard_forget(struct shard *shard, struct tw_cache_entry *entry) HOLDS(shard->lock);
/* Takes out the entry, as shard_unlink() does. */
static inline void shard_unlink_entry(struct shard *shard, const struct tw_cache_entry *entry,
				      enum tw_cache_cause cause, tw_duration now) HOLDS(shard->lock)
{
	shard_unlink(shard, table_find_address(shard_table(shard), entry->hash, entry), cause, now);
}

/* Adds to the counts; negative numbers subtract. */
static inline void shard_count(struct shard *shard, int32_t entries, int64_t bytes)
	HOLDS(shard->lock)
{
	shard->entries_more += entries;
	shard->bytes_more += bytes;
	shard->bytes += (uint64_t)bytes;
}

/* Returns whether so few filed hashes are of use that some should be examined early. */
static inline bool shard_files_too_much(const struct shard *shard)
{
	enum { SPARE = 64 };

	return shard->expiry.count > 2 * shard_table(shard)->count + SPARE;
}

/* Ticks of the expiry are granules. The first has this number, so that the granules of one tick of
 * the wheel share a slot of the second level, and come up together when the alarm runs. */
enum { SHARD_FIRST_TICK = EXPIRY_SLOTS - 1 };

/* Returns the tick at whose end the deadline has passed. */
static inline uint64_t shard_tick_of(const struct shard *shard, tw_duration deadline)
{
	return (uint64_t)((deadline - 1) / shard->shared->granule) + 1 + SHARD_FIRST_TICK;
}

/* Returns the last tick that has passed at `time`. */
static inline uint64_t shard_tick_by(const struct shard *shard, tw_duration time)
{
	return (uint64_t)(time / shard->shared->granule) + SHARD_FIRST_TICK;
}

/* Schedules an examination of the key at the deadline of its entry. `filed` is the place where the
 * key's entry was filed before, or 0. Returns false if out of memory. */
static inline bool shard_watch(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry,
			       unsigned filed, tw_duration deadline) HOLDS(shard->lock)
{
	unsigned place = 0;

	if (deadline != TW_FOREVER)
		place = expiry_place(&shard->expiry, shard_tick_of(shard, deadline));
	if (place != 0 && (filed == 0 || filed > place))
		return shard_file(shard, hash, entry, place);
	entry_set_filed(entry, filed);
	return true;
}

/* Marks an expired entry as kept for stale_if_error, and as the next to make room. */
void shard_keep_stale(struct shard *shard, struct tw_cache_entry *entry) HOLDS(shard->lock);
/* Sets the alarm for the first tick at which there is something to do. */
void shard_arm_next(struct shard *shard) HOLDS(shard->lock);
/* Sets the alarm for that tick, unless it is set to an earlier time. */
void shard_arm(struct shard *shard, uint64_t tick) HOLDS(shard->lock);
/* Examines a block of hashes that came up by `tick`. Returns false if there is none. */
bool shard_expire_some(struct shard *shard, uint64_t tick) HOLDS(shard->lock);
/* Examines a block of hashes that came up by now, before the alarm runs: up to 30 entries. */
void shard_expire_early(struct shard *shard, tw_duration now) HOLDS(shard->lock);
/* Expires some before each change of a key if the alarm is late, because all workers are busy. */
static inline void shard_expire_late(struct shard *shard, tw_duration now) HOLDS(shard->lock)
{
	if (__builtin_expect(shard->late_at <= now, 0))
		shard_expire_early(shard, now);
}

/* Examines a block of hashes, whenever it comes up, if too many are of no use. No entry leaves
 * before its time. Returns whether there may be more to do. */
bool shard_tidy_filed(struct shard *shard) HOLDS(shard->lock);

#endif
