/* SPDX-License-Identifier: MIT */
#include "shard_filing.h"

_Static_assert(ENTRY_FILED + 1 >= EXPIRY_PLACES, "a place fits into a state");

/* ---- What comes up when ---- */

/* Notes the first tick with something filed, or EXPIRY_NEVER. Returns when the alarm is to run: at
 * the end of that tick, rounded up to a tick of the wheel. Under the lock. */
static tw_duration shard_note_next(struct shard *shard, uint64_t tick)
{
	const struct shared_state *shared = shard->shared;
	tw_duration alarm = TW_FOREVER;

	shard->armed = tick;
	shard->past_at = TW_FOREVER;
	if (tick != EXPIRY_NEVER) {
		shard->past_at = (tw_duration)(tick - SHARD_FIRST_TICK) * shared->granule;
		alarm = ((shard->past_at - 1) / shared->tick + 1) * shared->tick;
	}
	shard->late_at = time_add(alarm, 2 * shared->tick);
	return alarm;
}

void shard_arm(struct shard *shard, uint64_t tick)
{
	if (tick < shard->armed)
		(void)tw_alarm_set_at(&shard->alarm, shard_note_next(shard, tick));
}

/* Returns the first tick at which there is something to do. */
static uint64_t shard_next_tick(const struct shard *shard)
{
	tw_duration forget_at = shard->flights.forget_at;
	uint64_t forgotten =
		forget_at == TW_FOREVER ? EXPIRY_NEVER : shard_tick_of(shard, forget_at);
	uint64_t filed = expiry_next(&shard->expiry);

	return forgotten < filed ? forgotten : filed;
}

void shard_arm_next(struct shard *shard)
{
	(void)shard_note_next(shard, EXPIRY_NEVER);
	shard_arm(shard, shard_next_tick(shard));
}

bool shard_file(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, unsigned place)
{
	/* The alarm has been set for a place with hashes. */
	bool is_first = expiry_is_empty(&shard->expiry, place);

	if (!expiry_file(&shard->expiry, hash, place))
		return false;
	entry_set_filed(entry, place);
	if (is_first)
		shard_arm(shard, expiry_place_tick(&shard->expiry, place));
	shard->must_tend |= shard_files_too_much(shard);
	return true;
}

/* ---- What leaves ---- */

void shard_forget(struct shard *shard, struct tw_cache_entry *entry)
{
	entry_set_state(entry, entry_state(entry) & ~(unsigned)ENTRY_LINKED);
	retired_add(&shard->retiring->fresh, entry);
}

void shard_unlink(struct shard *shard, _Atomic uint64_t *slot, enum tw_cache_cause cause,
		  tw_duration now)
{
	struct tw_cache_entry *entry = slot_entry(slot_load(slot));
	uint64_t weight = entry_weight(entry);

	shard_remove(shard, slot);
	shard->must_tend |= shard_files_too_much(shard);
	policy_remove(&shard->policy, entry, weight);
	shard_count(shard, -1, -(int64_t)weight);
	shard_drop(shard, entry, cause, now);
}

/* ---- What came up ---- */

void shard_keep_stale(struct shard *shard, struct tw_cache_entry *entry)
{
	if (entry_state(entry) & ENTRY_STALE)
		return;
	entry_set_state(entry, entry_state(entry) | ENTRY_STALE);
	policy_demote(&shard->policy, entry, entry_weight(entry));
}

/* Returns whether the entry has expired, and is not kept for stale_if_error. Sets *deadline to the
 * end of the entry's time. Under the lock. */
static bool shard_has_done_with(struct shard *shard, struct tw_cache_entry *entry, tw_duration now,
				tw_duration *deadline) HOLDS(shard->lock)
{
	if (!entry_try_to_expire(entry, now, deadline))
		return false;
	if (!entry_is_stale(entry, *deadline, now, shard->shared->stale))
		return true;
	shard_keep_stale(shard, entry);
	*deadline = deadline_after(*deadline, shard->shared->stale);
	return false;
}

/* Removes the entries of a hash that came up from the place `from`, or files them by their present
 * deadlines. Returns false if out of memory: then they count as filed at the place `next`. */
static bool shard_look_at(struct shard *shard, struct table_walk *walk, unsigned from,
			  unsigned next, tw_duration now) HOLDS(shard->lock)
{
	const struct table *table = shard_table(shard);
	struct tw_cache_entry *entry;
	bool is_filed = true;

	while ((entry = table_walk_on(table, walk))) {
		tw_duration deadline;

		/* An entry with another place is filed there, too, and that place counts. */
		if (entry_filed(entry) != from)
			continue;
		if (shard_has_done_with(shard, entry, now, &deadline)) {
			shard_unlink(shard, walk->slot, TW_CAUSE_EXPIRED, now);
		} else if (!shard_watch(shard, walk->hash, entry, 0, deadline)) {
			entry_set_filed(entry, next);
			is_filed = false;
		}
	}
	return is_filed;
}

/* Examines a block's hashes. What there is no memory to file comes up again at `tick`. */
static void shard_examine(struct shard *shard, struct expiry_block *block, uint64_t tick)
	HOLDS(shard->lock)
{
	tw_duration now = tw_now(shard->shared->wheel);
	const struct table *table = shard_table(shard);
	unsigned next = expiry_place(&shard->expiry, tick);
	struct table_walk walks[EXPIRY_BLOCK_MOST];
	uint16_t kept = 0;

	for (unsigned i = 0; i < block->count; i++)
		shard_prefetch_bucket(shard, block->hashes[i]);
	for (unsigned i = 0; i < block->count; i++) {
		walks[i] = table_walk_begin(table, block->hashes[i]);
		__builtin_prefetch(table_walk_guess(table, &walks[i]), 1);
	}
	for (unsigned i = 0; i < block->count; i++)
		if (!shard_look_at(shard, &walks[i], block->place, next, now))
			block->hashes[kept++] = block->hashes[i];
	block->count = kept;
	expiry_give_back(&shard->expiry, block, next);
	if (kept > 0)
		shard_arm(shard, expiry_place_tick(&shard->expiry, next));
}

bool shard_expire_some(struct shard *shard, uint64_t tick)
{
	struct expiry_block *block = expiry_take(&shard->expiry, tick);

	if (!block)
		return false;
	shard_examine(shard, block, tick + 1);
	return true;
}

bool shard_tidy_filed(struct shard *shard)
{
	/* A cache that is being destroyed sets no alarm. */
	if (!shard_files_too_much(shard) || shared_is_closed(shard->shared))
		return false;
	shard_examine(shard, expiry_take_early(&shard->expiry), shard->expiry.now + 1);
	return shard_files_too_much(shard);
}

void shard_expire_early(struct shard *shard, tw_duration now)
{
	(void)shard_expire_some(shard, shard_tick_by(shard, now));
	flights_forget(&shard->flights, now);
	/* The alarm is still set to an earlier time, and sets itself when it runs. */
	(void)shard_note_next(shard, shard_next_tick(shard));
}
