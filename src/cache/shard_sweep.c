/* SPDX-License-Identifier: MIT */
#include "shard_sweep.h"

/* ---- Expiry ---- */

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

void shard_expire(void *argument)
{
	struct shard *shard = argument;
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

/* ---- All entries ---- */

void shard_clear(struct shard *shard, enum tw_cache_cause cause)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	struct shard_walk walk = {0, 0};
	size_t count;

	do {
		tw_duration now;

		shard_begin(shard);
		now = tw_now(shard->domain->wheel);
		flights_override_all(shard->flights);
		count = shard_walk_on(shard, &walk, entries);
		for (size_t i = 0; i < count; i++)
			shard_unlink(shard, entries[i], cause, now);
		if (count == 0)
			shard_try_to_shrink(shard);
		shard_end(shard);
	} while (count > 0);
}

void shard_turn_policy_on(struct shard *shard)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	size_t position = 0;
	size_t count;

	shard_begin(shard);
	if (!policy_is_on(&shard->policy)) {
		while ((count = table_list(shard_table(shard), &position, entries, SHARD_STEP)) > 0)
			for (size_t i = 0; i < count; i++)
				policy_add_early(&shard->policy, entries[i]);
		policy_turn_on(&shard->policy);
	}
	shard_end(shard);
}

void shard_reclaim(struct shard *shard)
{
	shard_begin(shard);
	if (!limbo_is_empty(&shard->limbo))
		shard->limbo.is_urgent = true;
	else
		pool_trim(shard->pool); /* others may have returned the last cell */
	shard_end(shard);
}
