/* SPDX-License-Identifier: MIT */
/*
 * Invariants, while nobody has the lock:
 *   an entry that lookups can find is in the table
 *   while the next table is being filled, an entry copied to it is in both tables
 *   entries and bytes of all shards add up to the counts of the shared state
 *   an entry with a deadline has its hash filed under the tick of its deadline or an earlier one
 *   the alarm is set to the first tick with something filed, or earlier
 *
 * Who owns what: all changes of a shard are made under its lock, which no thread holds for longer
 * than it takes to change 64 entries and to examine a few blocks of hashes. Memory is freed after
 * the lock was let go. All threads write the counts of the shared state, so they are updated once,
 * when the lock is let go: an entry that replaces one that it evicts changes no count.
 *
 * Only shard_drop() removes an entry. It counts the entry out, queues the call of on_remove, and
 * leaves the entry to the thread, which retires it until no reader can see it. Tables that were
 * replaced are retired the same way.
 */
#include "shard.h"

/* Returns whether the shard's weight is no less than its share of the limit. Weights would drift
 * apart by chance if each shard made the room that it needs: one that has little would soon have
 * nothing that is worth keeping. Numbers do not: one entry goes for each that comes. */
static bool shard_has_its_share(const struct shard *shard)
{
	return shard->bytes >= counter_read(&shard->shared->max_bytes) / shard->shared->shards;
}

struct evicted shard_evict(struct shard *shard, unsigned most, bool below_share,
			   const struct tw_cache_entry *spared, tw_duration now)
{
	int32_t entries = shard->entries_more;
	int64_t bytes = shard->bytes_more;
	unsigned blocks = 2;  /* hashes that came up, in blocks */
	unsigned looks = 512; /* each may be a cache miss */

	while (most > 0) {
		bool by_number = shared_excess(&shard->shared->entries, shard->entries_more,
					       &shard->shared->max_entries) > 0;
		struct tw_cache_entry *victim;

		if (!by_number && shared_excess(&shard->shared->bytes, shard->bytes_more,
						&shard->shared->max_bytes) == 0)
			break;
		if (__builtin_expect(shard->past_at <= now, 0) && blocks > 0) {
			blocks--;
			shard_expire_early(shard, now);
			continue;
		}
		if (!by_number && !below_share && !shard_has_its_share(shard))
			break;
		victim = policy_victim(&shard->policy, by_number, spared, &looks);
		if (!victim)
			break;
		most--;
		shard_unlink_entry(shard, victim, TW_CAUSE_SIZE, now);
	}
	return (struct evicted){(uint64_t)(entries - shard->entries_more),
				(uint64_t)(bytes - shard->bytes_more)};
}

void shard_link(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, tw_duration now)
{
	uint64_t weight = entry_weight(entry);

	shard_count(shard, 1, (int64_t)weight);
	entry_set_state(entry, entry_state(entry) | ENTRY_LINKED);
	/* It comes in before others leave, because its hash may be among those that come up. */
	shard_add(shard, hash, entry);
	if (!shard->policy.is_on)
		return;
	(void)shard_evict(shard, SHARD_STEP, false, NULL, now);
	/* It may have expired by now, and left. */
	if (entry_state(entry) & ENTRY_LINKED)
		policy_add(&shard->policy, entry, weight);
	if (__builtin_expect(entry_state(entry) & ENTRY_STALE, 0))
		policy_demote(&shard->policy, entry, weight);
}

void shard_replace(struct shard *shard, _Atomic uint64_t *slot, struct tw_cache_entry *old,
		   struct tw_cache_entry *entry, tw_duration now)
{
	uint64_t weight = entry_weight(entry);
	uint64_t old_weight = entry_weight(old);
	int64_t heavier = (int64_t)(weight - old_weight);

	entry_set_state(entry, entry_state(entry) | ENTRY_LINKED);
	if (shard->policy.is_on) {
		policy_replace(&shard->policy, old, old_weight, entry, weight);
		policy_use(&shard->policy, entry);
	}
	shard_put_in_place(shard, slot, old, entry);
	shard_count(shard, 0, heavier);
	shard_drop(shard, old, TW_CAUSE_REPLACED, now);
	/* Room is made only now: lookups find the one or the other all the time. */
	if (heavier > 0 && shard->policy.is_on)
		(void)shard_evict(shard, SHARD_STEP, false, entry, now);
}

/* Does a part of the work that is done in steps. */
static __attribute__((noinline)) void shard_tend(struct shard *shard) HOLDS(shard->lock)
{
	bool goes_on = shard_tidy_filed(shard);

	shard_try_to_shrink(shard);
	if (shard->next)
		shard_resize_some(shard, 1);
	shard->must_tend = goes_on || shard->next || table_is_sparse(shard_table(shard));
}

/* ---- Begin and end ---- */

void shard_begin_again(struct shard *shard)
{
	turn_lock_give_way(&shard->lock);
	shard_begin_change(shard);
}

void shard_end_move(struct shard *shard)
{
	shared_count(shard->shared, shard->entries_more, shard->bytes_more);
	shard->entries_more = 0;
	shard->bytes_more = 0;
	if (shard->to_tell.count > 0)
		removals_add(shard->removals, &shard->to_tell);
	turn_lock_let_go(&shard->lock);
}

void shard_end_in(struct shard *shard)
{
	if (__builtin_expect(shard->must_tend, 0))
		shard_tend(shard);
	shard_end_move(shard);
}

/* Does one step of shard_tidy(). Returns whether there is more to do. */
static bool shard_tidy_some(struct shard *shard)
{
	enum { RESIZED = 16 };
	bool goes_on;

	shard_begin_again(shard);
	goes_on = shard_tidy_filed(shard);
	/* Entries have left since the last table was begun, so a smaller one may do. */
	shard_try_to_shrink(shard);
	if (shard->next) {
		shard_resize_some(shard, RESIZED);
		goes_on = true;
	}
	shard_end(shard);
	return goes_on;
}

size_t shard_tidy(struct shard *shard, size_t steps)
{
	while (steps > 0 && shard_tidy_some(shard))
		steps--;
	return steps;
}

/* ---- Expiry ---- */

void shard_expire(void *argument)
{
	struct shard *shard = argument;
	tw_duration now = tw_now(shard->shared->wheel);
	/* The clock is read once: hashes that can't be filed come up at the next tick, and this
	 * would never end. Hashes that came up since the wheel's last tick are for the next run,
	 * because taking a part of a slot files the rest again. */
	uint64_t tick = shard_tick_by(shard, now - now % shard->shared->tick);
	bool goes_on;

	do {
		shard_begin_again(shard);
		goes_on = shard_expire_some(shard, tick);
		if (!goes_on) {
			flights_forget(&shard->flights, now);
			shard_arm_next(shard);
		}
		shard_end(shard);
	} while (goes_on);
	(void)shard_tidy(shard, SIZE_MAX);
}

/* ---- All entries ---- */

void shard_clear(struct shard *shard, enum tw_cache_cause cause)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	struct shard_walk walk = {0};
	bool is_first = true;

	do {
		tw_duration now;
		size_t count;

		shard_begin_again(shard);
		now = tw_now(shard->shared->wheel);
		/* Loads that begin later may land, as a set during the call may. */
		if (is_first)
			flights_override_all(&shard->flights);
		is_first = false;
		count = shard_walk_on(shard, &walk, entries, SHARD_STEP);
		for (size_t i = 0; i < count; i++)
			shard_unlink_entry(shard, entries[i], cause, now);
		shard_end(shard);
	} while (!walk.is_over);
	(void)shard_tidy(shard, SIZE_MAX);
}

/* ---- Opening and closing ---- */

enum tw_status shard_open(struct shard *shard, struct shared_state *shared,
			  struct removals *removals) IS_NOT_FOLLOWED
{
	struct table *table = table_new(&shared->pool->arena, epochs_era(&shared->epochs), 1);

	shard->shared = shared;
	shard->removals = removals;
	flights_init(&shard->flights);
	expiry_init(&shard->expiry, shared->pool, shard_tick_by(shard, tw_now(shared->wheel)));
	shard_arm_next(shard);
	turn_lock_init(&shard->lock, &shard->sleep);
	atomic_init(&shard->table, table);
	if (!table)
		return TW_NO_MEMORY;
	atomic_init(&shard->place, table_place(table));
	return tw_alarm_init(shared->wheel, &shard->alarm, shard_expire, shard);
}

void shard_stop(struct shard *shard)
{
	tw_alarm_destroy(&shard->alarm);
}

void shard_close(struct shard *shard)
{
	shard_stop(shard);
	expiry_close(&shard->expiry);
	table_free(shard->next);
	table_free(shard_table(shard));
	policy_forget(&shard->policy);
	flights_close(&shard->flights);
	turn_lock_destroy(&shard->lock);
}
