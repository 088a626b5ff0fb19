/* SPDX-License-Identifier: MIT */
/* The checks of the cache's invariants, which the design blocks of src/cache state. */
#include "cache_check.h"

#undef NDEBUG
#include <assert.h>

#include "base/compiler.h"
#include "cache/cache.h"

/* ---- A shard, under its lock ---- */

/* Asserts that each entry is in no other slot, and that all buckets on the way to it know. */
static void check_table(struct table *table)
{
	size_t count = 0;

	for (size_t number = 0; number <= table->mask; number++)
		for (int i = 0; i < BUCKET_SLOTS; i++) {
			const _Atomic uint64_t *slot = &table->buckets[number].slots[i];
			const struct tw_cache_entry *entry = slot_entry(slot_load(slot));

			if (!entry)
				continue;
			assert(table_find_address(table, entry->hash, entry) == slot);
			count++;
		}
	assert(count == table->count);
}

static void check_queue(const struct policy_queue *queue, unsigned place)
{
	const struct list *link = queue->entries.next;
	uint64_t weight = 0;
	size_t count = 0;

	for (; link != &queue->entries; link = link->next, count++) {
		const struct tw_cache_entry *entry =
			list_entry(link, struct tw_cache_entry, policy_link);

		assert(link->next->previous == link);
		assert(entry_state(entry) & ENTRY_LINKED);
		assert((entry_state(entry) & ENTRY_MAIN) == place);
		weight += entry_weight(entry);
	}
	assert(count == queue->count && weight == queue->weight);
}

/* Returns the number of entries in both queues. */
static size_t check_policy(const struct policy *policy)
{
	check_queue(&policy->main, ENTRY_MAIN);
	check_queue(&policy->small, ENTRY_SMALL);
	return policy->main.count + policy->small.count;
}

/* Asserts that the blocks of a list have one place. Returns the number of their hashes. */
static size_t check_blocks(const struct expiry_block *block)
{
	size_t count = 0;

	for (; block; block = block->next) {
		assert(!block->next || block->next->place == block->place);
		assert(block->count <= EXPIRY_BLOCK_MOST);
		count += block->count;
	}
	return count;
}

static void check_expiry(const struct expiry *expiry)
{
	size_t count = check_blocks(expiry->due);

	for (unsigned slot = 0; slot < EXPIRY_ALL_SLOTS; slot++) {
		unsigned level = slot / EXPIRY_SLOTS;
		unsigned turn = expiry->turns[level] >> slot % EXPIRY_SLOTS & 1;
		unsigned place = slot * 2 + turn;

		if (!expiry->slots[slot])
			continue;
		assert(expiry->used[level] >> slot % EXPIRY_SLOTS & 1);
		assert(expiry_place_tick(expiry, place) > expiry->now);
		assert(expiry->slots[slot]->place == place);
		count += check_blocks(expiry->slots[slot]);
	}
	assert(count == expiry->count);
}

/* Asserts that an entry's hash is filed under the tick of its deadline or an earlier one. */
static void check_filed(const struct shard *shard, const struct tw_cache_entry *entry)
{
	tw_duration deadline = entry_deadline(entry);
	uint64_t tick;

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
}

/* Asserts that the loads are the shard's, not over, and those in chains of different keys, for the
 * first 64. */
static void check_loads(const struct shard *shard)
{
	enum { MOST = 64 };
	const struct flights *flights = &shard->flights;
	const struct list *link;

	assert(flights->queued <= flights->count && flights->pauses <= FLIGHTS_PAUSED);
	assert(flights->pauses <= flights->chained &&
	       flights->chained <= flights->count + flights->pauses);
	assert(flights->chained == 0 || shard->has_flights);
	link = flights->all.next;
	for (int i = 0; link != &flights->all && i < MOST; i++, link = link->next) {
		const struct tw_cache_loading *loading =
			list_entry(link, struct tw_cache_loading, of_shard);

		assert(loading->shard == shard && loading->state < FLIGHT_PAUSED);
		assert((flights_find(flights, loading->hash, loading->key, loading->key_size) ==
			loading) == flight_is_current(loading, flights));
	}
	link = flights->paused.next;
	for (int i = 0; link != &flights->paused && i < MOST; i++, link = link->next) {
		const struct tw_cache_loading *paused =
			list_entry(link, struct tw_cache_loading, of_shard);

		assert(paused->state == FLIGHT_PAUSED && paused->forget_at >= flights->forget_at);
		/* The thread that has ended it may still be answering its askers. */
		assert(flights_find(flights, paused->hash, paused->key, paused->key_size) ==
		       paused);
	}
}

/* Asserts that the next table has the entry if its bucket was copied. Returns whether it was. */
static bool check_copied(struct shard *shard, const struct tw_cache_entry *entry)
{
	struct table *table = shard->table;
	bool is_copied;

	if (!shard->next || shard->next_copied == 0)
		return false;
	is_copied = table_bucket_number(table, table_find_address(table, entry->hash, entry)) <
		    shard->next_copied;
	assert(is_copied == (table_find_address(shard->next, entry->hash, entry) != NULL));
	return is_copied;
}

/* Returns the sum of the entries' weights. */
static uint64_t check_shard(struct shard *shard)
{
	struct table *table = shard->table;
	size_t known = check_policy(&shard->policy);
	size_t position = 0;
	size_t copied = 0;
	uint64_t weight = 0;

	check_table(table);
	assert(known == (shard->policy.is_on ? table->count : 0));
	check_expiry(&shard->expiry);
	check_loads(shard);
	while (position <= table->mask) {
		struct tw_cache_entry *entries[SHARD_STEP];
		size_t count = table_list(table, &position, entries, SHARD_STEP);

		for (size_t i = 0; i < count; i++) {
			assert(entry_state(entries[i]) & ENTRY_LINKED);
			check_filed(shard, entries[i]);
			copied += check_copied(shard, entries[i]);
			weight += entry_weight(entries[i]);
		}
	}
	assert(!shard->next || shard->next_copied == 0 || shard->next->count == copied);
	return weight;
}

/* ---- A cache ---- */

/* Asserts all shards' sums, under all their locks. No other thread has two of these at a time. */
static void check_sums(struct tw_cache *cache) IS_NOT_FOLLOWED
{
	uint64_t entries = 0;
	uint64_t bytes = 0;

	for (unsigned i = 0; i <= cache->shard_mask; i++)
		turn_lock_take(&cache->shards[i].lock);
	for (unsigned i = 0; i <= cache->shard_mask; i++) {
		bytes += check_shard(&cache->shards[i]);
		entries += cache->shards[i].table->count;
	}
	assert(entries == counter_read(&cache->shared.entries));
	assert(bytes == counter_read(&cache->shared.bytes));
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		turn_lock_let_go(&cache->shards[i].lock);
}

void cache_check(struct tw_cache *cache)
{
	enum { LOCKS_MOST = 32 }; /* the thread sanitizer allows a thread 64 locks */

	if (!SANITIZER_THREAD || cache->shard_mask < LOCKS_MOST) {
		check_sums(cache);
		return;
	}
	for (unsigned i = 0; i <= cache->shard_mask; i++) {
		turn_lock_take(&cache->shards[i].lock);
		(void)check_shard(&cache->shards[i]);
		turn_lock_let_go(&cache->shards[i].lock);
	}
}
