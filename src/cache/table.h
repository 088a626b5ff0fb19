/* SPDX-License-Identifier: MIT */
/*
 * A shard's table from key to entry: buckets of one cache line. Found by any thread inside an
 * epoch, without a lock; changed under the shard's lock.
 */
#ifndef CACHE_TABLE_H
#define CACHE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arena.h"
#include "entry.h"

enum { BUCKET_SLOTS = 8, SLOT_PASSED = 15 };

/* A slot: the tag in the upper 16 bits, then the entry's address; in the 4 bits that leaves free, a
 * part of how many have passed the bucket. No address: empty. */
struct bucket {
	_Alignas(64) _Atomic uint64_t slots[BUCKET_SLOTS];
};

struct table {
	/* Constant. */
	size_t mask; /* buckets - 1 */
	struct bucket *buckets;
	struct arena *arena; /* the shard sees to it that it lives */
	struct arena_span span;
	/* Under the shard's lock; on another cache line, for it changes. */
	_Alignas(64) size_t count;
	struct table *limbo_next;
	uint64_t limbo_epoch;
};

/* Empty, for at least so many entries; NULL: out of memory. */
struct table *table_new(struct arena *arena, size_t entries);
/* NULL is fine. */
void table_free(struct table *table);

static inline struct tw_cache_entry *slot_entry(uint64_t slot)
{
	return (struct tw_cache_entry *)(uintptr_t)(slot & 0x0000fffffffffff0u);
}

static inline bool slot_has_tag(uint64_t slot, uint64_t hash)
{
	return (slot ^ hash) >> 48 == 0;
}

/* Most keys are short: the first and the last 8 bytes, which overlap, are all there is. */
static inline bool keys_are_equal(const unsigned char *a, const unsigned char *b, size_t size)
{
	uint64_t words[4];

	if (size < 8 || size > 16)
		return memcmp(a, b, size) == 0;
	memcpy(&words[0], a, 8);
	memcpy(&words[1], b, 8);
	memcpy(&words[2], a + size - 8, 8);
	memcpy(&words[3], b + size - 8, 8);
	return ((words[0] ^ words[1]) | (words[2] ^ words[3])) == 0;
}

static inline bool entry_has_key(const struct tw_cache_entry *entry, const void *key, size_t size)
{
	return entry->key_size == size && keys_are_equal(entry_key(entry), key, size);
}

static inline void table_prefetch_bucket(const struct table *table, uint64_t hash)
{
	__builtin_prefetch(&table->buckets[(uint32_t)hash & table->mask]);
}

static inline uint64_t slot_load(const _Atomic uint64_t *slot)
{
	/* seq_cst: after reader_enter(); also acquires the entry that table_add() has published. */
	return atomic_load_explicit(slot, memory_order_seq_cst);
}

static inline struct bucket *table_bucket(const struct table *table, size_t number)
{
	return &table->buckets[number & table->mask];
}

/*
 * A bit for each slot with the tag. Without a branch: which slot it will be the processor can't
 * foresee, and would throw away what it has begun of the next lookup.
 */
static inline unsigned bucket_matches(const struct bucket *bucket, uint64_t hash)
{
	unsigned matches = 0;

#pragma GCC unroll 8
	for (int i = 0; i < BUCKET_SLOTS; i++)
		matches |= (unsigned)slot_has_tag(slot_load(&bucket->slots[i]), hash) << i;
	return matches;
}

/* The first entry in the key's bucket with its tag, to be fetched ahead; NULL: none. */
struct tw_cache_entry *table_guess(const struct table *table, uint64_t hash);

/* The key's slot; NULL: it has none. *entry is what was in it. Here, for each instruction less of a
 * lookup brings the processor nearer to the memory of the next one while it waits for this one's. */
static inline _Atomic uint64_t *table_find_slot(struct table *table, uint64_t hash, const void *key,
						size_t size, struct tw_cache_entry **entry)
{
	size_t number = (uint32_t)hash & table->mask;

	for (size_t n = 0; n <= table->mask; n++, number++) {
		struct bucket *bucket = table_bucket(table, number);
		uint64_t first = slot_load(&bucket->slots[0]);
		unsigned matches = bucket_matches(bucket, hash);

		for (; matches != 0; matches &= matches - 1) {
			_Atomic uint64_t *slot = &bucket->slots[__builtin_ctz(matches)];

			*entry = slot_entry(slot_load(slot));
			entry_prefetch(*entry);
			if (*entry && entry_has_key(*entry, key, size))
				return slot;
		}
		if ((first & SLOT_PASSED) == 0)
			break;
	}
	*entry = NULL;
	return NULL;
}

static inline struct tw_cache_entry *table_find(struct table *table, uint64_t hash, const void *key,
						size_t size)
{
	struct tw_cache_entry *entry;

	return table_find_slot(table, hash, key, size, &entry) ? entry : NULL;
}

/* Under the shard's lock. */
bool table_is_full(const struct table *table);
bool table_has_room(const struct table *table);
bool table_is_sparse(const struct table *table);
/* A new key, with room for it. */
void table_add(struct table *table, uint64_t hash, struct tw_cache_entry *entry);
/* Puts `entry` in the place of another of the same key. */
void table_replace(_Atomic uint64_t *slot, struct tw_cache_entry *entry);
void table_remove(struct table *table, struct tw_cache_entry *entry);
/* The same entries in a table for so many; NULL: out of memory. */
struct table *table_copy(const struct table *table, size_t entries);
/* Up to `most` entries from bucket *position on, which goes on; 0: no more. most ≥ 8. */
size_t table_list(const struct table *table, size_t *position, struct tw_cache_entry **entries,
		  size_t most);

#endif
