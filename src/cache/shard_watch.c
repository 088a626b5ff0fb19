/* SPDX-License-Identifier: MIT */
/*
 * When a shard's entries are looked at for their age: what is filed under which tick, and the alarm
 * that stands at the first of them, or earlier. It is only set, under the lock, when the first
 * becomes sooner; when it runs it sets itself.
 *
 * Each entry with a deadline has its hash filed under its deadline's tick or an earlier one, and
 * knows where; one that comes up too early is filed anew. When too much is filed that nobody needs
 * any more, all of it is thrown away, and the entries are filed anew, some at a time; what is
 * set meanwhile is filed in any case. No reader lives by it: lookups judge deadlines.
 */
#include "shard.h"

_Static_assert(ENTRY_FILED + 1 >= EXPIRY_LEVELS * EXPIRY_SLOTS, "a place fits into a state");

/* ---- The alarm ---- */

/* Under the lock: sets the alarm if it would come too late. */
static void shard_arm(struct shard *shard)
{
	tw_duration granule = shard->domain->granule;
	uint64_t tick = expiry_next(&shard->expiry);
	tw_duration due;

	if (shard->must_refile && tick > shard->expiry.now + 1)
		tick = shard->expiry.now + 1; /* there may be memory again */
	if (tick > (uint64_t)(TW_FOREVER / granule))
		return;
	due = (tw_duration)tick * granule;
	if (due >= shard->armed)
		return;
	shard->armed = due;
	(void)tw_alarm_set_at(shard->alarm, due);
}

/* ---- What comes up when ---- */

bool shard_watch(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, unsigned filed,
		 tw_duration deadline)
{
	tw_duration granule = shard->domain->granule;
	unsigned place;

	/* Until everything is filed anew, an entry that says it is filed may be wrong. */
	if (shard->is_refiling || shard->must_refile)
		filed = 0;
	if (deadline == TW_FOREVER) {
		entry_set_filed(entry, filed);
		return true;
	}
	place = expiry_place(&shard->expiry, (uint64_t)((deadline - 1) / granule + 1));
	if (filed != 0 && filed <= place) {
		entry_set_filed(entry, filed);
		return true;
	}
	if (!expiry_file(&shard->expiry, hash, place))
		return false;
	entry_set_filed(entry, place);
	shard_arm(shard);
	return true;
}

bool entry_try_to_expire(struct tw_cache_entry *entry, tw_duration now)
{
	tw_duration deadline = entry_deadline(entry);

	do {
		if (deadline < 0)
			return true;
		if (deadline > now)
			return false;
		/* relaxed: of this and a hit that moves the deadline one wins, nothing else. */
	} while (!atomic_compare_exchange_weak_explicit(&entry->deadline, &deadline, -deadline,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

/* What came up, from the place `from`: goes, or is filed anew by the deadline it has by now. False:
 * out of memory; it counts as filed at the place `next`. */
static bool shard_look_at(struct shard *shard, uint64_t hash, unsigned from, unsigned next,
			  tw_duration now)
{
	const struct table *table = shard_table(shard);
	struct tw_cache_entry *entry;
	size_t position = 0;
	bool is_filed = true;

	while ((entry = table_next_hashed(table, hash, &position))) {
		/* Else it is filed elsewhere, too, and that one counts. */
		if (entry_filed(entry) != from)
			continue;
		if (entry_try_to_expire(entry, now)) {
			shard_unlink(shard, entry, TW_CAUSE_EXPIRED, now);
		} else if (!shard_watch(shard, hash, entry, 0, entry_deadline(entry))) {
			entry_set_filed(entry, next);
			is_filed = false;
		}
	}
	return is_filed;
}

bool shard_begin_refiling(struct shard *shard)
{
	enum { SPARE = 64 };

	if (shard->is_refiling || shard->expiry.count <= 2 * shard_table(shard)->count + SPARE ||
	    domain_is_closed(shard->domain))
		return false;
	shard->is_refiling = true;
	expiry_clear(&shard->expiry);
	return true;
}

/* False: out of memory. */
static bool shard_refile_one(struct shard *shard, struct tw_cache_entry *entry, tw_duration now)
{
	const struct key_hash_seed *seed = &shard->domain->seed;

	entry_set_filed(entry, 0);
	if (!entry_try_to_expire(entry, now))
		return shard_watch(shard, key_hash_wide(seed, entry_key(entry), entry->key_size),
				   entry, 0, entry_deadline(entry));
	shard_unlink(shard, entry, TW_CAUSE_EXPIRED, now);
	return true;
}

void shard_refile(struct shard *shard)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	struct shard_walk walk = {0, 0};
	bool has_all = true;
	size_t count;

	do {
		tw_duration now;

		shard_begin(shard);
		now = tw_now(shard->domain->wheel);
		/* To go through an empty table takes as long as through a full one. */
		shard_try_to_shrink(shard);
		count = shard_walk_on(shard, &walk, entries);
		for (size_t i = 0; i < count; i++)
			__builtin_prefetch(entries[i], 1);
		for (size_t i = 0; i < count; i++)
			has_all &= shard_refile_one(shard, entries[i], now);
		if (count == 0)
			shard->must_refile = !has_all;
		shard_arm(shard);
		shard_end(shard);
	} while (count > 0);
	/* Not before that end, which would begin anew if others have left much behind meanwhile. */
	pthread_mutex_lock(&shard->lock);
	shard->is_refiling = false;
	pthread_mutex_unlock(&shard->lock);
}

/* ---- Expiry ---- */

/* By a tick; false: there is nothing more. */
static bool shard_expire_some(struct shard *shard, uint64_t tick)
{
	tw_duration now = tw_now(shard->domain->wheel);
	struct expiry_block *block = expiry_take(&shard->expiry, tick);
	const struct table *table = shard_table(shard);
	unsigned next = expiry_place(&shard->expiry, tick + 1);
	uint16_t kept = 0;

	if (!block)
		return false;
	for (unsigned i = 0; i < block->count; i++)
		shard_prefetch_bucket(shard, block->hashes[i]);
	for (unsigned i = 0; i < block->count; i++)
		__builtin_prefetch(table_guess(table, block->hashes[i]), 1);
	for (unsigned i = 0; i < block->count; i++)
		if (!shard_look_at(shard, block->hashes[i], block->place, next, now))
			block->hashes[kept++] = block->hashes[i];
	block->count = kept;
	expiry_give_back(&shard->expiry, block, next);
	return true;
}

void shard_expire(struct shard *shard)
{
	/* Not read anew: what can't be filed comes up at the next one, and this would never end. */
	uint64_t tick = (uint64_t)(tw_now(shard->domain->wheel) / shard->domain->granule);
	bool goes_on;
	bool refiles;

	do {
		shard_begin(shard);
		goes_on = shard_expire_some(shard, tick);
		refiles = !goes_on && shard->must_refile && !shard->is_refiling;
		if (!goes_on) {
			shard_try_to_shrink(shard);
			shard->is_refiling |= refiles;
			shard->must_refile &= !refiles;
			shard->armed = TW_FOREVER;
			shard_arm(shard);
		}
		shard_end(shard);
	} while (goes_on);
	if (refiles)
		shard_refile(shard);
}

void shard_wake(void *argument)
{
	shard_expire(argument);
}
