/* SPDX-License-Identifier: MIT */
/*
 * A look finds a key's entry without a lock, in memory that may be another's by now: what it has
 * read counts if look_holds() afterwards.
 *
 * A glance is the part of a lookup that suffices for most keys.
 *
 * While a lookup waits for memory, the processor continues into the next lookup and to what that
 * one will wait for: as far as its queues reach (320 operations on Zen 4, 64 stores, and 96 that
 * wait for what is still to come). So what counts is how little is done, and above all how little
 * of it depends on what was fetched. A glance knows a short key, found as the first of its bucket
 * with its tag, in an entry with nothing special, whose deadline is far; or a miss, where no slot
 * of the bucket has the tag, and no key has passed the bucket. All else is left to look_seek().
 */
#ifndef CACHE_LOOKUP_H
#define CACHE_LOOKUP_H

#include "cache.h"

/* Orders what a look has read before what it looks at again. The thread sanitizer knows no fences,
 * and the memory is never torn under it. */
static inline void look_fence(void)
{
	/* acquire: a look that has read a later life's words, or zeros, sees what came before them;
	 * pairs with entry_make(), pool_rest_page() and table_release_some(). */
	if (!SANITIZER_THREAD)
		atomic_thread_fence(memory_order_acquire);
}

struct look {
	struct shard *shard;
	uint64_t hash;
	uint64_t tables; /* the shard's, before its place was read */
	uintptr_t place;
	/* What may be the key's. */
	const _Atomic uint64_t *slot;
	uint64_t word;
	struct tw_cache_entry *entry;
	uint64_t life; /* with the state: where that changes, the look is made again */
};

/* Begins to look for a key, and fetches its bucket. */
static inline void look_begin(struct look *look)
{
	look->tables = shard_tables(look->shard);
	look->place = shard_place(look->shard);
	__builtin_prefetch(place_bucket(look->place, look->hash));
}

/* Looks at a slot of the bucket, which had the key's tag. Returns false if there is no entry. */
static inline bool look_at(struct look *look, const _Atomic uint64_t *slot)
{
	look->slot = slot;
	look->word = slot_load(slot);
	look->entry = slot_entry(look->word);
	if (!look->entry)
		return false;
	look->life = entry_life(look->entry);
	return true;
}

/* Returns whether the table is still the shard's, so that what was not found in it is not there. */
static inline bool look_has_table(const struct look *look)
{
	look_fence();
	return shard_tables(look->shard) == look->tables;
}

/* Returns whether all that was read of the entry since look_at() is the entry's, and the entry is
 * the key's if it has the key. The order counts: the table, the slot, the life. */
static inline bool look_holds(const struct look *look)
{
	return look_has_table(look) && slot_load_again(look->slot) == look->word &&
	       /* relaxed: the slot was loaded by acquire, so a later life is seen. */
	       atomic_load_explicit(&look->entry->life, memory_order_relaxed) == look->life;
}

enum glance_result {
	GLANCE_HIT,     /* what it found may be copied or pinned, and holds if the look does */
	GLANCE_MISS,    /* the key is not there */
	GLANCE_UNKNOWN, /* not known yet */
	GLANCE_NONE     /* nothing has begun */
};

/* What a glance has found out. All but the look's entry is set except by GLANCE_NONE. */
struct glance {
	struct look look;
	struct caller *caller;
	uint64_t key[2]; /* its first 8 bytes and its last 8 bytes */
};

/* Returns the second word of a short key as entries have it, from the key's last 8 bytes. */
static inline uint64_t short_key_end(uint64_t last, size_t size)
{
	unsigned half = 4 * (unsigned)(16 - size);

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return last >> half >> half;
#else
	return last << half << half;
#endif
}

/* Returns whether an entry with nothing before its key has the glance's key. */
static inline __attribute__((always_inline)) bool glance_has_key(const struct glance *glance,
								 size_t key_size)
{
	const struct tw_cache_entry *entry = glance->look.entry;

	return peek(entry->key_size) == key_size && peek(entry->kind) == 0 &&
	       word_load(entry->bytes) == glance->key[0] &&
	       (key_size == 8 ||
		word_load(entry->bytes + 8) == short_key_end(glance->key[1], key_size));
}

/* Looks up a short key with that hash. */
static inline __attribute__((always_inline)) enum glance_result cache_glance_hashed(
	struct tw_cache *cache, const void *key, size_t key_size, uint64_t hash,
	struct glance *glance)
{
	struct look *look = &glance->look;
	const struct bucket *bucket;
	unsigned matches;

	look->hash = hash;
	look->shard = cache_shard(cache, hash);
	memcpy(&glance->key[0], key, 8);
	memcpy(&glance->key[1], (const unsigned char *)key + key_size - 8, 8);
	look_begin(look);
	glance->caller = callers_find(&cache->shared.callers);
	if (__builtin_expect(!glance->caller, 0))
		return GLANCE_NONE;
	bucket = place_bucket(look->place, hash);
	matches = bucket_matches(bucket, hash);
	if (__builtin_expect(matches == 0, 0))
		return bucket_was_passed(bucket) || !look_has_table(look) ? GLANCE_UNKNOWN
									  : GLANCE_MISS;
	if (__builtin_expect(!look_at(look, &bucket->slots[__builtin_ctz(matches)]) ||
				     !glance_has_key(glance, key_size) ||
				     entry_deadline(look->entry) <=
					     shared_coarse_now(&cache->shared) +
						     cache->shared.coarse_margin,
			     0))
		return GLANCE_UNKNOWN;
	return GLANCE_HIT;
}

/* Returns whether a glance may look for the key. The arguments need not be valid. */
static inline __attribute__((always_inline)) bool cache_may_glance(const struct tw_cache *cache,
								   const void *key, size_t key_size)
{
	/* relaxed: a call that begins after the stop has it from there. */
	return __builtin_expect(
		cache &&
			atomic_load_explicit(&((struct tw_cache *)cache)->lookups_are_plain,
					     memory_order_relaxed) &&
			key && key_is_short(key_size),
		1);
}

/* Looks a key up. The arguments need not be valid. */
static inline __attribute__((always_inline)) enum glance_result cache_glance(struct tw_cache *cache,
									     const void *key,
									     size_t key_size,
									     struct glance *glance)
{
	return cache_may_glance(cache, key, key_size)
		       ? cache_glance_hashed(cache, key, key_size,
					     key_hash_short(&cache->shared.seed, key, key_size),
					     glance)
		       : GLANCE_NONE;
}

/* Counts what a lookup has found, an entry of that kind or none. Returns TW_OK for a value, or
 * TW_NOT_FOUND. */
static inline enum tw_status caller_count_find(struct caller *caller, bool is_there, unsigned kind)
{
	bool is_value = is_there && !(kind & ENTRY_ABSENT);

	caller_count(caller, is_value ? COUNT_HITS : is_there ? COUNT_ABSENT : COUNT_MISSES, 1);
	return is_value ? TW_OK : TW_NOT_FOUND;
}

/* Counts a hit and a use. */
static inline void glance_count_hit(const struct glance *glance)
{
	policy_use(&glance->look.shard->policy, glance->look.entry);
	caller_count(glance->caller, COUNT_HITS, 1);
}

/* Pins a hit, counts it and returns the entry. Returns NULL if it doesn't hold. */
static inline struct tw_cache_entry *glance_take(const struct glance *glance)
{
	struct tw_cache_entry *entry = glance->look.entry;

	if (__builtin_expect(!entry_try_pin(entry), 0))
		return NULL;
	if (__builtin_expect(!look_holds(&glance->look), 0)) {
		tw_cache_entry_release(entry);
		return NULL;
	}
	glance_count_hit(glance);
	return entry;
}

#endif
