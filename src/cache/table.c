/* SPDX-License-Identifier: MIT */
/*
 * A table is open addressing by buckets of eight slots, which fill one cache line. A slot holds 16
 * bits of the hash beside the address, so that a lookup touches the bucket and, except by a chance
 * of one in 8,000, only the entry it looks for.
 *
 * A key whose bucket is full goes to the next one with room. How many did so is counted in the
 * bucket they passed, in the four lowest bits of its slots, which the address (a multiple of 16)
 * leaves free. The first slot counts to 15, then the second goes on, and so forth, and they are
 * counted down in the opposite order: so a lookup ends where the first slot's count is 0. All eight
 * count to 120; there a count stays until the table is rebuilt. (15 were too few: where keys come
 * and go, sooner or later every bucket got there, and then each miss searched the whole table.)
 *
 * Readers. An entry never moves within a table, and a replacement is one store, so a key that is
 * there all the time is found at any moment. The table of the next size is filled in steps, bucket
 * by bucket, and published whole (shard.c). The memory of the old one goes back to the system and
 * reads as zero, but stays mapped until the shard ends, for the next time that it is used.
 *
 * Invariants: an entry is in one slot, in its hash's bucket or in one after it, with room in none
 * that it passed when it came; each bucket that it passed counts it, or counts 120. `count` is the
 * number of entries.
 *
 * May run together: one change, under the lock, with any number of lookups. Linearization: the
 * store into the slot; of a lookup, its load of the slot, or of the slots that were empty.
 */
#include "table.h"

#include <assert.h>

#include "base/pages.h"

static void slot_store(_Atomic uint64_t *slot, uint64_t word)
{
	/* seq_cst: publishes the entry, and takes its place among all changes; pairs with
	 * slot_load(). */
	atomic_store_explicit(slot, word, memory_order_seq_cst);
}

void tables_init(struct table tables[TABLE_SIZES], struct bucket least[TABLE_LEAST])
{
	tables[0].mask = TABLE_LEAST - 1;
	tables[0].buckets = least;
	for (size_t i = 1; i < TABLE_SIZES; i++)
		tables[i].mask = ((size_t)TABLE_PAGE / 2 << i) - 1;
}

static size_t table_size(const struct table *table)
{
	return (table->mask + 1) * sizeof(struct bucket);
}

bool table_open(struct table *table)
{
	if (!table->buckets)
		table->buckets = pages_map_untouched(table_size(table));
	return table->buckets;
}

bool table_release_some(struct table *table)
{
	/* They take some 10 us. */
	enum { BUCKETS = 2048 };
	struct bucket *first = &table->buckets[table->released];
	size_t left = table->mask + 1 - table->released;

	left = left < BUCKETS ? left : BUCKETS;
	/* release: a reader that sees a zero sees that the shard has another table; pairs with
	 * look_fence(). */
	if (!SANITIZER_THREAD)
		atomic_thread_fence(memory_order_release);
	if (!pages_release(first, left * sizeof(*first)))
		for (size_t i = 0; i < left * BUCKET_SLOTS; i++)
			/* relaxed: after the fence. */
			atomic_store_explicit(&first[i / BUCKET_SLOTS].slots[i % BUCKET_SLOTS], 0,
					      memory_order_relaxed);
	table->released += left;
	if (table->released <= table->mask)
		return true;
	table->released = 0;
	table->count = 0;
	return false;
}

void tables_close(struct table tables[TABLE_SIZES])
{
	for (size_t i = 1; i < TABLE_SIZES; i++)
		if (tables[i].buckets)
			pages_unmap_aligned(tables[i].buckets, table_size(&tables[i]));
}

/* Counts one key more that has passed the bucket. */
static void bucket_count_passed(struct bucket *bucket)
{
	for (int i = 0; i < BUCKET_SLOTS; i++) {
		uint64_t slot = slot_load(&bucket->slots[i]);

		if ((slot & SLOT_PASSED) == SLOT_PASSED)
			continue;
		slot_store(&bucket->slots[i], slot + 1);
		return;
	}
}

/* Counts one key less that has passed the bucket. */
static void bucket_uncount_passed(struct bucket *bucket)
{
	int last = BUCKET_SLOTS - 1;
	uint64_t slot = slot_load(&bucket->slots[last]);

	/* There may be more than were counted. */
	if ((slot & SLOT_PASSED) == SLOT_PASSED)
		return;
	while ((slot & SLOT_PASSED) == 0)
		slot = slot_load(&bucket->slots[--last]);
	slot_store(&bucket->slots[last], slot - 1);
}

_Atomic uint64_t *table_find_address(struct table *table, uint64_t hash,
				     const struct tw_cache_entry *entry)
{
	for (size_t n = 0; n <= table->mask; n++) {
		struct bucket *bucket = table_bucket(table, (uint32_t)hash + n);

		for (int i = 0; i < BUCKET_SLOTS; i++)
			if (slot_entry(slot_load(&bucket->slots[i])) == entry)
				return &bucket->slots[i];
		if (!bucket_was_passed(bucket))
			break;
	}
	return NULL;
}

/* Returns the first empty slot from that bucket on. The buckets before it count what is coming. */
static _Atomic uint64_t *table_seek_empty(struct table *table, size_t number)
{
	for (;; number++) {
		struct bucket *bucket = table_bucket(table, number);

		for (int i = 0; i < BUCKET_SLOTS; i++)
			if (slot_is_empty(slot_load(&bucket->slots[i])))
				return &bucket->slots[i];
		bucket_count_passed(bucket);
	}
}

/* Stores the word in an empty slot. Returns the number of its bucket. */
static size_t table_add_slot(struct table *table, uint32_t hash, uint64_t word)
{
	_Atomic uint64_t *slot = table_seek_empty(table, hash);

	slot_store(slot, word | slot_load(slot));
	table->count++;
	return table_bucket_number(table, slot);
}

size_t table_add(struct table *table, uint64_t hash, struct tw_cache_entry *entry)
{
	assert(table_has_room(table));
	return table_add_slot(table, (uint32_t)hash,
			      (uint64_t)(uintptr_t)entry | (hash & 0xffff000000000000u));
}

void table_replace(_Atomic uint64_t *slot, struct tw_cache_entry *entry)
{
	uint64_t kept = slot_load(slot) & (0xffff000000000000u | SLOT_PASSED);

	slot_store(slot, kept | (uint64_t)(uintptr_t)entry);
}

size_t table_remove(struct table *table, _Atomic uint64_t *slot)
{
	size_t number = table_bucket_number(table, slot);
	size_t passed = slot_entry(slot_load(slot))->hash & table->mask;

	slot_store(slot, slot_load(slot) & SLOT_PASSED);
	table->count--;
	for (; passed != number; passed = (passed + 1) & table->mask)
		bucket_uncount_passed(&table->buckets[passed]);
	return number;
}

bool table_copy_some(const struct table *table, size_t *position, size_t buckets,
		     struct table *copy)
{
	enum { AHEAD = 4 };

	for (; *position <= table->mask && buckets > 0; ++*position, buckets--) {
		const struct bucket *bucket = table_bucket(table, *position);
		const struct bucket *ahead = table_bucket(table, *position + AHEAD);

		for (int i = 0; i < BUCKET_SLOTS; i++)
			entry_prefetch(slot_entry(slot_load(&ahead->slots[i])));
		for (int i = 0; i < BUCKET_SLOTS; i++) {
			uint64_t slot = slot_load(&bucket->slots[i]);

			if (!slot_is_empty(slot))
				(void)table_add_slot(copy, slot_entry(slot)->hash,
						     slot & ~(uint64_t)SLOT_PASSED);
		}
	}
	return *position <= table->mask;
}

size_t table_list(const struct table *table, size_t *position, struct tw_cache_entry **entries,
		  size_t most)
{
	enum { BUCKETS = 64 };
	size_t end = *position + BUCKETS;
	size_t count = 0;

	if (end > table->mask + 1)
		end = table->mask + 1;
	for (; *position < end && count + BUCKET_SLOTS <= most; ++*position) {
		const struct bucket *bucket = table_bucket(table, *position);

		for (int i = 0; i < BUCKET_SLOTS; i++) {
			struct tw_cache_entry *entry = slot_entry(slot_load(&bucket->slots[i]));

			if (entry)
				entries[count++] = entry;
		}
	}
	return count;
}
