/* SPDX-License-Identifier: MIT */
/*
 * A table finds the entries of a shard by their keys, in buckets of one cache line. Any thread
 * may search it, without a lock (lookup.c); it is changed under the shard's lock.
 */
#ifndef CACHE_TABLE_H
#define CACHE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/key.h"
#include "entry.h"

/* At most BUCKET_USED_MOST slots of a bucket are used on average: with one more, and keys that come
 * and go, a miss searches a dozen buckets. */
enum { BUCKET_SLOTS = 8, BUCKET_USED_MOST = 6, SLOT_PASSED = 15 };

/* A slot has the tag in the upper 16 bits, then the entry's address, and in the 4 bits that leaves
 * free a part of how many have passed the bucket. A slot without an address is empty. */
struct bucket {
	_Alignas(64) _Atomic uint64_t slots[BUCKET_SLOTS];
};

/* The least table has TABLE_LEAST buckets, which are part of the shard; the next one fills a page,
 * and each further one is twice as large. */
enum { TABLE_LEAST = 8, TABLE_PAGE = 64, TABLE_SIZES = 28 };

/* A shard has a table of each size, in an array, and one in use. */
struct table {
	size_t mask;            /* buckets - 1; constant */
	struct bucket *buckets; /* NULL before the first use; then constant */
	/* Under the shard's lock. */
	size_t count;
	size_t released; /* buckets that read as zero, once another table has its place */
};

void tables_init(struct table tables[TABLE_SIZES], struct bucket least[TABLE_LEAST]);
/* Maps the buckets of one of a shard's tables, if it has none. Returns false if out of memory. */
bool table_open(struct table *table);
/* Gives some memory of a table that was in use back to the system; readers may still look at it.
 * Returns false if it is empty now, and may be used again. */
bool table_release_some(struct table *table);
/* Unmaps all tables of a shard, at which no thread looks. */
void tables_close(struct table tables[TABLE_SIZES]);

/* Returns the bytes of memory that the table takes. */
static inline size_t table_bytes(const struct table *table)
{
	return (table->mask + 1 - table->released) * sizeof(struct bucket);
}

static inline struct tw_cache_entry *slot_entry(uint64_t slot)
{
	return (struct tw_cache_entry *)(uintptr_t)(slot & 0x0000fffffffffff0u);
}

/* A slot without an entry has no tag. */
static inline bool slot_is_empty(uint64_t slot)
{
	return slot <= SLOT_PASSED;
}

static inline bool entry_has_key(const struct tw_cache_entry *entry, const void *key, size_t size)
{
	return entry->key_size == size && keys_are_equal(entry_key(entry), key, size);
}

/*
 * Returns where a table's buckets lie, in one word: the address, a multiple of 64, and how many
 * bits number them.
 */
static inline uintptr_t table_place(const struct table *table)
{
	return (uintptr_t)table->buckets | (unsigned)__builtin_ctzll(table->mask + 1);
}

static inline const struct bucket *place_bucket(uintptr_t place, uint64_t hash)
{
	uintptr_t number = (uint32_t)hash & (((uintptr_t)1 << (place & 63)) - 1);

	return (const struct bucket *)((place & ~(uintptr_t)63) + number * sizeof(struct bucket));
}

static inline uint64_t slot_load(const _Atomic uint64_t *slot)
{
	/* seq_cst: changes and lookups of several keys have one order; pairs with slot_store(). It
	 * also acquires the entry. */
	return atomic_load_explicit(slot, memory_order_seq_cst);
}

/* Returns the slot, which was looked at before, another time. */
static inline uint64_t slot_load_again(const _Atomic uint64_t *slot)
{
	/* acquire: if the entry has come into the slot again, its new life is seen; pairs with
	 * slot_store(). */
	return atomic_load_explicit(slot, memory_order_acquire);
}

static inline struct bucket *table_bucket(const struct table *table, size_t number)
{
	return &table->buckets[number & table->mask];
}

/*
 * bucket_matches() returns a bit for each slot with the tag. It has no branch: the processor can't
 * foresee which slot it will be, and would throw away what it has begun of the next lookup.
 */
#if CACHE_HAS_SSE2
/* Returns the upper words, of 32 bits, of four slots: half a bucket. */
static inline __m128i slots_upper_words(const _Atomic uint64_t *slots)
{
	__m128i first;
	__m128i second;

	/* This does what four slot_load() do: x86 reads each aligned word whole, and in the order
	 * of the program. The candidates are read again, one by one. By volatile and "memory" the
	 * compiler keeps that order, too. */
	__asm__ volatile("movdqa %2, %0\n\tmovdqa %3, %1"
			 : "=&x"(first), "=x"(second)
			 : "m"(*(const __m128i *)(const void *)&slots[0]),
			   "m"(*(const __m128i *)(const void *)&slots[2])
			 : "memory");
	return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(first), _mm_castsi128_ps(second),
					       _MM_SHUFFLE(3, 1, 3, 1)));
}

static inline unsigned bucket_matches(const struct bucket *bucket, uint64_t hash)
{
	/* These are the tags, one to each of eight words of 16 bits. */
	__m128i tags = _mm_packs_epi32(_mm_srai_epi32(slots_upper_words(&bucket->slots[0]), 16),
				       _mm_srai_epi32(slots_upper_words(&bucket->slots[4]), 16));
	__m128i equal = _mm_cmpeq_epi16(tags, _mm_set1_epi16((short)(hash >> 48)));

	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()));
}
#else
static inline unsigned bucket_matches(const struct bucket *bucket, uint64_t hash)
{
	unsigned matches = 0;

#pragma GCC unroll 8
	for (int i = 0; i < BUCKET_SLOTS; i++)
		matches |= (unsigned)((slot_load(&bucket->slots[i]) ^ hash) >> 48 == 0) << i;
	return matches;
}
#endif

/* Returns whether keys have gone to a bucket after this one. */
static inline bool bucket_was_passed(const struct bucket *bucket)
{
	return (slot_load(&bucket->slots[0]) & SLOT_PASSED) != 0;
}

/* Returns the entry in the first slot of `matches`, which is not 0. Returns NULL if it is gone, or
 * if the tag is that of empty slots. */
static inline struct tw_cache_entry *bucket_first(const struct bucket *bucket, unsigned matches)
{
	return slot_entry(slot_load(&bucket->slots[__builtin_ctz(matches)]));
}

/* Returns the slot that holds that address, or NULL. Under the shard's lock. */
_Atomic uint64_t *table_find_address(struct table *table, uint64_t hash,
				     const struct tw_cache_entry *entry);

/* ---- Under the shard's lock ---- */

/* Returns whether a larger table should take its place. */
static inline bool table_is_full(const struct table *table)
{
	return table->count >= (table->mask + 1) * BUCKET_USED_MOST;
}

static inline bool table_has_room(const struct table *table)
{
	return table->count < (table->mask + 1) * BUCKET_SLOTS;
}

/* Returns whether the next smaller table should take its place: it would be half full. */
static inline bool table_is_sparse(const struct table *table)
{
	return table->mask >= TABLE_LEAST && table->count < (table[-1].mask + 1) * BUCKET_SLOTS / 2;
}

/* Adds the entry of a new key, for which there is room. Returns the number of its bucket. */
size_t table_add(struct table *table, uint64_t hash, struct tw_cache_entry *entry);
/* Puts `entry` in the place of another of the same key. */
void table_replace(_Atomic uint64_t *slot, struct tw_cache_entry *entry);
/* Empties the slot, which holds an entry. Returns the number of its bucket. */
size_t table_remove(struct table *table, _Atomic uint64_t *slot);
static inline size_t table_bucket_number(const struct table *table, const _Atomic uint64_t *slot)
{
	return (size_t)(slot - table->buckets[0].slots) / BUCKET_SLOTS;
}

/* A walk goes through the entries with one hash, as far as the table keeps it. */
struct table_walk {
	uint64_t hash;
	size_t passed;          /* buckets that are done */
	unsigned matches;       /* slots of the present bucket that are still to be looked at */
	_Atomic uint64_t *slot; /* the slot of the entry that was returned last */
};

/* Begins a walk, and fetches the entry that is most probably its first. */
static inline struct table_walk table_walk_begin(const struct table *table, uint64_t hash)
{
	const struct bucket *bucket = table_bucket(table, (uint32_t)hash);
	struct table_walk walk = {.hash = hash, .matches = bucket_matches(bucket, hash)};

	if (walk.matches != 0)
		__builtin_prefetch(bucket_first(bucket, walk.matches), 1);
	return walk;
}

/* Returns the next entry, or NULL if there is no more. The entry returned last may be removed in
 * between. */
static inline struct tw_cache_entry *table_walk_on(const struct table *table,
						   struct table_walk *walk)
{
	for (;;) {
		size_t number = (uint32_t)walk->hash + walk->passed;
		struct bucket *bucket = table_bucket(table, number);

		while (walk->matches != 0) {
			struct tw_cache_entry *entry = bucket_first(bucket, walk->matches);

			walk->slot = &bucket->slots[__builtin_ctz(walk->matches)];
			walk->matches &= walk->matches - 1;
			if (entry && entry->hash == (uint32_t)walk->hash)
				return entry;
		}
		if (!bucket_was_passed(bucket) || walk->passed == table->mask)
			return NULL;
		walk->passed++;
		walk->matches = bucket_matches(table_bucket(table, number + 1), walk->hash);
	}
}

/* Returns the key's entry and sets its slot, or returns NULL. */
static inline __attribute__((always_inline)) struct tw_cache_entry *table_find(
	const struct table *table, uint64_t hash, const void *key, size_t size,
	_Atomic uint64_t **slot)
{
	for (size_t number = (uint32_t)hash;;) {
		struct bucket *bucket = table_bucket(table, number);
		unsigned matches = bucket_matches(bucket, hash);

		for (; __builtin_expect(matches != 0, 1); matches &= matches - 1) {
			struct tw_cache_entry *entry;

			*slot = &bucket->slots[__builtin_ctz(matches)];
			entry = slot_entry(slot_load(*slot));
			if (__builtin_expect(entry && entry_has_key(entry, key, size), 1))
				return entry;
		}
		if (__builtin_expect(!bucket_was_passed(bucket), 1) ||
		    number++ - (uint32_t)hash == table->mask)
			return NULL;
	}
}

/* Copies the entries of `buckets` buckets from *position on, 0 first, to `copy`, which has room.
 * Returns false if no bucket is left. */
bool table_copy_some(const struct table *table, size_t *position, size_t buckets,
		     struct table *copy);
/* Lists up to `most` entries of the buckets from *position on, which goes on by 64 at most. Returns
 * their number. Behind the mask there are no more. most ≥ 8. */
size_t table_list(const struct table *table, size_t *position, struct tw_cache_entry **entries,
		  size_t most);

#endif
