/* SPDX-License-Identifier: MIT */
/*
 * A shard is a part of the cache's keys: table, expiry, policy and loads under one lock.
 *
 * Invariants, while nobody has the lock; cache_check() asserts them under TW_DEBUG:
 *   an entry that lookups can find is in the table
 *   while the next table is being filled, an entry copied to it is in both tables
 *   entries and bytes of all shards add up to the counts of the shared state
 *   an entry with a deadline has its hash filed under the tick of its deadline or an earlier one,
 *     unless all entries are being filed again
 *   the alarm is set to the first tick with something filed, or earlier
 *
 * Who owns what: all changes of a shard are made under its lock, which no thread holds for longer
 * than it takes to change 64 entries. Memory is freed after the lock was let go. All threads write
 * the counts of the shared state, so they are updated once, when the lock is let go: an entry that
 * replaces one that it evicts changes no count.
 *
 * Only shard_drop() removes an entry. It counts the entry out, queues the call of on_remove, and
 * leaves the entry to the thread, which retires it until no reader can see it. Tables that were
 * replaced are retired the same way.
 *
 * An entry knows where its hash is filed. A hash that comes up too early is filed again. The alarm
 * is set under the lock when the first tick becomes sooner; when it runs, it sets itself. A change
 * that must make room between two runs first examines the hashes that came up since the last run,
 * so expired entries leave before live ones. An expired entry kept for stale_if_error makes room
 * before live ones (policy.c), and its hash is filed again, under the end of that time. If the
 * alarm is two ticks late, because all workers are busy, each change of a key does a part of its
 * work first: so memory does not grow with what has expired. When too many filed hashes are of no
 * use any more, all are thrown away and the entries are filed again, some with each change and the
 * rest by the alarm; entries set meanwhile are filed in any case. No reader depends on it: lookups
 * judge deadlines themselves.
 */
#include "shard.h"

#include <assert.h>

#ifdef TW_DEBUG
static const bool shard_checks = true;
#else
static const bool shard_checks = false;
#endif

_Static_assert(ENTRY_FILED + 1 >= EXPIRY_PLACES, "a place fits into a state");

/* ---- What comes up when ---- */

/* Returns the last tick that has passed at `time`. */
static uint64_t shard_tick_by(const struct shard *shard, tw_duration time)
{
	return (uint64_t)(time / shard->shared->granule) + SHARD_FIRST_TICK;
}

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

/* Sets the alarm for that tick, unless it is set to an earlier time. Under the lock. */
static void shard_arm(struct shard *shard, uint64_t tick)
{
	if (tick < shard->armed)
		(void)tw_alarm_set_at(shard->alarm, shard_note_next(shard, tick));
}

/* Returns the first tick at which there is something to do. */
static uint64_t shard_next_tick(const struct shard *shard)
{
	uint64_t tick = expiry_next(&shard->expiry);

	/* There may be memory again, or what is filed again goes on without a call. */
	if ((shard->must_refile || shard->is_refiling) && tick > shard->expiry.now + 1)
		tick = shard->expiry.now + 1;
	return tick;
}

/* Sets the alarm for the first tick at which there is something to do. */
static void shard_arm_next(struct shard *shard)
{
	(void)shard_note_next(shard, EXPIRY_NEVER);
	shard_arm(shard, shard_next_tick(shard));
}

static bool shard_files_too_much(const struct shard *shard)
{
	enum { SPARE = 64 };

	return shard->expiry.count > 2 * shard_table(shard)->count + SPARE && !shard->is_refiling;
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

/* ---- Tables ---- */

/*
 * A table of another size is made beside the present one: each change clears or fills a part of it.
 * A change in a bucket that is copied already is made in both. When all buckets are copied, the new
 * table takes the other's place. This, and all that follows, is under the lock.
 */

/* Begins a table for `entries` entries, unless one is being made. */
static void shard_begin_resizing(struct shard *shard, size_t entries)
{
	struct shared_state *shared = shard->shared;

	if (shard->next)
		return;
	shard->next =
		table_new_uncleared(&shared->pool->arena, epochs_era(&shared->epochs), entries);
	shard->next_cleared = 0;
	shard->next_copied = 0;
	shard->must_tend = true;
}

/* Retires the next table. No thread has seen it, but freeing it may take too long for the lock. */
static void shard_drop_next(struct shard *shard)
{
	retire_add_table(shard->retiring, shard->next);
	shard->next = NULL;
}

/* Publishes the next table, and retires the old one. */
static void shard_end_resizing(struct shard *shard)
{
	struct table *old = shard_table(shard);
	struct table *table = shard->next;

	/* seq_cst: publishes the table, before the stamp is taken; pairs with shard_table(). */
	atomic_store_explicit(&shard->table, table, memory_order_seq_cst);
	/* seq_cst: publishes the place, before the stamp is taken; pairs with shard_place(). */
	atomic_store_explicit(&shard->place, table_place(table), memory_order_seq_cst);
	shard->next = NULL;
	shard->tables++;
	retire_add_table(shard->retiring, old);
}

static void shard_resize_some(struct shard *shard, size_t steps)
{
	enum { CLEARED = 64, COPIED = 4 };
	const struct table *table = shard_table(shard);
	struct table *next = shard->next;

	/* The next table was to be smaller, but the present one has become fuller. */
	if (!table_is_for(next, table->count)) {
		shard_drop_next(shard);
		return;
	}
	if (shard->next_cleared <= next->mask)
		(void)table_clear_some(next, &shard->next_cleared, steps * CLEARED);
	else if (!table_copy_some(table, &shard->next_copied, steps * COPIED, next))
		shard_end_resizing(shard);
}

static void shard_add(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry)
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

static void shard_remove(struct shard *shard, _Atomic uint64_t *slot)
{
	const struct tw_cache_entry *entry = slot_entry(slot_load(slot));
	size_t number = table_remove(shard_table(shard), slot);

	shard->must_tend |= table_is_sparse(shard_table(shard)) || shard_files_too_much(shard);
	if (shard->next && number < shard->next_copied)
		(void)table_remove(shard->next, table_slot_of(shard->next, entry));
}

static inline void put_in_place(struct shard *shard, _Atomic uint64_t *slot,
				const struct tw_cache_entry *old, struct tw_cache_entry *entry)
{
	table_replace(slot, entry);
	if (shard->next && table_bucket_number(shard_table(shard), slot) < shard->next_copied)
		table_replace(table_find_address(shard->next, old->hash, old), entry);
}

void shard_put_in_place(struct shard *shard, _Atomic uint64_t *slot, struct tw_cache_entry *entry)
{
	put_in_place(shard, slot, slot_entry(slot_load(slot)), entry);
}

bool shard_reserve(struct shard *shard)
{
	const struct table *table = shard_table(shard);

	if (!table_is_for(table, table->count))
		shard_begin_resizing(shard, (table->mask + 1) * BUCKET_SLOTS);
	/* The resizing is usually over by now, unless there was no memory for it for long. */
	while (shard->next && !table_has_room(shard_table(shard)))
		shard_resize_some(shard, 1);
	return table_has_room(shard_table(shard));
}

/* Begins a smaller table if this one has few entries, unless memory is out. The policy then forgets
 * evicted keys. */
static void shard_try_to_shrink(struct shard *shard)
{
	const struct table *table = shard_table(shard);

	if (!table_is_sparse(table))
		return;
	policy_forget(&shard->policy);
	shard_begin_resizing(shard, table->count + table->count / 2);
}

size_t shard_walk_on(struct shard *shard, struct shard_walk *walk, struct tw_cache_entry **entries,
		     size_t most)
{
	const struct table *table = shard_table(shard);
	size_t count;

	/* In another table everything stands elsewhere. */
	if (walk->tables != shard->tables)
		walk->position = 0;
	walk->tables = shard->tables;
	count = table_list(table, &walk->position, entries, most);
	walk->is_over = walk->position > table->mask;
	return count;
}

/* ---- Changes ---- */

/* Removes an entry that the table and the policy do not have any more. Only this function removes
 * entries. Returns the cause of the removal. */
static enum tw_cache_cause shard_drop(struct shard *shard, struct tw_cache_entry *entry,
				      enum tw_cache_cause cause, tw_duration now)
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
	return cause;
}

void shard_forget(struct shard *shard, struct tw_cache_entry *entry)
{
	entry_set_state(entry, entry_state(entry) & ~(unsigned)ENTRY_LINKED);
	retired_add(&shard->retiring->fresh, entry);
}

/* Adds to the counts; negative numbers subtract. */
static void shard_count(struct shard *shard, int32_t entries, int64_t bytes)
{
	shard->entries_more += entries;
	shard->bytes_more += bytes;
	shard->bytes += (uint64_t)bytes;
}

/* Returns whether the shard's weight is no less than its share of the limit. Weights would drift
 * apart by chance if each shard made the room that it needs: one that has little would soon have
 * nothing that is worth keeping. Numbers do not: one entry goes for each that comes. */
static bool shard_has_its_share(const struct shard *shard)
{
	return shard->bytes >= counter_read(&shard->shared->max_bytes) / shard->shared->shards;
}

enum tw_cache_cause shard_unlink(struct shard *shard, _Atomic uint64_t *slot,
				 enum tw_cache_cause cause, tw_duration now)
{
	struct tw_cache_entry *entry = slot_entry(slot_load(slot));
	uint64_t weight = entry_weight(entry);

	shard_remove(shard, slot);
	policy_remove(&shard->policy, entry, weight);
	shard_count(shard, -1, -(int64_t)weight);
	return shard_drop(shard, entry, cause, now);
}

static void shard_unlink_entry(struct shard *shard, const struct tw_cache_entry *entry,
			       enum tw_cache_cause cause, tw_duration now)
{
	(void)shard_unlink(shard, table_slot_of(shard_table(shard), entry), cause, now);
}

/* ---- What came up ---- */

/* Returns whether the entry has expired, and is not kept for stale_if_error. A kept entry is the
 * next to make room. Sets *deadline to the end of the entry's time. Under the lock. */
static bool shard_has_done_with(struct shard *shard, struct tw_cache_entry *entry, tw_duration now,
				tw_duration *deadline)
{
	if (!entry_try_to_expire(entry, now, deadline))
		return false;
	if (!entry_is_stale(entry, *deadline, now, shard->shared->stale))
		return true;
	if (!(entry_state(entry) & ENTRY_STALE)) {
		entry_set_state(entry, entry_state(entry) | ENTRY_STALE);
		policy_demote(&shard->policy, entry, entry_weight(entry));
	}
	*deadline = deadline_after(*deadline, shard->shared->stale);
	return false;
}

/* Removes the entries of a hash that came up from the place `from`, or files them by their present
 * deadlines. Returns false if out of memory: then they count as filed at the place `next`. */
static bool shard_look_at(struct shard *shard, struct table_walk *walk, unsigned from,
			  unsigned next, tw_duration now)
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

/* Examines a block of hashes that came up by `tick`. Returns false if there is none. */
static bool shard_expire_some(struct shard *shard, uint64_t tick)
{
	tw_duration now = tw_now(shard->shared->wheel);
	struct expiry_block *block = expiry_take(&shard->expiry, tick);
	const struct table *table = shard_table(shard);
	unsigned next = expiry_place(&shard->expiry, tick + 1);
	struct table_walk walks[EXPIRY_BLOCK_MOST];
	uint16_t kept = 0;

	if (!block)
		return false;
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
	return true;
}

void shard_expire_early(struct shard *shard, tw_duration now)
{
	(void)shard_expire_some(shard, shard_tick_by(shard, now));
	/* The alarm is still set to an earlier time, and sets itself when it runs. */
	(void)shard_note_next(shard, shard_next_tick(shard));
}

/* ---- Making room, and changes ---- */

/* Returns whether absences have more than a quarter of the shard's part of a limit. One may always
 * stay. */
static bool shard_has_too_many_absences(const struct shard *shard)
{
	const struct policy *policy = &shard->policy;
	uint64_t entries = counter_read(&shard->shared->max_entries);
	uint64_t bytes = counter_read(&shard->shared->max_bytes);
	uint64_t parts = 4 * (uint64_t)shard->shared->shards;

	if (policy->absences.count <= 1)
		return false;
	return (entries > 0 && policy->absences.count > entries / parts) ||
	       (bytes > 0 && policy->absences.weight > bytes / parts);
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
		if (!by_number && entry_weight(victim) == 0) {
			policy_pass(&shard->policy, victim);
			if (looks-- == 0)
				break;
			continue;
		}
		most--;
		shard_unlink_entry(shard, victim, TW_CAUSE_SIZE, now);
	}
	return (struct evicted){(uint64_t)(entries - shard->entries_more),
				(uint64_t)(bytes - shard->bytes_more)};
}

bool shard_limit_absences(struct shard *shard, const struct tw_cache_entry *spared, tw_duration now)
{
	unsigned looks = 512; /* each may be a cache miss */
	unsigned most = SHARD_STEP;

	while (most > 0 && shard_has_too_many_absences(shard)) {
		most--;
		shard_unlink_entry(shard, policy_absence(&shard->policy, spared, &looks),
				   TW_CAUSE_SIZE, now);
	}
	return most == 0;
}

void shard_link(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, tw_duration now)
{
	uint64_t weight = entry_weight(entry);

	shard_count(shard, 1, (int64_t)weight);
	entry_set_state(entry, entry_state(entry) | ENTRY_LINKED);
	/* It comes in before others leave, because its hash may be among those that come up. */
	shard_add(shard, hash, entry);
	if (!policy_is_on(&shard->policy))
		return;
	(void)shard_evict(shard, SHARD_STEP, false, NULL, now);
	/* It may have expired and left by now. */
	if (entry_state(entry) & ENTRY_LINKED)
		policy_add(&shard->policy, entry, weight);
}

void shard_replace(struct shard *shard, _Atomic uint64_t *slot, struct tw_cache_entry *old,
		   struct tw_cache_entry *entry, tw_duration now)
{
	uint64_t weight = entry_weight(entry);
	uint64_t old_weight = entry_weight(old);
	int64_t heavier = (int64_t)(weight - old_weight);

	entry_set_state(entry, entry_state(entry) | ENTRY_LINKED);
	if (policy_is_on(&shard->policy)) {
		policy_replace(&shard->policy, old, old_weight, entry, weight);
		policy_use(&shard->policy, entry);
	}
	put_in_place(shard, slot, old, entry);
	shard_count(shard, 0, heavier);
	shard_drop(shard, old, TW_CAUSE_REPLACED, now);
	/* Room is made only now: lookups find the one or the other all the time. */
	if (heavier > 0 && policy_is_on(&shard->policy))
		(void)shard_evict(shard, SHARD_STEP, false, entry, now);
}

/* ---- Filing again; under the lock ---- */

/* Begins to file all again. The alarm stays at the first tick filed, or earlier, for the rest. */
static void shard_begin_refiling(struct shard *shard)
{
	shard->is_refiling = true;
	shard->must_tend = true;
	shard->must_refile = false;
	shard->refile_walk = (struct shard_walk){0};
	expiry_clear(&shard->expiry);
}

static void shard_refile_one(struct shard *shard, struct tw_cache_entry *entry, tw_duration now)
{
	uint64_t hash = key_hash_wide(&shard->shared->seed, entry_key(entry), entry->key_size);
	tw_duration deadline;

	entry_set_filed(entry, 0);
	if (shard_has_done_with(shard, entry, now, &deadline))
		shard_unlink_entry(shard, entry, TW_CAUSE_EXPIRED, now);
	else if (!shard_watch(shard, hash, entry, 0, deadline))
		shard->must_refile = true; /* out of memory */
}

/* Files up to `most` entries more. */
static void shard_refile_some(struct shard *shard, size_t most)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	tw_duration now = tw_now(shard->shared->wheel);
	size_t count;

	/* A walk through an empty table takes as long as through a full one. */
	shard_try_to_shrink(shard);
	count = shard_walk_on(shard, &shard->refile_walk, entries, most);
	for (size_t i = 0; i < count; i++)
		__builtin_prefetch(entries[i], 1);
	for (size_t i = 0; i < count; i++)
		shard_refile_one(shard, entries[i], now);
	shard->is_refiling = !shard->refile_walk.is_over;
	shard_arm_next(shard);
}

/* Does a part of the work that is done in steps. */
static __attribute__((noinline)) void shard_tend(struct shard *shard)
{
	enum { STEP = 2 * BUCKET_SLOTS, FREED = 2 };

	shard_try_to_shrink(shard);
	if (shard->next)
		shard_resize_some(shard, 1);
	if (shard->expiry.forgotten)
		(void)expiry_free_some(&shard->expiry, FREED);
	if (shard_files_too_much(shard) && !shared_is_closed(shard->shared))
		shard_begin_refiling(shard);
	if (shard->is_refiling)
		shard_refile_some(shard, STEP);
	shard->must_tend = shard->next || shard->expiry.forgotten || shard->is_refiling ||
			   table_is_sparse(shard_table(shard));
}

/* ---- Check ---- */

/* Asserts that an entry's hash is filed under the tick of its deadline or an earlier one. */
static void shard_check_filed(const struct shard *shard, const struct tw_cache_entry *entry)
{
	tw_duration deadline = entry_deadline(entry);
	uint64_t tick;

	if (shard->is_refiling || shard->must_refile || deadline_forward(deadline))
		return;
	if (deadline < 0)
		deadline = -deadline;
	if (!(entry->kind & ENTRY_ABSENT))
		deadline = deadline_after(deadline, shard->shared->stale);
	if (deadline == TW_FOREVER)
		return;
	tick = shard_tick_of(shard, deadline);
	if (tick <= shard->expiry.now)
		tick = shard->expiry.now + 1;
	assert(entry_filed(entry) != 0);
	assert(expiry_place_tick(&shard->expiry, entry_filed(entry)) <= tick);
	(void)tick;
}

/* Asserts that the next table has the entry if its bucket was copied. Returns whether it was. */
static bool shard_check_copied(struct shard *shard, const struct tw_cache_entry *entry)
{
	struct table *table = shard_table(shard);
	bool is_copied;

	if (!shard->next || shard->next_copied == 0)
		return false;
	is_copied = table_bucket_number(table, table_slot_of(table, entry)) < shard->next_copied;
	assert(is_copied == (table_slot_of(shard->next, entry) != NULL));
	return is_copied;
}

uint64_t shard_check(struct shard *shard)
{
	struct table *table = shard_table(shard);
	size_t known = policy_check(&shard->policy);
	size_t position = 0;
	size_t copied = 0;
	uint64_t weight = 0;

	table_check(table);
	assert(shard->policy.knows_all ? known == table->count : known <= table->count);
	expiry_check(&shard->expiry);
	loadings_check(&shard->loads, shard);
	while (position <= table->mask) {
		struct tw_cache_entry *entries[SHARD_STEP];
		size_t count = table_list(table, &position, entries, SHARD_STEP);

		for (size_t i = 0; i < count; i++) {
			assert(entry_state(entries[i]) & ENTRY_LINKED);
			shard_check_filed(shard, entries[i]);
			copied += shard_check_copied(shard, entries[i]);
			weight += entry_weight(entries[i]);
		}
	}
	assert(!shard->next || shard->next_copied == 0 || shard->next->count == copied);
	(void)known;
	(void)copied;
	return weight;
}

/* Checks the shard once in as many changes as it has slots, so that a change costs as much in a
 * large shard as in a small one. */
static void shard_check_sometimes(struct shard *shard)
{
	static _Thread_local size_t changes;

	if (!shard_checks || ++changes < table_slots(shard_table(shard)))
		return;
	changes = 0;
	(void)shard_check(shard);
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
	shard_check_sometimes(shard);
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
	if (shard_files_too_much(shard) && !shared_is_closed(shard->shared))
		shard_begin_refiling(shard);
	if (shard->is_refiling)
		shard_refile_some(shard, SHARD_STEP);
	goes_on = expiry_free_some(&shard->expiry, SHARD_STEP) || shard->is_refiling;
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
			if (shard->must_refile && !shard->is_refiling)
				shard_begin_refiling(shard);
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
			loadings_override_all(&shard->loads);
		is_first = false;
		count = shard_walk_on(shard, &walk, entries, SHARD_STEP);
		for (size_t i = 0; i < count; i++)
			shard_unlink_entry(shard, entries[i], cause, now);
		shard_end(shard);
	} while (!walk.is_over);
	(void)shard_tidy(shard, SIZE_MAX);
}

void shard_turn_policy_on(struct shard *shard)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	struct shard_walk walk = {0};
	struct policy *policy = &shard->policy;
	bool goes_on;

	do {
		size_t count = 0;

		shard_begin_again(shard);
		policy_turn_on(policy);
		if (!policy->knows_all)
			count = shard_walk_on(shard, &walk, entries, SHARD_STEP);
		for (size_t i = 0; i < count; i++) {
			uint64_t weight = entry_weight(entries[i]);

			if (!entries[i]->policy_link.next)
				policy_add(policy, entries[i], weight);
			if (entry_deadline(entries[i]) < 0)
				policy_demote(policy, entries[i], weight);
		}
		policy->knows_all |= walk.is_over;
		goes_on = !policy->knows_all;
		shard_end(shard);
	} while (goes_on);
}

/* ---- Loads ---- */

struct tw_cache_loading *shard_begin_load(struct shard *shard, struct tw_cache *cache,
					  struct reader *loader, uint64_t hash, const void *key,
					  size_t key_size, tw_duration now)
{
	struct tw_cache_loading *loading =
		loading_new(cache, shard, loader, hash, key, key_size, now);

	if (!loading)
		return NULL;
	if (!loading_list(loading, &shard->loads)) {
		loading_let_go(loading);
		return NULL;
	}
	shard->has_loads = true;
	return loading_hold(loading);
}

void shard_unlist_load(struct shard *shard, struct tw_cache_loading *loading)
{
	loading_unlist(loading, &shard->loads);
	shard->has_loads = !list_is_empty(&shard->loads.all);
}

/* ---- Opening and closing ---- */

enum tw_status shard_open(struct shard *shard, struct shared_state *shared,
			  struct removals *removals)
{
	struct table *table = table_new(&shared->pool->arena, epochs_era(&shared->epochs), 1);

	shard->shared = shared;
	shard->removals = removals;
	(void)shard_note_next(shard, EXPIRY_NEVER);
	loadings_init(&shard->loads);
	expiry_init(&shard->expiry, shared->pool, shard_tick_by(shard, tw_now(shared->wheel)));
	turn_lock_init(&shard->lock, &shard->sleep);
	atomic_init(&shard->table, table);
	if (!table)
		return TW_NO_MEMORY;
	atomic_init(&shard->place, table_place(table));
	return tw_alarm_create(shared->wheel, shard_expire, shard, &shard->alarm);
}

void shard_stop(struct shard *shard)
{
	struct tw_alarm *alarm;

	/* A listener's call may be about to set the alarm. */
	turn_lock_take(&shard->lock);
	alarm = shard->alarm;
	shard->alarm = NULL;
	turn_lock_let_go(&shard->lock);
	tw_alarm_destroy(alarm);
}

void shard_close(struct shard *shard)
{
	tw_alarm_destroy(shard->alarm);
	expiry_close(&shard->expiry);
	table_free(shard->next);
	table_free(shard_table(shard));
	policy_forget(&shard->policy);
	loadings_close(&shard->loads);
	turn_lock_destroy(&shard->lock);
}
