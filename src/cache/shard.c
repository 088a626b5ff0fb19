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
 * gives up the table's reference. The cells of entries that left are the shard's for what comes
 * next; a few of them, for maintenance returns them.
 *
 * The table of the next size is filled beside the present one: each change fills a part. A change
 * in a bucket that is copied already is made in both. When all buckets are copied, the new table
 * takes the other's place, whose memory goes back to the system in steps.
 *
 * An entry knows where its hash is filed. A hash that comes up too early is filed again. The alarm
 * is set when the first tick becomes sooner; when it runs, it sets itself. A change that must make
 * room between two runs first examines the hashes that came up since the last run, so expired
 * entries leave before live ones. The hash of an expired entry kept for stale_if_error is filed
 * again, under the end of that time. If the alarm is two ticks late, because all workers are busy,
 * each change of a key does a part of its work first: so memory does not grow with what has
 * expired. While more filed hashes are of no use than of use, each change examines a block of them
 * early. No reader depends on it: lookups judge deadlines themselves.
 */
#include "shard.h"

_Static_assert(ENTRY_FILED + 1 >= EXPIRY_PLACES, "a place fits into a state");
_Static_assert(sizeof(struct shard) / 64 % 2 == 1,
	       "shards begin in all sets of a processor's cache");

/* Bytes that all shards may keep in spare cells, and that one may at most and at least. */
enum { SPARE_ALL = 1 << 20, SPARE_MOST = 32768, SPARE_LEAST = 2048 };

/* ---- The table ---- */

/* Begins to fill another table, one size larger or smaller, unless one is being filled, or an old
 * one is not yet empty. */
static void shard_begin_resizing(struct shard *shard, struct table *table)
{
	if (shard->next || shard->old || table == &shard->sizes[TABLE_SIZES] || !table_open(table))
		return;
	shard->next = table;
	shard->next_copied = 0;
	shard->must_tend = true;
}

/* Publishes the next table, and leaves the old one. */
static void shard_end_resizing(struct shard *shard)
{
	shard->old = shard->table;
	shard->table = shard->next;
	shard->next = NULL;
	/* seq_cst: publishes the table; pairs with shard_place(). */
	atomic_store_explicit(&shard->place, table_place(shard->table), memory_order_seq_cst);
	/* release: a thread that sees this sees the place; pairs with shard_tables(). The old table
	 * is not touched before. */
	atomic_store_explicit(&shard->tables, counter_read(&shard->tables) + 1,
			      memory_order_release);
}

/* Does some steps of filling the next table, which is there. It has room for all: at most one entry
 * comes with each step. */
static void shard_resize_some(struct shard *shard, size_t steps)
{
	enum { COPIED = 4 };

	if (!table_copy_some(shard->table, &shard->next_copied, steps * COPIED, shard->next))
		shard_end_resizing(shard);
}

bool shard_reserve(struct shard *shard)
{
	if (table_is_full(shard->table))
		shard_begin_resizing(shard, shard->table + 1);
	/* The resizing is usually over by now, unless there was no memory for it for long. */
	while (shard->next && !table_has_room(shard->table))
		shard_resize_some(shard, 1);
	return table_has_room(shard->table);
}

/* Begins a smaller table if this one has few entries, unless memory is out. The policy then forgets
 * evicted keys. */
static void shard_try_to_shrink(struct shard *shard)
{
	if (!table_is_sparse(shard->table))
		return;
	policy_forget(&shard->policy);
	shard_begin_resizing(shard, shard->table - 1);
}

size_t shard_walk_on(struct shard *shard, struct shard_walk *walk, struct tw_cache_entry **entries,
		     size_t most)
{
	const struct table *table = shard->table;
	size_t count;

	/* In another table everything stands elsewhere. */
	if (walk->tables != counter_read(&shard->tables))
		walk->position = 0;
	walk->tables = counter_read(&shard->tables);
	count = table_list(table, &walk->position, entries, most);
	walk->is_over = walk->position > table->mask;
	return count;
}

/* Puts in an entry, for which there is room. */
static inline void shard_add(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry)
{
	size_t number = table_add(shard->table, hash, entry);

	if (shard->next && number < shard->next_copied)
		(void)table_add(shard->next, hash, entry);
}

/* Takes out the entry in that slot. */
static inline void shard_remove(struct shard *shard, _Atomic uint64_t *slot)
{
	const struct tw_cache_entry *entry = slot_entry(slot_load(slot));
	size_t number = table_remove(shard->table, slot);

	shard->must_tend |= table_is_sparse(shard->table);
	if (shard->next && number < shard->next_copied)
		(void)table_remove(shard->next,
				   table_find_address(shard->next, entry->hash, entry));
}

/* Puts the entry in the slot of `old`, which has the same key. */
static inline void shard_put_in_place(struct shard *shard, _Atomic uint64_t *slot,
				      const struct tw_cache_entry *old,
				      struct tw_cache_entry *entry)
{
	table_replace(slot, entry);
	if (shard->next && table_bucket_number(shard->table, slot) < shard->next_copied)
		table_replace(table_find_address(shard->next, old->hash, old), entry);
}

/* ---- What comes up when ---- */

/* Returns whether so few filed hashes are of use that some should be examined early. */
static inline bool shard_files_too_much(const struct shard *shard)
{
	enum { SPARE = 64 };

	return shard->expiry.count > 2 * shard->table->count + SPARE;
}

/* Returns the last tick that has passed at `time`. */
static inline uint64_t shard_tick_by(const struct shard *shard, tw_duration time)
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

void shard_arm(struct shard *shard, uint64_t tick)
{
	if (tick < shard->armed)
		(void)tw_alarm_set_at(&shard->alarm, shard_note_next(shard, tick));
}

/* Returns the first tick at which there is something to do: an examination, or a pause to be
 * forgotten. */
static uint64_t shard_next_tick(const struct shard *shard)
{
	tw_duration forget_at = shard->flights.forget_at;
	uint64_t filed = expiry_next(&shard->expiry);
	uint64_t forgotten = forget_at == TW_FOREVER ? filed : shard_tick_of(shard, forget_at);

	return forgotten < filed ? forgotten : filed;
}

bool shard_file(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, unsigned place)
{
	/* The alarm has been set for a place with hashes. */
	bool is_first = !shard->expiry.slots[place / 2];

	if (!expiry_file(&shard->expiry, hash, place))
		return false;
	entry_set_filed(entry, place);
	if (is_first)
		shard_arm(shard, expiry_place_tick(&shard->expiry, place));
	shard->must_tend |= shard_files_too_much(shard);
	return true;
}

/* ---- What leaves ---- */

/* Adds to the counts; negative numbers subtract. */
static inline void shard_count(struct shard *shard, int32_t entries, int64_t bytes)
{
	shard->entries_more += entries;
	shard->bytes_more += bytes;
	shard->bytes += (uint64_t)bytes;
}

/* Removes an entry that the table and the policy do not have any more. A call of this would be 17
 * instructions of each change. */
static inline __attribute__((always_inline)) void shard_drop(struct shard *shard,
							     struct tw_cache_entry *entry,
							     enum tw_cache_cause cause,
							     tw_duration now) HOLDS(shard->lock)
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
		removals_add(shard->removals, entry);
	}
	shard_let_go(shard, entry);
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

static void shard_unlink_entry(struct shard *shard, const struct tw_cache_entry *entry,
			       enum tw_cache_cause cause, tw_duration now) HOLDS(shard->lock)
{
	shard_unlink(shard, table_find_address(shard->table, entry->hash, entry), cause, now);
}

/* ---- What came up ---- */

/* Removes the entries of a hash that came up from the place `from`, or files them by their present
 * deadlines, and those kept for stale_if_error by the end of that. Returns false if out of memory:
 * then they count as filed at the place `next`. */
static bool shard_look_at(struct shard *shard, struct table_walk *walk, unsigned from,
			  unsigned next, tw_duration now) HOLDS(shard->lock)
{
	const struct table *table = shard->table;
	tw_duration stale = shard->shared->stale;
	struct tw_cache_entry *entry;
	bool is_filed = true;

	while ((entry = table_walk_on(table, walk))) {
		tw_duration deadline;

		/* An entry with another place is filed there, too, and that place counts. */
		if (entry_filed(entry) != from)
			continue;
		if (entry_try_to_expire(entry, now, &deadline)) {
			if (!entry_is_stale(entry, deadline, now, stale)) {
				shard_unlink(shard, walk->slot, TW_CAUSE_EXPIRED, now);
				continue;
			}
			deadline = deadline_after(deadline, stale);
		}
		if (!shard_watch(shard, walk->hash, entry, 0, deadline)) {
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
	const struct table *table = shard->table;
	unsigned next = expiry_place(&shard->expiry, tick);
	struct table_walk walks[EXPIRY_BLOCK_MOST];
	uint16_t kept = 0;

	for (unsigned i = 0; i < block->count; i++)
		shard_prefetch_bucket(shard, block->hashes[i]);
	for (unsigned i = 0; i < block->count; i++)
		walks[i] = table_walk_begin(table, block->hashes[i]);
	for (unsigned i = 0; i < block->count; i++)
		if (!shard_look_at(shard, &walks[i], block->place, next, now))
			block->hashes[kept++] = block->hashes[i];
	block->count = kept;
	expiry_give_back(&shard->expiry, block, next);
	if (kept > 0)
		shard_arm(shard, expiry_place_tick(&shard->expiry, next));
}

/* Examines a block of hashes that came up by `tick`. Returns false if there is none. */
static bool shard_expire_some(struct shard *shard, uint64_t tick) HOLDS(shard->lock)
{
	struct expiry_block *block = expiry_take(&shard->expiry, tick);

	if (!block)
		return false;
	shard_examine(shard, block, tick + 1);
	return true;
}

/* Examines a block of hashes, whenever it comes up, if too many are of no use. No entry leaves
 * before its time. Returns whether there may be more to do. */
static bool shard_tidy_filed(struct shard *shard) HOLDS(shard->lock)
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

/* ---- What comes in ---- */

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

bool shard_move(struct shard *shard, struct tw_cache_entry *entry)
{
	_Atomic uint64_t *slot = table_find_address(shard->table, entry->hash, entry);
	uint64_t weight = entry_weight(entry);
	struct tw_cache_entry *copy;

	if (!slot || (entry->kind & ENTRY_ADOPTED) || entry_pins(entry) > 1)
		return true;
	copy = entry_copy(
		spare_take(&shard->spare, shard->shared->pool, pool_class_of(entry)->size), entry);
	if (!copy)
		return false;
	policy_replace(&shard->policy, entry, weight, copy, weight);
	shard_put_in_place(shard, slot, entry, copy);
	entry_set_state(entry, entry_state(entry) & ~(unsigned)ENTRY_LINKED);
	entry_carry_deadline(copy, entry);
	shard_let_go(shard, entry);
	return true;
}

/* Does a part of the work that is done in steps, of a resizing that many. Returns whether there is
 * more to do. */
static __attribute__((noinline)) bool shard_tend(struct shard *shard, size_t resized)
	HOLDS(shard->lock)
{
	bool goes_on = shard_tidy_filed(shard);

	/* Entries have left since the last table was begun, so a smaller one may do. */
	shard_try_to_shrink(shard);
	if (shard->next)
		shard_resize_some(shard, resized);
	if (shard->old && !table_release_some(shard->old))
		shard->old = NULL;
	shard->must_tend = goes_on || shard->next || shard->old || table_is_sparse(shard->table);
	return shard->must_tend;
}

/* ---- Begin and end ---- */

/* Gives back some of the cells that are not for the next sets. */
static __attribute__((noinline)) void shard_trim(struct shard *shard)
{
	enum { STEP = 16, BYTES_A_CELL_MORE = 1024 };
	struct shared_state *shared = shard->shared;
	uint64_t most = SPARE_ALL / shared->shards;

	most = most > SPARE_MOST ? SPARE_MOST : most;
	if (shard->spare.bytes > most)
		(void)spare_return_some(
			&shard->spare, shared->pool,
			STEP + (unsigned)((shard->spare.bytes - most) / BYTES_A_CELL_MORE));
}

void shard_begin_again(struct shard *shard)
{
	turn_lock_give_way(&shard->lock);
	shard_begin(shard);
}

size_t shard_end(struct shard *shard)
{
	struct shared_state *shared = shard->shared;
	size_t taken = shard->spare.taken;
	struct tw_cache_entry *freed;
	bool has_spare;

	if (__builtin_expect(shard->must_tend, 0))
		(void)shard_tend(shard, 1);
	if (__builtin_expect(shard->spare.bytes > SPARE_LEAST, 0))
		shard_trim(shard);
	/* A thread that exceeds a limit enforces it after its own addition. */
	if (shard->entries_more != 0)
		counter_add_shared(&shared->entries, shard->entries_more);
	if (shard->bytes_more != 0)
		counter_add_shared(&shared->bytes, shard->bytes_more);
	shard->entries_more = 0;
	shard->bytes_more = 0;
	shard->spare.taken = 0;
	has_spare = shard->spare.bytes > 0;
	freed = shard->freed;
	shard->freed = NULL;
	turn_lock_let_go(&shard->lock);
	if (has_spare)
		shared_ask_maintenance(shared);
	if (__builtin_expect(freed != NULL, 0))
		entry_free(freed);
	return taken;
}

size_t shard_tidy(struct shard *shard, size_t steps)
{
	enum { RESIZED = 16 };
	bool goes_on = true;

	while (steps > 0 && goes_on) {
		shard_begin_again(shard);
		goes_on = shard_tend(shard, RESIZED);
		goes_on |= spare_return_some(&shard->spare, shard->shared->pool, SHARD_STEP);
		(void)shard_end(shard);
		steps -= goes_on;
	}
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
			(void)shard_note_next(shard, EXPIRY_NEVER);
			shard_arm(shard, shard_next_tick(shard));
		}
		(void)shard_end(shard);
	} while (goes_on);
	(void)shard_tidy(shard, SIZE_MAX);
}

/* ---- All entries ---- */

void shard_clear(struct shard *shard, enum tw_cache_cause cause)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	struct shard_walk walk = {0};

	do {
		tw_duration now;
		size_t count;

		shard_begin_again(shard);
		now = tw_now(shard->shared->wheel);
		/* Loads that begin later may land, as a set during the call may. */
		if (walk.position == 0)
			flights_override_all(&shard->flights);
		count = shard_walk_on(shard, &walk, entries, SHARD_STEP);
		for (size_t i = 0; i < count; i++)
			shard_unlink_entry(shard, entries[i], cause, now);
		(void)shard_end(shard);
	} while (!walk.is_over);
	(void)shard_tidy(shard, SIZE_MAX);
}

/* ---- Opening and closing ---- */

enum tw_status shard_open(struct shard *shard, struct shared_state *shared,
			  struct removals *removals) IS_NOT_FOLLOWED
{
	shard->shared = shared;
	shard->removals = removals;
	flights_init(&shard->flights);
	shard->expiry.pool = shared->pool;
	shard->expiry.now = shard_tick_by(shard, tw_now(shared->wheel));
	(void)shard_note_next(shard, EXPIRY_NEVER);
	turn_lock_init(&shard->lock, &shard->sleep);
	tables_init(shard->sizes, shard->least);
	shard->table = &shard->sizes[0];
	atomic_init(&shard->place, table_place(shard->table));
	return tw_alarm_init(shared->wheel, &shard->alarm, shard_expire, shard);
}

void shard_close(struct shard *shard)
{
	tw_alarm_destroy(&shard->alarm);
	expiry_close(&shard->expiry);
	while (spare_return_some(&shard->spare, shard->shared->pool, SHARD_STEP))
		continue;
	tables_close(shard->sizes);
	policy_forget(&shard->policy);
	flights_close(&shard->flights);
	turn_lock_destroy(&shard->lock);
}
